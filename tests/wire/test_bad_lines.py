# SPDX-License-Identifier: Apache-2.0
"""Lines that would be the end of a careless reader: both programs refuse them and live on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from evenhand.plan import make_plan
from evenhand.reference import ReferenceDut
from tests.wire.raw_engine import RawEngine, open_request
from tests.wire.wire_session import built_router, cpus

pytestmark = pytest.mark.wire
CONTRACT = Path(__file__).resolve().parents[2] / "contract"

BRACKETS = 200_000
DEEP = [
    "[" * BRACKETS,
    '{"id":1,"request":"about","x":' + "[" * BRACKETS + "]" * BRACKETS + "}",
    '{"":' * BRACKETS + "1" + "}" * BRACKETS,
]
MOST_MEMORY_KB = 128 * 1024
"""For an engine that has opened nothing; the line that it is sent has 70 MB."""


def peak_memory_kb(pid: int) -> int:
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    return int(line.split()[1])


def test_nested_brackets_are_refused_also_in_a_trial() -> None:
    """They ended the engine by SIGSEGV, with both ports open."""
    with RawEngine() as engine:
        engine.say(*DEEP, {"id": 2, "request": "about"})
        faults = engine.hear_answers(len(DEEP))
        assert [fault["fault"]["code"] for fault in faults] == ["bad_json"] * len(DEEP)
        assert all("more than 32 deep" in fault["fault"]["what"] and fault["id"] is None for fault in faults)
        assert engine.hear()["id"] == 2
        engine.say(open_request())
        assert engine.hear()["response"] == "open"
        engine.say({"id": 3, "request": "trial", "trial": 1, "rate_fps": 1000, "duration_s": 600})
        assert engine.hear()["event"] == "progress"
        engine.say(*DEEP, {"id": 4, "request": "stop"})
        trial, *faults, stop = engine.hear_answers(2 + len(DEEP))
        assert trial["reasons"][0]["code"] == "stopped"
        assert [fault["fault"]["code"] for fault in faults] == ["bad_json"] * len(DEEP)
        assert stop["id"] == 4


def test_a_line_of_70_mb_is_a_fault_and_not_the_end_of_the_session() -> None:
    """No more of it than 16 MiB are ever kept."""
    schema = json.loads((CONTRACT / "reply.schema.json").read_text())
    with RawEngine() as engine:
        engine.say('{"id":1,"request":"' + "x" * 70_000_000 + '"}', {"id": 2, "request": "about"})
        fault, about = engine.hear(), engine.hear()
        jsonschema.validate(fault, schema)
        assert fault["id"] is None
        assert fault["fault"]["code"] == "bad_json"
        assert fault["fault"]["what"] == "the line is longer than 16777216 octets"
        assert about["id"] == 2
        assert peak_memory_kb(engine.process.pid) < MOST_MEMORY_KB


def test_the_router_refuses_such_lines_and_forwards_on(tmp_path: Path) -> None:
    config = ReferenceDut().router_config(
        make_plan("gateway-v4"), {"left": "net_null0,no-rx=1", "right": "net_null1,no-rx=1"}, cpu=cpus()[-1]
    )
    file = tmp_path / "router.json"
    file.write_text(json.dumps(config))
    with RawEngine([built_router(), file]) as process:
        assert process.hear()["event"] == "ready"
        process.say(*DEEP, "x" * 70_000_000, {"request": "counters"})
        faults = [process.hear() for _ in range(len(DEEP) + 1)]
        assert [fault["fault"]["code"] for fault in faults] == ["bad_json"] * len(faults)
        assert process.hear()["event"] == "counters"
        assert process.process.stdin is not None
        process.process.stdin.write(b'{"request":"\xff\xfe"}\n')
        process.say({"request": "counters"})
        assert process.hear()["fault"]["code"] == "bad_json"
        assert process.hear()["event"] == "counters"
        process.hang_up()
        assert process.hear()["event"] == "stopped"
        assert process.process.wait(20) == 0


@pytest.mark.parametrize("text", DEEP, ids=["open", "closed", "objects"])
def test_the_router_refuses_a_configuration_of_nested_brackets(text: str, tmp_path: Path) -> None:
    file = tmp_path / "router.json"
    file.write_text(text)
    done = subprocess.run(
        [built_router(), file],
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["fault"]["code"] == "bad_json"


def test_the_router_refuses_a_configuration_that_never_ends() -> None:
    done = subprocess.run(
        [built_router(), "/dev/zero"],
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "longer than" in json.loads(done.stdout)["fault"]["what"]
