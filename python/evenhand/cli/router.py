# SPDX-License-Identifier: Apache-2.0
"""`evenhand router`: a reference router in a terminal of its own, as a DUT about which the truth is known."""

from __future__ import annotations

import json
import math
import os
import queue
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.base.errors import HostError, RequestError
from evenhand.base.units import format_count
from evenhand.cli.common import err, out, quoted, with_options, write_json_line
from evenhand.plan import ONE_EACH, SIDES, AddressPlan, SideName, is_plan_file, plan_title
from evenhand.predict import predict
from evenhand.procedure.registry import CONNECTIONS, THROUGHPUT
from evenhand.reference import ReferenceRouter, reference_router
from evenhand.reference.config import MAX_ROUTER_PAIRS, prefixes_in_files
from evenhand.reference.router import DEFAULT_NAME, RouterCpus, check_place, written_testbed
from evenhand.spec.plan import CountOptions, parse_counts, vars_of
from evenhand.spec.router import ReferenceOptions

A_QUARTER_ABOVE = 1.25
"""A maximum that the search will see fail."""
LOOK_EVERY_S = 0.2
"""Whether the router is still there."""
EMPTY_WITHIN_S = 0.5
"""After a signal that asks for it."""
EXAMPLE = "Example: evenhand router gateway-v4 --elements 16 --rate 50kfps --hash type1"


@with_options
def router(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="NAME|NAME+NAME",
            help="The plan to configure the router for, or one plan each of IPv4 and IPv6; see: evenhand plan"
            " show.",
        ),
    ],
    *,
    counts: CountOptions,
    reference: ReferenceOptions,
    pairs: Annotated[
        int,
        typer.Option(
            "--pairs",
            metavar="N",
            min=1,
            max=MAX_ROUTER_PAIRS,
            help="Number of port pairs, each for an engine of its own. All pairs have the same addresses and"
            " routes, and share the elements and the table of a NAT.",
        ),
    ] = 1,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the router's configuration without starting it.")
    ] = False,
    testbed: Annotated[
        Path | None,
        typer.Option(
            "--testbed",
            metavar="FILE",
            help="The testbed file to write for the tester, which must not exist. Default:"
            f" {DEFAULT_NAME}, or the next free name.",
        ),
    ] = None,
    json_output: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Write JSON documents to stdout, one per line: one when the router is ready, and its"
            " counters at the end.",
        ),
    ] = False,
) -> None:
    """Run the reference router until Ctrl-C, connected by memif, and write the testbed file that a tester
    needs for it."""
    address_plan = counts.read(plan, where="PLAN", takes_mix=True)
    dut = reference.dut()
    if print_config:
        if prefixes_in_files(address_plan):
            raise RequestError(
                f"the routes of {address_plan.title} are too many to be printed with the configuration",
                code="cli.routes-in-files",
                where="--print-config",
                next_step="Print that of a plan with up to 4,096 routes on each side, and name a file with"
                " the prefixes in route_files.",
            )
        first, *more = devices = [
            {
                side: f"net_memif{n},role=server,id={n},socket={side}{pair or ''}.sock,socket-abstract=no"
                for n, side in enumerate(SIDES, len(SIDES) * pair)
            }
            for pair in range(pairs)
        ]
        for of_pair in devices if dut.one_armed else []:
            of_pair["right"] = of_pair["left"]
        print(json.dumps(dut.router_config(address_plan, first, cpu=0, more_devices=more), indent=1))
        return
    check_place(testbed)
    counters: dict[str, Any] | None = None
    ended_by: SystemExit | None = None
    console = err()

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    with (
        reference_router(address_plan, dut, pairs=pairs) as running,
        written_testbed(testbed, testbed_text(running, counts, plan), say=say) as file,
    ):
        # The tester chooses the share of a mix: only what all elements serve is known.
        is_predicted = dut.model is not None and address_plan.other is None
        fps = predict(address_plan, dut.model).throughput_fps or 0.0 if is_predicted and dut.model else 0.0
        most_fps = fps or (0.0 if dut.model is None else dut.model.elements * (dut.model.rate_fps or 0.0) / 2)
        maximum = "500kfps" if not most_fps else f"{math.ceil(most_fps * A_QUARTER_ABOVE / 1000)}kfps"
        verb = CONNECTIONS.name if running.has_connections else THROUGHPUT.name
        words = ["evenhand", verb, str(file), "--maximum-rate", maximum, "--waits", "short"]
        for line in [*others_lines(running.cpus), *few_cpus_lines(running)]:
            say(line)
        say(f"The router forwards on CPU {running.cpu}; press Ctrl-C to stop it. In another terminal:")
        say(f"  {shlex.join(words)}")
        say(
            f"{quoted(file)} contains the plan and the addresses, so no verb needs them:"
            f" {address_plan.title}, {describe_hosts(address_plan)}."
        )
        if is_predicted and not running.has_connections:
            say(
                f"Predicted for these addresses: {format_count(round(fps))} fps per direction,"
                " both directions."
            )
        if json_output:
            write_json_line(ready_document(running, address_plan, file, fps if is_predicted else None, words))
        try:
            with suppress(KeyboardInterrupt), _flush_wanted() as wishes:
                while not running.has_ended:
                    with suppress(queue.Empty):
                        wishes.get(timeout=LOOK_EVERY_S)
                        running.flush()
        except SystemExit as error:  # SIGTERM or SIGHUP: its counters are written as after Ctrl-C
            ended_by = error
        if running.has_ended:
            raise running.death()
        counters = running.stop()
    for warning in running.warnings:
        console.print(warning, markup=False)
    if counters is not None:
        _show_counters(counters, pairs, is_json=json_output)
    if ended_by is not None:
        raise ended_by


