# SPDX-License-Identifier: Apache-2.0
"""Station 7: a session with the engine, one JSON document a line (contract/README.md)."""

from __future__ import annotations

import json
import math
import os
import queue
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.base.programs import how_to_get_programs
from evenhand.trial.result import CONTRACT

Document = dict[str, Any]
EventCallback = Callable[[Document], None]

STDERR_LINES = 400
"""How much of the engine's stderr is kept: DPDK may talk without end."""
ANSWER_TIMEOUT_S = 60.0
"""For requests other than trials. A port that negotiates its link takes about ten seconds."""
CLOSE_TIMEOUT_S = 5.0
"""The engine closes its ports on the end of stdin; af_xdp ports take about a second."""
INTERRUPTED_TIMEOUT_S = 1.0
"""What the end of stdin is given after Ctrl-C or SIGTERM; then the engine gets a signal of its own."""

_OF_TESTBED = {
    "host": "tester",
    "host.memory_mb": "tester.memory",
    "host.extra_eal_arguments": "tester.extra_eal_arguments",
    "ports": "left.device, right.device",
    "workers": "tester.cpus",
}
HELPED_BY_CHECK = frozenset({"no_permission", "no_memory", "no_cpu"})
"""Faults of the host that `evenhand check` says more about."""
_ASKED_BESIDE = frozenset({"stop", "end_sending"})
"""While another request runs."""
_ERROR_OF_KIND: dict[str, type[EvenhandError]] = {
    "bad_request": RequestError,
    "host_not_ready": HostError,
    "bug": EngineError,
}


