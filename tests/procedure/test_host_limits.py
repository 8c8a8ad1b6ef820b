# SPDX-License-Identifier: Apache-2.0
"""The strictest limits that a host keeps: what is taken from trials with the tester's own loop, and when
nothing is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evenhand.procedure import host_limits, limits_of
from evenhand.procedure.host_limits import OFFERED, TOLERANCES, HostLimits, Probe, strictest
from evenhand.procedure.limits import WishedLimits
from evenhand.testbed import TestbedLimits as LimitsOfFile
from evenhand.testbed import Tester as CpusOfFile
from evenhand.testbed import make_testbed
from evenhand.trial import Limits, TrialResult
from tests.errors import raises

QUIET = Probe(overdue_share=0.0, longest_overdue_us=20.0, offered_error=0.0)


def probes(*disturbed: Probe, of: int = 8) -> list[Probe]:
    return [*disturbed, *[QUIET] * (of - len(disturbed))]


def test_a_quiet_host_keeps_the_limits_of_the_rfc() -> None:
    """R2544-39: then nothing deviates."""
    found = strictest(probes(), where="x")
    assert Limits(**found) == Limits()


@pytest.mark.parametrize(
    ("share", "tolerance"), [(0.004, 0.01), (0.006, 0.02), (0.011, 0.05), (0.03, 0.1), (0.1, 0.2)]
)
def test_the_tolerance_is_twice_what_three_of_four_trials_showed(share: float, tolerance: float) -> None:
    """The strictest step that leaves room: a trial may be sixty times as long."""
    disturbed = replace(QUIET, overdue_share=share)
    assert strictest([disturbed] * 8, where="x")["overdue_tolerance"] == tolerance
    # Two bad trials of eight are for patience, not for the limits; a third is what this machine does.
    assert strictest(probes(disturbed, disturbed), where="x")["overdue_tolerance"] == TOLERANCES[0]
    assert strictest(probes(*[disturbed] * 3), where="x")["overdue_tolerance"] == tolerance


def test_the_latest_frame_of_all_trials_bounds_how_late_one_may_be() -> None:
    once = replace(QUIET, longest_overdue_us=90_000.0)
    assert strictest(probes(once), where="x")["longest_overdue_us"] == 200_000.0


def test_an_offered_load_that_is_off_is_allowed_to_be_so_far_off_and_no_further() -> None:
    """R2544-39."""
    assert strictest([replace(QUIET, offered_error=0.0006)] * 8, where="x")["offered_tolerance"] == 0.001
    with raises("procedure.no-load-kept"):
        strictest([replace(QUIET, offered_error=OFFERED[-1] * 1.01)] * 8, where="x")


def test_a_host_on_which_no_limit_means_anything_is_refused_with_what_it_does() -> None:
    """A tester that sends a third of its frames in bursts offers no load."""
    with raises("procedure.no-load-kept", match="30 %") as refused:
        strictest([replace(QUIET, overdue_share=0.3, longest_overdue_us=40_000.0)] * 8, where="--limits host")
    assert refused.value.where == "--limits host"


@pytest.mark.parametrize("at_testbed", [False, True])
def test_a_limit_that_is_named_stands_before_the_hosts(at_testbed: bool) -> None:
    """On the command line or in the testbed file; how late is late is never the host's to choose."""
    of_file = LimitsOfFile(set="host", overdue_tolerance="3%")  # type: ignore[arg-type]
    limits = (
        limits_of(of_file)
        if at_testbed
        else limits_of(LimitsOfFile(), given={"set": "host", "overdue_tolerance": 0.03})
    )
    assert isinstance(limits, WishedLimits)
    assert limits.host_keeps == ("longest_overdue_us", "offered_tolerance")
    assert limits.overdue_tolerance == 0.03
    assert limits.overdue_after_us is None
    assert not isinstance(limits_of(LimitsOfFile(set="host"), given={"set": "rfc"}), WishedLimits)


def test_a_testbed_file_may_say_it_in_one_word() -> None:
    document: dict[str, Any] = {
        "isolated_test_environment": True,
        "left": {"device": "net_ring0"},
        "right": {"device": "net_ring1"},
        "tester": {"cpus": [0]},
    }
    assert make_testbed({**document, "limits": "host"}, where="t").limits == LimitsOfFile(set="host")
    assert make_testbed({**document, "limits": {"set": "host"}}, where="t").limits == LimitsOfFile(set="host")
    with raises("base.not-one-of"):
        make_testbed({**document, "limits": "guest"}, where="t")


