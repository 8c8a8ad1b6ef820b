# SPDX-License-Identifier: Apache-2.0
"""Campaign: a worker of dask.distributed that holds one testbed, and measures on it the points that a
scheduler hands it, one at a time."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor as FutureExecutor
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.folders import temporary_folder, without_folders
from evenhand.base.version import VERSION
from evenhand.procedure import Note, ProcedureEvent
from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import PROCEDURES
from evenhand.rig import REFERENCE, LeasedLab, rig_of
from evenhand.run import RunStore
from evenhand.run.campaign.dask_security import WithoutPages, no_scheduler, own_address, scheduler_place
from evenhand.run.campaign.dut_setup import check_timeouts, demands_of, dut_over_ssh, put_dut_back
from evenhand.run.campaign.events import CampaignEvent, OnCampaignEvent, RepetitionEnded
from evenhand.run.campaign.measure import PointOrder, measure_point
from evenhand.run.remote_point import RemotePoint, point_file, remote_point_of
from evenhand.spec.file import Reference
from evenhand.spec.request import Point

CLOSE_S = 10.0
"""Time that a worker waits for its scheduler to let it go."""
CONNECT_S = 30.0
"""Time for which a worker tries to reach its scheduler."""
STILL_S = 5.0
"""After so long, and again, it says that it still tries."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """What a worker measures on."""

    name: str
    """Among all workers of its scheduler; results are known by it."""
    testbed: str
    """A testbed file of the worker's machine, `lab:linux`, or `reference`."""
    engine: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointAnswer:
    """What a worker made of an order."""

    point: RemotePoint | None
    """None: it was not measured to its end."""
    error: EvenhandError | None
    """Why it should not get another one."""


def resources_for(name: str = "") -> dict[str, float]:
    """What a point takes of a worker, as dask counts it: the only place that a testbed has; with a name that
    testbed's.

    The version is in it, since an order is understood by the same version only.
    """
    any_testbed = f"evenhand {VERSION}"
    return {any_testbed: 1.0, **({f"{any_testbed} on {name}": 1.0} if name else {})}


class _MainThread(FutureExecutor):
    """dask runs a worker's tasks in threads. Here it is the main one, since only there Ctrl-C ends a trial in
    order."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except Exception as error:
                    future.set_exception(error)

        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._calls.put(None)

    def work(self) -> None:
        """Until `shutdown`."""
        while (call := self._calls.get()) is not None:
            call()


class WorkerProcess:
    """This process, as long as it is a worker. There is one at most: tasks find it in `_here`."""

    def __init__(self, bed: Bed, on_event: OnCampaignEvent) -> None:
        self.bed = bed
        self._on_event = on_event
        self._calls = _MainThread()
        self._dask: Any = None
        self._lab: LeasedLab | None = None

    def serve(
        self,
        address: str,
        *,
        host: str | None,
        port: int | None,
        say: Callable[[str], None],
        security: Any = None,
    ) -> None:
        """Measure what the scheduler at this address hands over, until it ends or Ctrl-C comes.

        Args:
            host: The address of this machine at which scheduler and starter find the worker.
            port: Its port there; None: any.
            security: Certificates of dask; None: those of its configuration.

        Raises:
            RequestError: Another worker has the name; the address is none.
            HostError: No scheduler answers there; it has gone.
        """
        global _here
        scheduler = scheduler_place(address, where="ADDRESS", role="worker", security=security)
        place = host or own_address(scheduler)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        leased = rig_of(self.bed.testbed).leased(
            run=f"worker {self.bed.name}", on_note=lambda text: self._on_event(Note(text=text)), say=say
        )
        with temporary_folder() as folder, leased as self._lab:
            say(f"Testbed {self.bed.name!r} is connecting to the scheduler at {address}.")
            self._dask = _wait_for(
                asyncio.run_coroutine_threadsafe(self._start(address, place, port, folder, security), loop),
                address,
                say,
            )
            _here = self
            ended = asyncio.run_coroutine_threadsafe(self._watch(), loop)
            try:
                say(f"Testbed {self.bed.name!r} is waiting for points from {address}; press Ctrl-C to stop.")
                self._calls.work()
            finally:
                _here = None
                with suppress(Exception):
                    closing = self._dask.close(timeout=CLOSE_S, executor_wait=False)
                    asyncio.run_coroutine_threadsafe(closing, loop).result(CLOSE_S)
                ended.cancel()
        raise HostError(
            "the scheduler is gone",
            code="run.scheduler-gone",
            where=address,
            next_step=f"Start it again, then: evenhand worker {address} {self.bed.testbed}",
        )

    async def _start(self, address: str, host: str, port: int | None, folder: Path, security: Any) -> Any:
        import dask
        from distributed import Worker

        class WorkerWithoutPages(WithoutPages, Worker):
            """Listens for its scheduler alone."""

        # A worker's own looking into its threads takes CPU time from the tester, and is not needed.
        dask.config.set(
            {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "10s"}
        )
        try:
            worker = WorkerWithoutPages(
                address,
                name=self.bed.name,
                nthreads=1,
                executor=self._calls,
                resources=resources_for(self.bed.name),
                memory_limit=0,
                host=host,
                port=port,
                local_directory=str(folder),
                death_timeout=CONNECT_S,
                dashboard=False,
                security=security,
            )
            await worker
        except Exception as error:
            # dask wraps whatever stopped the start.
            causes = list(_causes(error))
            if any("name taken" in str(cause) for cause in causes):
                raise RequestError(
                    f"another worker is already named {self.bed.name!r}",
                    code="run.worker-name-taken",
                    where="--name",
                    next_step="Give this one another name: --name NAME.",
                ) from error
            # MemoryError: dask takes another protocol's answer for the length of its own.
            if any(isinstance(cause, OSError | TimeoutError | MemoryError) for cause in causes):
                raise no_scheduler(address) from error
            raise
        return worker

    async def _watch(self) -> None:
        """A worker that its scheduler has lost closes itself."""
        await self._dask.finished()
        self._calls.shutdown()

    def measure(self, order: PointOrder, task: str, topic: str) -> PointAnswer:
        """One point, on this worker's testbed, whatever the order says of one."""
        mine = replace(
            order,
            testbed=self.bed.testbed,
            environment={**order.environment, "EVENHAND_TESTBED": self.bed.testbed},
        )
        point: RemotePoint | None = None
        error: EvenhandError | None = None
        not_put_back: EvenhandError | None = None

        def on_event(event: CampaignEvent | ProcedureEvent) -> None:
            if not self._is_wanted(task):
                raise KeyboardInterrupt
            if isinstance(event, RepetitionEnded):
                self._dask.log_event(topic, f"{self.bed.name}: {describe_repetition(event)}")
            self._on_event(event)

        try:
            with point_file(order.point) as keeper:
                try:
                    check_fit(self.bed, [order.point], order.reference)
                    measure_point(mine, keeper, engine=self.bed.engine, on_event=on_event, lab=self._lab)
                finally:
                    not_put_back = self._put_dut_back(mine, keeper)
                point = remote_point_of(keeper, order.point, testbed=self.bed.name)
        except EvenhandError as found:
            error = found
        except KeyboardInterrupt:
            if self._is_wanted(task):
                raise  # it was Ctrl-C
        return PointAnswer(point=point, error=error or not_put_back)

    def _put_dut_back(self, order: PointOrder, keeper: RunStore) -> EvenhandError | None:
        """Put back a DUT that was set up over SSH for this point: it is not known whether another point will
        come. Returns why this could not be done."""
        try:
            dut = dut_over_ssh(order.testbed)
            if dut is not None:
                put_dut_back(dut, keeper, self._on_event, run=order.run)
        except EvenhandError as error:
            error.next_step = f"On its machine: evenhand dut undo {self.bed.testbed}"
            return error
        return None

    def _is_wanted(self, task: str) -> bool:
        """False when who ordered the point has stopped, or gone, or the scheduler has: no one will take
        it."""
        known = self._dask.state.tasks.get(task)
        return known is not None and known.state != "cancelled" and self._dask.status.name == "running"