def _show_counters(counters: dict[str, Any], pairs: int, *, is_json: bool) -> None:
    if is_json:
        write_json_line({"command": "router", **counters})
        return
    for number, pair in enumerate([counters, *counters.get("more_ports", [])], 1):
        for side in SIDES:
            out().print(
                f"{side}{f' {number}' if pairs > 1 else ''}:"
                f" {format_count(pair[side]['received_frames'])} frames received, "
                f"{format_count(pair[side]['transmitted_frames'])} transmitted, "
                f"{format_count(pair[side]['element_dropped_frames'])} dropped by full elements.",
                markup=False,
            )


@contextmanager
def _flush_wanted() -> Iterator[queue.SimpleQueue[None]]:
    """Gets an entry with each SIGUSR1: the connection table is to be emptied. A queue of C, since another
    signal may end the wait."""
    wishes: queue.SimpleQueue[None] = queue.SimpleQueue()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: wishes.put(None))
    try:
        yield wishes
    finally:
        signal.signal(signal.SIGUSR1, before)


def ready_document(
    router: ReferenceRouter, plan: AddressPlan, testbed: Path, predicted_fps: float | None, words: list[str]
) -> dict[str, Any]:
    """For `--json`: all that another program needs to measure it, and to end it."""
    return {
        "command": "router",
        "event": "ready",
        "pid": os.getpid(),
        "testbed": str(testbed.absolute()),
        "plan": plan.title,
        "hosts": plan.hosts.to_document(),
        "networks": plan.networks.to_document(),
        "cpu": router.cpu,
        "tester_cpus": list(router.tester_cpus),
        "other_router": router.cpus.other,
        "is_cpu_shared": router.cpus.is_shared,
        "predicted_fps_per_direction": predicted_fps,
        "try": words,
    }


def describe_hosts(plan: AddressPlan) -> str:
    """`65,534 x 65,534 hosts`, `10 x 10 hosts in 4 x 4 networks`."""
    host_words = f"{plan.hosts} hosts"
    return host_words if plan.networks == ONE_EACH else f"{host_words} in {plan.networks} networks"


def others_lines(cpus: RouterCpus) -> list[str]:
    """What the router of another user on this machine has to do with this one's results."""
    if cpus.other is None:
        return []
    own = "Measure with one at a time, or give each of them its own CPUs: taskset -c 2,3 evenhand router ..."
    shared = "Measure with one at a time, or allow more CPUs for both."
    if cpus.is_shared:
        return [
            f"Warning: another reference router, started by {cpus.other}, also forwards on CPU"
            f" {cpus.router}: no CPU is left. {shared}"
        ]
    return [
        f"Another reference router, started by {cpus.other}, runs on this machine; the testers"
        f" of both may use the same CPUs. {own}"
    ]


def engine_cpus(router: ReferenceRouter) -> list[int]:
    """One for the engine of each port pair; the last one has the router's if there is no other.

    Raises:
        HostError: There are fewer.
    """
    cpus = [*router.tester_cpus, router.cpu]
    if len(cpus) < router.pairs:
        raise HostError(
            f"{len(cpus)} CPUs: the engines of {router.pairs} port pairs need one each",
            code="cli.too-few-cpus",
            where="--pairs",
            next_step="Allow this process more CPUs, or use fewer pairs.",
        )
    return cpus[: router.pairs]


