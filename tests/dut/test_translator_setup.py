# SPDX-License-Identifier: Apache-2.0
"""`evenhand dut setup` for plans that are translated: what is printed for Linux, and what is
said of the others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from evenhand.dut import OPERATING_SYSTEMS
from evenhand.dut.nat import TAYGA_INTERFACE
from evenhand.plan import make_plan, plan_title
from tests.cli.running import Ended
from tests.dut import goldens
from tests.plan.routed import TRANSLATED

Run = Callable[..., Ended]
LINUX = ("--os", "linux", "--left", "eth1", "--right", "eth2")


@pytest.mark.parametrize("plan", TRANSLATED)
@pytest.mark.parametrize("system", [name for name, each in OPERATING_SYSTEMS.items() if not each.translates])
def test_a_system_without_commands_for_a_translator_is_told_all_that_it_needs(
    dut_setup: Run, system: str, plan: str
) -> None:
    left, right = OPERATING_SYSTEMS[system].interfaces
    ended = dut_setup(plan_title(plan), "--os", system, "--left", left, "--right", right)
    assert ended.code == 2
    assert not ended.out
    text = " ".join(ended.err.split())
    told = make_plan(plan)
    assert told.translation is not None
    needed = [f"prefix {told.translation.prefix}", "forwarding of IPv4 and IPv6"]
    for side in told.sides:
        assert side.gateway is not None
        needed += [f"{side.name} interface {side.dut[0]}", f"{side.routes[0]} by {side.gateway.ip}"]
    if told.translation.needs_mapping:
        needed.append(f"mapping {told.translation.ipv6_hosts_as_ipv4} = {told.translation.ipv6_hosts}")
    assert [words for words in needed if words not in text] == []
    assert ("mapping" in text) == told.translation.needs_mapping


@pytest.mark.parametrize("plan", [*TRANSLATED, "siit@2001:db8::/40", "siit-eam@2001:db8::/64"])
def test_linux_routes_to_tayga_what_is_to_be_translated(dut_setup: Run, plan: str) -> None:
    lines = dut_setup(plan, *LINUX).out.splitlines()
    told = make_plan(plan).translation
    assert told is not None
    assert [
        line for line in lines if line.startswith("ip -") and line.endswith(f"dev {TAYGA_INTERFACE}")
    ] == [
        f"ip -4 route replace 198.18.0.0/16 dev {TAYGA_INTERFACE}",
        f"ip -6 route replace {told.prefix} dev {TAYGA_INTERFACE}",
    ]
    assert [line for line in lines if line.startswith("map ")] == (
        ["map 198.18.0.0/16 2001:2::/112"] if "eam" in plan else []
    )
    assert f"prefix {told.prefix}" in lines
    files = {word for line in lines for word in re.findall(r"[^ ]*/?evenhand/[^ .;]*\.tayga", line)}
    assert files == {f"$evenhand/{re.sub('[^a-z0-9]', '_', plan)}.tayga"}  # each in a folder that there is
    assert any(line.startswith("export evenhand=/run/evenhand-dut-") for line in lines)
    assert [line for line in lines if line.startswith("sysctl -w ") and line.endswith("=1")] == [
        "sysctl -w net.ipv4.ip_forward=1",
        "sysctl -w net.ipv6.conf.all.forwarding=1",
    ]


def test_jool_is_told_the_same(dut_setup: Run) -> None:
    only = dut_setup("siit-eam", *LINUX, "--translator", "jool", "--only", "translator").out
    assert "jool_siit instance add evenhand --netfilter --pool6 2001:2:0:64::/96\n" in only
    assert "jool_siit --instance evenhand eamt add 198.18.0.0/16 2001:2::/112\n" in only
    assert "tayga" not in only.lower()
    document = dut_setup("siit", *LINUX, "--translator", "jool", "--json").json
    assert document["translator"] == "jool"


def test_a_router_has_nothing_to_translate(dut_setup: Run) -> None:
    ended = dut_setup("gateway-v4", *LINUX, "--translator", "tayga")
    assert ended.code == 2
    assert "nothing is translated" in ended.err
    assert "translator" not in dut_setup("gateway-v4", *LINUX, "--json").json


def test_what_is_printed_for_a_translated_plan_is_its_golden_file(dut_setup: Run) -> None:
    printed = "\n".join(dut_setup("siit", *LINUX, *undo).out for undo in ((), ("--undo",)))
    assert printed == (goldens.FOLDER / "linux" / "siit.txt").read_text(encoding="utf-8")
