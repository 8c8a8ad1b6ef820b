# SPDX-License-Identifier: Apache-2.0
"""Campaign: points measured by workers of dask.distributed, each with a testbed of its own. Which worker gets
which is dask's business."""

from __future__ import annotations

import asyncio
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError, HostError
from evenhand.base.version import VERSION
from evenhand.procedure import Note
from evenhand.rig import LeasedLab
from evenhand.run import RunStore
from evenhand.run.campaign.dask_security import (
    ask_scheduler,
    import_distributed,
    no_scheduler,
    scheduler_place,
)
from evenhand.run.campaign.events import OnCampaignEvent, PointArrived
from evenhand.run.campaign.measure import PointOrder
from evenhand.run.campaign.worker import PointAnswer, measure_here, resources_for, why_not_here
from evenhand.run.folder import resume_command
from evenhand.run.remote_point import check_remote_point, store_remote_point
from evenhand.spec.file import Reference
from evenhand.spec.request import Point

CONNECT_S = 10.0
HOST_NOTE = (
    "measured by workers elsewhere: the host recorded for the campaign is the one that started it; the"
    " testers' hosts are recorded with their testbeds"
)
LOOK_S = 1.0
"""Time between two looks at which workers there are."""


@dataclass(slots=True, kw_only=True)
class ScheduledExecutor:
    """Meets `Executor`. Made by `connected`."""

    address: str
    client: Any
    """The client of dask."""
    _topic: str
    _lines: queue.SimpleQueue[str]
    """Lines of workers, which come in a thread of dask's."""
    check_left: Callable[[], None] = lambda: None
    """HostError once no worker can come any more."""
    _known: frozenset[str] = field(default=frozenset())

    def testbeds(self) -> dict[str, str]:
        """Addresses of the workers that can measure for this version, by the names of their testbeds.
        HostError: the scheduler has gone."""
        (resource,) = resources_for()
        return {
            str(worker["name"]): address
            for address, worker in self._workers().items()
            if resource in worker["resources"]
        }

    def _workers(self) -> dict[str, Any]:
        """Workers by their addresses. Not `Client.scheduler_info`: where the scheduler does not answer, that
        gives what it knew before, at first that there are none."""
        for is_last in (False, True):
            try:
                identity = self.client.sync(self.client.scheduler.identity, n_workers=-1)
            except (OSError, TimeoutError) as error:
                # A busy host breaks a connection now and then, and the next look makes a new one.
                if is_last or self.client.status != "running":
                    raise self._gone() from error
            else:
                return dict(identity["workers"])
        raise AssertionError

    def check(self, points: Sequence[Point], reference: Reference | None, on_each: Sequence[str]) -> None:
        """What can be refused before anything is measured.

        Raises:
            HostError: There is no worker; or none with a testbed that the campaign names.
            RequestError: A worker's testbed cannot take these points.
        """
        found = self.testbeds()
        if not found:
            raise HostError(
                f"no worker with Evenhand {VERSION} is connected to this scheduler",
                code="run.no-worker",
                where=self.address,
                next_step=(f"Start one on each testbed's machine: evenhand worker {self.address} TESTBED"),
            )
        missing = [name for name in on_each if name not in found]
        if missing:
            raise HostError(
                f"the campaign measures on {missing[0]!r}, but no worker has that name; the"
                f" workers are {', '.join(sorted(found))}",
                code="run.worker-missing",
                where="on-each-testbed",
                next_step=(
                    f"Start it on its machine: evenhand worker {self.address} TESTBED --name {missing[0]}"
                ),
            )
        for error in self.client.run(
            why_not_here, list(points), reference, workers=list(found.values())
        ).values():
            if error is not None:
                raise error

    def run(
        self,
        orders: Iterable[PointOrder],
        keeper: RunStore,
        on_event: OnCampaignEvent,
        *,
        lab: LeasedLab | None = None,
    ) -> Iterator[Point]:
        """See `Executor`. A worker that is lost in a point has stored nothing of it: dask hands the point to
        another one.

        Args:
            lab: None; each worker has its own.

        Raises:
            HostError: The scheduler has gone.
            EvenhandError: A testbed cannot be used. What others measured meanwhile is stored first.
        """
        keeper.add_note(HOST_NOTE)
        waiting: dict[Any, PointOrder] = {}
        left = iter(orders)
        ahead: PointOrder | None = None
        failure: EvenhandError | None = None
        try:
            while True:
                testbed_count = len(self._look(on_event))
                while (
                    failure is None
                    and len(waiting) < testbed_count
                    and (order := ahead or next(left, None)) is not None
                ):
                    ahead = None
                    waiting[self._hand_over(order)] = order
                if not waiting:
                    # Where no worker is left, the run waits for one only if there is something to measure.
                    ahead = ahead or next(left, None)
                    if failure is not None or ahead is None:
                        break
                for future in self._ended(waiting):
                    order = waiting.pop(future)
                    error = self._keep(future, order, keeper, on_event, testbed_count)
                    failure = failure or error
                    if error is None:
                        yield order.point
        finally:
            # A point that is not waited for any longer is taken back: its worker stops sending.
            with suppress(Exception):
                self.client.cancel(list(waiting))
        if failure is not None:
            raise failure

    def _hand_over(self, order: PointOrder) -> Any:
        task = f"evenhand-{uuid.uuid4()}"
        return self.client.submit(
            measure_here,
            order,
            task,
            self._topic,
            key=task,
            pure=False,
            resources=resources_for(order.testbed),
            retries=0,
        )

    def _ended(self, waiting: dict[Any, PointOrder]) -> list[Any]:
        """Those that have ended within a moment."""
        distributed = import_distributed()
        if not waiting:
            time.sleep(LOOK_S)
            return []
        with suppress(TimeoutError, distributed.TimeoutError, distributed.CancelledError):
            distributed.wait(list(waiting), timeout=LOOK_S, return_when="FIRST_COMPLETED")
        return [future for future in waiting if future.done()]

    def _keep(
        self, future: Any, order: PointOrder, keeper: RunStore, on_event: OnCampaignEvent, testbed_count: int
    ) -> EvenhandError | None:
        """Keep the point in the file, all at once. Returns the error if it concerns more than this point."""
        distributed = import_distributed()
        self._pass_on_lines(on_event)
        try:
            # A worker that is lost before it has sent its answer has measured for nothing: dask begins the
            # point anew meanwhile, and that may fail too.
            answer = future.result()
        except distributed.KilledWorker:
            _given_up(
                order.point,
                "one worker after another was lost during this point, and after the last one none was left",
                keeper,
                on_event,
                testbed_count,
            )
            return None
        except (distributed.CancelledError, OSError) as error:
            if future.status != "error":
                return self._gone()
            # What the point itself raised there, such as a full disk, comes with the answer.
            _given_up(order.point, _of_worker(error), keeper, on_event, testbed_count)
            return None
        if isinstance(answer, PointAnswer) and isinstance(answer.error, EvenhandError):
            return answer.error
        try:
            arrived = check_remote_point(
                getattr(answer, "point", None), order.point, [job.repetition for job in order.jobs]
            )
        except ValueError as error:
            _given_up(
                order.point,
                f"what a worker sent is not a result of this point: {error}",
                keeper,
                on_event,
                testbed_count,
            )
            return None
        store_remote_point(keeper, arrived, of_testbed=order.of_testbed)
        verdicts: dict[str, int] = {}
        for trial in (
            trial
            for repetition in arrived.repetitions
            for search in repetition.searches
            for trial in search.trials
        ):
            verdict = str(trial.result.verdict)
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
        on_event(
            PointArrived(
                point=order.point,
                testbed=arrived.testbed,
                reason=arrived.reason,
                verdicts=verdicts,
                testbed_count=testbed_count,
                durations_s=tuple(
                    repetition.measured_s
                    for repetition in arrived.repetitions
                    if repetition.finished_at is not None
                ),
            )
        )
        return None

    def _look(self, on_event: OnCampaignEvent) -> dict[str, str]:
        found = self.testbeds()
        self._pass_on_lines(on_event)
        for name in sorted(found.keys() - self._known):
            on_event(Note(text=f"Testbed {name!r} takes part."))
        for name in sorted(self._known - found.keys()):
            on_event(
                Note(
                    text=f"Testbed {name!r} is lost; the point that it was measuring starts"
                    " again on the next free testbed."
                )
            )
        if not found:
            self.check_left()
        if self._known and not found:
            on_event(
                Note(text=(f"No testbed is left. Waiting for one: evenhand worker {self.address} TESTBED"))
            )
        self._known = frozenset(found)
        return found

    def _pass_on_lines(self, on_event: OnCampaignEvent) -> None:
        while not self._lines.empty():
            on_event(Note(text=self._lines.get()))

    def _gone(self) -> HostError:
        return HostError(
            "the scheduler is gone; points that were being measured are lost",
            code="run.scheduler-gone",
            where=self.address,
            next_step=(
                f"Start the scheduler and its workers again, and resume with: {resume_command(Path('FILE'))}"
            ),
        )