def _wait_for(starting: Future[T], address: str, say: Callable[[str], object]) -> T:
    """Its result. HostError if there is none in the end: no one should look at a silent terminal and
    wonder."""
    waited_s = 0.0
    while True:
        try:
            return starting.result(STILL_S)
        except TimeoutError as error:
            if starting.done():
                raise
            waited_s += STILL_S
            if waited_s >= CONNECT_S + CLOSE_S:
                starting.cancel()
                raise no_scheduler(address) from error
            say(
                f"No answer from {address} for {waited_s:.0f} s; giving up after"
                f" {CONNECT_S:.0f} s. Press Ctrl-C to stop now."
            )


_here: WorkerProcess | None = None


def measure_here(order: PointOrder, task: str, topic: str) -> PointAnswer:
    """The task that a scheduler hands to a worker.

    Args:
        task: Its key; who ordered it may take it back.
        topic: Topic under which dask reports its progress to whoever ordered it.
    """
    assert _here is not None, "only a worker with a testbed has the resource that this task needs"
    return _here.measure(order, task, topic)


async def why_not_here(points: Iterable[Point], reference: Reference | None) -> EvenhandError | None:
    """Whether this worker's testbed can take these points, before any is measured."""
    assert _here is not None
    try:
        # What looks at the host's ports has an event loop of its own.
        await asyncio.to_thread(check_fit, _here.bed, points, reference)
    except EvenhandError as error:
        return error
    return None


def check_fit(bed: Bed, points: Iterable[Point], reference: Reference | None) -> None:
    """RequestError if the testbed cannot take part in this campaign: its DUT is set up for another plan,
    forgets connections too soon, or is not the one described."""
    rig, points = rig_of(bed.testbed), list(points)
    with _of_worker(bed):
        check_timeouts(points, bed.testbed, reference)
    if rig.takes_reference:
        return
    if reference is not None:
        raise RequestError(
            f"[reference] sets up a reference router, but the testbed is {without_folders(bed.testbed)!r}",
            code="run.reference-not-here",
            where=f"worker {bed.name}",
            next_step=(f"Start that worker with {REFERENCE}, or remove [reference] from the campaign file."),
        )
    with _of_worker(bed):
        rig.check(lambda: demands_of(points), is_begun=True)


def describe_repetition(event: RepetitionEnded) -> str:
    """A line for people."""
    point = event.job.point
    found = f"no number: {event.reason}"
    if event.value is not None:
        figure = PROCEDURES[point.procedure].figure
        bound, per_direction = (
            "at least " if event.is_at_least else "",
            " per direction" if figure.unit == "fps" else "",
        )
        found = f"{figure.name} {bound}{show_value(event.value, figure)}{per_direction}"
    return f"{point.key}, repetition {event.job.repetition} of {point.repetitions}: {found}"


@contextmanager
def _of_worker(bed: Bed) -> Iterator[None]:
    try:
        yield
    except EvenhandError as error:
        error.where = f"worker {bed.name}: {error.where}"
        raise


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
