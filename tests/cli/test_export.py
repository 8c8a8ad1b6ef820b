# SPDX-License-Identifier: Apache-2.0
"""`evenhand export`: what other programs read of a run is what Evenhand reads of it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.procedure.registry import PROCEDURES
from evenhand.report.campaign_rows import COLUMNS, columns_of, rows_of
from evenhand.run import read_record, read_run
from tests.cli.running import Ended
from tests.docs.documents import read
from tests.report.uti_schema import SCHEMA
from tests.run.hostile import change, write_run

Run = Callable[..., Ended]
Play = Callable[[str], Path]
CONTRACT = Path(__file__).resolve().parents[2] / "contract"
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--waits", "short")
TABLES = ("points", "repetitions", "trials")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "a.evenhand")


def validator(name: str) -> Any:
    schema = json.loads((CONTRACT / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_whole_document_is_as_the_contract_says_and_holds_every_trial(evenhand: Run, run: Path) -> None:
    ended = evenhand("export", run, "--format", "json")
    assert ended.code == 0, ended.err
    document = ended.json
    validator("export.schema.json").validate(document)
    ((search,),) = [
        repetition["searches"] for point in document["points"] for repetition in point["repetitions"]
    ]
    stored = read_run(run).searches[0]
    assert [trial["document"] for trial in search["trials"]] == [trial.result.raw for trial in stored.trials]
    assert (search["plan"], search["goal"], search["setup"], search["seed"]) == (
        stored.plan,
        stored.goal,
        stored.setup,
        "7",
    )
    with pytest.raises(jsonschema.ValidationError):
        validator("export.schema.json").validate(
            {**document, "points": [{**document["points"][0], "state": "fine"}]}
        )


def test_single_trials_and_other_procedures_are_as_the_contract_says(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    for n, line in enumerate(
        (("trial", "--rate", "700kfps", "--duration", "1s", "--waits", "short"), ("loss", *SEARCH))
    ):
        file = tmp_path / f"{n}.evenhand"
        assert evenhand(line[0], testbed, *line[1:], "--run", file).code == 0
        document = evenhand("export", file, "--format", "json").json
        validator("export.schema.json").validate(document)
        assert document["other_searches" if n == 0 else "points"]
        assert evenhand("export", file, "--format", "csv").out.count("\n") == 1 + sum(
            document["trials"].values()
        )


@pytest.mark.parametrize(
    ("plan", "typed", "size"),
    [
        ("gateway-v6", "imix:ddg", "imix:ddg"),
        ("gateway-v4", "CUSTOM IMIX - AAG (A=90, G=1518)", "imix:AAG:A=90:G=1518"),
    ],
)
def test_a_single_trial_has_its_conditions_in_the_table(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str, typed: str, size: str
) -> None:
    """R6985-01: as a campaign's trials have: a table of trials whose plan and size nobody can tell is of no
    use. Sizes stand as the command line takes them, however they were typed."""
    engine_playing("simulated-640000")
    file = tmp_path / "one.evenhand"
    line = f"--plan {plan} --hosts 9,4 --direction reverse --rate 1kfps --duration 1s"
    assert evenhand("trial", testbed, *line.split(), "--frame-size", typed, "--run", file).code == 0
    (row,) = csv.DictReader(evenhand("export", file, "--format", "csv").out.splitlines())
    wanted = {
        "plan": plan,
        "hosts_left": "9",
        "hosts_right": "4",
        "networks_left": "1",
        "networks_right": "1",
        "frame_size": size,
        "directions": "reverse",
        "hash_type": "",
        "testbed": "testbed.toml",
        "point": "",
    }
    assert {name: row[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    "broken",
    [
        {"plan": {"left": 1}},
        {"plan": {"left": {"hosts": {"host": {"count": "many"}}}}},
        {"setup": {"directions": ["up"]}},
        {"setup": {"mix": {"versions": {"plans": [1, 2], "share": "x"}}}},
        {"setup": {"dut": "a text"}},
        {"plan": {"name": 5}},
        {"setup": {"mix": {"imix": "imix:no size"}}},
        {"setup": {"mix": {"imix": 7}}},
    ],
)
def test_a_search_that_does_not_tell_its_conditions_has_none(run: Path, broken: dict[str, Any]) -> None:
    """A run file may come from anybody."""
    search = replace(read_run(run).searches[0], kind="trial", **broken)
    record = replace(read_record(run), points=(), other_searches=(search,))
    (first, *_) = rows_of(record, "trials")
    assert (first["plan"], first["frame_size"], first["directions"]) == (None, None, None)


@pytest.mark.parametrize("table", TABLES)
def test_csv_read_back_is_what_is_in_the_file(evenhand: Run, run: Path, table: Any) -> None:
    ended = evenhand("export", run, "--format", "csv", "--table", table)
    assert ended.code == 0, ended.err
    found = list(csv.DictReader(ended.out.splitlines()))
    record = read_record(run)
    wanted = list(rows_of(record, table))
    assert len(found) == len(wanted) > 0
    convert: dict[str, Callable[[str], object]] = {
        "text": str,
        "integer": int,
        "real": float,
        "flag": lambda text: text == "true",
    }
    for row, values in zip(found, wanted, strict=True):
        read = {
            column.name: convert[column.kind](row[column.name]) if row[column.name] else None
            for column in columns_of(record, table)
        }
        assert read == {name: None if value == "" else value for name, value in values.items()}


def test_trials_are_the_table_if_none_is_named(evenhand: Run, run: Path) -> None:
    assert (
        evenhand("export", run, "--format", "csv").out
        == evenhand("export", run, "--format", "csv", "--table", "trials").out
    )


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_reads_it(run: Path) -> None:
    """In a pipe, as people do."""
    line = (
        f"{sys.executable} -m evenhand export {run} --format json | jq -r '.points[] | [.key, .median,"
        " .trials.PASS] | @tsv'"
    )
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=True)
    (point,) = read_record(run).points
    assert ended.stdout.split("\t")[0] == point.point.key
    assert float(ended.stdout.split("\t")[1]) == point.values[0]


def test_what_it_writes_is_new(evenhand: Run, run: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    assert evenhand("export", run, "--format", "csv", "--output", target).code == 0
    before = target.read_bytes()
    ended = evenhand("export", run, "--format", "json", "--output", target)
    assert ended.code == 2
    assert ended.error.code == "base.file-exists"
    assert target.read_bytes() == before
    assert evenhand("export", run, "--format", "json", "--output", run).code == 2
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert evenhand("export", run, "--format", "csv", "--output", tmp_path / "link").code == 2
    assert not (tmp_path / "elsewhere").exists()
    assert evenhand("export", run, "--format", "csv", "--output", tmp_path / "no" / "folder").code == 3


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--format", "json", "--table", "trials"), "cli.no-such-table", "--table"),
        (("--format", "uti", "--table", "points"), "cli.no-such-table", "--table"),
        (("--format", "parquet"), "cli.format-needs-a-file", "--format parquet"),
        (("--format", "xml"), "base.not-one-of", "--format"),
        (("--format", "csv", "--table", "hosts"), "base.not-one-of", "--table"),
    ],
)
def test_options_that_do_nothing_are_refused(
    evenhand: Run, run: Path, options: tuple[str, ...], code: str, where: str
) -> None:
    ended = evenhand("export", run, *options)
    assert ended.code == 2
    assert ended.out == ""
    assert (ended.error.code, ended.error.where) == (code, where)


def test_without_pyarrow_it_says_what_to_install(
    evenhand: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = evenhand("export", run, "--format", "parquet", "--output", tmp_path / "a.parquet")
    assert ended.code == 3
    assert ended.error.code == "report.pyarrow-missing"
    assert ".venv/bin/pip install 'pyarrow>=15'" in ended.error.next_step  # this is a clone
    assert not (tmp_path / "a.parquet").exists()


def test_uti_has_the_sum_of_both_directions_and_only_what_its_model_has(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """FD.io CSIT's model 1.5.1: NDR and PDR of one search, MRR of the highest load."""
    engine_playing("simulated-640000")
    both = tmp_path / "mlr.evenhand"
    line = (
        "--search",
        "mlr",
        "--goal",
        "NDR",
        "--goal",
        "PDR=0.5%",
        "--maximum-rate",
        "1Mfps",
        "--waits",
        "short",
        "--run",
        both,
    )
    ended = evenhand("throughput", testbed, *line)
    assert ended.code == 0, ended.err
    (document,) = [json.loads(line) for line in evenhand("export", both, "--format", "uti").out.splitlines()]
    assert document["test_type"] == document["result"]["type"] == "ndrpdr"
    (search,) = read_run(both).searches
    assert search.result is not None
    for name, goal in zip(("ndr", "pdr"), search.result["goals"], strict=True):
        for bound in ("lower", "upper"):
            rate = document["result"][name][bound]["rate"]
            assert rate == {"value": 2 * goal[f"{bound}_fps_per_direction"], "unit": "pps"}
            assert document["result"][name][bound]["bandwidth"]["value"] == pytest.approx(
                rate["value"] * 84 * 8
            )
    assert (document["passed"], document["message"], document["version"]) == (True, "", "1.5.1")
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert re.fullmatch(r"[a-z0-9.,=_+-]+", document["test_id"])
    losses = tmp_path / "loss.evenhand"
    assert evenhand("loss", testbed, *SEARCH, "--run", losses).code == 0
    (document,) = [
        json.loads(line) for line in evenhand("export", losses, "--format", "uti").out.splitlines()
    ]
    assert document["result"]["type"] == "mrr"
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["result"]["receive_rate"]["rate"]["values"] == [pytest.approx(2 * 640_000, rel=0.01)]


