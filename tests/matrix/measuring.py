# SPDX-License-Identifier: Apache-2.0
"""A cell of the matrix, measured by its way, on a simulated engine inside this process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import pytest

from evenhand import open_testbed
from evenhand.base.errors import HostError
from evenhand.base.option import fill
from evenhand.cli import run as run_verb
from evenhand.plan import make_plan
from evenhand.procedure import choose_frames, tester
from evenhand.procedure.limits import retries_of
from evenhand.rig import LeasedLab, TestbedLimits
from evenhand.run import RunStore
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.run.campaign.measure import PointOrder, measure_point
from evenhand.run.remote_point import check_remote_point, point_file, remote_point_of, store_remote_point
from evenhand.spec.request import Point
from evenhand.trial import SHORT_WAITS
from tests.cli.running import TESTBED, Ended
from tests.matrix.cells import LINE_RATE, Cell, Ports, Way
from tests.trial.scripted_engine import GOLDEN, answer_of, simulate

HOSTS = 20
SEED = 7


class SimulatedSession:
    """`EngineSession` without a process: each request is answered at once."""

    can_reopen: ClassVar[bool] = True
    is_alone: ClassVar[bool] = True
    device: ClassVar[str] = ""
    """What it measures, as `simulate` has it."""
    trials: ClassVar[int] = 0
    """Trials that were made, by all sessions."""
    stops_at: ClassVar[int | None] = None
    """Ctrl-C comes instead of this trial."""

    dies_at: ClassVar[int | None] = None
    """From this trial on the device is dead."""

    def __init__(self, command: Sequence[str | Path], **keywords: Any) -> None:
        replies = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
        self._replies = {reply["response"]: reply for reply in reversed(replies) if "response" in reply}
        self.about = self._replies["about"]
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def open(self, requests: Sequence[dict[str, Any]], **arguments: Any) -> dict[str, Any]:
        (request,) = requests
        opened: dict[str, Any] = self.request("open", **request, **arguments)
        return opened

    def restart(self) -> None:
        pass

    def request(
        self, name: str, *, on_event: Any = None, answer_within_s: float = 0, **arguments: Any
    ) -> Any:
        self._id += 1
        request = {"id": self._id, "request": name, **arguments}
        here = type(self)
        is_dead = here.dies_at is not None and here.trials + (name == "trial") >= here.dies_at
        if name == "resolve" and is_dead:
            raise HostError("left: no answer", code="engine.not-resolved")
        if name != "trial":
            return {**answer_of(request, f"simulated-{self.device}", self._replies), "id": self._id}
        here.trials += 1
        if here.trials == here.stops_at:
            raise KeyboardInterrupt
        document = simulate(self.device, json.loads(json.dumps(request, allow_nan=False)))
        if is_dead:
            lose_all(document)
        use = request.get("connections", {}).get("use")
        table = Path("table")  # what the testbed's command empties
        if use == "establish":
            table.touch()
        elif use is not None and not table.exists():
            lose_all(document)
        return document


def lose_all(document: dict[str, Any]) -> None:
    """The device forwards nothing of this trial."""
    for direction in document["directions"].values():
        direction.update(received_frames=0, lost_frames=direction["offered_frames"], loss_ratio=1.0)
    document.update(verdict="FAIL", reasons=[{"code": "loss", "text": "lost all frames"}])


@dataclass(frozen=True, slots=True, kw_only=True)
class PickledExecutor:
    """What a worker on another machine does, but for the network between: the order and what was measured are
    pickled, checked, and stored as a whole."""

    engine: Path | None = None

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        for sent in orders:
            order: PointOrder = pickle.loads(pickle.dumps(sent))
            with point_file(order.point) as there:
                measure_point(order, there, engine=self.engine, on_event=on_event)
                came = pickle.loads(pickle.dumps(remote_point_of(there, order.point, testbed="there")))
            store_remote_point(
                keeper, check_remote_point(came, sent.point, [job.repetition for job in sent.jobs])
            )
            yield sent.point


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where cells are measured."""

    folder: Path
    evenhand: Callable[..., Ended]
    patch: pytest.MonkeyPatch

    def prepare(self, cell: Cell) -> None:
        """Testbed, campaign file and engine of this cell."""
        self.patch.setattr(tester, "EngineSession", SimulatedSession)
        self.patch.setenv("EVENHAND_ENGINE", "/bin/true")
        self.patch.setattr(SimulatedSession, "device", cell.device)
        self.patch.setattr(SimulatedSession, "trials", 0)
        self.patch.setattr(SimulatedSession, "stops_at", None)
        self.patch.setattr(SimulatedSession, "dies_at", None)
        if cell.way is Way.WORKER:
            self.patch.setattr(run_verb, "HereExecutor", PickledExecutor)
        line = f'line_rate = "{LINE_RATE}"\n' if cell.ports is Ports.WITH_LINE_RATE else ""
        testbed = TESTBED.replace("[right]", f"{line}[right]").replace("[tester]", f"{line}[tester]")
        (self.folder / "testbed.toml").write_text(
            f'{testbed}[dut]\nempty_connections = "sleep 0.001; rm -f table"\n'
        )
        (self.folder / "campaign.toml").write_text(campaign_of(cell))

    def measure(self, cell: Cell, target: Path) -> Any:
        """The answer where it was given: the document of `--json`, or of the result in Python; None of a
        campaign, whose answer is its file."""
        match cell.way:
            case Way.VERB:
                ended = self.evenhand(*command_of(cell), "--run", target, "--json")
                if ended.failure is not None:
                    raise ended.failure
                assert ended.code in (0, 1), ended.err
                return ended.json
            case Way.PYTHON:
                return measure_in_python(cell, self.folder / "testbed.toml", target)
            case _:
                self.run_campaign(target)
                return None

    def run_campaign(self, target: Path, *more: str) -> Ended:
        """`evenhand run`, to its end."""
        ended = self.evenhand("run", self.folder / "campaign.toml", "--run", target, "--no-html", *more)
        assert ended.code in (0, 1, 130), ended.failure or ended.err
        return ended


