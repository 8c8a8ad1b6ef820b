# SPDX-License-Identifier: Apache-2.0
"""A run file of which one value is of another type or size, through every verb that reads it: it is refused
with what and where, or read; never "a bug in Evenhand"."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.cli.export import Format
from evenhand.report import page
from tests.cli.running import Ended, run_here
from tests.matrix.cells import Cell, Family, Outcome, Ports, Way
from tests.matrix.measuring import Bench, SimulatedSession
from tests.run.foreign import OTHERS, Target, alter, make_another_run, rich_record, targets_of, write_record

EXAMPLES = int(os.environ.get("EVENHAND_FUZZ_VALUES", "8"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
REFUSED = 2
_NUMBERS = count()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_record(tmp_path_factory.mktemp("sound") / "a.evenhand", rich_record()).read_bytes()


@pytest.fixture
def evenhand(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    # What goes wrong while a picture is drawn is contained (tests/report/test_page.py), and drawing takes
    # seconds: what is drawn is made here, and the drawing itself left out.
    monkeypatch.setattr(page, "draw_inline", lambda picture: picture.alt)

    def run(*arguments: str | Path) -> Ended:
        return run_here(arguments, capsys)

    return run


def use(evenhand: Callable[..., Ended], run: Path, other: Path) -> int:
    """The exit code of `show`; through every other verb too, unless the file is refused there."""
    first = evenhand("show", run)
    assert first.code in (0, REFUSED), first.failure
    if first.code == REFUSED:
        assert first.error.code == "run.not-a-run"
        return first.code
    new = run.with_name
    commands: list[tuple[Any, ...]] = [
        *(("show", run, "--point", "1"), ("show", run, "--json"), ("status", run)),
        *(("compare", run, other), ("compare", other, "--against", run, "--json")),
        *(("trend", other, run), ("trend", run, other, "--json")),
        ("report", run, "--html", new("a.html")),
        ("merge", run, other, "--run", new("both.evenhand")),
        *(("export", run, "--format", form, "--output", new(f"out.{form}")) for form in get_args(Format)),
        *(
            ("export", run, "--format", "csv", "--table", table)
            for table in ("points", "repetitions", "trials", "summary")
        ),
    ]
    for command in commands:
        ended = evenhand(*command)
        if "parquet" in command and find_spec("pyarrow") is None and ended.code != REFUSED:
            assert ended.error.code == "report.pyarrow-missing"
            continue
        assert ended.code in (0, 1, REFUSED), (command[0], command[2:], ended.failure)
    return first.code


@pytest.mark.parametrize(
    ("target", "other", "said"),
    [
        (("campaign", "spec", ("published",)), 5, "campaign.spec.published is 5"),
        (("campaign", "spec", ("published", 0, "dut")), "abc", "published[0].dut is 'abc'"),
        (("campaign", "spec", ("published", 0, "falls-above")), "x", "published[0].falls-above is 'x'"),
        (("searches", "setup", ("dut", "config", "neighbors")), 5, "dut.config.neighbors is 5"),
        (("testbeds", "document", ("testbed",)), [{}], "testbeds.document.testbed is [{}]"),
        (("repetitions", "result", ("deviations",)), [5], "repetitions.result.deviations[0] is 5"),
    ],
    ids=lambda value: ".".join(map(str, value[2])) if isinstance(value, tuple) else "",
)
def test_what_an_analysis_cannot_use_is_refused_with_what_and_where(
    target: Target, other: Any, said: str, sound: bytes, evenhand: Callable[..., Ended], tmp_path: Path
) -> None:
    run = tmp_path / "a.evenhand"
    run.write_bytes(sound)
    alter(run, target, other)
    for command in (("show", run), ("report", run, "--html", tmp_path / "a.html")):
        ended = evenhand(*command)
        assert (ended.code, ended.error.code) == (REFUSED, "run.not-a-run")
        assert said in ended.error.what
        assert str(run) in ended.error.where


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (("elements", "count"), 2.0),
        (("elements", "table"), [0.5, 1]),
        (("elements", "table"), [0.5, 1.0] * 64),
        (("elements", "rate_fps"), "x"),
        (("neighbors", "growth"), "x"),
        (("neighbors", "free_entries"), -3),
    ],
)
def test_a_dut_whose_configuration_is_none_has_no_prediction(
    place: tuple[str, str], other: Any, sound: bytes, evenhand: Callable[..., Ended], tmp_path: Path
) -> None:
    """It is foreign information: the rest of the file is as good without it."""
    run = tmp_path / "a.evenhand"
    run.write_bytes(sound)
    alter(run, ("searches", "setup", ("dut", "config", *place)), other)
    alter(run, ("testbeds", "document", ("dut", "config", *place)), other)
    ended = evenhand("report", run, "--html", tmp_path / "a.html")
    assert ended.code == 0, ended.failure
    assert "there is no prediction" in (tmp_path / "a.html").read_text()


@pytest.mark.thorough
@FUZZ
@given(data=st.data())
def test_no_value_of_a_run_file_ends_a_verb_in_a_bug(
    data: st.DataObject,
    sound: bytes,
    evenhand: Callable[..., Ended],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """One value anywhere in the JSON of a record is of another type or size, or gone."""
    folder = tmp_path_factory.mktemp("foreign")
    run, other = folder / "a.evenhand", folder / "b.evenhand"
    for path in (run, other):
        path.write_bytes(sound)
    make_another_run(other)
    target = data.draw(st.sampled_from(targets_of(run)))
    alter(run, target, data.draw(st.sampled_from(OTHERS)))
    use(evenhand, run, other)


@pytest.mark.thorough
def test_a_campaign_that_was_cut_short_goes_on_or_is_refused_whatever_one_value_is(
    evenhand: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run --resume`, with the page that is drawn meanwhile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    cell = Cell(
        procedure="throughput",
        way=Way.CAMPAIGN,
        family=Family.IPV4,
        ports=Ports.WITH_LINE_RATE,
        outcome=Outcome.FOUND,
    )
    bench = Bench(folder=tmp_path, evenhand=evenhand, patch=monkeypatch)
    bench.prepare(cell)
    monkeypatch.setattr(SimulatedSession, "stops_at", 5)
    cut = Path("cut.evenhand")
    assert bench.run_campaign(cut).code == 130
    content, targets = cut.read_bytes(), targets_of(cut)
    chance = random.Random(next(_NUMBERS))
    for _ in range(2 * EXAMPLES):
        target, other = chance.choice(targets), chance.choice(OTHERS)
        cut.write_bytes(content)
        alter(cut, target, other)
        monkeypatch.setattr(SimulatedSession, "trials", 0)
        monkeypatch.setattr(SimulatedSession, "stops_at", None)
        ended = evenhand("run", "--resume", cut)
        assert ended.code in (0, 1, REFUSED), (target, other, ended.failure)
