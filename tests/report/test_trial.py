# SPDX-License-Identifier: Apache-2.0
"""One trial for people: what "reordered" counts, and what to do after an INVALID one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.plan import UdpRange, make_plan
from evenhand.procedure import Profile
from evenhand.report.plain import OF_THE_HOST, next_lines
from evenhand.report.trial import describe_clock_offsets, trial_report
from evenhand.search import ThroughputGoal, find_throughput
from evenhand.trial import (
    ClockOffset,
    Load,
    Reason,
    SimulatedMeasurer,
    TakenCpu,
    TrialResult,
    Verdict,
    describe_taken,
)
from tests.report.live import lines_of
from tests.report.test_throughput import shown

PLANS = pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
ONE_PORT = UdpRange(first=49184, last=49184, mode="fixed")
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "contract" / "reply.schema.json").read_text())


def profile_of(plan: str, hosts: int | None = None, ports: UdpRange | None = None) -> Profile:
    chosen = (
        make_plan(plan, hosts)
        if ports is None
        else make_plan(plan, hosts, source_ports=ports, destination_ports=ports)
    )
    return Profile(plan=chosen, frame_size=84, seed=1, directions=("forward", "reverse"))


def trial(*, reordered: int = 0, codes: Sequence[str] = (), rate_fps: float = 1000.0) -> TrialResult:
    result = SimulatedMeasurer(limit_fps=1e6).offer(Load(rate_fps=rate_fps, duration_s=1))
    directions = {
        name: replace(direction, reordered_frames=reordered) for name, direction in result.directions.items()
    }
    reasons = tuple(Reason(code=code, text=f"because of {code}") for code in codes)
    return replace(
        result, directions=directions, reasons=reasons, verdict=Verdict.INVALID if codes else Verdict.PASS
    )


def test_what_a_translator_did_wrong_is_shown_and_a_router_has_no_such_rows() -> None:
    """R8219-01: a frame with another host's address is no slow frame."""
    plain = trial()
    assert "translated to" not in shown(trial_report(plain))
    wrong = {"no_checksum": 3, "traffic_class": 0, "address_or_port": 1234}
    result = replace(
        plain,
        directions={
            name: replace(direction, mistranslated_frames=wrong)
            for name, direction in plain.directions.items()
        },
    )
    rows = {
        line[: line.index("  ")]: line.split()[-2:]
        for line in shown(trial_report(result)).splitlines()
        if "  " in line
    }
    assert rows["translated to another address or port"] == ["1,234", "1,234"]
    assert rows["translated to another traffic class"] == ["0", "0"]
    assert rows["without a UDP checksum"] == ["3", "3"]


@PLANS
@pytest.mark.parametrize(("hosts", "ports"), [(None, None), (1, None), (None, ONE_PORT)])
def test_reordered_frames_are_said_to_be_of_all_flows_together(
    plan: str, hosts: int | None, ports: UdpRange | None
) -> None:
    """R2544-06: a router that keeps the order of each flow on several cores is healthy; RFC 4689 judges a
    stream by itself."""
    text = " ".join(shown(trial_report(trial(reordered=14_000), profile_of(plan, hosts, ports))).split())
    assert "reordered frames, all flows 14,000 14,000" in text
    assert "of any flow" in text
    assert "Reordering within a flow (RFC 4689) is not counted separately" in text


@PLANS
def test_the_order_of_one_flow_alone_needs_no_such_words(plan: str) -> None:
    text = shown(trial_report(trial(reordered=3), profile_of(plan, 1, ONE_PORT)))
    assert "reordered frames, all flows" in text
    assert "RFC 4689" not in text


@PLANS
def test_where_nothing_was_reordered_nothing_is_explained(plan: str) -> None:
    assert "RFC 4689" not in shown(trial_report(trial(), profile_of(plan)))


