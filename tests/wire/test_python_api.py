# SPDX-License-Identifier: Apache-2.0
"""`evenhand.open_testbed` on the reference router: the example, and what a script of one's own may expect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.cli.router import testbed_text as text_for
from evenhand.plan import make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import ReferenceDut, reference_router
from evenhand.results.delay import DelayName
from evenhand.run import read_run
from tests.docs.documents import blocks
from tests.errors import raises
from tests.wire.wire_session import built_router, versions_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
LIMIT_FPS = 20_000.0
ATTEMPTS = 3
QUEUE_FRAMES = 1024
"""25 ms of the element: what this machine's stalls make of an even load still fits, and hides 5 % of an
overload for half a second."""
QUICK = evenhand.Waits(after_routing_s=0.0, after_learning_s=0.05, residual_s=0.2, restabilize_s=0.05)
PATIENT = evenhand.Limits(offered_tolerance=0.02, overdue_tolerance=0.9)
"""A tester that is late is not what these tests are about."""


@pytest.fixture(scope="module")
def testbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of a router that runs, and does LIMIT_FPS per direction. All tests of one plan use it: its
    queue is empty again long before the next test's first trial."""
    built_router()
    # One element for both directions: it serves twice what each of them may have.
    model = DeviceModel(elements=1, rate_fps=2 * LIMIT_FPS, queue_frames=QUEUE_FRAMES)
    with reference_router(make_plan(request.param), ReferenceDut(model=model)) as router:
        path = tmp_path_factory.mktemp("router") / f"{request.param}.toml"
        path.write_text(text_for(router, None))
        yield path


def on(*names: Any) -> pytest.MarkDecorator:
    """The plans of whose router a test has the file."""
    return pytest.mark.parametrize("testbed", names, indirect=True)


def in_less_time(program: str) -> str:
    """With shorter trials, of which a busy host may spoil more. How near it comes to the throughput is for
    the tests of a script."""
    for shown, quick in (
        ("max_fps=100e3, precision=0.05", "max_fps=30e3, invalid_retries=30, patience=60, precision=0.2"),
        ("duration_s=0.5, final_duration_s=1", "duration_s=0.3, final_duration_s=0.3"),
        ("duration_s=1, from_s=0.2, repetitions=3", "duration_s=0.3, from_s=0.1, repetitions=2"),
        ("tolerance=0.05)", "tolerance=0.9)"),
    ):
        program = program.replace(shown, quick)
    return program


