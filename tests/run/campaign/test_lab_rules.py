# SPDX-License-Identifier: Apache-2.0
"""How many rules make a lab's router so slow that its tester finds the limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenhand.base.errors import HostError, RequestError
from evenhand.procedure.maximum import Forwarded
from evenhand.procedure.search_options import start_at
from evenhand.rig import MOST_RULES, LabWish
from evenhand.run import RunStore
from evenhand.run.campaign.dut_setup import lab_wish_of
from evenhand.run.campaign.lab_rules import NEAR, SHARE, TRIES, choose_rules, find_rules
from evenhand.search import Role, SearchHead, ThroughputGoal
from evenhand.spec.file import make_campaign, read_rules
from evenhand.spec.points import CampaignPlan, expand
from evenhand.spec.request import read_point
from tests.errors import raises

CEILING_FPS = 300_000.0


@dataclass(slots=True, kw_only=True)
class Router:
    """A router that takes so long for a frame, and so long for each rule."""

    plain_fps: float
    rule_ns: float
    slows_tester: bool = False
    """It has the tester's CPU: less is offered then."""
    tried: list[int] = field(default_factory=list)

    def capacity_fps(self, rules: int) -> float:
        return 1 / (1 / self.plain_fps + rules * self.rule_ns * 1e-9)

    def forward(self, rules: int) -> Forwarded:
        self.tried.append(rules)
        forwarded_fps = min(CEILING_FPS, self.capacity_fps(rules))
        offered_fps = forwarded_fps if self.slows_tester else CEILING_FPS
        return Forwarded(offered_fps=offered_fps, forwarded_fps=forwarded_fps)


