# SPDX-License-Identifier: Apache-2.0
"""Station 7: a session with the engine, one JSON document a line (contract/README.md)."""

from __future__ import annotations

import json
import math
import queue
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Literal, Protocol, Self

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.base.programs import how_to_get_programs
from evenhand.base.version import VERSION
from evenhand.plan import SIDES, SideName
from evenhand.trial.contract_values import numbers_of
from evenhand.trial.engine_process import (
    LONGEST_WORDS,
    MOST_LINE_OCTETS,
    AskedBeside,
    EngineLines,
    ended_error,
    is_halted,
    parse_line,
    signal_group,
    take_line,
    violated,
)
from evenhand.trial.other_end import looking_at_other_ends
from evenhand.trial.reply_check import check_answer, check_event, check_fault, check_response
from evenhand.trial.result import CONTRACT, TrialResult

Document = dict[str, Any]
EventCallback = Callable[[Document], None]
LinkState = Literal["up", "down"]

STDERR_LINES = 400
"""How much of the engine's stderr is kept: DPDK may talk without end."""
MOST_EVENTS_AT_ONCE = 1000
MOST_EVENTS_PER_S = 50.0
"""An engine reports twice a second."""
ANSWER_TIMEOUT_S = 60.0
"""For requests other than trials. A port that negotiates its link takes about ten seconds."""
HAND_OVER_S = 0.02
"""How long an answer to what is asked beside a request may lie with whoever has read it."""
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
    is_alone: ClassVar[bool] = True
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
        self._beside = AskedBeside(self._error_of)
        self._writing = threading.Lock()
        self._reading = threading.RLock()
        self._frame_size: int | None = None
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
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
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._lines = EngineLines(self._process.stdout)
        self._words = threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True)
        self._words.start()
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
        return self.request("open", **{**request, **arguments})

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
        ended_within_s: float = math.inf,
        **arguments: Any,
    ) -> Document:
        """Send one request and wait for its response.

        Args:
            on_event: Gets each event document until the response comes.
            answer_within_s: Silence longer than this is an EngineError; so is a process that a signal has
                stopped for LONGEST_HALT_S.
            ended_within_s: So is a response that comes later than this, whatever was reported meanwhile.

        Raises:
            RequestError, HostError, EngineError: The engine's fault, by its kind; EngineError also for its
                death, and for whatever does not answer what was asked.
        """
        with self._reading:
            request_id = self._say(name, arguments)
            on_silence = looking_at_other_ends(arguments, self.kill) if name == "open" else None
            began_s, events = time.monotonic(), 0
            while True:
                left_s = began_s + ended_within_s - time.monotonic()
                reply = self._read_reply(name, min(answer_within_s, left_s), ended_within_s, on_silence)
                identity = reply.get("id")
                if identity is not None and type(identity) is not int:
                    raise violated(f"the engine answered request {identity!r:.80}", name)
                if self._beside.take(reply):
                    continue
                if "fault" in reply and identity in (request_id, None):
                    raise self._error_of(reply["fault"])
                if identity != request_id:
                    raise violated(f"the engine answered request {identity} instead of {request_id}", name)
                if "event" in reply:
                    events += 1
                    if events > MOST_EVENTS_AT_ONCE + MOST_EVENTS_PER_S * (time.monotonic() - began_s):
                        raise violated("the engine reports events without end", name)
                    _check(name, check_event, arguments, reply)
                    if on_event is not None:
                        on_event(reply)
                    continue
                if reply.get("response") != name:
                    raise violated(f"the engine answered {reply.get('response')!r:.80}", name)
                _check(name, self._check_response, name, arguments, reply)
                return reply

    def set_link(self, side: SideName, state: LinkState) -> Mapping[SideName, bool]:
        """Take the link of a port of the tester's own down or up; for any thread but that of `on_event`, and
        also while a trial runs that sends nothing on this side. The engine takes it up again when it closes
        its ports, or ends.

        Returns:
            As `links_up`.

        Raises:
            RequestError: The port's driver cannot, or the trial that runs sends on this side.
            HostError, EngineError: As `request`.
        """
        return self._ask_for_links({"side": side, "state": state})

    def links_up(self) -> Mapping[SideName, bool]:
        """Whether the link of each side is up now; for the same threads and times as `set_link`."""
        return self._ask_for_links({})

    def _ask_for_links(self, arguments: Document) -> Mapping[SideName, bool]:
        answer: Future[Document] = Future()
        self._say("link", arguments, answer)
        # Whoever waits for a reply to another request hands over this one; if nobody does, it is read here.
        while not answer.done():
            if self._reading.acquire(timeout=HAND_OVER_S):
                try:
                    while not answer.done():
                        reply = self._read_reply("link", ANSWER_TIMEOUT_S, math.inf)
                        if not self._beside.take(reply):
                            raise violated(f"the engine answered request {reply.get('id')!r:.80}", "link")
                finally:
                    self._reading.release()
        return {side: answer.result()[side]["link_up"] for side in SIDES}

    def _check_response(self, name: str, asked: Document, reply: Document) -> None:
        check_response(name, reply)
        check_answer(name, asked, reply, frame_size=self._frame_size)
        if name == "trial":
            TrialResult.from_contract(reply)  # one of several engines is named for what it says
        if name == "open":
            self._frame_size = None if "mix" in asked else asked.get("frame_size")

    def stop(self) -> None:
        """Have the request that runs end early; for any thread. Nothing if the engine has ended."""
        with suppress(EvenhandError, OSError):
            self._say("stop", {}, Future())

    def end_sending(self, after_s: float) -> None:
        """Have the trial that runs, which is one of several engines', send its last frame so long after its
        first one; for any thread. Nothing if the engine has ended."""
        with suppress(EvenhandError, OSError):
            self._say("end_sending", {"after_s": after_s}, Future())

    def say_alive(self) -> None:
        """An empty line, which is not a request but a sign of life (`client_timeout_s` of a trial); for any
        thread. Nothing if the engine has ended."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError), self._writing:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def _say(self, name: str, arguments: Document, answer: Future[Document] | None = None) -> int:
        """Send a request; its id.

        Args:
            answer: Gets the reply, whatever other request is waited for.
        """
        with self._writing:
            request_id = self._next_id
            self._next_id += 1
            if answer is not None:
                self._beside.expect(request_id, name, answer)
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
            (self._hang_up, patience_s),
            (process.terminate, CLOSE_TIMEOUT_S),
            (self.kill, CLOSE_TIMEOUT_S),
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
                self.kill()
                process.wait()
                raise
        self._close_stdin()
        self._lines.close(CLOSE_TIMEOUT_S)
        self._words.join(CLOSE_TIMEOUT_S)

    def restart(self) -> None:
        """End the engine and start it anew, with no ports open. Errors are those of starting it."""
        self.close()
        self._start()

    def _check_about(self) -> Document:
        about = self.request("about")
        if about.get("contract") != CONTRACT:
            raise HostError(
                f"this engine uses contract {about.get('contract')!r}, but Evenhand uses {CONTRACT}",
                code="trial.other-contract",
                where=self.command[-1],
                next_step=f"Use the engine of the same version. {how_to_get_programs()}.",
            )
        if about["version"] != VERSION:
            raise HostError(
                f"this engine has version {about['version']!r:.80}, but this is Evenhand {VERSION}",
                code="trial.engine-of-other-version",
                where=self.command[-1],
                next_step=f"Use the engine of the same version. {how_to_get_programs()}.",
            )
        return {key: value for key, value in about.items() if key not in ("id", "response")}

    def _write(self, document: Document) -> None:
        assert self._process.stdin is not None
        for place, value in numbers_of(document):
            if not math.isfinite(value):
                raise RequestError(
                    f"{value} is not a usable number",
                    code="trial.not-finite",
                    where=place,
                    next_step="Use a finite number.",
                )
        try:
            text = json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._death(document["request"]) from error

    def _read_reply(
        self,
        request_name: str,
        timeout_s: float,
        ended_within_s: float,
        on_silence: Callable[[float], None] | None = None,
    ) -> Document:
        try:
            line = take_line(self._lines, self.pid, request_name, timeout_s, on_silence)
        except queue.Empty as error:
            waited_s = min(ended_within_s, max(timeout_s, 0.0)) if timeout_s > 0 else ended_within_s
            raise EngineError(
                f"the engine did not answer within {waited_s:.0f} s{self._last_words()}",
                code="trial.engine-does-not-answer",
                where=request_name,
                next_step="Try again; if it happens again, report it.",
            ) from error
        if line is not None:
            return parse_line(line, request_name)
        if self._lines.is_too_long:
            raise violated(f"the engine wrote a line of more than {MOST_LINE_OCTETS >> 20} MiB", request_name)
        raise self._death(request_name)

    def _error_of(self, fault: Any) -> EvenhandError:
        _check("fault", check_fault, fault)
        kind = _ERROR_OF_KIND.get(fault["kind"])
        if kind is None:
            raise violated(f"the engine wrote a fault of kind {fault['kind']!r:.80}", "fault")
        is_helped = fault["code"] in HELPED_BY_CHECK and "evenhand check" not in fault["next"]
        more = " `evenhand check` shows what this machine offers." if is_helped else ""
        error = kind(
            fault["what"],
            code=f"engine.{fault['code']}".replace("_", "-"),
            where=place_in_testbed(fault["where"]),
            next_step=f"{fault['next']}{more}",
        )
        for line in self.stderr_lines[-10:]:
            error.add_note(f"engine: {line}")
        return error

    def _death(self, request_name: str) -> EvenhandError:
        exit_code = None
        with suppress(subprocess.TimeoutExpired):
            exit_code = self._process.wait(CLOSE_TIMEOUT_S)
        self._words.join(CLOSE_TIMEOUT_S)
        return ended_error(exit_code, self._last_words(), request_name)

    def _last_words(self) -> str:
        lines = [line for line in self.stderr_lines if line.strip()][-5:]
        return "; its last lines: " + " | ".join(lines) if lines else ""

    def _read_stderr(self, stream: IO[bytes]) -> None:
        while raw := stream.readline(LONGEST_WORDS):
            line = raw.decode(errors="replace").rstrip("\n")
            self._stderr.append(line)
            if self._log is not None:
                self._log(line)

    def _hang_up(self) -> None:
        self._close_stdin()
        if is_halted(self.pid):
            signal_group(self.pid, signal.SIGCONT)  # it sees that nobody is there, and closes its ports

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """End it at once: it is lost. To be closed all the same."""
        # A wrapper such as `ip netns exec` may have forked: its child holds the ports.
        signal_group(self.pid, signal.SIGKILL)


def place_in_testbed(where: str) -> str:
    """Where users find what a request to the engine calls `where`: the key of their testbed file."""
    return _OF_TESTBED.get(where) or re.sub(r"^ports\.(?=left|right)", "", where)


def _check(name: str, check: Callable[..., None], *arguments: Any) -> None:
    """EngineError for what the check finds: whatever is read after it has the form of the contract."""
    try:
        check(*arguments)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise violated(f"the engine's answer violates the contract: {problem}", name) from error


class TesterSession(Protocol):
    """One request after the other, each answered: `EngineSession`, and `EngineGroup` for several engines."""

    @property
    def about(self) -> Document:
        """Version, contract and DPDK."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether one engine makes each trial."""
        ...

    @property
    def can_reopen(self) -> bool:
        """Whether `restart`, and `open` after it, open ports again that have stopped."""
        ...

    def open(self, requests: Sequence[Document], **arguments: Any) -> Document:
        """Open the ports of each engine.

        Args:
            requests: Arguments of `open` for each engine, in their order.
            arguments: Arguments for all of them.

        Returns:
            `left` and `right` with what all have together.
        """
        ...

    def restart(self) -> None:
        """Start it anew, with no ports open. RequestError unless `can_reopen`."""
        ...

    def request(
        self,
        name: str,
        *,
        on_event: EventCallback | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
        ended_within_s: float = math.inf,
        **arguments: Any,
    ) -> Document:
        """See `EngineSession.request`."""
        ...
