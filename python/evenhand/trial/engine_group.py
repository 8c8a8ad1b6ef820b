# SPDX-License-Identifier: Apache-2.0
"""Station 7: several engines that are one tester: each sends its share of every trial, all start at one time,
and one verdict is made of what they counted.

Each engine has both ends of its own port pairs, so that a frame comes back to the engine that sent it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from evenhand.base.errors import EngineError, EvenhandError, HostError, RequestError
from evenhand.base.version import VERSION
from evenhand.plan import SIDES
from evenhand.trial.capture import KEPT_FRAMES
from evenhand.trial.engine_process import HALTED
from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, Document, EventCallback
from evenhand.trial.group_parts import (
    ComparedClock,
    EarlyStopOfAll,
    EngineMember,
    GroupRequest,
    compare_clock,
    compare_clocks,
    learning_of_all,
    named,
    progress_of_all,
    sum_of_learning,
)

START_LEADS_S = (0.75, 3.0, 10.0)
"""Seconds from the last wait before a trial's first frame to that frame: for engines that are slower to be
ready. Where none was, as on a busy host, nothing was sent, and the trial begins anew with the next."""
TABLE_S = 1e-8
"""More for each connection that an engine is to open: it takes the memory for them first."""
RECORD_S = 1e-9
"""The same for each frame that it records, up to MOST_RECORDED: 2 GiB are touched in a second."""
MOST_RECORDED = 2**30
CLIENT_TIMEOUT_S = 2.0
"""An engine that has heard nothing from here for so long stops sending: its connection is gone."""
ALIVE_EVERY_S = 0.1
HALTED_S = 0.3
"""If a signal has stopped the process of an engine for so long, the others stop: the trial has no result."""
QUIET_S = 2.0
"""The same if one says nothing for so long while the trial goes on, such as one elsewhere. It reports five
times a second; a host that is very busy keeps it from that for almost a second."""
SILENT_S = 5.0
"""One that says nothing for so long, while it gets ready or adds up as well, is lost."""
SORT_S = 1e-6
"""More for each connection that an engine has opened: after the trial it looks whether two were translated to
one four tuple, which was measured to take 0.2 us."""
LAST_AFTER_FIRST_S = 10.0
"""All engines end a trial at about the same time. One that is still at it so long after the first one has
begun at another time."""
STOP_WITHIN_S = 5.0
"""Time that an engine may take to answer once it was asked to stop."""
DEFAULT_START_DIFFERENCE_US = 1000.0
MOST_LINE_OCTETS = 16 << 20
"""Octets of one request to an engine: the results of all must fit in."""
_OCTETS_PER_TENTH = 8
"""Octets of the text of a trial's losses in each tenth of a second."""
_ANSWERED_TOGETHER = frozenset({"resolve", "learn", "trial", "counters"})


