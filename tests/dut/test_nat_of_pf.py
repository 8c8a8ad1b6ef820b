# SPDX-License-Identifier: Apache-2.0
"""The NAT that `evenhand dut setup` prints for systems with pf, run on a simulated one: only rules in anchors
of its own come and go, and what was there before is there again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dut.test_simulated_shells import Router, make_router

CALLS = {
    "openbsd": ("pf.main.rules", 'anchor "evenhand/*"'),
    "freebsd": ("pf.main.nat", 'nat-anchor "evenhand/*"'),
    "pfsense": ("pf.main.nat", 'nat-anchor "natrules/*"'),
}
"""How the main rules of each call the anchors."""
TIMEOUTS = ["tcp.first 120s", "udp.first 60s", "udp.multiple 60s", "udp.single 30s"]


def make_pf(folder: Path, system: str, *, calls: bool, main: str = "") -> Router:
    router = make_router(folder, system, is_up=True)
    (folder / "timeouts").write_text("".join(f"{line}\n" for line in TIMEOUTS))
    if calls or main:
        file, call = CALLS[system]
        (folder / "pf.on").touch()
        (folder / file).write_text((f"{call}\n" if calls else "") + main)
    return router


@pytest.mark.parametrize("first_undone", [0, 1], ids=["in order", "in reverse"])
@pytest.mark.parametrize("system", CALLS)
def test_two_nats_are_undone_in_any_order(tmp_path: Path, system: str, first_undone: int) -> None:
    router = make_pf(tmp_path / "router", system, calls=True, main="pass quick on ix9\n")
    before = router.state
    plans = ("nat44", "nat66")
    for plan in plans:
        router.make(plan)
    both = router.state
    loaded = [name for name in both if name.startswith("pf.") and name not in before]
    assert len(loaded) == 2
    assert sum("198.18.0.0/16 bitmask static-port" in " ".join(both[name]) for name in loaded) == 1
    assert sum("2001:2:0:4000::/112 bitmask static-port" in " ".join(both[name]) for name in loaded) == 1
    router.make(plans[first_undone], undo=True)
    left = router.state
    assert len([name for name in loaded if name in left]) == 1
    assert left["timeouts"] == both["timeouts"]
    router.make(plans[1 - first_undone], undo=True)
    assert router.state == before
    assert router.kept == []


@pytest.mark.parametrize("system", ["freebsd", "pfsense"])
def test_the_timeouts_of_udp_and_no_others_are_set(tmp_path: Path, system: str) -> None:
    router = make_pf(tmp_path / "router", system, calls=True)
    router.make("nat44-masquerade")
    assert router.state["timeouts"] == [
        "tcp.first 120s",
        "udp.first 3600s",
        "udp.multiple 3600s",
        "udp.single 3600s",
    ]


def test_a_freebsd_without_pf_gets_it_and_has_none_after_the_undo(tmp_path: Path) -> None:
    router = make_pf(tmp_path / "router", "freebsd", calls=False)
    before = router.state
    router.make("nat44")
    assert router.state["pf.main.nat"] == ['nat-anchor "evenhand/*"']
    assert "pf.on" in router.state
    router.make("nat44")
    router.make("nat44", undo=True)
    assert router.state == before
    assert router.kept == []


def test_what_was_added_to_the_main_rules_meanwhile_stays(tmp_path: Path) -> None:
    router = make_pf(tmp_path / "router", "freebsd", calls=False)
    router.make("nat44")
    router.add("pf.main.nat", "nat on ix9 from any to any -> (ix9)")
    router.make("nat44", undo=True)
    assert "nat on ix9 from any to any -> (ix9)" in router.state["pf.main.nat"]


@pytest.mark.parametrize("system", CALLS)
def test_main_rules_that_do_not_call_the_anchor_end_the_script_before_anything_changes(
    tmp_path: Path, system: str
) -> None:
    router = make_pf(tmp_path / "router", system, calls=False, main="nat on ix9 from any to any -> (ix9)\n")
    before = router.state
    ended = router.run("nat44")
    assert ended.returncode != 0
    assert "do not call the anchor" in ended.stderr
    assert router.state == before


@pytest.mark.parametrize("system", CALLS)
def test_a_rule_that_is_not_there_is_said(tmp_path: Path, system: str) -> None:
    router = make_pf(tmp_path / "router", system, calls=True)
    (router.folder / "refuses").touch()
    ended = router.run("nat44")
    assert ended.returncode != 0
    assert "it should have a rule with nat" in ended.stderr


@pytest.mark.parametrize(("plan", "own"), [("nat64", "198.18.0.1"), ("nat64-masquerade", "10.0.1.1")])
def test_a_nat64_of_openbsd_has_one_address(tmp_path: Path, plan: str, own: str) -> None:
    router = make_pf(tmp_path / "router", "openbsd", calls=True)
    router.make(plan)
    (rules,) = (lines for name, lines in router.state.items() if name.startswith("pf.evenhand"))
    (rule,) = rules
    assert rule.startswith(
        "pass in quick on ix0 inet6 from 2001:2::/112 to 2001:2:0:64::/96"
        f" af-to inet from {own} keep state (udp.first 3600,"
    )
    assert "net.inet.ip.forwarding=1" in router.state["sysctls"]
    assert "net.inet6.ip6.forwarding=1" in router.state["sysctls"]
