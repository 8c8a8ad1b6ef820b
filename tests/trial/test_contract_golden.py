# SPDX-License-Identifier: Apache-2.0
"""The contract: golden lines fit the schemas, and what we write is what the golden lines say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import make_plan
from evenhand.trial import Limits, SimulatedMeasurer, TrialResult, Waits

CONTRACT = Path(__file__).resolve().parents[2] / "contract"


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((CONTRACT / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def golden(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CONTRACT / "golden" / f"{name}.jsonl").read_text().splitlines()]


REQUESTS, REPLIES = golden("requests"), golden("replies")
TRIALS = [reply for reply in REPLIES if reply.get("response") == "trial"]


@pytest.mark.parametrize("document", REQUESTS, ids=lambda d: f"{d['id']}-{d['request']}")
def test_golden_requests_fit_the_schema(document: dict[str, Any]) -> None:
    validator("request").validate(document)


@pytest.mark.parametrize(
    "document", REPLIES, ids=lambda d: f"{d['id']}-{d.get('response', d.get('event', 'fault'))}"
)
def test_golden_replies_fit_the_schema(document: dict[str, Any]) -> None:
    validator("reply").validate(document)


def test_every_kind_of_request_and_reply_has_a_golden_line() -> None:
    schema = validator("request").schema
    assert isinstance(schema, dict)
    assert {r["request"] for r in REQUESTS} == set(schema["properties"]["request"]["enum"])
    assert {r["response"] for r in REPLIES if "response" in r} == {
        "about",
        "frames",
        "prove",
        "open",
        "resolve",
        "learn",
        "trial",
        "judge",
        "clock",
        "watch",
        "stop",
        "end_sending",
        "counters",
        "link",
        "close",
    }
    assert {r["verdict"] for r in TRIALS} == {"PASS", "FAIL", "INVALID"}
    assert {r["fault"]["kind"] for r in REPLIES if "fault" in r} == {"bad_request", "host_not_ready", "bug"}


@pytest.mark.parametrize("name", ["gateway_v4", "gateway_v6"])
@pytest.mark.parametrize("hosts", [1, 1000, None])
def test_our_trial_requests_fit_the_schema(name: str, hosts: int | None) -> None:
    validator("request").validate(
        {
            "id": 1,
            "request": "frames",
            "plan": make_plan(name, hosts).to_contract(),
            "frame_size": 84,
            "seed": 0,
            "direction": "forward",
            "count": 1,
        }
    )
    validator("request").validate(
        {
            "id": 2,
            "request": "trial",
            "trial": 1,
            "rate_fps": 1.5,
            "duration_s": 0.1,
            "directions": ["forward", "reverse"],
            "waits": Waits().to_contract(),
            "limits": Limits().to_contract(),
        }
    )


@pytest.mark.parametrize("document", TRIALS, ids=lambda d: f"{d['trial']}-{d['verdict']}")
def test_golden_trials_are_read(document: dict[str, Any]) -> None:
    result = TrialResult.from_contract(document)
    assert result.verdict == document["verdict"]
    assert result.loss_ratio == pytest.approx(document["loss_ratio"])
    assert result.raw == document


@pytest.mark.parametrize("limit_fps", [0, 500, 1e6])
def test_a_simulated_trial_fits_the_schema(limit_fps: float) -> None:
    result = SimulatedMeasurer(limit_fps=limit_fps).measure(1, 1000)
    validator("reply").validate(json.loads(json.dumps(result.raw)))