def few_cpus_lines(router: ReferenceRouter) -> list[str]:
    """What it means for results that an engine has the router's CPU."""
    if router.pairs == 1 or router.cpu not in engine_cpus(router):
        return []
    return [
        f"Warning: the engine of pair {router.pairs} has the router's CPU {router.cpu}: no CPU is left. At"
        " high loads trials will be INVALID."
    ]


def _tester_text(router: ReferenceRouter) -> str:
    """Its ports and CPUs; of several pairs an engine each."""
    if router.pairs == 1:
        sides = "".join(
            f'\n[{side}]\ndevice = "{router.device(side)}"\n{_vlan_key(router, side)}' for side in SIDES
        )
        return f"{sides}\n[tester]\ncpus = {list(router.tester_cpus)}\n"
    return "".join(
        f'\n[[engine]]\nname = "pair{pair + 1}"\ncpus = [{cpu}]\n'
        + "".join(
            f'[engine.{side}]\ndevice = "{router.device(side, pair)}"\n{_vlan_key(router, side)}'
            for side in SIDES
        )
        for pair, cpu in enumerate(engine_cpus(router))
    )


ONE_ARMED = "one_armed = true\n"
ALL_ISOLATED = 'isolated_networks = ["0.0.0.0/0", "::/0"]\n'


def testbed_text(
    router: ReferenceRouter,
    counts: CountOptions | None,
    name: str | None = None,  # noqa: PT028 (no test)
) -> str:
    """The testbed file of a tester on the other CPUs. With the addresses that were given: what verbs then
    send is what was predicted.

    Args:
        name: The plan's, as it was given: a plan file by its path.
    """
    given = {
        name: parse_counts(text, where=f"--{name}")
        for name, text in ({} if counts is None else vars_of(counts)).items()
    }
    addresses = "".join(
        f"{name} = {list(pair) if isinstance(pair, tuple) else pair}\n"
        for name, pair in given.items()
        if pair is not None
    )
    plan = str(Path(name).resolve()) if name is not None and is_plan_file(name) else None
    return (
        "# Written by `evenhand router`, and gone when it ends.\n"
        "isolated_test_environment = true # both ends of the cables are in this machine\n"
        f"{'' if plan is None else ALL_ISOLATED}{ONE_ARMED if router.dut.one_armed else ''}"
        f"{_tester_text(router)}"
        "\n# Where the router runs: what this machine does to it is recorded, and is not the router's loss.\n"
        f"[dut]\nplan = {json.dumps(plan or plan_title(router.plan))}\n{addresses}"
        f"cpus = [{router.cpu}]\nthreads = [{router.thread}]\nring_frames = {router.ring_frames}\n"
        f"largest_frame_size = {router.dut.largest_frame_size}\n{_connection_keys(router)}"
        f"\n[dut.facts]\n{facts_text(router)}"
        f"{limits_text(router)}"
    )


def facts_text(router: ReferenceRouter) -> str:
    """What results say of it as their DUT (SEED-84)."""
    facts = router.dut_facts()
    if (model := router.dut.model) is not None:
        facts["flow_hash"] = f"{'symmetric ' if model.symmetric else ''}{model.hash_type}"
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in facts.items())


def _connection_keys(router: ReferenceRouter) -> str:
    """How a tester empties the table of this router; nothing without NAT."""
    if not router.has_connections:
        return ""
    timeout_s = router.dut.connection_timeout_s
    return f'empty_connections = "kill -USR1 {os.getpid()} && sleep {EMPTY_WITHIN_S}"\n' + (
        "" if timeout_s is None else f'connection_timeout = "{timeout_s:g}s"\n'
    )


def _vlan_key(router: ReferenceRouter, side: SideName) -> str:
    vlans = router.dut.vlans.get(side, ())
    return f"vlan = {list(vlans)}\n" if vlans else ""


def limits_text(router: ReferenceRouter) -> str:
    """The table of limits that the router's queues justify; empty without a model."""
    limits = router.dut.justified_limits()
    if not limits:
        return ""
    keys = "".join(f'{key} = "{value}"\n' for key, value in limits.items())
    return (
        "\n# What the router's queues justify; each departure from the defaults is named with the"
        f" result.\n[limits]\n{keys}"
    )
