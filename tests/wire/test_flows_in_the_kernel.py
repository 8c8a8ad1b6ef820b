# SPDX-License-Identifier: Apache-2.0
"""Several flows at once through the kernel's own router, whose nftables count, drop and mark frames by their
DSCP: what the tester says of each flow is what the kernel says, to the frame."""

from __future__ import annotations

import json
import subprocess
from itertools import count
from typing import Any

import pytest

from evenhand.lab import LinuxLab, linux_lab
from evenhand.lab.namespaces import run_inside
from evenhand.lab.nft import PROGRAM, set_rules
from evenhand.plan import mix_request
from evenhand.trial import find_engine
from tests.wire.test_flows import BOTH, BUSY_HOST, plan_of
from tests.wire.wire_session import (
    MOST_ATTEMPTS,
    Document,
    dut_of,
    engine,
    open_to_dut,
    run_trial,
    until,
    was_sent_whole,
)

pytestmark = [pytest.mark.wire, pytest.mark.root]
LAB = "flowtest"
LOAD_FPS = 2_000
DURATION_S = 0.5
DSCP = {"voice": 46, "video": 34, "rest": 0}
MAGIC = "e5e401"
TABLE = "evenhand_test"
DIRECTIONS = ("forward", "reverse")
Counters = dict[str, int]


def rules_of(lab: LinuxLab, version: int, trial: int) -> str:
    """Every tenth frame of video is dropped, every fourth of the rest gets another DSCP; before, between and
    behind that all are counted. The rules are for the frames of this trial, by their tags: learning is not
    counted."""
    ip = "ip" if version == 4 else "ip6"
    tag = f"meta l4proto udp @th,64,40 0x{MAGIC}{trial:04x}"
    came, harmed, went = [], [], []
    names = []
    for direction, side in zip(DIRECTIONS, ("left", "right"), strict=True):
        arrived = f'iifname "{lab.dut_interface(side)}" {tag}'  # type: ignore[arg-type]
        for flow, dscp in DSCP.items():
            of_flow = f"{arrived} {ip} dscp {dscp}"
            came.append(f"{of_flow} counter name {direction}_{flow}_came")
            went.append(f"{of_flow} counter name {direction}_{flow}_went")
            names += [f"{direction}_{flow}_came", f"{direction}_{flow}_went"]
        harmed.append(
            f"{arrived} {ip} dscp {DSCP['video']} numgen inc mod 10 0 counter name {direction}_dropped drop"
        )
        went.append(
            f"{arrived} {ip} dscp {DSCP['rest']} numgen inc mod 4 0 counter name {direction}_marked {ip} dscp"
            " set cs1"
        )
        names += [f"{direction}_dropped", f"{direction}_marked"]
    lines = [f"table inet {TABLE}", f"delete table inet {TABLE}", f"table inet {TABLE} {{"]
    lines += [f"counter {name} {{ }}" for name in names]
    for name, priority, rules in (("came", -10, came), ("harmed", 0, harmed), ("went", 10, went)):
        hook = f"type filter hook forward priority {priority}; policy accept;"
        lines += [f"chain {name} {{ {hook}", *rules, "}"]
    return "\n".join([*lines, "}\n"])


def counters_of(lab: LinuxLab) -> Counters:
    """Frames by the name of the counter."""

    def read() -> str:
        command = [PROGRAM, "-j", "list", "counters", "table", "inet", TABLE]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    entries = json.loads(run_inside(lab.dut_namespace, read))["nftables"]
    return {each["counter"]["name"]: each["counter"]["packets"] for each in entries if "counter" in each}


def together(counters: Counters, kind: str) -> int:
    return sum(found for name, found in counters.items() if name.endswith(f"_{kind}"))


@BOTH
def test_the_kernels_counters_are_those_of_each_flow(version: int) -> None:
    plan = plan_of(version)
    numbers = count(1, MOST_ATTEMPTS)
    with linux_lab(plan, name=LAB) as lab, engine(lab.engine_command(find_engine())) as session:
        open_to_dut(
            session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab), **mix_request(plan, 100)
        )

        def through() -> tuple[Document, Counters]:
            trial = next(numbers)
            rules = rules_of(lab, version, trial)
            run_inside(lab.dut_namespace, lambda: set_rules(rules, what="this test"))
            document = run_trial(
                session,
                trial=trial,
                rate_fps=LOAD_FPS,
                duration_s=DURATION_S,
                limits={**BUSY_HOST, "loss_ratio": 0.5},
            )
            return document, counters_of(lab)

        def host_took_nothing(found: tuple[Document, Counters]) -> bool:
            """Whether rings on the way to the kernel and back had room for all frames together."""
            document, counters = found
            directions = document["directions"].values()
            offered, received = (
                sum(direction[f"{kind}_frames"] for direction in directions)
                for kind in ("offered", "received")
            )
            return (
                was_sent_whole(document)
                and offered == together(counters, "came")
                and received == together(counters, "went")
            )

        document, counters = until(host_took_nothing, through)
    frames = int(LOAD_FPS * DURATION_S)
    shares = {"voice": frames // 10, "video": 3 * frames // 10, "rest": 6 * frames // 10}
    for name, direction in document["directions"].items():
        found: dict[str, Any] = {each["flow"]["name"]: each for each in direction["classes"]}
        for flow, of_class in found.items():
            assert of_class["offered_frames"] == counters[f"{name}_{flow}_came"] == shares[flow]
            assert of_class["received_frames"] == counters[f"{name}_{flow}_went"]
        assert found["video"]["lost_frames"] == counters[f"{name}_dropped"] == shares["video"] // 10
        assert found["voice"]["lost_frames"] == found["rest"]["lost_frames"] == 0
        assert found["rest"]["flow"]["remarked_frames"] == counters[f"{name}_marked"] == shares["rest"] // 4
        assert found["voice"]["flow"]["remarked_frames"] == found["video"]["flow"]["remarked_frames"] == 0
