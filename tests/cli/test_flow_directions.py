# SPDX-License-Identifier: Apache-2.0
"""Flows of one direction, as verbs and campaigns take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from tests.cli.running import Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SIDES = {
    4: (
        '[left]\ndut = "10.0.0.1/24"\ngateway = "10.0.0.2"\nhosts = "198.18.0.0/16"\n'
        '[right]\ndut = "10.0.1.1/24"\ngateway = "10.0.1.2"\nhosts = "198.19.0.0/16"\n'
    ),
    6: (
        '[left]\ndut = "2001:2:0:1000::1/64"\ngateway = "2001:2:0:1000::2"\nhosts = "2001:2::/64"\n'
        '[right]\ndut = "2001:2:0:9000::1/64"\ngateway = "2001:2:0:9000::2"\nhosts = "2001:2:0:8000::/64"\n'
    ),
}
DOWN = '[[flow]]\nname = "down"\ndirection = "forward"\ndscp = 10\n'
UP = '[[flow]]\nname = "up"\ndirection = "reverse"\ndscp = 12\n'
BOTH = pytest.mark.parametrize("version", [4, 6])


def plan_file(folder: Path, version: int, *flows: str) -> Path:
    path = folder / "edge.toml"
    path.write_text(SIDES[version] + "".join(flows))
    return path


def opened(folder: Path) -> dict[str, Any]:
    lines = (folder / "engine-requests.jsonl").read_text().splitlines()
    found: dict[str, Any]
    (found,) = [asked for line in lines if (asked := json.loads(line))["request"] == "open"]
    return found


def names(mix: dict[str, Any]) -> list[str]:
    return [each["name"] for each in mix["classes"]]


def test_a_direction_without_flows_is_refused_before_anything_starts(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000--512")
    edge = plan_file(tmp_path, 4, UP)
    error = evenhand("trial", testbed, "--plan", edge, "--rate", "1kfps").error
    assert error.code == "plan.no-flow-of-direction"
    assert "--direction reverse" in error.next_step
    assert not (tmp_path / "engine-was-started").exists()
    predicted = evenhand("predict", edge).error
    assert predicted.code == "plan.no-flow-of-direction"
    assert evenhand("predict", edge, "--direction", "reverse").code == 0
    preview = evenhand("plan", "frames", edge).error
    assert preview.code == "plan.no-flow-of-direction"


@BOTH
def test_the_engine_is_told_the_flows_of_each_direction(
    version: int, evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-640000--512")
    edge = plan_file(tmp_path, version, DOWN, UP)
    ended = evenhand("trial", testbed, "--plan", edge, "--rate", "1kfps", "--waits", "short", "--json")
    asked = opened(tmp_path)
    assert (names(asked["mix"]), names(asked["reverse_mix"])) == (["down"], ["up"])
    flows = ended.json["address_plan"]["flows"] if "address_plan" in ended.json else None
    assert flows is None or [flow["direction"] for flow in flows] == ["forward", "reverse"]


def test_a_campaign_is_refused_as_it_is_read(tmp_path: Path) -> None:
    edge = plan_file(tmp_path, 4, DOWN)

    def points(direction: str) -> int:
        suite = {
            "name": "a",
            "plan": str(edge),
            "direction": direction,
            "hosts": [1],
            "maximum-rate": "1kfps",
        }
        document = {"name": "nightly", "suite": [suite]}
        return len(expand(make_campaign(document, where="night.toml")).points)

    assert points("forward") == 1
    with raises("plan.no-flow-of-direction", match="suite"):
        points("both")
