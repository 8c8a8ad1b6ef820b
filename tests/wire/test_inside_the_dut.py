# SPDX-License-Identifier: Apache-2.0
"""The witness inside a real router: the kernel's, in a namespace. What it counts is held against what the
tester's ports counted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from evenhand.dut.facts import CHANGED_BY_SET_UP
from evenhand.lab import LinuxLab, linux_lab
from evenhand.plan import AddressPlan, Direction, SideName, gateway_v4, gateway_v6
from evenhand.procedure import OpenTestbed
from evenhand.procedure.events import Note
from evenhand.rig import Setup
from evenhand.run import RunStore, read_record
from evenhand.trial import Limits, TrialResult, Waits
from tests.dut.namespace_shell import NamespaceShell, reachable_lab
from tests.errors import raises
from tests.wire.wire_session import FAST_WAITS, MOST_ATTEMPTS, PATIENT, until, versions_of

pytestmark = [
    pytest.mark.wire,
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("ethtool") is None, reason="ethtool is not installed: tools/install-dependencies test"
    ),
]
Rig = tuple[AddressPlan, LinuxLab, Setup, NamespaceShell]
SCHEMA = Path(__file__).resolve().parents[2] / "contract" / "witness.schema.json"
LOAD_FPS, DURATION_S = 5_000, 0.5
MOST_NEIGHBOR_FRAMES = 6


def on(*plans: Any) -> pytest.MarkDecorator:
    """What the DUT of a test is set up for; what it counts of IP differs, and not how it is asked."""
    return pytest.mark.parametrize("rig", plans, indirect=True, ids=lambda plan: f"v{plan.ip_version}")


def one_of_both(*, proved: Literal["v4", "v6"]) -> pytest.MarkDecorator:
    return on(*versions_of(gateway_v4(), gateway_v6(), proved=proved))


@pytest.fixture
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Rig]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with linux_lab(request.param, name="inside") as lab:
        yield request.param, lab, *reachable_lab(lab, monkeypatch)


def trial(setup: Setup, plan: AddressPlan, **options: Any) -> TrialResult:
    """One that this machine did not spoil."""
    for _ in range(MOST_ATTEMPTS):
        bed = OpenTestbed(setup=setup, **options)
        limits = replace(Limits(), **PATIENT)
        result = bed.trial(
            plan=plan, rate_fps=LOAD_FPS, duration_s=DURATION_S, waits=Waits(**FAST_WAITS), limits=limits
        ).trial
        if result.is_valid:
            return result
    raise AssertionError(result.reasons)


@on(gateway_v4(), gateway_v6())
def test_packets_that_the_dut_counts_are_those_that_the_tester_sent(rig: Rig) -> None:
    """SEED-07: interface, queue and IP layer each know every frame of the trial, and nothing is
    unexplained."""
    plan, lab, setup, _ = rig
    result = trial(setup, plan)
    assert result.is_pass, result.reasons
    seen = result.raw["dut"]
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(seen)
    ways: tuple[tuple[SideName, Direction, Direction], ...] = (
        ("left", "forward", "reverse"),
        ("right", "reverse", "forward"),
    )
    for side, direction, back in ways:
        interface = seen["interfaces"][side]
        assert interface["name"] == lab.dut_interface(side)
        # Beside the test frames there are the learning frame and its answer, and now and then a question of
        # the DUT's own.
        assert interface["received_packets"] - result.directions[direction].offered_frames in range(
            1, MOST_NEIGHBOR_FRAMES
        )
        assert interface["sent_packets"] - result.directions[back].received_frames in range(
            1, MOST_NEIGHBOR_FRAMES
        )
        assert (
            sum(queue["received_packets"] for queue in interface["queues"]) == interface["received_packets"]
        )
        assert interface["receive_drops"] == 0
        assert interface["neighbors"][f"ipv{plan.versions[0]}"][1] >= 1
    offered = sum(direction.offered_frames for direction in result.directions.values())
    assert offered == 2 * LOAD_FPS * DURATION_S
    assert seen["ip"][f"ipv{plan.versions[0]}"]["forwarded_packets"] == offered
    assert (seen["lost_frames"], seen["dropped_packets"], seen["unexplained_frames"]) == (0, 0, 0)
    assert {cpu["cpu"] for cpu in seen["cpus"]} == set(range(os.cpu_count() or 1))
    assert next(cpu for cpu in seen["cpus"] if cpu["cpu"] == lab.dut_cpu)["busy_s"] > 0
    assert seen["interval_s"] >= DURATION_S


@one_of_both(proved="v4")
def test_the_dut_is_asked_twice_for_each_trial_and_once_for_its_facts(rig: Rig) -> None:
    """One round trip for each reading; the first one only tells whether it can be read."""
    plan, _, setup, shell = rig
    bed = OpenTestbed(setup=setup)
    with bed.tester(plan=plan, waits=Waits(**FAST_WAITS)) as tester:
        assert len(shell.commands) == 3  # its own way here, facts, and a first look
        measurer = tester.measurer(lambda event: None)
        measurer.measure(0.1, 1000)
        measurer.measure(0.1, 1000)
        assert len(shell.commands) == 7


@one_of_both(proved="v6")
def test_what_the_dut_drops_explains_what_the_tester_lost(rig: Rig) -> None:
    """SEED-07: the verdict is FAIL by the tester's count alone; the DUT's own counters say where the frames
    went."""
    plan, lab, setup, _ = rig
    lab.set_forwarding(False)

    def measured() -> dict[str, Any]:
        result = trial(setup, plan)
        assert str(result.verdict) == "FAIL"
        seen: dict[str, Any] = result.raw["dut"]
        assert seen["lost_frames"] == result.lost_frames == 2 * LOAD_FPS * DURATION_S
        assert seen["ip"][f"ipv{plan.versions[0]}"]["forwarded_packets"] == 0
        assert seen["unexplained_frames"] == result.lost_frames - seen["dropped_packets"]
        return seen

    # Where this machine takes the DUT's CPU away, frames do not even get to its IP layer. Without a stall
    # IPv4 counts each of them; IPv6 of this kernel drops them without a counter, which is told as well.
    until(lambda seen: plan.versions == (6,) or seen["dropped_packets"] == seen["lost_frames"], measured)


@one_of_both(proved="v4")
def test_sides_that_are_swapped_are_refused(rig: Rig) -> None:
    """The kernel answers for all its addresses on any interface, and forwards what comes in on the wrong one:
    only the MACs tell."""
    plan, _, setup, _ = rig
    dut = setup.testbed.dut
    swapped = dut.model_copy(update={"left": dut.right, "right": dut.left})
    wrong = replace(setup, testbed=setup.testbed.model_copy(update={"dut": swapped}))
    left = dut.interfaces["left"]
    with raises("rig.sides-swapped", match=f"left port .* {left}, .* right ") as refused:
        trial(wrong, plan)
    assert refused.value.next_step.startswith("Swap left and right")


@pytest.mark.parametrize(
    ("rig", "side"),
    [
        *versions_of((gateway_v4(), "left"), (gateway_v6(), "left"), proved="v6"),
        *versions_of((gateway_v4(), "right"), (gateway_v6(), "right"), proved="v4"),
    ],
    indirect=["rig"],
)
def test_a_dut_that_is_asked_over_a_measured_wire_is_refused(rig: Rig, side: SideName) -> None:
    """R5180-16: what the tester asks the DUT goes out of band."""
    plan, lab, setup, shell = rig
    shown = shell.run(f"ip -j address show dev {lab.dut_interface(side)}").stdout
    address = next(info["local"] for info in json.loads(shown)[0]["addr_info"] if info["scope"] == "global")
    shell.host = replace(shell.host, address=address)
    with raises("rig.carries-ssh", match=f" {side} interface"):
        trial(setup, plan)


@one_of_both(proved="v6")
def test_a_dut_that_is_lost_leaves_trials_as_they_are(rig: Rig) -> None:
    """SEED-07: a trial without its witness is a trial; the reason is kept with it and told once."""
    plan, _, setup, shell = rig
    told: list[Any] = []
    bed = OpenTestbed(setup=setup, on_event=told.append)
    with bed.tester(plan=plan, waits=Waits(**FAST_WAITS)) as tester:
        measurer = tester.measurer(lambda event: None)
        shell.is_lost = True
        for _ in range(2):
            assert measurer.measure(0.1, 1000).raw["dut"] == {"error": "the connection to the DUT was lost"}
    notes = [event.text for event in told if isinstance(event, Note)]
    assert [text for text in notes if "trials continue" in text] == [
        "The DUT can no longer be observed; trials continue without its counters: the connection to the"
        " DUT was lost"
    ]


@pytest.mark.thorough
@one_of_both(proved="v4")
def test_facts_are_stored_with_every_run_and_a_change_is_told(rig: Rig, tmp_path: Path) -> None:
    """R2544-02, SEED-84: the facts stand with the search; what is another than at the last run is said before
    the first trial."""
    plan, lab, setup, _ = rig
    told: list[Any] = []
    path = tmp_path / "run.evenhand"
    with RunStore.create(path, command=["test"]) as store:
        trial(setup, plan, recorder=store, on_event=told.append)
    facts = read_record(path).other_searches[-1].setup["inside_dut"]["facts"]
    assert facts["kernel"] == os.uname().release
    assert facts["interfaces"]["left"]["driver"] == "veth"
    assert facts["interfaces"]["left"]["threaded_napi"] is True
    assert (
        facts["sysctls"][
            f"net.ipv{plan.versions[0]}." + ("ip_forward" if plan.versions == (4,) else "conf.all.forwarding")
        ]
        == "1"
    )
    assert "hostname" not in facts
    assert not any("was" in event.text for event in told if isinstance(event, Note))
    assert (
        os.system(
            f"ip netns exec {lab.dut_namespace} ethtool -K {lab.dut_interface('left')} gro off tx off"
            " >/dev/null"
        )
        == 0
    )
    trial(setup, plan, on_event=told.append)
    assert any(
        "left.offloads.tx-checksumming: off, and was on" in event.text
        for event in told
        if isinstance(event, Note)
    )
    assert set(CHANGED_BY_SET_UP) & set(facts["interfaces"]["left"])