@pytest.mark.parametrize("plain_fps", [150e3, 280e3, 320e3, 1e6, 5e6])
@pytest.mark.parametrize("rule_ns", [1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("slows_tester", [False, True])
def test_the_router_is_brought_to_a_third_of_the_ceiling(
    plain_fps: float, rule_ns: float, slows_tester: bool
) -> None:
    """Whether the tester can saturate it without rules or not, and also where it is slower with a slow
    router."""
    router = Router(plain_fps=plain_fps, rule_ns=rule_ns)
    router.slows_tester = slows_tester and plain_fps > CEILING_FPS
    found = find_rules(router.forward)
    assert 0 < found.rules <= MOST_RULES
    assert found.rules % 100 == 0
    if router.capacity_fps(MOST_RULES) < CEILING_FPS * SHARE:
        assert router.capacity_fps(found.rules) == pytest.approx(CEILING_FPS * SHARE, rel=NEAR + 0.05)
    else:
        assert found.rules == MOST_RULES
    assert router.tried[0] == 0
    assert len(router.tried) <= 1 + TRIES
    assert f"{found.rules:,} rules. Without rules it forwards" in found.sentence
    assert "slower so that its limit can be seen" in found.sentence


def test_a_router_that_is_slow_enough_gets_no_rules() -> None:
    router = Router(plain_fps=90e3, rule_ns=5.0)
    found = find_rules(router.forward)
    assert (found.rules, router.tried) == (0, [0])
    assert found.sentence.startswith(
        "the router has no firewall: it forwards 90 kfps of the tester's ceiling"
    )


def test_rules_that_cost_nothing_are_tried_up_to_the_most() -> None:
    router = Router(plain_fps=1e6, rule_ns=0.0)
    assert find_rules(router.forward).rules == MOST_RULES
    assert router.tried == [0, 1000, 3000, 9000, 10000]


def plan_with(rules: object) -> CampaignPlan:
    keys = {} if rules is None else {"rules": rules}
    document = {"name": "a", "testbed": "lab:linux", **keys, "suite": [{"name": "s"}]}
    return expand(make_campaign(document, where="file"))


@pytest.mark.parametrize(
    ("written", "rules"), [(None, None), ("none", 0), (0, 0), (2800, 2800), ("auto", "auto")]
)
def test_a_campaign_says_how_many_rules_its_lab_has(written: object, rules: object) -> None:
    plan = plan_with(written)
    assert plan.rules == rules
    assert plan.spec["rules"] == written


@pytest.mark.parametrize("written", ["many", -1, MOST_RULES + 1, 1.5, True])
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(RequestError, match="rules"):
        plan_with(written)


def test_the_option_takes_the_same() -> None:
    assert [read_rules(text, where="--rules") for text in ("auto", "none", "0", "3000")] == [
        "auto",
        "none",
        0,
        3000,
    ]
    for text in ("many", "-1", "1.5", "10001", ""):
        with raises("spec.not-a-number-of-rules"):
            read_rules(text, where="--rules")


def test_a_wish_has_the_rules_of_the_campaign() -> None:
    points = plan_with("auto").points
    assert lab_wish_of(points).rules is None
    wish = lab_wish_of(points, rules=2800)
    assert isinstance(wish, LabWish)
    assert wish.rules == 2800


@pytest.mark.parametrize(
    ("written", "begins"),
    [
        ({"start": "auto"}, True),
        ({"start": "auto", "maximum-rate": "200kfps"}, False),
        ({"start": "90kfps"}, False),
        ({}, False),
        ({"search": "mlr"}, False),
    ],
)
def test_searches_that_choose_their_start_begin_at_what_the_router_forwards(
    written: dict[str, object], begins: bool
) -> None:
    """Near the tester's own ceiling most trials are INVALID, and a router at a third of it needs none."""
    document = {"name": "a", "testbed": "lab:linux", "suite": [{"name": "s", **written}]}
    goal = read_point(expand(make_campaign(document, where="file")).points[0]).goal
    begun = start_at(goal, 70_123.7)
    assert (begun != goal) is begins
    if begins:
        assert begun == replace(goal, known_fps=70_123.0)
    assert start_at(goal, None) == goal


def test_a_campaign_that_goes_on_begins_its_searches_where_it_did(tmp_path: Path) -> None:
    """A search for the tester's ceiling comes before, and has no such load."""
    with RunStore.create(tmp_path / "a.evenhand", command=["evenhand", "run"]) as store:
        assert store.first_known_fps() is None
        for known_fps, role in ((9e4, Role.CEILING), (None, Role.MEASUREMENT), (7e4, Role.MEASUREMENT)):
            goal = ThroughputGoal(max_fps=1e6, known_fps=known_fps, is_guided=True)
            head = SearchHead(
                label="s", kind="throughput", plan={}, frame_size=64, seed=1, setup={}, goal=goal, role=role
            )
            with store.search(head):
                pass
        assert store.first_known_fps() == 7e4


@pytest.mark.parametrize(
    ("own", "rules"),
    [
        (None, None),
        ({"dut": "virtual machine"}, None),
        ({"dut": "linux namespace", "firewall_rules": 2800}, 2800),
        ({"dut": "linux namespace"}, 0),
        ({"dut": "linux namespace", "firewall_rules": "hostile"}, 0),
    ],
)
def test_a_campaign_that_goes_on_has_the_rules_that_it_began_with(
    own: dict[str, object] | None, rules: int | None, tmp_path: Path
) -> None:
    """They are among the facts of the lab that its first results are of."""
    path = tmp_path / "a.evenhand"
    with RunStore.create(path, command=["evenhand", "run"]) as store:
        assert store.lab_rules() is None
        store.add_testbed("lab:linux", {"own_dut": own})
        assert store.lab_rules() == rules


@dataclass(frozen=True, slots=True)
class LabWithoutNft:
    users_rules: int = 0

    def check_rules(self) -> None:
        raise HostError(
            "no nft", code="rig.program-missing", next_step="Install it: apt-get install nftables"
        )


def test_without_the_program_that_sets_rules_nothing_is_measured() -> None:
    """Half an hour of trials at the tester's ceiling would say nothing of the router."""
    trials: Any = SimpleNamespace(lab=LabWithoutNft(), on_event=lambda event: None)
    with raises("rig.program-missing") as failed:
        choose_rules(trials, keep_note=lambda text: None)
    assert failed.value.next_step is not None
    assert failed.value.next_step.endswith(
        "apt-get install nftables; or measure the router as it is: --rules none"
    )
