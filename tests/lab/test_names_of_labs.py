# SPDX-License-Identifier: Apache-2.0
"""A lab is known by its whole name, and by what its record says of it: not by how a name begins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from evenhand.lab import borrow, napi, state
from evenhand.lab.borrow import kind_of
from evenhand.lab.linux import LinuxLab
from evenhand.lab.state import addresses_of, networks_to_ask_for
from evenhand.lab.vm import VmLab
from evenhand.plan import TOPOLOGIES, AddressPlan, SideCounts, make_mix, make_plan
from evenhand.rig.lab_rig import LabRig


def test_a_lab_has_no_thread_of_a_lab_whose_name_begins_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pyr` moved the threads of `pyr-2` to another CPU, and watched them as its own."""
    names = {
        11: "napi/ehdl-pyr-8193",
        12: "napi/ehdl-pyr-2-8195",
        13: "napi/ehdl-pyr-2-17-8196",
        14: "napi/ehdl-pyr-x",
        15: "napi/ehdl-pyrx-8197",
        16: "xnapi/ehdl-pyr-8193",
    }
    for process, name in names.items():
        folder = tmp_path / str(process)
        folder.mkdir()
        (folder / "comm").write_text(f"{name}\n")
    monkeypatch.setattr(napi, "PROCESSES", tmp_path)
    found = {lab: napi.napi_threads(f"ehdl-{lab}") for lab in ("pyr", "pyr-2", "pyr-2-17", "py")}
    assert found == {"pyr": [11], "pyr-2": [12], "pyr-2-17": [13], "py": []}


@pytest.mark.parametrize("plan", [*TOPOLOGIES, "gateway_v4+nets_v6_gateway", "nets_v4_gateway+gateway_v6"])
def test_a_lab_comes_back_with_the_networks_that_it_had(plan: str) -> None:
    """A lab of classic-v4 with 5 networks came back with 190: only plans called nets-... kept theirs."""
    several = any(TOPOLOGIES[name].most_networks is not None for name in plan.split("+"))
    wanted = make_mix(plan, SideCounts(1, 1), networks=SideCounts(5, 3) if several else None)
    lab = lab_for(wanted)
    again = borrow._plan_of(lab)
    assert again == wanted
    assert (networks_to_ask_for(plan, lab.networks) is None) is not several


def lab_for(plan: AddressPlan) -> LinuxLab:
    return LinuxLab(name="linux", dut_cpu=0, tester_cpus=(1,), **addresses_of(plan))


def test_defaults_at_a_lab_are_the_networks_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_for(make_plan("classic_v4", networks=5))
    monkeypatch.setattr("evenhand.rig.lab_rig.lab_status", lambda name: lab)
    monkeypatch.setattr(borrow, "lab_status", lambda name: lab)
    assert LabRig("lab:linux").facts().plan.networks == SideCounts(5, 5)


def test_a_borrowed_lab_that_is_down_is_of_the_kind_that_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine called linux-2 would have come back as a namespace."""
    monkeypatch.setattr(state, "STATE_DIRECTORY", tmp_path / "labs")
    monkeypatch.setattr(borrow, "BORROWED_DIRECTORY", tmp_path / "borrowed")
    assert (kind_of("linux-2"), kind_of("pyr")) == ("linux", None)
    machine = VmLab(
        name="pyr",
        plan="gateway_v4",
        ip_version=4,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
        ssh_port=2222,
    )
    for name in ("linux-2", "pyr"):
        before = {"kind": machine.kind, "lab": {**asdict(machine), "name": name}}
        state.write_file(
            tmp_path / "borrowed" / f"{name}.json", {"version": borrow.VERSION, "before": before}
        )
        assert kind_of(name) == "vm"
