# SPDX-License-Identifier: Apache-2.0
"""The contract: what the real engine refuses, where it says the fault is, and that the session lives on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.base.errors import HostError
from evenhand.trial import find_engine

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
BAD: list[dict[str, str]] = [
    json.loads(line) for line in (CONTRACT / "golden" / "bad-requests.jsonl").read_text().splitlines()
]


def id_of(bad: dict[str, str]) -> int | None:
    """The id that the fault of a bad line must carry: that of the line, if it is JSON with an id of 64
    bits."""
    if bad["code"] == "bad_json":
        return None
    found = json.loads(bad["line"]).get("id")
    return found if isinstance(found, int) and found < 1 << 63 else None


def engine() -> Path:
    try:
        return find_engine()
    except HostError as error:
        pytest.skip(f"no engine: {error}")


def talk(lines: list[str]) -> list[dict[str, Any]]:
    """Replies of one session that gets all these lines and then the end of its input."""
    done = subprocess.run(
        [engine()],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_bad_requests_are_told_apart() -> None:
    assert len(BAD) >= 25
    assert len({bad["line"] for bad in BAD}) == len(BAD)
    assert {bad["code"] for bad in BAD} == {"bad_json", "bad_request", "bad_plan", "bad_frame_size"}


def test_what_the_schema_cannot_say_is_known() -> None:
    """A line refused for its form fits the schema only where addresses, outer ends of numbers, devices or two
    keys at once are wrong."""
    validator = jsonschema.Draft202012Validator(json.loads((CONTRACT / "request.schema.json").read_text()))
    beyond = {
        bad["where"]
        for bad in BAD
        if bad["code"] == "bad_request" and validator.is_valid(json.loads(bad["line"]))
    }
    of_loads = {
        "relative_rates",
        "relative_rates.reverse",
        "burst.interval_s",
        "then",
        "stop_when_failed",
        "clean",
        "clean.at_most_s",
    }
    of_flows = {  # fields without a name, names of all or of none, a flow label in IPv4
        "mix.classes[0].dscp",
        "mix.classes[0].source_port",
        "mix.classes[0].destination_port",
        "mix.classes[0].flow_label",
        "mix.classes[1].name",
        "mix.classes[2].name",
    }
    of_patterns = {  # ranges of one field, addresses, and what is in lock-step
        "mix.classes[0]",
        "mix.classes[0].dscp.values[0]",
        "mix.classes[0].vlan_priority.count",
        "mix.classes[0].left_host",
        "mix.classes[0].left_host.first",
        "mix.classes[2].right_host.values",
        "mix.classes[2].vlan.count",
        "mix.classes[2].source_port.first",
    }
    of_reverse = {"reverse_mix", "reverse_mix.cycle[0]", "reverse_mix.other_plan"}
    of_ports = {"ports.left.device", "ports.right.device", "host.extra_eal_arguments"}
    of_tunnels = {f"ports.left.tunnel.{key}" for key in ("local", "remote", "arriving_labels")}
    assert beyond == {
        "id",
        "first",
        "stream",
        "plan.left.hosts.base",
        "plan.udp_ports.destination.last",
        "host_macs",
        *of_flows,
        *of_patterns,
        *of_reverse,
        *of_ports,
        *of_tunnels,
        *of_loads,
    }


@pytest.mark.wire
def test_every_bad_request_gets_one_fault_and_the_session_lives_on() -> None:
    """D2: a line that is no request gets a fault that names code and place, in order, and the next line is
    served."""
    validator = jsonschema.Draft202012Validator(json.loads((CONTRACT / "reply.schema.json").read_text()))
    about = json.dumps({"id": 4711, "request": "about"})
    replies = talk([line for bad in BAD for line in (bad["line"], about)])
    assert len(replies) == 2 * len(BAD)
    for bad, reply, after in zip(BAD, replies[::2], replies[1::2], strict=True):
        validator.validate(reply)
        assert "fault" in reply, bad
        fault = reply["fault"]
        assert (fault["code"], fault["where"], fault["kind"]) == (bad["code"], bad["where"], "bad_request"), (
            bad,
            fault,
        )
        assert fault["next"] == bad.get("next", fault["next"])
        assert fault["what"]
        assert reply["id"] == id_of(bad), bad
        assert (after["id"], after["response"]) == (4711, "about"), bad


@pytest.mark.wire
def test_a_line_of_blanks_is_no_request_and_a_last_line_needs_no_end() -> None:
    done = subprocess.run(
        [engine()],
        input='\n  \r\n{"id":1,"request":"stop"}',
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"id": 1, "response": "stop"}]