def _of_worker(error: BaseException) -> str:
    """Why a worker measured nothing, though it is there."""
    return f"the worker's system refused: {getattr(error, 'strerror', None) or error}"


def _given_up(
    point: Point, reason: str, keeper: RunStore, on_event: OnCampaignEvent, testbed_count: int
) -> None:
    keeper.end_point(point, reason)
    on_event(
        PointArrived(
            point=point, testbed=None, reason=reason, durations_s=(), verdicts={}, testbed_count=testbed_count
        )
    )


@contextmanager
def connected(
    address: str, *, check_left: Callable[[], None] = lambda: None, security: Any = None
) -> Iterator[ScheduledExecutor]:
    """An executor on the workers of this scheduler, as long as the block goes on.

    Args:
        check_left: See `ScheduledExecutor`.
        security: Certificates of dask for this scheduler; None: those of dask's configuration.

    Raises:
        HostError: dask.distributed is not installed or has no certificates; no scheduler answers.
        RequestError: That is not an address.
    """
    distributed = import_distributed()
    place = scheduler_place(address, where="--scheduler", role="client", security=security)
    asyncio.run(ask_scheduler(place, CONNECT_S))
    try:
        client = distributed.Client(address, timeout=CONNECT_S, name="evenhand-run", security=security)
    except (OSError, TimeoutError) as error:
        raise no_scheduler(address) from error
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    topic = f"evenhand-{uuid.uuid4()}"
    try:
        client.subscribe_topic(topic, lambda event: lines.put(str(event[1])))
        yield ScheduledExecutor(
            address=address, client=client, _topic=topic, _lines=lines, check_left=check_left
        )
    finally:
        with suppress(Exception):
            client.close()