class EngineGroup:
    """Engines that run, asked as if they were one: a `TesterSession`. Whoever started them ends them.

    An engine that ends, or whose connection breaks, makes the trial INVALID, and names itself in the reason;
    the others stop within a second. Whatever is asked after that is a HostError.
    """

    can_reopen: ClassVar[bool] = False
    is_alone: ClassVar[bool] = False
    start_leads_s: ClassVar[tuple[float, ...]] = START_LEADS_S
    quiet_s: ClassVar[float] = QUIET_S
    halted_s: ClassVar[float] = HALTED_S

    def __init__(
        self,
        members: Sequence[EngineMember],
        *,
        start_difference_us: float = DEFAULT_START_DIFFERENCE_US,
        client_timeout_s: float = CLIENT_TIMEOUT_S,
    ) -> None:
        """Check that they go together; nothing is opened or sent.

        Args:
            members: Engines in the order of their shares.
            start_difference_us: Time between the first engine that starts a trial and the last, with its
                uncertainty; a trial with more is INVALID.

        Raises:
            HostError: One is of another version, or its clock is off.
            RequestError: They have not the same number of streams.
        """
        self.members = tuple(members)
        self.start_difference_us = start_difference_us
        self._client_timeout_s = client_timeout_s
        self._lost: EvenhandError | None = None
        for member in self.members:
            _check_version(member)
        _check_streams(self.members)
        self.clocks = compare_clocks(self.members)

    @property
    def about(self) -> Document:
        """Facts of the first engine; all have one version."""
        return self.members[0].session.about

    def open(self, requests: Sequence[Document], **arguments: Any) -> Document:
        """See `TesterSession.open`.

        Returns:
            `left` and `right` of the first engine, with the line rate that all have together: the slowest of
            them times their number, as each has the same share; and `hardware_stamps` of all. `engines` has
            all replies.
        """
        # One number for all, so that a frame is the same whoever sends it.
        session = random.randrange(65535)
        replies = self._ask_each(
            "open", [{**request, "session": session, **arguments} for request in requests]
        )
        rates = {side: [reply[side]["line_rate_bps"] for reply in replies] for side in SIDES}
        together: dict[str, Any] = {
            side: {
                **replies[0][side],
                "line_rate_bps": None if None in rates[side] else min(rates[side]) * len(rates[side]),
                "hardware_stamps": _stamps_of_all([reply[side]["hardware_stamps"] for reply in replies]),
            }
            for side in SIDES
        }
        return {**replies[0], **together, "engines": self._by_name(replies)}

    def restart(self) -> None:
        """See `TesterSession`."""
        raise _not_together("restart")

    def request(
        self,
        name: str,
        *,
        on_event: EventCallback | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
        ended_within_s: float = math.inf,
        **arguments: Any,
    ) -> Document:
        """See `EngineSession.request`. An error of one engine names it."""
        if name not in _ANSWERED_TOGETHER:
            raise _not_together(name)
        if self._lost is not None:
            raise self._lost
        if name == "trial":
            return self._trial(arguments, on_event, answer_within_s, ended_within_s)
        take = None if on_event is None or name != "learn" else learning_of_all(len(self.members), on_event)
        each = [dict(arguments) for _ in self.members]
        replies = self._ask_each(name, each, on_event=take, answer_within_s=answer_within_s)
        if name == "learn":
            return sum_of_learning(replies)
        return {**replies[0], "engines": self._by_name(replies)}

    def _by_name(self, replies: Sequence[Document]) -> dict[str, Document]:
        return {
            member.name: {key: value for key, value in reply.items() if key not in ("id", "response")}
            for member, reply in zip(self.members, replies, strict=True)
        }

    def _ask_each(
        self,
        name: str,
        arguments: Sequence[Document],
        *,
        on_event: Callable[[int, Document], None] | None = None,
        answer_within_s: float = ANSWER_TIMEOUT_S,
    ) -> list[Document]:
        """All at once. If one fails, the others are stopped, and its error is raised."""
        asked = GroupRequest(self.members)
        asked.begin(name, arguments, on_event=on_event, answer_within_s=answer_within_s)
        try:
            while asked.waiting:
                asked.wait(ALIVE_EVERY_S)
                if asked.errors:
                    asked.stop()
                for member in asked.halted(self.halted_s):
                    self._lost = self._is_lost(member, HALTED)
                    raise self._lost
        except BaseException:
            asked.stop()
            raise
        for member, error in asked.in_order(asked.errors):
            raise named(error, member.name)
        return [reply for _, reply in asked.in_order(asked.replies)]

    def _trial(
        self,
        arguments: Document,
        on_event: EventCallback | None,
        answer_within_s: float,
        ended_within_s: float,
    ) -> Document:
        self._check_trial(arguments)
        for lead_s in self.start_leads_s:
            asked, lost, before = self._ask_for_trial(
                arguments, on_event, answer_within_s, ended_within_s + lead_s, lead_s=lead_s
            )
            if not asked.is_too_late_for_all:
                break
        return self._judge(asked, lost, before)

    def _ask_for_trial(
        self,
        arguments: Document,
        on_event: EventCallback | None,
        answer_within_s: float,
        ended_within_s: float,
        *,
        lead_s: float,
    ) -> tuple[GroupRequest, dict[str, str], dict[str, ComparedClock]]:
        """What the engines said, why each of those that are lost is, and how their clocks compared before."""
        before = compare_clocks(self.members)
        waits = arguments["waits"]
        opened = self._opened_by_each(arguments)
        start_ns = time.time_ns() + round(
            (
                waits["after_routing_s"]
                + waits["after_learning_s"]
                + lead_s
                + opened * TABLE_S
                + self._recorded_by_each(arguments) * RECORD_S
            )
            * 1e9
        )
        stride = sum(member.streams for member in self.members)
        first = 0
        each = []
        for member in self.members:
            each.append(
                {
                    **arguments,
                    "share": {"first": first, "stride": stride},
                    "start_at_unix_ns": start_ns + round(before[member.name].offset_us * 1e3),
                    "client_timeout_s": self._client_timeout_s,
                }
            )
            first += member.streams
        asked = GroupRequest(self.members)
        take = None if on_event is None else progress_of_all(len(self.members), on_event)
        stop = self.early_stop(start_unix_ns=start_ns, sending_s=arguments["duration_s"])
        asked.begin(
            "trial",
            each,
            on_event=stop.watching(take),
            answer_within_s=answer_within_s,
            ended_within_s=ended_within_s,
        )
        sorting_s = opened * SORT_S
        lost = self._follow(
            asked,
            stop,
            silent_s=max(SILENT_S, self.quiet_s) + sorting_s,
            last_after_first_s=LAST_AFTER_FIRST_S + sorting_s,
        )
        return asked, lost, before

    def early_stop(self, *, start_unix_ns: int, sending_s: float) -> EarlyStopOfAll:
        """What ends the trial that now begins before its time."""
        return EarlyStopOfAll(start_unix_ns=start_unix_ns, sending_s=sending_s)

    def _check_trial(self, arguments: Document) -> None:
        then = arguments.get("then")
        sending_s = arguments["duration_s"] + (0.0 if then is None else then["duration_s"])
        octets_per_s = 10 * _OCTETS_PER_TENTH * len(self.members) * len(arguments["directions"])
        longest_s = MOST_LINE_OCTETS / 2 / octets_per_s
        if sending_s > longest_s:
            raise RequestError(
                f"a trial of {sending_s:g} s is too long for {len(self.members)} engines,"
                " whose results are judged together",
                code="trial.too-long-for-several-engines",
                where="duration",
                next_step=f"Use at most {longest_s:.0f} s.",
            )

    def _opened_by_each(self, arguments: Document) -> int:
        """Connections that an engine opens in this trial, at most."""
        connections = arguments.get("connections") or {}
        return -(-int(connections.get("count", 0)) // len(self.members))

    def _recorded_by_each(self, arguments: Document) -> float:
        """Frames of a direction for which an engine takes memory, about."""
        frames: float = arguments["rate_fps"] * arguments["duration_s"] / len(self.members)
        return min(frames, MOST_RECORDED)

    def _follow(
        self, asked: GroupRequest, stop: EarlyStopOfAll, *, silent_s: float, last_after_first_s: float
    ) -> dict[str, str]:
        """Wait until all have answered. Returns why some have not, by their names.

        Args:
            silent_s: One that says nothing for so long is lost.
            last_after_first_s: One that has not ended so long after the first one is not waited for.
        """
        lost: dict[str, str] = {}
        give_up = float("inf")
        try:
            while asked.waiting:
                asked.wait(ALIVE_EVERY_S)
                now = time.monotonic()
                for member, error in asked.in_order(asked.errors):
                    lost.setdefault(member.name, error.what)
                for member, heard in asked.in_order(asked.heard_at):
                    if now - heard > silent_s and member.name in asked.waiting:
                        lost.setdefault(member.name, f"it has said nothing for {silent_s:g} s")
                for member in asked.halted(self.halted_s):
                    lost.setdefault(member.name, HALTED)
                for name, why in asked.left_behind(last_after_first_s):
                    lost.setdefault(name, why)
                for name in asked.fallen_silent(self.quiet_s):
                    lost.setdefault(name, f"it has said nothing for {self.quiet_s:g} s")
                if lost and give_up == float("inf"):
                    give_up = now + STOP_WITHIN_S
                    asked.stop()
                # One that is halted does not stop on request: once all others have, nobody waits for it.
                if now > give_up or all(lost.get(name) == HALTED for name in asked.waiting):
                    for name in asked.waiting:
                        lost.setdefault(name, "it did not stop on request")
                    break
                end_s = stop.end_s()
                for member in self.members:
                    if member.name in asked.waiting:
                        member.session.say_alive()
                        if end_s is not None:
                            member.session.end_sending(end_s)
        except BaseException:
            asked.stop()
            raise
        return lost

    def _judge(
        self, asked: GroupRequest, lost: dict[str, str], before: Mapping[str, ComparedClock]
    ) -> Document:
        for member, reply in asked.in_order(asked.replies):
            if not lost and "stopped" in {reason["code"] for reason in reply["reasons"]}:
                lost[member.name] = (
                    f"it stopped, as it had heard nothing from here for {self._client_timeout_s:g} s"
                )
        for member, error in asked.in_order(asked.errors):
            if isinstance(error, RequestError):
                raise named(error, member.name)
        for member in self.members:
            # One that answers with a fault is there all the same.
            is_there = isinstance(asked.errors.get(member.name), HostError) or member.name in asked.replies
            if not is_there and self._lost is None:
                self._lost = self._is_lost(member, lost[member.name])
        after = self._clocks_after(asked, lost)
        survivors = [member for member in self.members if member.name in after]
        results: list[Document] = [
            {"engine": member.name, "lost": lost[member.name]}
            if member.name in lost
            else {
                "engine": member.name,
                "result": asked.replies[member.name],
                "clock": {
                    "before": before[member.name].to_contract(),
                    "after": after[member.name].to_contract(),
                },
            }
            for member in self.members
        ]
        # Nothing can be said of a trial that no engine has finished.
        if not survivors:
            raise self._lost or _not_finished(lost)
        kept = [frame for each in survivors for frame in asked.replies[each.name].pop(KEPT_FRAMES, ())]
        judge = next((member for member in survivors if member.is_here), survivors[0])
        judged = judge.session.request("judge", results=results, start_difference_us=self.start_difference_us)
        return {**judged, "response": "trial", **({KEPT_FRAMES: kept} if kept else {})}

    def _clocks_after(self, asked: GroupRequest, lost: dict[str, str]) -> dict[str, ComparedClock]:
        """How the clocks of those compare that have answered. One that ends meanwhile is lost like one that
        ended before: it may have been cut off just after its answer."""
        after = {}
        for member in self.members:
            if member.name not in asked.replies or member.name in lost:
                continue
            try:
                after[member.name] = compare_clock(member)
            except (EngineError, HostError) as error:
                lost[member.name] = error.what
                self._lost = self._lost or self._is_lost(member, error.what)
        return after

    def _is_lost(self, member: EngineMember, why: str) -> EvenhandError:
        member.session.kill()
        return HostError(
            f"engine {member.name} is lost: {why}",
            code="trial.engine-lost",
            where=f"engine {member.name}",
            next_step="Check that host and the connection to it, then start again.",
        )


def _check_version(member: EngineMember) -> None:
    version = member.session.about["version"]
    if version != VERSION:
        raise HostError(
            f"engine {member.name} has version {version}, but this is Evenhand {VERSION}",
            code="trial.engine-of-other-version",
            where=f"engine {member.name}",
            next_step=f"Install Evenhand {VERSION} on its machine.",
        )


def _check_streams(members: Sequence[EngineMember]) -> None:
    first = members[0]
    for member in members:
        if member.streams != first.streams:
            raise RequestError(
                f"engine {member.name} sends {member.streams} streams a side, engine {first.name}"
                f" {first.streams}: each engine must have the same share",
                code="trial.engines-differ",
                where=f"engine {member.name}",
                next_step="Give each engine the same number of cpus and of receive_queues.",
            )


def _not_together(name: str) -> RequestError:
    return RequestError(
        f"several engines do not answer {name!r} together", code="trial.not-with-several-engines", where=name
    )


def _stamps_of_all(stamps: Sequence[str]) -> str:
    """What ports offer that are one tester's: `unused` if any of them could stamp frames, else as all say."""
    return next((one for one in stamps if one == "unused"), stamps[0])


def _not_finished(lost: Mapping[str, str]) -> EvenhandError:
    return HostError(
        "no engine has finished the trial: " + "; ".join(f"{name}: {why}" for name, why in lost.items()),
        code="trial.engine-lost",
        where="trial",
        next_step="Check the hosts of the engines and the connections to them, then start again.",
    )
