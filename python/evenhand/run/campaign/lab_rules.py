# SPDX-License-Identifier: Apache-2.0
"""Campaign: how many rules the firewall of a Linux lab gets, where the campaign leaves that open: as many as
make the router so slow that a tester with one CPU finds its limit.

A kernel forwards about as much with one CPU as the tester sends with another, so a search ends at the
tester's ceiling, and its result is a lower bound. Each rule costs each frame the same time, so two rates that
the router forwards when it is offered more say how many rules bring it to a share of the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenhand.base.errors import HostError
from evenhand.base.locks import InUseError
from evenhand.base.units import format_count, format_rate
from evenhand.procedure import Conditions, Note, OpenTestbed
from evenhand.procedure.maximum import STOPPED, Forwarded, forwarded_of, keep_own_ceiling
from evenhand.rig import MOST_RULES, LabWish, LeasedLab, ReferenceDut, rig_of
from evenhand.run.campaign.events import OnCampaignEvent
from evenhand.spec.request import Point, plan_of, read_point

SHARE = 1 / 3
"""The share of the tester's ceiling to which the router is brought: its limit stays below the ceiling also in
a minute in which the host leaves the tester half of it."""
NEAR = 0.2
"""So far from that the router may be."""
FIRST, STEP = 1_000, 100
"""Rules that are tried first; numbers are multiples of STEP."""
SATURATED = 0.9
"""A DUT that forwards less than this share of the tester's ceiling is at its limit. What it was offered does
not say so: a slow DUT on this machine can slow the tester down, too."""
TRIES = 4
Forward = Callable[[int], Forwarded]
"""What the router forwards of the tester's ceiling with so many rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRules:
    """How many rules, and why."""

    rules: int
    plain: Forwarded
    """Without rules."""
    ruled: Forwarded | None
    """With as many as were tried last; None: none were."""

    @property
    def limit_fps(self) -> float:
        """What the router forwards with these rules, in frames a second per direction, about."""
        return (self.ruled or self.plain).forwarded_fps

    @property
    def sentence(self) -> str:
        """For people."""
        ceiling = f"the tester's ceiling of {format_rate(self.plain.offered_fps)}"
        plain = format_rate(self.plain.forwarded_fps)
        if self.ruled is None:
            return (
                f"the router has no firewall: it forwards {plain} of {ceiling} per direction, so its limit"
                " can be seen"
            )
        return (
            "the router was made slower so that its limit can be seen:"
            f" {format_count(self.rules)} rules. Without rules it forwards {plain} of {ceiling} per direction"
        )


def find_rules(forward: Forward) -> FoundRules:
    """As many rules as bring the router to `SHARE` of the tester's ceiling, at most `MOST_RULES`.

    Args:
        forward: Sets the router up and tries it.
    """
    plain = forward(0)
    target_fps = plain.offered_fps * SHARE
    if plain.forwarded_fps <= target_fps * (1 + NEAR):
        return FoundRules(rules=0, plain=plain, ruled=None)
    # Rules, and seconds that a frame takes with them: of a router as fast as the tester, at most so many.
    base, base_s = 0, 1 / plain.forwarded_fps
    rules, tried = FIRST, plain
    for _ in range(TRIES):
        tried = forward(rules)
        frame_s = 1 / max(tried.forwarded_fps, 1.0)
        if tried.forwarded_fps >= SATURATED * plain.offered_fps and rules < MOST_RULES:
            rules = min(MOST_RULES, 3 * rules)
            continue
        if abs(tried.forwarded_fps / target_fps - 1) <= NEAR or frame_s <= base_s:
            break
        wanted = _whole(rules + (1 / target_fps - frame_s) * (rules - base) / (frame_s - base_s))
        if wanted == rules:
            break
        base, base_s, rules = rules, frame_s, wanted
    return FoundRules(rules=rules, plain=plain, ruled=tried)


def _whole(rules: float) -> int:
    return min(MOST_RULES, max(STEP, round(rules / STEP) * STEP))


@dataclass(slots=True, kw_only=True)
class RouterTrials:
    """Tries a lab's router with other numbers of rules, by what one point sends."""

    lab: LeasedLab
    wish: LabWish
    point: Point
    testbed: str
    run: str
    engine: Path | None
    on_event: OnCampaignEvent
    _ceiling_fps: float | None = field(default=None, init=False)

    def forward(self, rules: int) -> Forwarded:
        """See `Forward`. HostError if the lab cannot be set up, or the tester keeps no load."""
        reason = self.lab.set_up_for(replace(self.wish, rules=rules))
        if reason is not None:
            raise HostError(reason, code="run.lab-not-set-up", where=self.testbed)
        with rig_of(self.testbed).open(lambda: plan_of(self.point), ReferenceDut) as setup:
            request = read_point(self.point, setup.testbed.limits)
            bed = OpenTestbed(setup=setup, engine=self.engine, on_event=self.on_event, run=self.run)
            conditions: Conditions = {**request.conditions, "seed": 1}
            with bed.tester(**conditions) as tester:
                if self._ceiling_fps is None:
                    self._ceiling_fps = keep_own_ceiling(tester, on_event=self.on_event)
                return forwarded_of(tester, self._ceiling_fps, on_event=self.on_event)


def choose_rules(trials: RouterTrials, *, keep_note: Callable[[str], None]) -> FoundRules | None:
    """The number of rules for the whole campaign, so that its curves can be compared; None: the lab stays as
    it is, because a user has set it up with rules, or it cannot be found out.

    Args:
        keep_note: Keeps what was found for readers of the results.

    Raises:
        HostError: The program that sets rules is not installed.
    """

    def say(text: str) -> None:
        trials.on_event(Note(text=f"{text[0].upper()}{text[1:]}."))

    lab = trials.lab
    if lab.users_rules:
        say(f"the firewall of the lab keeps its {format_count(lab.users_rules)} rules")
        return None
    try:
        lab.check_rules()
    except HostError as error:
        # Half an hour of trials at the tester's ceiling would say nothing of the router.
        error.next_step = f"{error.next_step}; or measure the router as it is: --rules none"
        raise
    try:
        found = find_rules(trials.forward)
    except InUseError:
        raise
    except HostError as error:
        if error.code == STOPPED:
            raise KeyboardInterrupt from error
        say(f"the router is not made slower, so results may be lower bounds: {error.what}")
        return None
    say(found.sentence)
    keep_note(found.sentence)
    return found