def test_a_run_that_goes_on_has_the_limits_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else half of its trials would be judged by others."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = strictest([replace(QUIET, overdue_share=0.011)] * 8, where="x")
    key = ((1, 2), "host:/run.evenhand")
    host_limits._keep(key, found)
    kept = host_limits._kept(key)
    assert kept is not None
    assert kept.limits == found
    assert host_limits._kept(((1,), key[1])) is None
    assert host_limits._kept((key[0], "another")) is None
    entry = {"cpus": [1, 2], "run": key[1], "limits": {}}
    (tmp_path / "evenhand" / host_limits.STATE).write_text(json.dumps({"version": 1, "runs": [entry]}))
    host_limits._FOUND.clear()
    assert host_limits._kept(key) is None


@pytest.mark.parametrize(
    ("minutes", "is_measured"), [(-5, True), (0, False), (59, False), (61, True)], ids=str
)
def test_another_command_within_an_hour_does_not_measure_the_host_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, is_measured: bool
) -> None:
    """It says what it takes, and from when. What is older, or of the future, is measured anew."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(host_limits, "_FOUND", {})
    probed: list[int] = []

    def probe(*args: Any, **kwargs: Any) -> list[Probe]:
        probed.append(1)
        return [replace(QUIET, overdue_share=0.011)] * 8

    monkeypatch.setattr(host_limits, "_probe", probe)
    notes: list[Any] = []

    def ask(cpus: tuple[int, ...] = (1,)) -> Mapping[str, float]:
        host_limits._FOUND.clear()  # another process
        return host_limits.limits_of_host(CpusOfFile(cpus=cpus), engine=None, on_event=notes.append)

    first = ask()
    assert probed == [1]
    state = tmp_path / "evenhand" / host_limits.STATE
    kept = json.loads(state.read_text())
    kept_at = datetime.now(UTC) - timedelta(minutes=minutes)
    kept["runs"][0]["kept_at"] = kept_at.isoformat(timespec="seconds")
    state.write_text(json.dumps(kept))
    assert ask() == first
    assert len(probed) == 1 + is_measured
    if not is_measured:
        assert notes[-1].text.startswith(
            f"As measured at {kept_at:%H:%M} UTC, this machine keeps: at most 5 %"
        )
    ask(cpus=(2,))
    assert len(probed) == 2 + is_measured
    assert ask() == first
    assert len(probed) == 2 + is_measured, "the limits of other CPUs took the place"


def test_a_limit_that_is_set_need_not_be_kept_and_is_not_told() -> None:
    """A campaign that sets its tolerances asks the host only how late a frame may be."""
    busy = [replace(QUIET, overdue_share=0.3, longest_overdue_us=40_000.0)] * 8
    found = strictest(busy, where="x", names=["longest_overdue_us"])
    assert found == {"longest_overdue_us": 100_000.0, "offered_tolerance": OFFERED[0]}
    told = HostLimits(limits=found, probes=tuple(busy), cpus=(1,), found_at="2026-11-25T05:00:00Z")
    assert told.line(["longest_overdue_us"]) == (
        "8 trials of 1 s without a DUT show which limits this machine keeps: no frame is more than 100 ms"
        " overdue."
    )
    assert "overdue frames" not in told.line()


@pytest.mark.parametrize("busy_series", [0, 1, 2, 3])
def test_a_host_that_is_busy_for_a_while_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, busy_series: int
) -> None:
    """One bad moment must not cost a point its number."""
    busy = [replace(QUIET, overdue_share=0.5, longest_overdue_us=80_000.0)] * 8
    series = iter([busy] * busy_series + [[QUIET] * 8] * 3)
    monkeypatch.setattr(host_limits, "_probe", lambda *args, **kwargs: next(series))
    told: list[Any] = []

    def measure() -> HostLimits:
        return host_limits.measure_host_limits(CpusOfFile(cpus=(1,)), engine=None, on_event=told.append)

    if busy_series < host_limits.SERIES:
        assert measure().limits["overdue_tolerance"] == TOLERANCES[0]
        assert len(told) == busy_series
    else:
        with raises("procedure.no-load-kept", match="50 %"):
            measure()


def test_of_several_engines_the_worst_counts_against_its_own_share() -> None:
    """A host that keeps its load well must not hide one that does not."""

    def engine(streams: int, offered_fps: float, overdue: int, longest_us: float) -> dict[str, Any]:
        counts = {
            "intended_frames": 1000,
            "offered_fps": offered_fps,
            "overdue_frames": overdue,
            "max_overdue_us": longest_us,
        }
        share = {"first": 0, "streams": streams, "stride": 4}
        return {"share": share, "directions": {"forward": counts, "reverse": {**counts, "overdue_frames": 0}}}

    raw = {"engines": [engine(1, 100.0, 5, 900.0), engine(3, 297.0, 20, 30.0)]}
    alike = {name: SimpleNamespace(intended_fps=None) for name in ("forward", "reverse")}
    trial = SimpleNamespace(raw=raw, intended_fps=400.0, directions=alike)
    probe = Probe.of(cast(TrialResult, trial))
    assert probe.overdue_share == 0.02
    assert probe.longest_overdue_us == 900.0
    assert probe.offered_error == pytest.approx(0.01)