def test_uti_of_one_goal_is_of_no_type_rather_than_half_a_result(evenhand: Run, run: Path) -> None:
    """Its NDRPDR wants both bounds of both: none is made up."""
    (document,) = [json.loads(line) for line in evenhand("export", run, "--format", "uti").out.splitlines()]
    assert document["result"] == {"type": "unknown"}
    assert document["telemetry"][0].startswith('evenhand_throughput_fps_per_direction{seed="7"} 63')


def test_uti_refuses_a_run_that_it_has_no_place_for(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    file = tmp_path / "latency.evenhand"
    line = (
        "--rate",
        "10kfps",
        "--duration",
        "1s",
        "--from",
        "0.5s",
        "--repetitions",
        "1",
        "--waits",
        "short",
        "--run",
        file,
    )
    assert evenhand("latency", testbed, *line).code == 0
    ended = evenhand("export", file, "--format", "uti")
    assert ended.code == 2
    assert ended.error.code == "cli.not-in-uti"
    assert "1 point of a procedure" in ended.err


SHARED = {
    "All tables": {*TABLES, "flows"},
    "Points and repetitions": {"points", "repetitions"},
    "Repetitions, trials and flows": {"repetitions", "trials", "flows"},
    "Trials and flows": {"trials", "flows"},
}


@pytest.mark.parametrize("table", [*TABLES, "flows"])
def test_the_reference_lists_every_column(table: Any) -> None:
    """With its kind, in the section of the tables that have it; and no other."""
    listed: list[tuple[str, str]] = []
    for section in re.split(r"^### ", read("docs/reference/export.md"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if table not in SHARED.get(title, {title.lower()}):
            continue
        for names, kind in re.findall(r"^- ((?:`\w+`,?\s+)+)\((\w+)\)", text, re.MULTILINE):
            for name in re.findall(r"\w+", names):
                directions = ("forward", "reverse") if "DIRECTION" in name else ("",)
                listed += [(name.replace("DIRECTION", direction), kind) for direction in directions]
    assert sorted(listed) == sorted((column.name, column.kind) for column in COLUMNS[table])


def test_the_reference_names_every_procedure() -> None:
    (line,) = [
        line for line in read("docs/reference/export.md").splitlines() if line.startswith("- `procedure`")
    ]
    assert set(re.findall(r"`([a-z-]+)`", line)) - {"procedure"} == set(PROCEDURES)


@pytest.mark.parametrize(
    "options", [("latex",), ("markdown",), ("markdown", "--table", "summary"), ("csv", "--table", "summary")]
)
def test_the_summary_is_written_for_papers(evenhand: Run, run: Path, options: tuple[str, ...]) -> None:
    ended = evenhand("export", run, "--format", *options)
    assert ended.code == 0, ended.err
    rows = [line for line in ended.out.splitlines() if "throughput" in line]
    assert len(rows) == 1
    assert "IPv4" in rows[0]


@pytest.mark.parametrize(
    ("form", "table"), [("parquet", "summary"), ("latex", "points"), ("json", "summary")]
)
def test_a_table_that_a_format_does_not_have_is_refused_with_one_that_has_it(
    evenhand: Run, run: Path, form: str, table: str
) -> None:
    ended = evenhand("export", run, "--format", form, "--table", table)
    assert ended.code == 2
    assert ended.error.code == "cli.no-such-table"
    assert "--format csv" in ended.error.next_step


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("junit", "<?xml "),
        ("github", "### "),
        ("openmetrics", "# TYPE evenhand_run_info gauge"),
        ("influx", "evenhand_repetition,"),
    ],
)
def test_it_writes_for_continuous_integration_and_time_series(
    evenhand: Run, run: Path, form: str, begins: str
) -> None:
    """What is in them: tests/report/test_cases.py."""
    ended = evenhand("export", run, "--format", form)
    assert ended.code == 0, ended.err
    assert ended.out.startswith(begins)


def test_a_gate_needs_both_of_its_options_and_a_format_with_cases(evenhand: Run, run: Path) -> None:
    ended = evenhand("export", run, "--format", "junit", "--against", run)
    assert (ended.code, ended.error.code, ended.error.where) == (2, "cli.half-a-gate", "--against")
    ended = evenhand("export", run, "--format", "junit", "--fail-below", "0.9")
    assert (ended.code, ended.error.code, ended.error.where) == (2, "cli.half-a-gate", "--fail-below")
    ended = evenhand("export", run, "--format", "csv", "--against", run, "--fail-below", "0.9")
    assert (ended.code, ended.error.code) == (2, "cli.no-gate")
    ended = evenhand("export", run, "--format", "junit", "--against", run, "--fail-below", "0")
    assert (ended.code, ended.error.code) == (2, "cli.out-of-range")


def test_a_gate_judges_by_the_ratio_to_the_first_run(evenhand: Run, run: Path, tmp_path: Path) -> None:
    worse = change(
        Path(shutil.copy(run, tmp_path / "b.evenhand")), "UPDATE repetitions SET value = value / 2"
    )
    gate = ("--against", run, "--fail-below", "90%")
    assert 'failures="0"' in evenhand("export", run, "--format", "junit", *gate).out
    ended = evenhand("export", worse, "--format", "junit", *gate)
    assert (ended.code, 'type="below_limit"' in ended.out) == (0, True), ended.err
    assert "0.500 of the first run" in evenhand("export", worse, "--format", "github", *gate).out
