# SPDX-License-Identifier: Apache-2.0
"""The share of the time that was not judged, beside each result: from the verb that measures, and from its
run file, to every export. IPv4 and IPv6."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.run import read_record
from evenhand.run.figures import stated_time_left_out, time_left_out_at
from tests.cli.running import Ended
from tests.run.campaign.small_campaign import small, write_campaign

Run = Callable[..., Ended]
Play = Callable[[str], Path]
CONTRACT = Path(__file__).resolve().parents[2] / "contract"
RATE = ("--maximum-rate", "1Mfps", "--waits", "short")
QUICK = (*RATE, "--duration", "1s")
CLEAN = ("--clean-time",)
AWAY = 0.025
DEVICE = f"simulated-640000------{AWAY}"
"""A tester that is away for a fortieth of each trial."""
LINE = "Time left out: 2.5 % of the sending time, in "
PLANS = pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
SEARCHES: dict[str, tuple[str, ...]] = {
    "binary": ("throughput", "--final-duration", "2s", "--search", "binary"),
    "tst009": ("throughput", "--final-duration", "2s", "--search", "tst009"),
    "mlr": ("throughput", "--search", "mlr", "--goal", "NDR,final=2s,sum=2s,initial=1s"),
    "loss": ("loss",),
}


def validate(document: Any, schema: str) -> None:
    read = json.loads((CONTRACT / schema).read_text())
    jsonschema.Draft202012Validator(read).validate(document)


@PLANS
@pytest.mark.parametrize("name", SEARCHES)
def test_a_verb_says_it_and_its_run_file_says_the_same(
    evenhand: Run, engine_playing: Play, testbed: Path, plan: str, name: str
) -> None:
    engine_playing(DEVICE)
    verb, *options = SEARCHES[name]
    duration = () if name == "mlr" else ("--duration", "1s")
    arguments = (verb, testbed, *options, *RATE, *duration, *CLEAN, "--plan", plan)
    ended = evenhand(*arguments, "--run", "a.evenhand")
    assert ended.code == 0, ended.err
    (line,) = [text for text in ended.out.splitlines() if text.startswith(LINE)]
    assert "Deviation from R2544-20: what the tester's or its machine's lapses" in " ".join(ended.out.split())
    shown = evenhand("show", "a.evenhand", "--point", "1").out
    assert " ".join(line.split()) in " ".join(shown.split())
    assert "2.5 %" in evenhand("show", "a.evenhand").out
    document = evenhand(*arguments, "--no-run", "--json").json
    validate(document, "result.schema.json")
    assert document["time_left_out"]["share"] == pytest.approx(AWAY)
    assert document["time_left_out"]["cut_trials"] == document["time_left_out"]["valid_trials"] > 3
    # A trend reads no trials: the file's result states it too.
    (point,) = read_record("a.evenhand").points
    assert stated_time_left_out(point.repetitions[0].result) == time_left_out_at(point)


@PLANS
def test_several_repetitions_are_summed_up(
    evenhand: Run, engine_playing: Play, testbed: Path, plan: str
) -> None:
    engine_playing(DEVICE)
    ended = evenhand(
        "loss", testbed, *QUICK, *CLEAN, "--plan", plan, "--repetitions", "2", "--run", "a.evenhand"
    )
    assert ended.code == 0, ended.err
    (point,) = read_record("a.evenhand").points
    left_out = time_left_out_at(point)
    assert left_out is not None
    assert left_out.line in " ".join(ended.out.split())
    assert left_out.valid_trials == sum(
        len(search.trials) for repetition in point.repetitions for search in repetition.searches
    )
    shown = " ".join(evenhand("show", "a.evenhand", "--point", "1").out.split())
    assert shown.count("Time left out: 2.5 % of the sending time") == 3  # of the point, of each repetition


@PLANS
def test_exports_have_it(evenhand: Run, engine_playing: Play, testbed: Path, plan: str) -> None:
    engine_playing(DEVICE)
    assert evenhand("loss", testbed, *QUICK, *CLEAN, "--plan", plan, "--run", "a.evenhand").code == 0

    def export(*options: str) -> str:
        ended = evenhand("export", "a.evenhand", "--format", *options)
        assert ended.code == 0, ended.err
        return ended.out

    document = json.loads(export("json"))
    validate(document, "export.schema.json")
    (point,) = document["points"]
    (repetition,) = point["repetitions"]
    assert point["time_left_out"] == repetition["time_left_out"]
    assert point["time_left_out"]["share"] == pytest.approx(AWAY)
    for trial in repetition["searches"][0]["trials"]:
        assert trial["time_left_out_share"] == pytest.approx(AWAY)
    for table in ("points", "repetitions", "trials"):
        for row in csv.DictReader(export("csv", "--table", table).splitlines()):
            assert float(row["time_left_out_share"]) == pytest.approx(AWAY)
    (row,) = csv.DictReader(export("csv", "--table", "summary").splitlines())
    assert row["time left out"] == "2.5 %"
    assert r"& 2.5 \\" in export("latex")
    assert r"time left out, \%" in export("latex")
    assert "| 2.5 |" in export("markdown")
    assert "time left out, % |" in export("markdown")
    (test_case,) = map(json.loads, export("uti").splitlines())
    (telemetry,) = [text for text in test_case["telemetry"] if "time_left_out" in text]
    assert telemetry.startswith('evenhand_time_left_out_ratio{cut_trials="')
    assert float(telemetry.rpartition(" ")[2]) == pytest.approx(AWAY)


@PLANS
def test_without_clean_time_nothing_is_said_of_it(
    evenhand: Run, engine_playing: Play, testbed: Path, plan: str
) -> None:
    engine_playing(DEVICE)
    ended = evenhand("loss", testbed, *QUICK, "--plan", plan, "--run", "a.evenhand")
    said = [ended.out, ended.err, evenhand("show", "a.evenhand", "--point", "1").out]
    said += [
        evenhand("export", "a.evenhand", "--format", form).out for form in ("json", "csv", "uti", "latex")
    ]
    said += [evenhand("loss", testbed, *QUICK, "--plan", plan, "--no-run", "--json").out]
    # The name of this file is among the commands.
    said = [text.lower().replace("test_time_left_out", "") for text in said]
    assert not [text for text in said if "left out" in text or "time_left_out" in text]


def test_a_campaign_says_it_of_each_point(evenhand: Run, engine_playing: Play, tmp_path: Path) -> None:
    engine_playing(DEVICE)
    text = small(1).replace('waits = "short"', 'waits = "short"\nclean-time = true')
    write_campaign(tmp_path, text, part=DEVICE)
    ended = evenhand("run", "small.toml", "--run", "run.evenhand", "--no-html")
    assert ended.code in (0, 1), ended.err
    assert "left out" in " ".join(ended.out.split())
    status = evenhand("status", "run.evenhand", "--json").json
    record = read_record("run.evenhand")
    for point, found in zip(status["points"], record.points, strict=True):
        left_out = time_left_out_at(found)
        # A trial of delays is judged as a whole.
        assert (left_out is None) == (point["procedure"] == "latency")
        assert point.get("time_left_out") == (None if left_out is None else left_out.to_document())
    assert re.search(r"left out, % *\n.* 2\.5 *\n", evenhand("status", "run.evenhand").out)


def test_runs_that_left_out_different_shares_are_not_called_alike(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    for name, away in (("a", ""), ("b", "0.2")):
        engine_playing(f"simulated-640000------{away}")
        ended = evenhand("loss", testbed, *QUICK, *CLEAN, "--run", f"{name}.evenhand")
        assert ended.code == 0, ended.err
    ended = evenhand("compare", "a.evenhand", "b.evenhand", "--fail-below", "0.97")
    assert ended.code == 0
    out = " ".join(ended.out.split())
    assert "But 1 point was not judged alike" in out
    assert "20 % of the sending time was left out, and 0 % in the first run" in out
    document = evenhand("compare", "a.evenhand", "b.evenhand", "--json").json
    validate(document, "result.schema.json")
    (said,) = document["judged_unlike"]
    assert said["time_left_out_share"] == pytest.approx(0.2)
    document = evenhand("trend", "a.evenhand", "b.evenhand", "--json").json
    validate(document, "result.schema.json")
    assert document["points"][0]["judged_unlike"] == [{"before_run": 0, "run": 1}]
