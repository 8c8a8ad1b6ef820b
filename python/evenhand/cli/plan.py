# SPDX-License-Identifier: Apache-2.0
"""`evenhand plan show`: what a plan is."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.base.errors import RequestError
from evenhand.base.table import Column, make_table
from evenhand.base.units import format_count
from evenhand.cli.common import JsonOption, out, warn_about, with_options, write_json
from evenhand.cli.plan_argument import OptionalNameArgument
from evenhand.plan import TOPOLOGIES, HostList, PlanSide, Traffic, describe_plan, make_plan
from evenhand.spec.plan import CountOptions, ModeOptions, ShapeOptions, SourceOptions

EXAMPLE = "Example: evenhand plan show gateway-v4 --hosts 1000"


@with_options
def show(name: OptionalNameArgument = None, *, shape: ShapeOptions, json_output: JsonOption = False) -> None:
    """Show addresses, routes and ports of a plan; without PLAN, list all plans."""
    if name is None:
        _list_plans(shape, json_output=json_output)
        return
    plan = shape.read(name)
    warn_about(plan)
    if json_output:
        write_json({"command": "plan show", "plan": plan.title, "address_plan": describe_plan(plan)})
        return
    rows: dict[str, list[str]] = {}
    if plan.left.host_range.network_range is not None:
        rows["networks"] = [format_count(side.host_range.network_count) for side in plan.sides]
        rows["hosts per network"] = [format_count(side.host_range.count) for side in plan.sides]
    rows |= {
        "hosts": [format_count(side.host_range.address_count) for side in plan.sides],
        "first host": [str(side.host_range.first_address) for side in plan.sides],
        "last host": [str(side.host_range.last_address) for side in plan.sides],
        "drawn": [_drawn(side) for side in plan.sides],
        "tester (gateway)": [
            "direct: hosts on the link" if side.gateway is None else str(side.gateway) for side in plan.sides
        ],
        "DUT": [_span(side.dut) for side in plan.sides],
        "DUT's route" if all(side.route_count == 1 for side in plan.sides) else "DUT's routes": [
            "none" if side.gateway is None else f"{_routes(side)} via {side.gateway.ip}"
            for side in plan.sides
        ],
        "DUT's neighbours": [format_count(side.dut_neighbors) for side in plan.sides],
    }
    if any(side.prefixes is not None for side in plan.sides):
        rows["prefixes"] = ["" if side.prefixes is None else side.prefixes.name for side in plan.sides]
    if plan.is_translated:
        rows["IP version"] = [f"IPv{side.ip_version}" for side in plan.sides]
        rows["other side's hosts"] = [
            "their own addresses"
            if side.peers is None
            else f"{side.peers.first_address} .. {side.peers.last_address}"
            for side in plan.sides
        ]
    if plan.translation is not None:
        translation = plan.translation
        rows["DUT translates"] = [
            f"{translation.ipv6_hosts} to {translation.ipv6_hosts_as_ipv4}",
            f"IPv4 hosts to {translation.prefix}",
        ]
    titles = ["", *(side.name for side in plan.sides)]
    shown = ([name, *cells] for name, cells in rows.items())
    console = out()
    console.print(make_table(titles, shown, title=f"{plan.title} ({plan.figure})"))
    console.print(Traffic(plan=plan).lines()[0], markup=False)
    if outside := plan.not_reserved:
        console.print(
            f"Not reserved for benchmarking: {', '.join(outside)}. The testbed file must name their networks"
            " (isolated_networks), and every result has a deviation."
        )
    if plan.fixed_source:
        console.print("Source address of every frame: the first host of its side (--fixed-source).")
    forward, reverse = (format_count(plan.pairs_of(direction)) for direction in ("forward", "reverse"))
    pairs = f"per direction: {forward}" if forward == reverse else f"forward: {forward}, reverse: {reverse}"
    console.print(f"Address pairs {pairs}. Smallest frame: {plan.smallest_frame_size} octets with FCS.")


def _list_plans(shape: ShapeOptions, *, json_output: bool) -> None:
    if shape != ShapeOptions(counts=CountOptions(), modes=ModeOptions(), sources=SourceOptions()):
        raise RequestError(
            "no plan given",
            code="cli.no-plan",
            where="PLAN",
            next_step="`evenhand plan show` lists the plans; write the plan before its options.",
        )
    plans = [make_plan(name) for name in TOPOLOGIES]
    if json_output:
        listed = [
            {
                "plan": plan.title,
                "figure": plan.figure,
                "ip_version": plan.to_document()["ip_version"],
                "is_direct": plan.is_direct,
                "hosts": plan.left.host_range.count,
                "networks": plan.left.host_range.network_count,
                "smallest_frame_size": plan.smallest_frame_size,
            }
            for plan in plans
        ]
        write_json({"command": "plan show", "plans": listed})
        return
    rows = (
        [
            plan.title,
            plan.version_words,
            format_count(plan.left.host_range.count),
            format_count(plan.left.host_range.network_count),
            plan.figure,
        ]
        for plan in plans
    )
    console = out()
    console.print(
        make_table(
            [Column("plan", is_name=True), "IP", "#hosts", "#networks", "from"], rows, title="Address plans"
        )
    )
    console.print(
        "Hosts are counted per network and side. For one plan in full: evenhand plan show PLAN", markup=False
    )


def _span(several: Sequence[object]) -> str:
    """One, or the first and the last of many."""
    return str(several[0]) if len(several) == 1 else f"{several[0]} .. {several[-1]} ({len(several)})"


def _routes(side: PlanSide) -> str:
    if side.prefixes is None:
        return _span(side.routes)
    found = side.prefixes.to_document()
    return f"{found['first']} .. {found['last']} ({side.prefixes.count:,})"


def _drawn(side: PlanSide) -> str:
    if isinstance(side.host_range, HostList) and side.host_range.mode == "pseudorandom":
        each = "range" if side.prefixes is None else "prefix"
        return f"{side.host_range.mode}, each {each if side.host_range.choose == 'entry' else 'host'} alike"
    network_range = side.host_range.network_range
    if network_range is None or network_range.mode == side.host_range.mode:
        return side.host_range.mode
    return f"hosts {side.host_range.mode}, networks {network_range.mode}"
