# SPDX-License-Identifier: Apache-2.0
"""Several engines, each with both sides on one port: the reference router as a router on a stick with a port
for each of them, and the kernel with a stick for each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import (
    BOTH_DIRECTIONS,
    SIDES,
    AddressPlan,
    Direction,
    SideName,
    gateway_v4,
    gateway_v6,
    make_plan,
)
from evenhand.procedure import OpenTestbed
from evenhand.reference import Defects, ReferenceDut
from evenhand.trial import Limits, TrialResult, Verdict, Waits
from tests.preloaded.commands import evenhand_command
from tests.wire.kernel_sticks import VNI_OF, kernel_on_a_stick
from tests.wire.several_engines import engine_table, router_of_pairs, setup_of
from tests.wire.tunnels import tunnel
from tests.wire.wire_session import FAST_WAITS, PATIENT, cpus, thorough, until, versions

pytestmark = pytest.mark.wire
VLANS: dict[SideName, tuple[int, ...]] = {"left": (10,), "right": (20,)}
ARMS = ("near", "far")
LIMITS = replace(Limits(), **PATIENT, overdue_after_us=1e7)


def trial_on_sticks(
    plan: AddressPlan,
    *,
    directions: tuple[Direction, ...] = BOTH_DIRECTIONS,
    defects: Defects | None = None,
    wanted: Verdict = Verdict.PASS,
) -> TrialResult:
    """A trial of 1,000 frames for each direction that this machine did not spoil."""

    def made() -> TrialResult:
        dut = ReferenceDut(vlans=VLANS, one_armed=True, defects=defects)
        with router_of_pairs(plan, dut) as router:
            tables = []
            for n in range(2):
                left, right = ({"device": router.device(side, n), "vlan": VLANS[side]} for side in SIDES)
                tables.append(engine_table(router, n, left=left, right=right))
            bed = OpenTestbed(setup=setup_of(tables, one_armed=True))
            return bed.trial(
                plan=plan,
                frame_size=plan.smallest_frame_size + 4,
                directions=directions,
                rate_fps=1000,
                duration_s=1,
                waits=Waits(**FAST_WAITS),
                limits=LIMITS,
            ).trial

    return until(lambda trial: trial.verdict is wanted, made)


@pytest.mark.two_cpus  # for each engine one
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda plan: plan.name)
def test_each_engine_counts_both_directions_of_its_port_apart(plan: AddressPlan) -> None:
    """R2544-07, R5180-09: half of the frames of each direction are an engine's, and come back to it."""
    trial = trial_on_sticks(plan)
    assert trial.raw["one_armed"] is True
    for direction in trial.directions.values():
        assert direction.offered_frames == direction.received_frames == 1000
        assert direction.foreign_frames == direction.duplicated_frames == 0
    for engine in trial.raw["engines"]:
        for of_engine in engine["directions"].values():
            assert of_engine["offered_frames"] == of_engine["received_frames"] == 500
            assert of_engine["strayed_frames"] == 0
        assert engine["ports"]["left"]["after"] == engine["ports"]["right"]["after"]


@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.usefixtures("_router")
@versions(proved="v4")
def test_what_a_direction_loses_is_charged_to_it(plan: AddressPlan) -> None:
    """Seven frames of the router; on the same port others come and go."""
    trial = trial_on_sticks(
        plan,
        directions=("reverse",),
        defects=Defects(at={"loss": tuple(range(100, 107))}),
        wanted=Verdict.FAIL,
    )
    assert trial.directions["reverse"].lost_frames == 7
    lost = [engine["directions"]["reverse"]["lost_frames"] for engine in trial.raw["engines"]]
    assert sum(lost) == 7


def table_of(values: Mapping[str, Any]) -> str:
    """An inline table of TOML."""
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items()) + " }"


def write_arms(folder: Path, outer: int | None) -> Path:
    """Two engines, each with both sides on its arm: apart by networks, or by tunnels over this IP version."""
    lines = ["isolated_test_environment = true", "one_armed = true"]
    for cpu, arm in zip(cpus(), ARMS, strict=False):
        lines += ["[[engine]]", f'name = "{arm}"', f"cpus = [{cpu}]"]
        for side in SIDES:
            lines += [f"[engine.{side}]", f'device = "net_af_packet0,iface={arm}"']
            if outer is not None:
                lines.append(f"tunnel = {table_of({**tunnel('vxlan', outer), 'vni': VNI_OF[side]})}")
    (folder / "arms.toml").write_text("\n".join(lines))
    return folder / "arms.toml"


@pytest.mark.root
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize(
    ("name", "outer"),
    [("gateway-v4", None), ("gateway-v6", None), *thorough(("gateway-v4", 6), ("gateway-v6", 4))],
)
def test_kernels_that_tell_the_sides_apart_by_networks_or_tunnels(
    name: str, outer: int | None, tmp_path: Path
) -> None:
    """SEED-19, RFC 7348: as a user would, with a testbed file."""
    command: list[str | Path] = [
        *("trial", write_arms(tmp_path, outer), "--plan", name, "--hosts", "50", "--rate", "1kfps"),
        *("--duration", "500ms", "--waits", "short", "--overdue-after", "10s", "--json"),
    ]

    def trial() -> dict[str, Any]:
        inside = evenhand_command("ip", "netns", "exec", namespace)
        done = subprocess.run([*inside, *command], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["trial"]
        return found

    with kernel_on_a_stick(make_plan(name, 50), outer, ARMS) as namespace:
        document = until(lambda found: found["verdict"] == "PASS", trial)
    for engine in document["engines"]:
        for direction in engine["directions"].values():
            assert direction["received_frames"] == direction["offered_frames"] == 250
