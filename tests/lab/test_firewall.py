# SPDX-License-Identifier: Apache-2.0
"""The firewall of a Linux lab: each forwarded frame is held against its rules, and none matches."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.layers.inet import UDP

from evenhand.lab import LinuxLab, borrow, lab_status, lab_up, linux_lab, machine, nft
from evenhand.lab.namespaces import run_inside
from evenhand.lab.nft import firewall_rules
from evenhand.plan import TOPOLOGIES, AddressPlan, SideCounts, make_plan
from tests.errors import raises
from tests.lab.lab_wire import wire

needs_nft = pytest.mark.skipif(
    shutil.which(nft.PROGRAM, path=machine.system_path()) is None, reason="nftables is not installed"
)


def test_both_ip_versions_have_as_many_rules_that_compare_the_same_octets() -> None:
    """A comparison of 16 octets takes the kernel ten times as long as one of 4."""
    ip, ip6 = firewall_rules(250).split("table ip6 ")
    assert ip.removeprefix("table ip ") == ip6 + "\n"
    assert ip6.count("@nh,96,32 0xc00002") == 250


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_no_rule_matches_what_a_plan_sends(name: str) -> None:
    """As it is sent or as it arrives: octets 12 to 15 of the IP header."""
    ends = [frames for stream in make_plan(name).streams() for frames in stream.ends]
    assert ends
    for sources in (frames.sources for frames in ends):
        for host in (0, sources.count - 1):
            for network in (0, sources.network_count - 1):
                address = sources.address(host, network)
                octets = address.packed if address.version == 4 else address.packed[4:8]
                assert octets[:3] != bytes((192, 0, 2)), address


def test_an_nft_that_does_not_end_is_an_error_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / nft.PROGRAM
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(nft, "system_path", lambda: f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(nft, "_PATIENCE_S", 0.1)
    with raises("rig.rules-refused", match="within 100 ms"):
        nft.set_rules("flush ruleset", what="the NAT")


@needs_nft
@pytest.mark.root
@pytest.mark.parametrize(
    "plan", [make_plan("gateway_v4"), make_plan("gateway_v6")], ids=lambda plan: plan.name
)
def test_a_frame_passes_all_rules(plan: AddressPlan, lab_name: str) -> None:
    """One that comes to the end of the chain was held against all of them."""
    family = "ip" if plan.ip_version == 4 else "ip6"

    def ask(*words: str) -> str:
        done = subprocess.run(["nft", *words], capture_output=True, text=True, timeout=30, check=True)
        return done.stdout

    with linux_lab(plan, name=lab_name, rules=300) as lab, wire(lab, plan) as tester:
        assert lab.facts()["firewall_rules"] == 300
        end = ("add", "rule", family, "evenhand_firewall", "forward", "counter", "comment", '"end"')
        run_inside(lab.dut_namespace, lambda: ask(*end))
        tester.send("left", tester.frame("left", 0, 0, b"1 through"))
        assert bytes(tester.receive_udp("right")[UDP].payload).startswith(b"1 through")
        listed = run_inside(lab.dut_namespace, lambda: ask("list", "ruleset"))
    (last,) = [line for line in listed.splitlines() if "end" in line]
    assert "packets 0" not in last
    others = [line for line in listed.splitlines() if "drop" in line]
    assert len(others) == 600
    assert all("packets 0 bytes 0 drop" in line for line in others)


@pytest.mark.thorough
@needs_nft
@pytest.mark.root
def test_a_borrower_may_wish_other_rules_and_gives_the_lab_back_with_its_own(lab_name: str) -> None:
    """A lab that is right but for its rules is set up anew; without a wish it keeps them."""
    counts = SideCounts(left=2, right=2)
    before = lab_up(make_plan("gateway_v4", (2, 2)), name=lab_name, rules=2)
    wish = borrow.LabWish(plan="gateway_v4", hosts=counts, networks=None)
    with borrow.borrowed(lab_name) as (lab, _):
        assert (lab.takes_rules, lab.users_rules) == (True, 2)
        assert lab.set_up_for(wish) == before
        for rules in (300, 0):
            router = lab.set_up_for(replace(wish, rules=rules))
            assert isinstance(router, LinuxLab)
            assert router.rules == rules
            assert router.facts().get("firewall_rules", 0) == rules
        lab.give_back()
    assert lab_status(lab_name) == before
