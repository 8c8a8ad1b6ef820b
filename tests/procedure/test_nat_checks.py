# SPDX-License-Identifier: Apache-2.0
"""What a test of connections rests on: that the DUT translates to the pool, and that its table is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from evenhand.dut.connections import Emptied
from evenhand.plan import Direction, make_plan
from evenhand.procedure.dut_checks import (
    FEW,
    VALIDATION,
    check_empties,
    check_some_held,
    check_translates,
    why_not_held,
)
from evenhand.rig import Setup
from evenhand.trial import Load, SimulatedMeasurer, TrialResult
from tests.errors import raises


def opened(
    *, otherwise: int, learnt: int, offered: int = 500, came_from: tuple[str, str] | None = None
) -> TrialResult:
    """A trial that opened connections.

    Args:
        came_from: Source and destination of the first frame that came otherwise.
    """
    load = Load(rate_fps=1000.0, duration_s=offered / 1000)
    raw = dict(SimulatedMeasurer(limit_fps=1.0, directions=("forward",)).offer(load).raw)
    forward = raw["directions"]["forward"]
    if came_from is not None:
        source, destination = came_from
        forward["first_mistranslated"] = {
            "frame": 3,
            "source": source,
            "source_port": 10123,
            "destination": destination,
            "destination_port": 7,
        }
    forward |= {
        "mistranslated_frames": {"no_checksum": 0, "traffic_class": 0, "address_or_port": otherwise},
        "connections": {"opened": offered, "learnt": learnt, "shared_tuples": 0},
    }
    return TrialResult.from_contract(raw)


@pytest.mark.parametrize("name", ["nat44", "nat64", "nat66"])
def test_frames_that_come_back_untranslated_end_the_search(name: str) -> None:
    """R9693-01: at no rate would they be translated; the pool is named."""
    plan = make_plan(name)
    assert plan.nat is not None
    with raises("procedure.nothing-translated") as refused:
        check_translates(opened(otherwise=499, learnt=0), plan, where="bed")
    assert str(plan.nat.pool) in str(refused.value)
    check_translates(opened(otherwise=0, learnt=0), plan, where="bed")  # lost, which a rate explains
    check_translates(opened(otherwise=499, learnt=1), plan, where="bed")  # one of them was
    with raises("procedure.nothing-translated"):  # although most were lost
        check_translates(opened(otherwise=16, learnt=0), plan, where="bed")
    check_translates(opened(otherwise=15, learnt=0), plan, where="bed")


@pytest.mark.parametrize(
    ("name", "source", "destination", "said", "next_plan"),
    [
        ("nat44", "10.16.0.9", "198.19.0.5", "the host's own address: it is not translated", None),
        ("nat44", "10.0.1.1", "198.19.0.5", "the DUT's own interface", "nat44-masquerade"),
        ("nat44", "203.0.113.5", "198.19.0.5", "outside the pool", None),
        ("nat44", "198.18.0.9", "198.19.200.200", "of the pool, but", None),
        ("nat64", "10.16.0.9", "198.19.0.5", "outside the pool", None),
        ("nat64@2001:db8::/40", "10.0.1.1", "198.19.0.5", "DUT's own", "nat64-masquerade@2001:db8::/40"),
        ("nat66", "2001:2::9", "2001:2:0:8000::5:0", "the host's own address", None),
        ("nat66", "2001:2:0:9000::1", "2001:2:0:8000::5:0", "DUT's own", "nat66-masquerade"),
    ],
)
def test_the_address_that_was_seen_is_in_the_error(
    name: str, source: str, destination: str, said: str, next_plan: str | None
) -> None:
    plan = make_plan(name)
    with raises("procedure.nothing-translated", match=said) as refused:
        check_translates(opened(otherwise=499, learnt=0, came_from=(source, destination)), plan, where="bed")
    assert f"Frame 3 came from {source} port 10123 to {destination} port 7" in str(refused.value)
    assert ((refused.value.next_step or "").find(f"--plan {next_plan},") >= 0) == (next_plan is not None)
    if next_plan is not None:
        assert str(make_plan(next_plan).right.peers.first_address) == source  # type: ignore[union-attr]


def validated(lost: range, *, of: int = 100) -> tuple[TrialResult, TrialResult]:
    """A trial that opened connections at 100 a second, and the one that validated them, 3 s after the
    begin of the first, at half of that rate."""
    opening, answers = Load(rate_fps=100.0, duration_s=of / 100), Load(rate_fps=50.0, duration_s=of / 50)
    found = []
    trials: tuple[tuple[Load, range, Direction, int], ...] = (
        (opening, range(0), "forward", 10),
        (answers, lost, "reverse", 13),
    )
    for load, missing, direction, second in trials:
        raw = dict(SimulatedMeasurer(limit_fps=1e6, directions=(direction,)).offer(load).raw)
        raw["started_at"] = f"2026-01-01T00:00:{second}Z"
        counts = raw["directions"][direction]
        assert counts["offered_frames"] == of
        if missing:
            counts |= {
                "received_frames": of - len(missing),
                "lost_frames": len(missing),
                "loss_ratio": len(missing) / of,
                "first_lost": list(missing)[:16],
            }
            raw |= {"verdict": "FAIL", "reasons": [{"code": "loss", "text": "lost"}]}
        found.append(TrialResult.from_contract(raw))
    return found[0], found[1]


def test_a_timeout_of_the_dut_is_seen_in_which_answers_are_missing() -> None:
    """R9693-06, R9693-11: answer k is sent 3 s + k/50 s - k/100 s after its connection was opened."""
    all_of_them = why_not_held(*validated(range(100)))
    assert all_of_them is not None
    assert "any of 100 connections, about 3 s to 4 s after" in all_of_them
    later = why_not_held(*validated(range(50, 100)))
    assert later is not None
    assert "from connection 50 on: these had had no frame for about 4 s and longer" in later
    assert why_not_held(*validated(range(50))) is None  # such as those that made room for others
    assert why_not_held(*validated(range(90, 100))) is None  # may be chance
    assert why_not_held(*validated(range(0))) is None


def test_connections_of_which_none_is_known_any_more_end_the_search() -> None:
    """R9693-06: it went on to ever lower rates, at which each has to be remembered for longer."""
    opened_all, answers = validated(range(100))
    document = {
        **opened_all.raw,
        VALIDATION: dict(answers.raw),
        "verdict": "FAIL",
        "reasons": [{"code": "loss", "text": "validation: no answer came back"}],
    }
    with raises("procedure.nothing-held", match="no answer came back"):
        check_some_held(TrialResult.from_contract(document), where="bed")
    _, answers = validated(range(1, 100))
    check_some_held(
        TrialResult.from_contract({**document, VALIDATION: dict(answers.raw)}), where="bed"
    )  # one was
    check_some_held(opened_all, where="bed")


@dataclass
class Table:
    """A set-up and a tester in one: a table of connections that is emptied, or not."""

    works: bool
    held: bool = False
    name: str = "bed"

    def empty_connections(self) -> Emptied:
        self.held = self.held and not self.works
        return Emptied(seconds=0.0)

    def stored(self, load: Load) -> TrialResult | None:
        return None

    def offer(self, load: Load) -> TrialResult:
        assert load.connections is not None
        assert load.connections.count == FEW
        is_answer = load.connections.use == "each_once"
        known = self.held or not is_answer
        self.held = True
        raw: dict[str, Any] = dict(SimulatedMeasurer(limit_fps=1e6).offer(load).raw)
        if not known:
            for direction in raw["directions"].values():
                direction |= {"received_frames": 0, "lost_frames": FEW, "loss_ratio": 1.0}
            raw |= {"verdict": "FAIL", "reasons": [{"code": "loss", "text": "lost all"}]}
        return TrialResult.from_contract(raw)


def test_a_table_that_is_not_empty_after_emptying_is_refused() -> None:
    """R9693-07: else loads pass on entries that are there already."""
    works, fails = Table(works=True), Table(works=False)
    check_empties(cast(Setup, works), works, make_plan("nat44"), most=10_000, highest_fps=1e6)
    with raises("procedure.table-not-emptied") as refused:
        check_empties(cast(Setup, fails), fails, make_plan("nat44"), most=10_000, highest_fps=1e6)
    assert refused.value.where == "bed: dut.empty_connections"
