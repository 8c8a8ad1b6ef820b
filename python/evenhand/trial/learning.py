# SPDX-License-Identifier: Apache-2.0
"""Station 7: learning, before any trial: the DUT resolves every host, and the hosts that it does not reach
are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.base.errors import EngineError
from evenhand.base.units import format_count
from evenhand.plan import Direction, SideName
from evenhand.trial.engine_session import ANSWER_TIMEOUT_S, Document, TesterSession

DEFAULT_RATE_FPS = 20_000.0
"""Slow enough for a control plane that resolves every destination, and 65,533 hosts still take seconds."""
DEFAULT_ROUNDS = 5
DEFAULT_WAIT_S = 1.0
"""A DUT asks again for a host after a second."""
NAMED_FOR_PEOPLE = 8
"""Unreachable hosts; documents have the first hundred of each side."""
_SIDES: tuple[SideName, ...] = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningProgress:
    """How far learning is, reported twice a second. Counts are by the side where the hosts are; a side that
    no frame goes to is missing."""

    round: int
    """Number of the round, from 1."""
    rate_share: float = 1.0
    """Share of the rate that was asked for."""
    host_counts: Mapping[SideName, int]
    reachable: Mapping[SideName, int]


ProgressCallback = Callable[[LearningProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSide:
    """The hosts of one side after learning."""

    host_count: int
    reachable: int
    rounds: int
    """Rounds in which frames were sent to this side; 1 if all came back at once."""
    unreachable: tuple[str, ...]
    """The first 100 addresses, in order."""
    questions_answered: int
    """ARP requests or neighbour solicitations of the DUT on this side, meanwhile."""

    @property
    def unreachable_hosts(self) -> int:
        return self.host_count - self.reachable


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningResult:
    """What a DUT reached. Says nothing of its performance, and nothing of how long it keeps its entries."""

    sides: Mapping[SideName, LearnedSide]
    """Sides by where the hosts are; the directions that were asked for."""
    was_stopped: bool
    rate_share: float = 1.0
    """Share of the rate that was asked for, in the last round. Less than 1: a round reached some hosts and
    missed others, perhaps because it was too fast for the DUT, and each such round halves the rate of the
    next."""

    @property
    def is_complete(self) -> bool:
        """Whether every host was reached."""
        return all(side.reachable == side.host_count for side in self.sides.values())

    @property
    def unreachable_hosts(self) -> int:
        return sum(side.unreachable_hosts for side in self.sides.values())

    def to_document(self) -> dict[str, Any]:
        """For `--json` and the run file."""
        return {
            "is_complete": self.is_complete,
            "was_stopped": self.was_stopped,
            "rate_share": self.rate_share,
            "sides": {
                name: {
                    "hosts": side.host_count,
                    "reachable": side.reachable,
                    "rounds": side.rounds,
                    "unreachable": list(side.unreachable),
                    "questions_answered": side.questions_answered,
                }
                for name, side in self.sides.items()
            },
        }

    @classmethod
    def from_contract(cls, document: Mapping[str, Any]) -> LearningResult:
        """Read a `learn` response. EngineError if it has another shape or contradicts itself."""
        try:
            sides = {name: _side(name, document[name]) for name in _SIDES if name in document}
            if not sides:
                raise ValueError("it has no sides")
            share = float(document.get("rate_share", 1.0))
            if not 0 < share <= 1:
                raise ValueError(f"rate_share is {share}")
            return cls(sides=sides, was_stopped=bool(document["stopped"]), rate_share=share)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise EngineError(
                f"the engine's learning result violates the contract: {problem}",
                code="trial.contract-violated",
                where="learn response",
            ) from error


def name_first(unreachable: Sequence[str], total: int) -> str:
    """For people: `198.18.0.2, 198.18.0.9 and 65,000 more`, of `total` that are unreachable in all."""
    named = unreachable[:NAMED_FOR_PEOPLE]
    more = total - len(named)
    return ", ".join(named) + (f" and {format_count(more)} more" if more else "")


def learn(
    session: TesterSession,
    *,
    rate_fps: float = DEFAULT_RATE_FPS,
    rounds: int = DEFAULT_ROUNDS,
    wait_s: float = DEFAULT_WAIT_S,
    directions: Sequence[Direction] = ("forward", "reverse"),
    on_progress: ProgressCallback | None = None,
) -> LearningResult:
    """Send a small test frame to every host of the receiving sides, again to those it did not reach; ports
    are open and resolved.

    In direct plans the DUT asks for each host and the tester answers, so its neighbour table is full before
    the first trial (SEED-20). Behind gateways the same shows whether its routes lead to every host. Hosts
    that stay unreachable are a result, not an error. A round that reached some hosts and missed others may
    have been too fast for the DUT: the next has half its rate.

    Args:
        rate_fps: Rate of the first round, per direction.
        rounds: How often a host is tried, at most.
        wait_s: Seconds to wait after the last frame of each round; a DUT asks again for a host after a
            second.
        on_progress: Called twice a second.

    Raises:
        RequestError, HostError, EngineError: As `EngineSession.request`.
    """

    def take(event: Document) -> None:
        if on_progress is not None and event.get("event") == "learning":
            on_progress(_progress(event))

    document = session.request(
        "learn",
        on_event=take,
        answer_within_s=ANSWER_TIMEOUT_S + wait_s,
        rate_fps=rate_fps,
        rounds=rounds,
        wait_s=wait_s,
        directions=list(directions),
    )
    return LearningResult.from_contract(document)


def _progress(event: Document) -> LearningProgress:
    sides = {name: event[name] for name in _SIDES if name in event}
    return LearningProgress(
        round=int(event["round"]),
        rate_share=float(event.get("rate_share", 1.0)),
        host_counts={name: int(side["hosts"]) for name, side in sides.items()},
        reachable={name: int(side["reachable"]) for name, side in sides.items()},
    )


def _side(name: str, document: Mapping[str, Any]) -> LearnedSide:
    side = LearnedSide(
        host_count=int(document["hosts"]),
        reachable=int(document["reachable"]),
        rounds=int(document["rounds"]),
        unreachable=tuple(str(address) for address in document["unreachable"]),
        questions_answered=int(document["questions_answered"]),
    )
    if not 0 <= side.reachable <= side.host_count or len(side.unreachable) > side.host_count - side.reachable:
        raise ValueError(
            f"{name}: {side.reachable} of {side.host_count} hosts reached, {len(side.unreachable)} named as"
            " unreachable"
        )
    return side