@pytest.mark.parametrize("code", sorted(OF_THE_HOST))
def test_after_an_invalid_trial_the_next_step_is_at_the_testers_host(code: str) -> None:
    """R2544-39: the reasons name figures; where to look for their cause, a reader cannot know."""
    text = shown(trial_report(trial(codes=[code, "loss"])))
    (line,) = [line for line in text.splitlines() if line.startswith("Next: ")]
    for word in ("`evenhand check`", "latest frame", "longest poll gap", "read-an-invalid-trial.md"):
        assert word in line
    # The figures that it points at stand above it, by these names.
    above = text.partition("Next: ")[0]
    assert "latest frame after its time" in above
    assert "longest poll gap" in above


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        (
            {1: (0, 846_975), 2: (0, 2_000)},
            "CPU 1 of the tester was taken by other programs for 847 ms of a trial of 1 s.",
        ),
        (
            {1: (30_000, 10_000)},
            "CPU 1 of the tester was taken by the hypervisor for 30 ms of a trial of 1 s.",
        ),
        ({1: (900, 900)}, ""),
        ({}, ""),
    ],
)
def test_a_tester_whose_cpu_was_taken_is_told_so(cpus: dict[int, tuple[float, float]], said: str) -> None:
    """R2544-39: a sender that did not run is no load that is too high."""
    taken = tuple(
        TakenCpu(cpu=cpu, stolen_us=stolen, waited_us=waited) for cpu, (stolen, waited) in cpus.items()
    )
    spoiled = replace(trial(codes=["offered_load"]), tester_cpus=taken)
    (line,) = next_lines([spoiled])
    assert f"{said} The latest" in line if said else "was taken" not in line
    assert describe_taken([replace(spoiled, verdict=Verdict.PASS)]) == ""


def test_codes_of_the_host_are_those_of_the_contract() -> None:
    assert set(_codes(SCHEMA)) >= OF_THE_HOST


@pytest.mark.parametrize("codes", [["link"], ["link", "offered_load", "port_refused"]])
def test_a_link_that_went_down_is_no_matter_of_cpus(codes: list[str]) -> None:
    """A DUT that ended takes its end of the link with it: a tester that could send nothing then is not the
    cause."""
    (line,) = next_lines([trial(codes=codes)])
    assert "whether the DUT still runs" in line
    assert "evenhand check" not in line
    assert "read-an-invalid-trial.md" in line
    (both,) = next_lines([trial(codes=codes), trial(codes=["sender_overdue"])])
    assert "evenhand check" in both


def test_no_next_step_after_a_valid_trial_nor_after_a_repetition_that_was_valid_nor_after_a_stop() -> None:
    spoiled = trial(codes=["sender_overdue"])
    assert next_lines([trial()]) == []
    assert next_lines([spoiled, trial()]) == []
    assert next_lines([trial(codes=["stopped"])]) == []
    assert len(next_lines([spoiled, trial(rate_fps=2000.0)])) == 1


@pytest.mark.parametrize(("invalid_probability", "lines"), [(1.0, 1), (0.0, 0)])
def test_a_search_that_ends_at_the_testers_ceiling_says_where_to_look(
    invalid_probability: float, lines: int
) -> None:
    device = SimulatedMeasurer(
        limit_fps=900_000, invalid_probability=invalid_probability, is_load_offered=False
    )
    said = lines_of(find_throughput(device, ThroughputGoal(max_fps=1e6)), profile_of("gateway-v6"))
    assert sum(line.startswith("Next: ") for line in said) == lines


def _codes(schema: object) -> list[str]:
    """All that stand in enums under the name `code`."""
    if isinstance(schema, dict):
        own = schema.get("code", {}).get("enum", []) if isinstance(schema.get("code"), dict) else []
        return own + [code for part in schema.values() for code in _codes(part)]
    return [code for part in schema for code in _codes(part)] if isinstance(schema, list) else []


def test_notes_and_clocks_are_shown_beside_the_verdict() -> None:
    offsets = (
        ClockOffset(cpu=2, offset_us=0, uncertainty_us=0),
        ClockOffset(cpu=3, offset_us=-1.2, uncertainty_us=0.045),
    )
    assert (
        describe_clock_offsets(offsets)
        == "Clocks of the workers' CPUs, against CPU 2: CPU 3 -1.200 us (give or take 0.045 us)."
    )
    assert describe_clock_offsets(offsets[:1]) == ""
    noted = replace(
        trial(),
        clock_offsets=offsets,
        notes=(Reason(code="flow_control", text="forward: 9 PAUSE frames on the sending port"),),
    )
    text = " ".join(shown(trial_report(noted)).split())
    assert "Note: flow_control: forward: 9 PAUSE frames" in text
    assert "against CPU 2: CPU 3 -1.200 us" in text
