# SPDX-License-Identifier: Apache-2.0
"""How long a procedure takes on a simulated engine, by a clock that no one waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from evenhand import open_testbed
from evenhand.base.option import fill
from evenhand.base.time_span import TimeSpan
from evenhand.plan import make_plan
from evenhand.procedure import Began, ProcedureEvent, choose_frames, tester
from evenhand.procedure.descriptor import Procedure
from evenhand.procedure.events import left_of
from evenhand.procedure.expected_time import OPENING_S
from evenhand.procedure.limits import retries_of
from evenhand.rig import TestbedLimits
from evenhand.search import TrialStarted
from evenhand.trial import DelayWish, Load, SimulatedMeasurer, Waits
from tests.cli.running import TESTBED
from tests.matrix.measuring import lose_all
from tests.trial.scripted_engine import GOLDEN, answer_of

HOSTS = 20


@dataclass(slots=True, kw_only=True)
class Clock:
    """What has passed, of the time that the engine's own trials would take."""

    now_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A simulated device."""

    limit_fps: float
    """What it forwards, and the rate at which it opens connections."""
    buffer_frames: float = 0.0
    table_connections: int | None = None
    invalid_every: int = 0
    """Each so-many-th trial comes out INVALID; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What was said before a trial of the time left."""

    at_s: float
    left: TimeSpan
    number: int | None


@dataclass(slots=True, kw_only=True)
class Timed:
    """What was said of the time, and what it was."""

    expected: TimeSpan
    took_s: float
    said: list[Expectation] = field(default_factory=list)


def time_procedure(
    procedure: Procedure,
    options: Mapping[str, Any],
    device: Device,
    patch: pytest.MonkeyPatch,
    folder: Path,
    *,
    plan: str,
    waits: Waits,
    line_rate: str | None = "1Gbps",
) -> Timed:
    """Measure once, as a verb does."""
    clock = Clock()
    made = session_of(device, clock, folder)
    line = f'line_rate = "{line_rate}"\n' if line_rate else ""
    text = TESTBED.replace("[right]", f"{line}[right]").replace("[tester]", f"{line}[tester]")
    testbed = folder / "testbed.toml"
    testbed.write_text(f'{text}[dut]\nempty_connections = "rm -f {folder}/table"\n')
    filled: Any = fill(procedure.options, dict(options))
    goal = procedure.make_goal(filled, retries_of(TestbedLimits()), None)
    timed = Timed(expected=procedure.expected(goal, waits.total_s, options=filled).span, took_s=0.0)

    def listen(event: ProcedureEvent) -> None:
        if isinstance(event, TrialStarted | Began):
            timed.said.append(Expectation(at_s=clock.now_s, left=left_of(event), number=event.number))

    with patch.context() as patched:
        patched.setattr(tester, "EngineSession", made)
        with open_testbed(testbed, engine=Path("/bin/true"), on_event=listen) as bed:
            size, _ = choose_frames(make_plan(plan, HOSTS), None)
            conditions: dict[str, Any] = {"frame_size": size, "waits": waits}
            bed.measure(
                procedure,
                goal,
                has_own_loop=procedure.has_own_loop(filled),
                plan=make_plan(plan, HOSTS),
                **conditions,
            )
    timed.took_s = clock.now_s
    return timed


def session_of(device: Device, clock: Clock, folder: Path) -> type:
    """A class of sessions that answers at once, and puts the clock on."""
    replies = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    by_response = {reply["response"]: reply for reply in reversed(replies) if "response" in reply}

    class Session:
        can_reopen = True
        about = by_response["about"]
        trials = 0
        is_full = False

        def __init__(self, command: Sequence[str | Path], **keywords: Any) -> None:
            self._id = 0

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            pass

        def open(self, requests: Sequence[dict[str, Any]], **arguments: Any) -> Any:
            (request,) = requests
            clock.now_s += OPENING_S
            return self.request("open", **request, **arguments)

        def restart(self) -> None:
            pass

        def request(
            self, name: str, *, on_event: Any = None, answer_within_s: float = 0, **arguments: Any
        ) -> Any:
            self._id += 1
            request = {"id": self._id, "request": name, **arguments}
            if name != "trial":
                return {**answer_of(request, "simulated-", by_response), "id": self._id}
            type(self).trials += 1
            document = _simulate(device, request, type(self).trials)
            use, table = (request.get("connections") or {}).get("use"), folder / "table"
            if use == "establish":
                table.touch()
            elif use is not None and not table.exists():
                lose_all(document)
            clock.now_s += sum(request["waits"].values())
            clock.now_s += document.get("stopped_early_s") or Load.from_contract(request).sending_s
            return document

    return Session


def _simulate(device: Device, request: dict[str, Any], number: int) -> dict[str, Any]:
    delays = request.get("delays")
    simulated = SimulatedMeasurer(
        limit_fps=device.limit_fps,
        buffer_frames=device.buffer_frames,
        table_connections=device.table_connections,
        directions=tuple(request["directions"]),
        loss_ratio_limit=request["limits"]["loss_ratio"],
        stops_when_failed=request.get("stop_when_failed", False),
        invalid_trials=(1,) if device.invalid_every and number % device.invalid_every == 0 else (),
        delays=delays
        and DelayWish(
            from_s=delays["from_s"], tagged_frames=delays["tagged_frames"], has_variation=delays["variation"]
        ),
    )
    raw = dict(simulated.offer(Load.from_contract(request)).raw)
    return {**raw, "id": request["id"], "trial": request["trial"]}
