# SPDX-License-Identifier: Apache-2.0
"""What all verbs' `--json` shares is one schema, contract/result.schema.json; each verb's document is held
against it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.main import get_command

from evenhand.cli.main import app_of
from tests.cli.running import Ended
from tests.exchange.confs import SIIT

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "contract" / "result.schema.json").read_text())
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--waits", "short", "--no-run")
LINES: dict[str, tuple[str, ...]] = {
    "back-to-back": (
        "back-to-back",
        "TESTBED",
        "--rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        "--max-burst",
        "10ms",
        "--repetitions",
        "2",
        "--waits",
        "short",
        "--no-run",
    ),
    "burst": (
        "burst",
        "TESTBED",
        "--burst",
        "16,64",
        "--rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        "--no-run",
    ),
    "check": ("check", "--watch", "0"),
    "compare": ("compare", "run.evenhand", "run.evenhand", "--fail-below", "0.97"),
    "dut setup": ("dut", "setup", "gateway-v4", "--os", "linux", "--left", "eth1", "--right", "eth2"),
    "import": (
        "import",
        str(SIIT),
        "--command",
        "siitperf-tp 84 100000 60 2000 2 0",
        "--output",
        "imported.toml",
    ),
    "lab": ("lab", "status", "linux"),
    "latency": (
        "latency",
        "TESTBED",
        "--rate",
        "10kfps",
        "--duration",
        "1s",
        "--from",
        "0.5s",
        "--repetitions",
        "2",
        "--no-run",
    ),
    "learn": ("learn", "TESTBED"),
    "loss": ("loss", "TESTBED", *QUICK),
    "pdv": (
        "pdv",
        "TESTBED",
        "--rate",
        "600kfps",
        "--duration",
        "1s",
        "--repetitions",
        "2",
        "--ipdv",
        "--no-run",
    ),
    "plan export": ("plan", "export", "gateway-v6", "--rate", "1kfps"),
    "plan frames": ("plan", "frames", "gateway-v6"),
    "plan prove": ("plan", "prove", "gateway-v4", "--frames", "1M"),
    "plan show": ("plan", "show", "nets-v6-gateway"),
    "predict": ("predict", "gateway-v4", "--rate", "1Mfps"),
    "prune": ("prune", ".", "--days", "1", "--dry-run"),
    "recovery": (
        "recovery",
        "TESTBED",
        "--throughput",
        "640kfps",
        "--duration",
        "1s",
        "--observe",
        "1s",
        "--repetitions",
        "2",
        "--no-run",
    ),
    "throughput": ("throughput", "TESTBED", *QUICK, "--final-duration", "1s"),
    "trend": ("trend", "run.evenhand"),
    "trial": ("trial", "TESTBED", "--rate", "1kfps", "--duration", "1s", "--waits", "short"),
}
WITHOUT_NUMBER: dict[str, tuple[str, ...]] = {
    "burst": LINES["burst"],
    "pdv": tuple("700kfps" if word == "600kfps" else word for word in LINES["pdv"]),
}
"""Lines that end without a number on a device of 640 kfps without a buffer: no interval is long enough, and
more frames are lost than a 99.9th percentile leaves out, which makes the PDV infinite."""
DEVICE = "simulated-640000"
DEVICES = {"burst": "simulated-640000--64"}
"""A device for a verb that finds no number on the usual one."""
REAL_ENGINE = ("plan frames", "plan prove")
ELSEWHERE = {
    "bisect": "tests/cli/test_bisect.py",
    "run": "tests/run/campaign/test_documents.py",
    "status": "tests/run/campaign/test_documents.py",
    "demo": "tests/cli/test_reference_demo.py",
    **dict.fromkeys(("dut apply", "dut check", "dut status", "dut undo"), "tests/dut/test_over_ssh.py"),
    **dict.fromkeys(("connections", "tear-down", "capacity"), "tests/wire/test_connections.py"),
    "router": "tests/cli/test_router.py",
    "show": "tests/cli/test_show.py",
}


def test_the_list_of_plans_is_as_the_schema_says(evenhand: Run) -> None:
    document = evenhand("plan", "show", "--json").json
    validate(document)
    with pytest.raises(jsonschema.ValidationError):
        validate({**document, "plans": [{**document["plans"][0], "hosts": 0}]})


@cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def validate(document: Any) -> None:
    validator().validate(document)


def verbs(name: str, command: Any) -> list[str]:
    inner = getattr(command, "commands", None)
    if inner:
        return [verb for key, value in inner.items() for verb in verbs(f"{name} {key}".strip(), value)]
    return [name] if any("--json" in parameter.opts for parameter in command.params) else []


def test_every_verb_with_json_is_held_against_the_schema() -> None:
    commands = {re.sub(r"^lab .*", "lab", verb) for verb in verbs("", get_command(app_of()))}
    assert commands == {*LINES, *ELSEWHERE} == set(SCHEMA["properties"]["command"]["enum"])


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.wire if name in REAL_ENGINE else ()) for name in LINES]
)
def test_a_document_is_as_the_schema_says(
    evenhand: Run, engine_playing: Play, testbed: Path, command: str
) -> None:
    """R2544-23: who reads one verb's document can read them all; units are in the names."""
    if command not in REAL_ENGINE:
        engine_playing(DEVICES.get(command, DEVICE))
    if "run.evenhand" in LINES[command]:
        evenhand("throughput", testbed, *QUICK[:-1], "--final-duration", "1s", "--run", "run.evenhand")
    ended = evenhand(*[testbed if word == "TESTBED" else word for word in LINES[command]], "--json")
    assert ended.code == 0, ended.err
    assert ended.json["command"] == command
    assert ended.json["error"] is None
    validate(ended.json)


@pytest.mark.parametrize(("command", "empty"), [("burst", "interval_s"), ("pdv", "median_ns")])
def test_a_document_without_a_number_is_as_the_schema_says(
    evenhand: Run, engine_playing: Play, testbed: Path, command: str, empty: str
) -> None:
    """R2544-23: what was not found is null there; the exit code is 1, and it is no error."""
    engine_playing(DEVICE)
    line = [testbed if word == "TESTBED" else word for word in WITHOUT_NUMBER[command]]
    ended = evenhand(*line, "--json")
    assert ended.code == 1, ended.err
    assert ended.json["error"] is None
    assert f'"{empty}": null' in ended.out
    validate(ended.json)


def test_an_answer_says_in_one_place_whether_it_is_an_error(evenhand: Run, testbed: Path) -> None:
    """`error` is null in a result, and the error otherwise, so that no script looks for what is missing."""
    ended = evenhand("trial", testbed, "--rate", "1kfps", "--duration", "0s", "--json")
    assert ended.code == 2
    assert ended.json.keys() == {"command", "error"}
    assert ended.json["error"]["id"] == "cli.out-of-range"


def test_the_schema_refuses(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """A schema that takes everything shows nothing."""
    engine_playing("simulated-640000")
    document = evenhand(*[testbed if word == "TESTBED" else word for word in LINES["trial"]], "--json").json
    validate(document)
    for key, value in (
        ("command", "tiral"),
        ("deviations", [{"text": "no id"}]),
        ("directions", []),
        ("protocol", "TCP"),
        ("theoretical_fps_per_direction", "many"),
    ):
        with pytest.raises(jsonschema.ValidationError):
            validate({**document, key: value})
    with pytest.raises(jsonschema.ValidationError):
        validate({name: item for name, item in document.items() if name != "deviations"})