class EngineSession:
    """One running engine. A context manager: leaving it always ends the process, whatever happened inside.

    The engine gets a session of its own, so that Ctrl-C reaches us alone and the ports are closed in order,
    and so that the engine may ask the scheduler for precedence over everybody else's sessions.
    """

    can_reopen: ClassVar[bool] = True
    """A new process opens its ports anew."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Callable[[str], None] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """Start `command`, the engine with what wraps it, and check its contract.

        Args:
            command: Argument vector, such as `["taskset", "-c", "1", "/usr/bin/evenhand-engine"]`.
            log: Gets each line of the engine's stderr as it comes.
            inherited: Descriptors of locks, which the engine keeps until it has ended, whatever becomes of
                this process.

        Raises:
            HostError: It cannot be started, or speaks another contract.
            EngineError: It died, or said something outside the contract.
        """
        self.command = [str(part) for part in command]
        self._log = log
        self._inherited = tuple(inherited)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._next_id = 0
        self._start()

    def _start(self) -> None:
        self._replies: queue.Queue[str | None] = queue.Queue()
        self._beside: set[int] = set()  # ids of requests whose answers no one waits for
        self._writing = threading.Lock()
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                pass_fds=self._inherited,
            )
        except OSError as error:
            raise HostError(
                f"the engine does not start: {error.strerror}",
                code="trial.engine-does-not-start",
                where=self.command[0],
                next_step=f"{how_to_get_programs()}, or name it with --engine.",
            ) from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_replies, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.about = self._check_about()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(is_interrupted=kind is not None and issubclass(kind, (KeyboardInterrupt, SystemExit)))

    def open(self, requests: Sequence[Document], **arguments: Any) -> Document:
        """Open its ports. See `TesterSession.open`: there is one request."""
        (request,) = requests
        return self.request("open", **request, **arguments)

    @property
    def stderr_lines(self) -> list[str]:
        """The last lines that the engine wrote for people."""
        return list(self._stderr)

    def request(
        self,
        name: str,
        *,
        on_event: EventCallback | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
        **arguments: Any,
    ) -> Document:
        """Send one request and wait for its response.

        Args:
            on_event: Gets each event document until the response comes.
            answer_within_s: Silence longer than this is an EngineError.

        Raises:
            RequestError, HostError, EngineError: The engine's fault, by its kind; EngineError also for its
                death.
        """
        request_id = self._say(name, arguments)
        while True:
            reply = self._read_reply(name, answer_within_s)
            if "fault" in reply and reply.get("id") in (request_id, None):
                raise self._error_of(reply["fault"])
            if reply.get("id") in self._beside:
                self._beside.discard(reply["id"])
                continue
            if reply.get("id") != request_id:
                raise EngineError(
                    f"the engine answered request {reply.get('id')!r} instead of {request_id}",
                    code="trial.contract-violated",
                    where=name,
                )
            if "event" in reply:
                if on_event is not None:
                    on_event(reply)
                continue
            if reply.get("response") != name:
                raise EngineError(
                    f"the engine answered {reply.get('response')!r}",
                    code="trial.contract-violated",
                    where=name,
                )
            return reply

    def stop(self) -> None:
        """Have the request that runs end early; for any thread. Nothing if the engine has ended."""
        with suppress(EvenhandError, OSError):
            self._say("stop", {})

    def end_sending(self, after_s: float) -> None:
        """Have the trial that runs, which is one of several engines', send its last frame so long after its
        first one; for any thread. Nothing if the engine has ended."""
        with suppress(EvenhandError, OSError):
            self._say("end_sending", {"after_s": after_s})

    def say_alive(self) -> None:
        """An empty line, which is not a request but a sign of life (`client_timeout_s` of a trial); for any
        thread. Nothing if the engine has ended."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError), self._writing:
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def _say(self, name: str, arguments: Document) -> int:
        """Send a request; its id."""
        with self._writing:
            request_id = self._next_id
            self._next_id += 1
            if name in _ASKED_BESIDE:
                self._beside.add(request_id)
            self._write({"id": request_id, "request": name, **arguments})
        return request_id

    def close(self, *, is_interrupted: bool = False) -> None:
        """End the engine: by the end of its stdin, which closes its ports; then by signals. May be called
        twice.

        Args:
            is_interrupted: Someone waits for the end.
        """
        process = self._process
        patience_s = INTERRUPTED_TIMEOUT_S if is_interrupted else CLOSE_TIMEOUT_S
        for end, wait_s in (
            (self._close_stdin, patience_s),
            (process.terminate, CLOSE_TIMEOUT_S),
            (self._kill_group, CLOSE_TIMEOUT_S),
        ):
            if process.poll() is not None:
                break
            end()
            try:
                process.wait(wait_s)
            except subprocess.TimeoutExpired:
                continue
            except (KeyboardInterrupt, SystemExit):
                # An impatient second Ctrl-C must not leave an engine behind that still holds the ports.
                self._kill_group()
                process.wait()
                raise
        self._close_stdin()
        for reader in self._readers:
            reader.join(CLOSE_TIMEOUT_S)

    def restart(self) -> None:
        """End the engine and start it anew, with no ports open. Errors are those of starting it."""
        self.close()
        self._start()

    def kill(self) -> None:
        """End it at once: it is lost. To be closed all the same."""
        self._kill_group()

    def _check_about(self) -> Document:
        about = self.request("about")
        if about.get("contract") != CONTRACT:
            raise HostError(
                f"this engine uses contract {about.get('contract')!r}, but Evenhand uses {CONTRACT}",
                code="trial.other-contract",
                where=self.command[-1],
                next_step=f"Use the engine of the same version. {how_to_get_programs()}.",
            )
        return {key: value for key, value in about.items() if key not in ("id", "response")}

    def _write(self, document: Document) -> None:
        assert self._process.stdin is not None
        for place, value in _numbers_of(document):
            if not math.isfinite(value):
                raise RequestError(
                    f"{value} is not a usable number",
                    code="trial.not-finite",
                    where=place,
                    next_step="Use a finite number.",
                )
        try:
            self._process.stdin.write(json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._death(document["request"]) from error

    def _read_reply(self, request_name: str, timeout_s: float) -> Document:
        try:
            line = self._replies.get(timeout=min(timeout_s, threading.TIMEOUT_MAX))
        except queue.Empty as error:
            raise EngineError(
                f"the engine did not answer within {timeout_s:.0f} s{self._last_words()}",
                code="trial.engine-does-not-answer",
                where=request_name,
                next_step="Try again; if it happens again, report it.",
            ) from error
        if line is None:
            self._replies.put(None)
            raise self._death(request_name)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise EngineError(
                f"the engine wrote a line that is not JSON: {line[:200]!r}",
                code="trial.contract-violated",
                where=request_name,
            ) from error
        if not isinstance(reply, dict):
            raise EngineError(
                f"the engine wrote a line that is not a document: {line[:200]!r}",
                code="trial.contract-violated",
                where=request_name,
            )
        return reply

    def _error_of(self, fault: Any) -> EvenhandError:
        try:
            is_helped = fault.get("code") in HELPED_BY_CHECK and "evenhand check" not in fault["next"]
            more = " `evenhand check` shows what this host offers." if is_helped else ""
            error = _ERROR_OF_KIND[fault["kind"]](
                fault["what"],
                code=f"engine.{fault['code']}".replace("_", "-"),
                where=place_in_testbed(fault["where"]),
                next_step=f"{fault['next']}{more}",
            )
        except (AttributeError, KeyError, TypeError) as problem:
            raise EngineError(
                f"the engine wrote a fault that violates the contract: {fault!r}",
                code="trial.contract-violated",
            ) from problem
        for line in self.stderr_lines[-10:]:
            error.add_note(f"engine: {line}")
        return error

    def _death(self, request_name: str) -> EvenhandError:
        try:
            code = self._process.wait(CLOSE_TIMEOUT_S)
            how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        except subprocess.TimeoutExpired:
            how = "its output, but is still running"
        self._readers[1].join(CLOSE_TIMEOUT_S)
        if how == f"by {signal.SIGXFSZ.name}":
            return HostError(
                "the engine was ended because it may not create files as large as it needs",
                code="trial.file-size-limit",
                where="ulimit -f",
                next_step="Raise the limit for this shell: ulimit -f unlimited. The engine's memory is such"
                " a file.",
            )
        return EngineError(
            f"the engine ended {how}{self._last_words()}",
            code="trial.engine-ended",
            where=request_name,
            next_step="Please report this with the engine's last lines.",
        )

    def _last_words(self) -> str:
        lines = [line for line in self.stderr_lines if line.strip()][-5:]
        return "; its last lines: " + " | ".join(lines) if lines else ""

    def _read_replies(self, stream: IO[str]) -> None:
        for line in stream:
            if line.strip():
                self._replies.put(line)
        self._replies.put(None)

    def _read_stderr(self, stream: IO[str]) -> None:
        for line in stream:
            self._stderr.append(line.rstrip("\n"))
            if self._log is not None:
                self._log(line.rstrip("\n"))

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def _kill_group(self) -> None:
        # A wrapper such as `ip netns exec` may have forked: its child holds the ports.
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def place_in_testbed(where: str) -> str:
    """Where users find what a request to the engine calls `where`: the key of their testbed file."""
    return _OF_TESTBED.get(where) or re.sub(r"^ports\.(?=left|right)", "", where)


def _numbers_of(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number that is not whole, and where it is: `waits.residual_s`."""
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers_of(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _numbers_of(item, f"{place}[{index}]")
