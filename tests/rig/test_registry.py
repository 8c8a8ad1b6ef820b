# SPDX-License-Identifier: Apache-2.0
"""A testbed is known by its name: which kind it is, and what that kind can be asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenhand.dut.nat import TIMEOUT_S
from evenhand.lab.labs import LABS, lab_class
from evenhand.rig import (
    REFERENCE,
    ReferenceDut,
    Rig,
    RigFacts,
    plan_defaults_of,
    read_dut,
    read_setup,
    rig_of,
)
from evenhand.rig.lab_rig import LabRig
from evenhand.rig.reference_rig import ReferenceRig
from evenhand.rig.registry import KINDS
from evenhand.rig.testbed_rig import TestbedRig
from tests.errors import raises

TESTBED = """
isolated_test_environment = true
[left]
device = "net_ring0"
[right]
device = "net_ring1"
[tester]
cpus = [0]
[dut]
plan = "gateway_v6"
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (REFERENCE, ReferenceRig),
        ("lab:linux", LabRig),
        ("lab:mine", LabRig),
        ("lab.toml", TestbedRig),
        ("some/folder/reference", TestbedRig),
        ("", TestbedRig),
    ],
)
def test_a_name_is_of_one_kind(text: str, kind: type[Rig]) -> None:
    assert type(rig_of(text)) is kind
    assert sum(found.of(text) is not None for found in KINDS[:-1]) == (kind is not TestbedRig)


def test_only_a_file_is_looked_for_from_where_it_is_named() -> None:
    assert [rig_of(text).is_file for text in (REFERENCE, "lab:linux", "lab.toml")] == [False, False, True]


def test_only_a_reference_router_is_set_by_the_table_of_its_name() -> None:
    assert [rig_of(text).takes_reference for text in (REFERENCE, "lab:vm", "lab.toml")] == [
        True,
        False,
        False,
    ]


def test_a_name_alone_touches_nothing() -> None:
    """What a command line or a campaign file names may not be there: that is told when it is read."""
    rig = rig_of("no/such/folder/lab.toml")
    assert rig.facts() == RigFacts()
    assert rig.facts().plan.plan == "gateway-v4"
    with raises("base.file-not-readable"):
        rig.read()


def test_a_file_of_the_name_of_the_reference_router_is_a_testbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of campaigns no router is started, so the name can only be a file's."""
    monkeypatch.chdir(tmp_path)
    with raises("rig.reference-not-here"):
        read_setup(REFERENCE)
    Path(REFERENCE).write_text(TESTBED)
    assert read_setup(REFERENCE).own_plan == "gateway-v6"
    assert read_dut(REFERENCE) == (read_setup(REFERENCE).testbed.dut, None)
    assert plan_defaults_of(REFERENCE).plan == "gateway-v6"


def test_what_is_known_before_a_port_is_looked_at(tmp_path: Path) -> None:
    """The file names an interface that this machine does not have; that is refused when the file is read."""
    path = tmp_path / "t.toml"
    path.write_text(
        TESTBED.replace("net_ring0", "net_af_packet0,iface=no-such-one")
        + 'hosts = [10, 20]\nssh = "root@192.0.2.1"\nos = "linux"\nleft = "a"\nright = "b"\n'
        + 'connection_timeout = "90s"\n'
    )
    facts = rig_of(str(path)).facts()
    assert (facts.plan.plan, facts.plan.hosts) == ("gateway-v6", (10, 20))
    assert (facts.sets_up_its_dut, facts.connection_timeout_s) == (True, 90)
    with raises("rig.port-missing"):
        rig_of(str(path)).read()
    router = ReferenceDut(nat_options={"timeout_s": 30})
    for text, reference, expected in (
        (REFERENCE, router, RigFacts(sets_up_its_dut=True, connection_timeout_s=30)),
        (REFERENCE, None, RigFacts(sets_up_its_dut=True)),
        ("lab:linux-9", None, RigFacts(sets_up_its_dut=True, connection_timeout_s=TIMEOUT_S)),
        ("lab:mine", None, RigFacts()),
    ):
        assert rig_of(text).facts(reference) == expected


def test_a_run_that_has_begun_needs_no_right_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    rig = rig_of("lab:linux")
    with raises("rig.root-needed"):
        rig.check()
    assert len(rig.check(is_dry=True)) == 1
    assert rig.check(is_begun=True) == []


def test_a_run_has_nothing_to_itself_but_a_lab() -> None:
    for text in (REFERENCE, "lab.toml", "", "lab:mine"):
        with rig_of(text).leased(run="r", on_note=lambda note: None) as lab:
            assert lab is None


def test_each_kind_of_lab_says_what_its_dut_can_do() -> None:
    """RSS-02, R5180-14: veth pairs hash nothing, and there is room for neighbours of one IP version."""
    assert {lab.kind: (lab.has_hash, lab.mixes_direct_plans) for lab in LABS} == {
        "linux": (False, False),
        "vm": (True, True),
    }
    assert all(lab_class(lab.kind) is lab for lab in LABS)
