# SPDX-License-Identifier: Apache-2.0
"""A procedure is one file with one descriptor: whatever else knows it by name has that from the registry."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from rich.console import Console

from evenhand.base.option import DURATION, RATE, Option, fill, options_of, values_of
from evenhand.base.table import Table
from evenhand.base.terminal_table import FittedTable
from evenhand.cli.main import app_of, main
from evenhand.procedure.descriptor import (
    Figure,
    FrameSizes,
    KnownThroughput,
    Procedure,
    Section,
    ThroughputUse,
)
from evenhand.procedure.events import OnEvent
from evenhand.procedure.limits import Retries
from evenhand.procedure.record import Recorder, recording
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.tester import OpenTester
from evenhand.report.found import REPORTS, ResultReport, found_lines, found_tables
from evenhand.report.result_entry import ResultEntry, table_of
from evenhand.run import read_record
from evenhand.run.campaign.outline import describe
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import point_defaults, read_point
from tests.errors import raises
from tests.run.campaign.small_campaign import write_campaign

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "evenhand"
OTHER_WORDS = {
    ("cli/progress/line.py", "loss"): "the code of a reason",
    ("reference/config.py", "loss"): "a defect of the reference router",
    ("report/page_figures.py", "latency"): "a figure of the engine's documents",
    ("report/page_figures.py", "pdv"): "a figure of the engine's documents",
    ("report/delay.py", "latency"): "a figure of the engine's documents",
    ("report/delay.py", "pdv"): "a figure of the engine's documents",
    ("search/model.py", "throughput"): "what a search looks for, in its sentences",
    ("exchange/otg_write.py", "loss"): "a key of OTG",
    ("exchange/trex_import.py", "burst"): "a kind of duration in OTG",
    ("otg/refusals.py", "loss"): "a key of OTG",
    ("otg/refusals.py", "latency"): "a key of OTG",
    ("otg/refusals.py", "burst"): "a kind of duration in OTG",
    ("otg/headers.py", "throughput"): "a bit of the type of service",
    ("otg/port_flows.py", "burst"): "a kind of duration in OTG",
    ("otg/refusals.py", "throughput"): "a bit of the type of service",
    ("otg/flow_part.py", "burst"): "a kind of duration in OTG",
    ("otg/flow_part.py", "latency"): "a key of OTG",
    ("otg/transmission.py", "burst"): "a kind of duration in OTG",
    ("exchange/imix_import.py", "throughput"): "the verb of a command that is written",
    ("exchange/pktgen_import.py", "burst"): "a word of Pktgen",
    ("exchange/pktgen_read.py", "latency"): "a word of Pktgen",
    ("report/cases.py", "loss"): "the type of a test case that failed",
    ("report/trial_command.py", "burst"): "a key of the engine's documents",
    ("report/trial_command.py", "connections"): "a key of the engine's documents",
    ("serve/trial_page.py", "loss"): "a figure of a trial",
    ("search/__init__.py", "throughput"): "a module",
    ("trial/simulated.py", "loss"): "the code of a reason",
    ("trial/simulated.py", "burst"): "a key of the contract",
    ("trial/simulated.py", "latency"): "a key of the contract",
    ("trial/direction.py", "latency"): "a key of the contract",
    ("trial/causes.py", "loss"): "the code of a reason",
    ("trial/engine_group.py", "connections"): "a key of the contract",
    ("trial/group_parts.py", "latency"): "a key of the contract",
    ("trial/reply_check.py", "latency"): "a key of the contract",
    ("trial/reply_check.py", "loss"): "the code of a reason",
    ("trial/load.py", "burst"): "a key of the contract",
    ("trial/load.py", "connections"): "a key of the contract",
    ("reference/router.py", "capacity"): "a key of the router's configuration",
    ("dut/readings.py", "connections"): "a part of what a DUT is asked for",
    ("dut/witness.py", "connections"): "a key of the contract",
    ("lab/translator.py", "connections"): "a count of the kernel",
    ("spec/router.py", "capacity"): "a key of the router's configuration",
}
"""Where a word that names a procedure means something else."""


@pytest.mark.parametrize("procedure", [each for each in PROCEDURES.values() if isinstance(each.goals, type)])
def test_an_option_has_the_default_of_its_goal(procedure: Procedure) -> None:
    """Who asks in Python and gives no duration gets that of the verb."""
    defaults = {field.name: field.default for field in fields(procedure.goals)}
    written = {
        option.keyword: option.read(option.default)
        for option in options_of(procedure.options)
        if option.default is not None and defaults.get(option.keyword, MISSING) is not MISSING
    }
    assert written == {name: defaults[name] for name in written}


def test_no_procedure_is_named_outside_its_room() -> None:
    """Else a new procedure would have to be written into each of these places."""
    found = {
        (str(path.relative_to(PACKAGE)), node.value)
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("procedure", "results")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in PROCEDURES
    }
    assert sorted(found - set(OTHER_WORDS)) == []
    assert sorted(set(OTHER_WORDS) - found) == [], "no longer there"


# --- A procedure of one file, as somebody would write it.


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions:
    """The load of the only trial, and how long it takes."""

    rate: Annotated[str | None, Option(grammar=RATE, sets="rate_fps", help="Load per direction.")] = None
    soak: Annotated[
        str, Option(grammar=DURATION, sets="duration_s", help="The only trial takes this long.")
    ] = "1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmSoakOptions(SoakOptions):
    """The same with one option more, which is declared here and nowhere else."""

    warm_up: Annotated[str, Option(grammar=DURATION, help="The device is warmed up this long.")] = "0s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakGoal:
    rate_fps: float
    duration_s: float
    retries: Retries


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    lost_frames: int
    outcome: str = "measured"
    trials: tuple[Any, ...] = ()

    def to_document(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "lost_frames": self.lost_frames}


def _goal(options: SoakOptions, retries: Retries, known: KnownThroughput | None) -> SoakGoal:
    given = values_of(options)
    return SoakGoal(
        rate_fps=given.get("rate_fps", known.fps if known else 0.0),
        duration_s=given["duration_s"],
        retries=retries,
    )


def _value(result: Mapping[str, Any]) -> float | None:
    lost = result.get("lost_frames")
    return None if lost is None else float(lost)


def _measure(
    tester: OpenTester, goal: SoakGoal, *, name: str = "soak", on_event: OnEvent, recorder: Recorder | None
) -> SoakResult:
    with recording(recorder, tester, name, kind="soak", goal={"duration_s": goal.duration_s}) as record:
        trial = tester.measurer(on_event).measure(goal.duration_s, goal.rate_fps)
        record.add_result(trial, number=1, purpose="soak")
        result = SoakResult(lost_frames=trial.lost_frames)
        record.finish_with(result.outcome, result.to_document())
    return result


def _parts(goal: SoakGoal) -> Iterable[str]:
    yield "one long trial"


SOAK = Procedure(
    name="soak",
    verb="soak",
    help="Send for a long time.",
    example="evenhand soak lab.toml --rate 1Mfps",
    options=SoakOptions,
    make_goal=_goal,
    goals=SoakGoal,
    measure=_measure,
    figure=Figure(name="frames lost in a long trial", unit="frames", is_higher_better=False),
    section=Section.BURSTS,
    value_of=_value,
    expected_s=lambda goal, waits_s: goal.duration_s + waits_s,
    expected_parts=_parts,
    describe=lambda goal, load: f"one trial of {goal.duration_s:g} s at {load or goal.rate_fps}",
    frame_sizes=FrameSizes.ONE,
    load="rate_fps",
    throughput=ThroughputUse(option="rate"),
)
WARM_SOAK = replace(SOAK, name="warm-soak", verb="warm-soak", options=WarmSoakOptions)


@contextmanager
def added(procedure: Procedure) -> Iterator[Procedure]:
    PROCEDURES.add(procedure)
    app_of.cache_clear()
    yield procedure
    PROCEDURES.remove(procedure)
    app_of.cache_clear()


@pytest.fixture
def soak() -> Iterator[Procedure]:
    with added(SOAK):
        yield SOAK


@pytest.fixture
def warm_soak() -> Iterator[Procedure]:
    with added(WARM_SOAK):
        yield WARM_SOAK


def unframed(text: str) -> str:
    """In one line, without the frames of its tables."""
    return " ".join(text.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())


def test_a_procedure_of_one_file_is_a_verb(soak: Procedure, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "soak" in capsys.readouterr().out
    assert main(["soak", "--help"]) == 0
    shown = unframed(capsys.readouterr().out)
    assert "--soak" in shown
    assert "The only trial takes this long." in shown
    assert "evenhand soak lab.toml --rate 1Mfps" in shown


def test_a_procedure_of_one_file_is_measured_by_campaigns(soak: Procedure) -> None:
    suite = {"name": "a", "procedure": ["throughput", "soak"], "hosts": [1], "soak": "30s", "repetitions": 2}
    plan = expand(make_campaign({"name": "x", "testbed": "reference", "suite": [suite]}, where="x"))
    first, then = plan.points
    assert then.procedure == soak.name
    assert then.goal["after"] == first.key
    request = read_point(then, throughput=KnownThroughput(fps=5e5, source="a"))
    assert (request.goal.rate_fps, request.goal.duration_s) == (5e5, 30.0)
    outline = describe(plan).rows[1]
    assert outline.goal == "one trial of 30 s at the throughput of its suite"
    assert outline.expected.middle_s == pytest.approx(2 * (30 + 11 + 2))
    json.dumps(then.goal)


def test_a_procedure_of_one_file_is_measured_shown_and_exported(
    soak: Procedure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the commands, on the simulated device: nothing else had to know it."""
    suite = (
        'name = "c"\ntestbed = "testbed.toml"\n[[suite]]\nname = "s"\nprocedure = "soak"\nhosts = [4]\n'
        'repetitions = 2\nrate = "1kfps"\nsoak = "1s"\nwaits = "short"\none-pair-first = false\n'
    )
    campaign = write_campaign(tmp_path, suite)
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(campaign), "--run", "a.evenhand"]) == 0
    (point,) = read_record(Path("a.evenhand")).points
    assert point.values == (0.0, 0.0)
    capsys.readouterr()
    assert main(["show", "a.evenhand"]) == 0
    assert f"s: {soak.figure.name} in frames" in capsys.readouterr().out
    assert main(["show", "a.evenhand", "--point", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("PASS") == 2
    assert len(re.findall(rf"outcome +{soak.figure.name}, frames\nmeasured +0\n", shown)) == 2
    assert main(["export", "a.evenhand", "--format", "csv", "--table", "points"]) == 0
    header, row = csv.reader(capsys.readouterr().out.splitlines())
    assert dict(zip(header, row, strict=True)) | {"procedure": soak.name, "unit": "frames"} == dict(
        zip(header, row, strict=True)
    )
    assert main(["export", "a.evenhand", "--format", "markdown"]) == 0
    assert soak.figure.name in capsys.readouterr().out
    assert main(["report", "a.evenhand", "--output", "a.html"]) == 0
    page = Path("a.html").read_text()
    sections = dict(re.findall(r'<section id="([a-z-]+)">(.*?)</section>', page, re.DOTALL))
    assert soak.figure.name in sections[soak.section.anchor]
    assert Section.OTHERS.anchor not in sections


def test_a_result_of_an_unknown_type_is_shown_by_its_figure(soak: Procedure) -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(FittedTable.of(found_tables(SoakResult(lost_frames=7), procedure=soak)[-1]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"frames lost in a long trial, frames *\nmeasured +7 *\n", shown)
    assert found_lines(SoakResult(lost_frames=7), procedure=soak) == []


def test_an_option_is_declared_once(soak: Procedure) -> None:
    """Its name, default and grammar are the same in the shell and in a file; its help is the shell's."""
    (rate, long) = options_of(SoakOptions)
    assert (long.name, long.where, long.default, long.keyword) == ("soak", "--soak", "1h", "duration_s")
    assert point_defaults(soak)["soak"] == "1h"
    assert values_of(fill(SoakOptions, {"soak": "2s", "rate": "1kfps"})) == {
        "rate_fps": 1000.0,
        "duration_s": 2.0,
    }
    assert rate.read(None) is None


def test_an_option_of_one_declaration_is_everywhere(
    warm_soak: Procedure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of the verb has it, and a campaign file as a key; `show` and the export of a run have its
    value."""
    assert main([str(warm_soak.verb), "--help"]) == 0
    shown = unframed(capsys.readouterr().out)
    assert "--warm-up" in shown
    assert "The device is warmed up this long." in shown

    suite = (
        'name = "c"\ntestbed = "testbed.toml"\n[[suite]]\nname = "s"\nprocedure = "warm-soak"\nhosts = [4]\n'
        'repetitions = 1\nrate = "1kfps"\nsoak = "1s"\nwaits = "short"\none-pair-first = false\n'
    )
    for value, code in (("5", "base.not-a-text"), ('"5 parsec"', "base.not-a-quantity")):
        wrong = write_campaign(tmp_path, f"{suite}warm-up = {value}\n", name="wrong.toml")
        with raises(code) as error:
            expand(read_campaign(wrong))
        assert error.value.where == f"{wrong}: suite 's': warm-up"

    campaign = write_campaign(tmp_path, f'{suite}warm-up = "3s"\n')
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(campaign), "--run", "a.evenhand"]) == 0
    capsys.readouterr()
    assert main(["show", "a.evenhand", "--point", "1"]) == 0
    assert "  warm-up: 3s\n" in capsys.readouterr().out
    assert main(["export", "a.evenhand", "--format", "json"]) == 0
    exported = json.loads(capsys.readouterr().out)
    assert exported["points"][0]["goal"]["warm-up"] == "3s"
    assert exported["spec"]["suite"][0]["options"][warm_soak.name]["warm-up"] == "3s"


def lost_table(entries: Sequence[ResultEntry]) -> Table:
    """What one function makes of the results of a procedure."""
    rows = ((entry.labels, [[str(entry.document.get("lost_frames"))]]) for entry in entries)
    return table_of(rows, ["#left behind"], title="What was left behind")


def test_a_table_of_one_function_is_everywhere(
    soak: Procedure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb shows it, `show` and the page of a run have it."""
    monkeypatch.setitem(REPORTS, soak.name, ResultReport(table=lost_table, lines=lambda entry: []))
    (live,) = found_tables(SoakResult(lost_frames=7), procedure=soak)
    assert (live.title, [[cell.text for cell in row] for row in live.rows]) == (
        "What was left behind",
        [["7"]],
    )
    suite = (
        'name = "c"\ntestbed = "testbed.toml"\n[[suite]]\nname = "s"\nprocedure = "soak"\nhosts = [4]\n'
        'repetitions = 1\nrate = "1kfps"\nsoak = "1s"\nwaits = "short"\none-pair-first = false\n'
    )
    campaign = write_campaign(tmp_path, suite)
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "engine"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(campaign), "--run", "a.evenhand"]) == 0
    capsys.readouterr()
    assert main(["show", "a.evenhand", "--point", "1"]) == 0
    assert re.search(r"What was left behind\s+left behind\s+0\s", capsys.readouterr().out)
    assert main(["report", "a.evenhand", "--output", "a.html"]) == 0
    assert "left behind" in Path("a.html").read_text()


def test_two_procedures_of_one_name_are_refused(soak: Procedure) -> None:
    with pytest.raises(ValueError, match="there is a procedure 'soak' already"):
        PROCEDURES.add(SOAK)
