# SPDX-License-Identifier: Apache-2.0
"""Procedure: whether a DUT that keeps state does what a test of its connections rests on: that it translates
to the pool of the plan, and that its table is empty after it was emptied (R9693-07)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.base.units import format_count, format_duration
from evenhand.plan import AddressPlan
from evenhand.plan.topologies import masqueraded
from evenhand.trial import Connections, Load, LoadMeasurer, SeenFlow, TrialResult, Verdict, describe_reasons

if TYPE_CHECKING:
    from evenhand.rig import Setup


ENOUGH = 16
"""Frames that came through otherwise than they must, where none came as it must: it is what the DUT does with
all. Where there were fewer frames, all but a tenth."""
CAME_BACK_SHARE = 0.9
FEW = 64
"""Connections of which none may be known after emptying."""
FEW_PER_S = 1000.0
"""The rate at which these are opened, and answered."""
TRIES = 3
"""As a busy host spoils a trial now and then."""
NOT_TRANSLATED = "procedure.nothing-translated"
VALIDATION = "validation"
"""The document of the validating trial, in that of the trial that opened the connections."""


def check_translates(opened: TrialResult, plan: AddressPlan, *, where: str) -> None:
    """HostError if the frames that opened connections came back, but not one translated to the pool: no other
    rate or number of connections would change that."""
    forward = opened.directions.get("forward")
    if forward is None or plan.nat is None or plan.right.peers is None:
        return
    came, offered = otherwise_translated(opened), forward.offered_frames
    if forward_connections(opened) != 0 or came < max(1, min(ENOUGH, CAME_BACK_SHARE * offered)):
        return
    raise HostError(
        f"the DUT does not translate as {plan.title} wants: {format_count(came)} of"
        f" {format_count(offered)} frames that opened connections came through it, and none as a"
        f" connection of the pool {plan.nat.pool}{_seen(forward.first_mistranslated, plan)}",
        code="procedure.nothing-translated",  # NOT_TRANSLATED
        where=where,
        next_step=_what_to_do(forward.first_mistranslated, plan),
    )


def _seen(seen: SeenFlow | None, plan: AddressPlan) -> str:
    """What the first of them came with; empty where it is not known."""
    if seen is None:
        return ""
    assert plan.nat is not None
    source = ipaddress.ip_address(seen.source)
    if source in plan.left.host_range:
        what = "which is the host's own address: it is not translated"
    elif _is_own(seen, plan):
        what = "which is the address of the DUT's own interface (masquerade)"
    elif source not in plan.nat.pool:
        what = "which is outside the pool"
    else:
        what = "which is of the pool, but the rest is not that of the connection"
    return (
        f". Frame {format_count(seen.frame)} came from {source} port {seen.source_port} to"
        f" {seen.destination} port {seen.destination_port}: from {source}, {what}"
    )


def _what_to_do(seen: SeenFlow | None, plan: AddressPlan) -> str:
    assert plan.nat is not None
    if seen is not None and _is_own(seen, plan):
        return (
            f"Test it with --plan {masqueraded(plan.title)}, or have it translate to {plan.nat.pool}:"
            f" evenhand dut setup {plan.title} --os linux shows how."
        )
    return (
        f"Have it translate to {plan.nat.pool}: evenhand dut setup {plan.title} --os linux shows how. A"
        " capture on its right side shows what it does."
    )


def _is_own(seen: SeenFlow, plan: AddressPlan) -> bool:
    return ipaddress.ip_address(seen.source) in {interface.ip for interface in plan.right.dut}


def why_not_held(opened: TrialResult, validated: TrialResult) -> str | None:
    """Why connections that were all opened did not hold, where it can be seen from which did not: the DUT
    forgets them too early, or lets nothing back. The connections are validated in the order in which they
    were opened, at a lower rate, so that the later ones were without a frame for longer."""
    direction = validated.directions.get("reverse")
    if direction is None or not direction.first_lost or direction.lost_frames == 0:
        return None
    first, offered = direction.first_lost[0], direction.offered_frames
    if direction.lost_frames < offered - first:
        return None  # some later ones held
    between_s = _between_s(opened, validated)
    longer_s = 1 / validated.intended_fps - 1 / opened.intended_fps

    def idle(number: int) -> str:
        return "" if between_s is None else format_duration(max(1, round(between_s + number * longer_s)))

    if first == 0:
        since = "" if between_s is None else f", about {idle(0)} to {idle(offered - 1)} after its only frame"
        return (
            f"no answer came back over any of {format_count(offered)} connections{since}: the DUT forgets"
            " them earlier (its timeout; R9693-06), or does not forward what comes from its right side"
        )
    if offered - first < ENOUGH:
        return None  # may be chance
    since = "" if between_s is None else f": these had had no frame for about {idle(first)} and longer"
    return (
        f"no answer came back from connection {format_count(first)} on{since}, so the DUT's timeout may be"
        " shorter than that (R9693-06)"
    )


def _between_s(opened: TrialResult, validated: TrialResult) -> float | None:
    """From the begin of the one to that of the other, to a second; None if a clock was set."""
    begins = [datetime.fromisoformat(trial.started_at) for trial in (opened, validated)]
    seconds = (begins[1] - begins[0]).total_seconds()
    return seconds if seconds > opened.intended_duration_s - 1 else None


def check_some_held(trial: TrialResult, *, where: str) -> None:
    """HostError if all connections were opened, and not one was there when it was validated: at a lower rate
    each would have to be remembered for longer."""
    validation = trial.raw.get(VALIDATION)
    if trial.verdict is not Verdict.FAIL or validation is None or trial.loss_ratio != 0:
        return
    if any(direction["received_frames"] for direction in validation["directions"].values()):
        return
    raise HostError(
        describe_reasons(trial.reasons[:1]),
        code="procedure.nothing-held",
        where=where,
        next_step="Raise the DUT's timeout for UDP, which connection_timeout below [dut] says to Evenhand;"
        " open fewer connections; and check its route to the left and its firewall.",
    )


def otherwise_translated(opened: TrialResult) -> int:
    """Frames that came through with other addresses or ports than they must have."""
    found = opened.raw["directions"].get("forward", {}).get("mistranslated_frames") or {}
    return int(found.get("address_or_port", 0))


def forward_connections(opened: TrialResult) -> int | None:
    """Connections of which the responder knows what they were translated to; None if the trial opened
    none."""
    connections = opened.raw["directions"].get("forward", {}).get("connections")
    return None if connections is None else int(connections["learnt"])


def check_empties(
    setup: Setup, measurer: LoadMeasurer, plan: AddressPlan, *, most: int, highest_fps: float
) -> None:
    """Open a few connections, empty the table, and answer them: HostError if an answer comes through, since
    then the table was not empty, and rates would be found on connections that are there already.

    Where the tester is disturbed, or the DUT loses some of the few, nothing is said.
    """
    count, rate_fps = min(FEW, most), min(FEW_PER_S, highest_fps)
    for _ in range(TRIES):
        setup.empty_connections()
        opened = measurer.offer(Load.of_each_connection(Connections(use="establish", count=count), rate_fps))
        if opened.was_stopped:
            return
        check_translates(opened, plan, where=setup.name)
        if opened.verdict is Verdict.FAIL:
            return
        setup.empty_connections()
        if opened.is_pass:
            answered = measurer.offer(
                Load.of_each_connection(Connections(use="each_once", count=count), rate_fps)
            )
            came = sum(direction.received_frames for direction in answered.directions.values())
            if came:
                raise RequestError(
                    f"the DUT's table of connections is not empty after emptying: {came} of {count} answers"
                    " to old connections came through",
                    code="procedure.table-not-emptied",
                    where=f"{setup.name}: dut.empty_connections",
                    next_step="Have the command empty the table that the DUT uses, in its network namespace"
                    " if it has one: ip netns exec NAME conntrack -F. Then measure again.",
                )
            if answered.is_valid or answered.was_stopped:
                return


CERTAIN = {"sides_swapped": "procedure.sides-swapped", "other_vlan": "procedure.other-vlan"}
"""Hints after which no frame can get through, and the codes of their errors."""


def check_way(resolved: Mapping[str, Any], *, where: str) -> None:
    """HostError if no frame got through in any direction, and what was seen leaves no doubt why: all that
    would be measured is a loss of 100 %.

    Args:
        resolved: The engine's answer to `resolve`, or that of several.
    """
    for engine, answer in _answers(resolved):
        ways = answer.get("way", {}).values()
        if any(way["received_frames"] for way in ways):
            continue
        for hint in answer.get("hints", ()):
            if (code := CERTAIN.get(hint["code"])) is not None:
                raise HostError(
                    _of_engine(engine, hint["what"]), code=code, where=where, next_step=hint["next"]
                )


def way_notes(resolved: Mapping[str, Any]) -> Iterator[str]:
    """For people: why frames will be lost, as far as something was seen that says so."""
    for engine, answer in _answers(resolved):
        for hint in answer.get("hints", ()):
            yield f"Before the first trial: {_of_engine(engine, hint['what'])}. {hint['next']}"


def _answers(resolved: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    engines: Mapping[str, Any] | None = resolved.get("engines")
    yield from engines.items() if engines is not None else (("", resolved),)


def _of_engine(engine: str, what: str) -> str:
    return f"engine {engine}: {what}" if engine else what