def command_of(cell: Cell) -> list[str]:
    """The verb and its options."""
    given = [(f"--{name}", str(value)) for name, value in cell.options.items()]
    return [
        str(cell.of.verb),
        "testbed.toml",
        *(word for pair in given for word in pair),
        *("--plan", cell.plan, "--hosts", str(HOSTS), "--seed", str(SEED), "--waits", "short"),
    ]


def campaign_of(cell: Cell) -> str:
    """A campaign file with the one point."""
    options = dict(cell.options)
    if cell.of.repeats_itself:
        options["inner-repetitions"] = options.pop("repetitions")
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    return "\n".join(
        [
            'name = "matrix"',
            'testbed = "testbed.toml"',
            f"seed = {SEED}",
            "[[suite]]",
            'name = "s"',
            f'procedure = "{cell.procedure}"',
            f'plan = "{cell.plan}"',
            f"hosts = {HOSTS}",
            "repetitions = 1",
            'waits = "short"',
            "one-pair-first = false",
            *lines,
        ]
    )


def measure_in_python(cell: Cell, testbed: Path, target: Path) -> Any:
    """As a script does it, with the goal that the options make."""
    with open_testbed(testbed, run=target, engine=Path("/bin/true")) as bed:
        options: Any = fill(cell.of.options, cell.options)
        goal = cell.of.make_goal(options, retries_of(TestbedLimits()), None)
        plan = make_plan(cell.plan, HOSTS)
        size, _ = choose_frames(plan, None)
        has_own_loop = cell.of.has_own_loop(options)
        same: Any = {"plan": plan, "frame_size": size, "seed": SEED, "waits": SHORT_WAITS}
        found = bed.measure(cell.of, goal, has_own_loop=has_own_loop, **same)
    return found.to_document()
