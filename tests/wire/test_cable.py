# SPDX-License-Identifier: Apache-2.0
"""`evenhand check --cable` on the kernel's interfaces: a cable that is pulled, queues that a hash fills."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.preloaded.commands import evenhand_command
from tests.wire.veth_cable import ip, veth_cable
from tests.wire.wire_session import cpus

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "contract" / "check.schema.json").read_text())
PATIENT = ("--overdue-after", "50ms", "--offered-tolerance", "5%", "--precision", "50%")
QUICK = ("--watch", "0s", "--duration", "0.2s", "--maximum-rate", "5kfps", *PATIENT)


def write_testbed(folder: Path, *, queues: int) -> Path:
    path = folder / "cable.toml"
    keys = f",qpairs={queues}" if queues > 1 else ""
    path.write_text(
        "isolated_test_environment = true\n"
        f'[left]\ndevice = "net_af_packet0,iface=left{keys}"\n'
        f'[right]\ndevice = "net_af_packet1,iface=right{keys}"\n'
        f"[tester]\ncpus = {list(cpus()[-queues:])}\nreceive_queues = {queues}\n"
    )
    return path


@pytest.mark.thorough
def test_a_cable_that_is_pulled_is_told_from_a_link_that_stays_up(tmp_path: Path) -> None:
    """`--pull`: the trial is INVALID for its link, on which each side counts two changes."""
    found = tmp_path / "found.json"
    with veth_cable() as namespace:
        words: list[str | Path] = [
            "check",
            write_testbed(tmp_path, queues=1),
            "--cable",
            found,
            *QUICK,
            "--pull",
            "3s",
        ]
        with subprocess.Popen(
            [*evenhand_command("ip", "netns", "exec", namespace), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            assert command.stderr is not None
            lines = []
            for line in command.stderr:
                lines.append(line)
                if "Pull the cable now" in line:
                    time.sleep(1)  # the trial begins
                    ip("-n", namespace, "link", "set", "left", "down")
                    time.sleep(0.5)
                    ip("-n", namespace, "link", "set", "left", "up")
            assert command.wait(60) == 0, "".join(lines)
    states = {check["name"]: check for check in json.loads(found.read_text())["cable"]["checks"]}
    assert states["pulled"]["state"] == "good"
    assert "link changes: left 2, right 2; the trial was INVALID for its link" in states["pulled"]["found"]


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
def test_queues_that_a_hash_fills_are_seen(tmp_path: Path) -> None:
    """The kernel hands each flow to one of two sockets (PACKET_FANOUT), as a NIC does with its queues."""
    found = tmp_path / "found.json"
    with veth_cable() as namespace:
        command = [*evenhand_command("ip", "netns", "exec", namespace), "check"]
        words: list[str | Path] = [write_testbed(tmp_path, queues=2), "--cable", found, *QUICK]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    checks = {check["name"]: check for check in json.loads(found.read_text())["cable"]["checks"]}
    for what in ("IPv4, 64 octets", "IPv6, 84 octets"):
        for direction in ("forward", "reverse"):
            check = checks[f"{what}, {direction}: queues"]
            counts = [int(count) for count in re.findall(r"[0-9]+", check["found"])]
            assert (check["state"], len(counts), sum(counts)) == ("good", 2, 10_000), check


@pytest.mark.thorough
@pytest.mark.two_cpus
@pytest.mark.patient
def test_each_of_several_engines_has_a_cable_of_its_own(tmp_path: Path) -> None:
    """One after the other; a cable that is not there is told of its engine alone."""
    first, second = cpus()[:2]
    (tmp_path / "cables.toml").write_text(
        "isolated_test_environment = true\n"
        + "".join(
            f'[[engine]]\nname = "{name}"\ncpus = [{cpu}]\n'
            f'left = {{ device = "net_af_packet0,iface={ends[0]}" }}\n'
            f'right = {{ device = "net_af_packet1,iface={ends[1]}" }}\n'
            for name, cpu, ends in (("near", first, ("left", "right")), ("far", second, ("left2", "void")))
        )
    )
    found = tmp_path / "found.json"
    with veth_cable() as namespace:
        for name in ("left2", "void"):
            ip("-n", namespace, "link", "add", name, "type", "veth", "peer", "name", f"{name}-end")
            for end in (name, f"{name}-end"):
                ip("-n", namespace, "link", "set", end, "addrgenmode", "none", "up")
        command = [*evenhand_command("ip", "netns", "exec", namespace), "check"]
        words: list[str | Path] = [tmp_path / "cables.toml", "--cable", found, *QUICK, "--json"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(document)
    cables = json.loads(found.read_text())["cables"]
    assert document["cables"] == cables
    assert list(cables) == ["near", "far"]
    for name, came in (("near", 10_000), ("far", 0)):
        checks = {check["name"]: check for check in cables[name]["checks"]}
        for what in ("IPv4, 64 octets", "IPv6, 84 octets"):
            for direction in ("forward", "reverse"):
                check = checks[f"{what}, {direction}: frames"]
                assert check["state"] == ("good" if came else "bad"), check
                assert check["found"].startswith(f"{came} of 10000 came"), check
            is_measured = checks[f"{what}: ceiling"]["found"] != "not measured, as no frame came"
            assert is_measured == bool(came), checks[f"{what}: ceiling"]