@pytest.mark.thorough
@on("gateway-v4")
def test_the_example_finds_what_the_router_does(testbed: Path, tmp_path: Path) -> None:
    """A script of ten lines gets from a testbed file to stored results."""
    run, program = tmp_path / "a.evenhand", tmp_path / "throughput.py"
    program.write_text(in_less_time((ROOT / "examples" / "throughput.py").read_text()))
    ended = subprocess.run(
        [sys.executable, program, testbed, run], capture_output=True, text=True, timeout=800, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "128 octets: " in ended.stdout
    assert "512 octets: " in ended.stdout
    assert "instead of" in ended.stdout
    assert [search.frame_size for search in read_run(run).searches] == [128, 512]


@pytest.mark.thorough
@on(*versions_of("gateway-v4", "gateway-v6", proved="v6"))
def test_the_how_to_draws_throughput_and_latency_over_the_number_of_hosts(
    testbed: Path, tmp_path: Path
) -> None:
    """R8219-08: the program as the page shows it, over IPv4, and the same over IPv6: latency at the
    throughput that was found."""
    (program,) = [
        block.text
        for block in blocks("python", document="docs/how-to/measure-from-python.md")
        if "semilogx" in block.text
    ]
    program = program.replace('"testbed.toml"', repr(str(testbed))).replace(
        '"gateway-v4"', repr(testbed.stem)
    )
    program = in_less_time(program).replace("[1, 16, 256]", "[1, 256]")
    environment = {**os.environ, "MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hosts.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
@on(*versions_of("gateway-v4", "gateway-v6", proved="v4"))
def test_a_script_gets_the_rate_events_and_a_document(testbed: Path) -> None:
    """R2544-21, IPv4 and IPv6: the router's limit is set, so the truth is known."""
    events: list[evenhand.ProcedureEvent] = []
    goal = evenhand.ThroughputGoal(
        max_fps=40_000,
        precision=0.1,
        duration_s=0.5,
        final_duration_s=0.5,
        loss_verifications=1,
        invalid_retries=30,
        patience=60,
    )
    with evenhand.open_testbed(testbed, on_event=events.append) as opened:
        found = opened.throughput(plan=testbed.stem, goal=goal, waits=QUICK, limits=PATIENT)
    assert found.outcome == "found", [str(trial.result.reasons) for trial in found.search.trials]
    assert found.throughput_fps is not None
    assert LIMIT_FPS * 0.85 < found.throughput_fps < LIMIT_FPS * 1.1
    finished = [event for event in events if isinstance(event, evenhand.TrialFinished)]
    assert tuple(event.trial for event in finished) == found.search.trials
    document = found.to_document()
    assert document["throughput_fps_per_direction"] == found.throughput_fps
    assert {"R2544-18", "R2544-20"} <= {deviation["requirement"] for deviation in document["deviations"]}


@pytest.mark.thorough
@on(*versions_of("gateway-v4", "gateway-v6", proved="v6"))
def test_loss_follows_what_the_router_does(testbed: Path, tmp_path: Path) -> None:
    """R2544-26, R2544-27, IPv4 and IPv6: above the set limit what does not fit is lost, below it nothing;
    every trial is stored."""
    run = tmp_path / "loss.evenhand"
    with evenhand.open_testbed(testbed, run=run) as opened:
        goal = evenhand.LossGoal(
            max_fps=2 * LIMIT_FPS, step=0.1, duration_s=0.5, invalid_retries=30, patience=60
        )
        found = opened.loss(plan=testbed.stem, goal=goal, waits=QUICK, limits=PATIENT)
    measured = {round(point.share, 3): point.loss_ratio for point in found.points}
    for share, loss_ratio in measured.items():
        if loss_ratio is not None and share > 0.55:
            assert loss_ratio == pytest.approx(1 - 0.5 / share, abs=0.08), share
    assert len(found.unmeasured) <= 2, [str(point.trials[-1].reasons) for point in found.unmeasured]
    assert found.outcome == "lossless", measured
    (stored,) = read_run(run).searches
    assert len(stored.trials) == len(found.trials)


@pytest.mark.thorough
@pytest.mark.parametrize("plan", versions_of("gateway-v4", "gateway-v6", proved="v4"))
def test_delays_hold_what_the_router_adds(plan: str, tmp_path: Path) -> None:
    """R8219-07, R8219-09, R8219-12, IPv4 and IPv6: a router that holds each frame for 5 ms. `bench/truth.py`
    measures how near it is."""
    delay_ns = 5e6
    with reference_router(make_plan(plan), ReferenceDut(extra_delay_us=delay_ns / 1e3)) as router:
        path = tmp_path / "delay.toml"
        path.write_text(text_for(router, None))
        with evenhand.open_testbed(path) as opened:
            figures: dict[evenhand.DelayTest, DelayName] = {
                evenhand.DelayTest.LATENCY: "typical",
                evenhand.DelayTest.PDV: "ipdv_median",
            }
            for test, figure in figures.items():
                goal = evenhand.DelayGoal(
                    test=test,
                    rate_fps=LIMIT_FPS,
                    duration_s=0.3,
                    from_s=0.1,
                    repetitions=2,
                    has_variation=test is evenhand.DelayTest.PDV,
                    invalid_retries=30,
                    patience=60,
                )
                for _ in range(ATTEMPTS):
                    found = opened.delay(goal=goal, plan=plan, waits=QUICK, limits=PATIENT)
                    if found.outcome == "measured":
                        break
                else:
                    pytest.skip("this machine was too busy for a third of a second of even load")
                for direction in found.profile.directions:
                    values = found.values(direction, figure)
                    assert len(values) == 2
                    if test is evenhand.DelayTest.LATENCY:
                        assert min(values) >= delay_ns
                        assert min(found.values(direction, "worst_case")) >= max(0.0, min(values))
                    else:
                        # Frames come back as evenly as they were sent: the delay is the same for each.
                        assert max(map(abs, values)) < delay_ns / 10
                        assert min(found.values(direction, "pdv")) >= 0


@on("gateway-v4", "gateway-v6")
def test_what_cannot_be_is_refused_before_anything_is_sent(testbed: Path) -> None:
    other = "gateway-v6" if testbed.stem == "gateway-v4" else "gateway-v4"
    with evenhand.open_testbed(testbed, engine=Path("/nowhere/engine")) as opened:
        with raises("rig.dut-of-other-plan"):
            opened.throughput(plan=other)
        with raises("procedure.frame-size-out-of-range"):
            opened.throughput(plan=testbed.stem, frame_size=9_999)
        with raises("base.program-missing", match="/nowhere/engine"):
            opened.trial(plan=testbed.stem, rate_fps=1_000)
