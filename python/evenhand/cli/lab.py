# SPDX-License-Identifier: Apache-2.0
"""`evenhand lab`: a router inside this machine as a DUT: this kernel's own in a network namespace, or a
virtual machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal, get_args

import typer

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count
from evenhand.cli.common import JsonOption, err, out, with_options, write_json
from evenhand.cli.nat_options import NatPortsOption, TranslatorOption
from evenhand.cli.verbs import Verbs
from evenhand.lab import (
    MOST_RULES,
    NAT_PORTS,
    Lab,
    LinuxLab,
    VmLab,
    lab_down,
    lab_status,
    lab_up,
    raised_limits,
    refuse_borrowed,
    vm_up,
)
from evenhand.lab.build import route_costs, translations_of
from evenhand.lab.state import translates
from evenhand.plan import plan_title
from evenhand.procedure.registry import CONNECTIONS, THROUGHPUT
from evenhand.spec.frames import LargestFrameOption, read_largest_frame
from evenhand.spec.plan import CountOptions

app = Verbs(help="Set up a router inside this machine, without hardware.", no_args_is_help=True)


LabKind = Literal["linux", "vm"]
"""Labs that there are."""
KindArgument = Annotated[
    LabKind,
    typer.Argument(
        metavar="NAME",
        help=(
            "The lab: linux for this machine's kernel in a network namespace, or vm for a virtual machine."
        ),
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Proceed even if a tester is using the lab; this spoils its trial.")
]


@app.command("up", epilog="Example: sudo evenhand lab up linux --plan gateway-v6")
@with_options
def up(
    kind: KindArgument,
    *,
    plan: Annotated[
        str,
        typer.Option(
            "--plan",
            metavar="NAME",
            help="The address plan to set up the DUT for; for linux also a mix of two plans.",
        ),
    ] = "gateway-v4",
    counts: CountOptions,
    dut_cpu: Annotated[
        int | None, typer.Option("--dut-cpu", min=0, help="CPU of the DUT. Default: the first.")
    ] = None,
    largest_frame: LargestFrameOption = None,
    debian: Annotated[
        str | None,
        typer.Option(
            "--debian",
            metavar="NAME",
            help="Debian release of the virtual machine: bookworm or trixie. Default: that of this machine.",
        ),
    ] = None,
    nat_ports: NatPortsOption = None,
    translator: TranslatorOption = None,
    rules: Annotated[
        int,
        typer.Option(
            "--rules",
            metavar="N",
            min=0,
            max=MOST_RULES,
            help="For linux: a firewall of N rules, none of which matches. It makes the DUT slower, so that a"
            " tester with one CPU finds its limit: 3000 on a host with two CPUs.",
        ),
    ] = 0,
    force: ForceOption = False,
    json_output: JsonOption = False,
) -> None:
    """Set up a lab (root): a router in a namespace or in a virtual machine, and two ports for the tester."""
    address_plan = counts.read(plan, where="--plan", takes_mix=kind == LinuxLab.kind)
    largest = read_largest_frame(largest_frame)
    refuse_borrowed(str(kind), force=force)
    before = lab_status(str(kind))
    lab: Lab
    if nat_ports is not None and address_plan.nat is None:
        raise RequestError(
            f"the DUT of the lab {kind} with {address_plan.title} is not a NAT",
            code="cli.option-not-here",
            where="--nat-ports",
            next_step=f"Omit it, or use: evenhand lab up {kind} --plan nat44",
        )
    if translator is not None and not translations_of(address_plan):
        raise RequestError(
            f"the DUT of the lab {kind} with {address_plan.title} has one IP version on both sides",
            code="cli.option-not-here",
            where="--translator",
            next_step=f"Omit it, or use: evenhand lab up {VmLab.kind} --plan siit",
        )
    if translator == "jool" and kind == LinuxLab.kind:
        raise RequestError(
            "the Linux lab translates with TAYGA: Jool would be a module of this machine's own kernel",
            code="cli.option-not-here",
            where="--translator",
            next_step=f"Omit it, or use: evenhand lab up vm --plan {address_plan.title} --translator jool",
        )
    if rules and kind == VmLab.kind:
        raise RequestError(
            "the virtual machine gets no firewall",
            code="cli.option-not-here",
            where="--rules",
            next_step="Omit it, or use: evenhand lab up linux",
        )
    if kind == VmLab.kind:
        lab = vm_up(
            address_plan,
            dut_cpu=dut_cpu,
            force=force,
            largest_frame_size=largest,
            nat_ports=nat_ports or NAT_PORTS[0],
            translator=translator,
            suite=debian or "",
            say=_say,
        )
    elif debian:
        raise RequestError(
            "the Linux lab always uses the kernel of this machine",
            code="cli.option-not-here",
            where="--debian",
            next_step="Omit it, or use: evenhand lab up vm",
        )
    else:
        for cost in route_costs(str(kind), address_plan):
            err().print(cost, markup=False)
        lab = lab_up(
            address_plan,
            name=str(kind),
            dut_cpu=dut_cpu,
            force=force,
            largest_frame_size=largest,
            nat_ports=nat_ports or NAT_PORTS[0],
            rules=rules,
        )
    if before is not None:
        err().print(
            f"The lab {kind} that was up for {plan_title(before.plan)} was taken down first.", markup=False
        )
    _show(lab, str(kind), json_output=json_output)


@app.command("down", epilog="Example: sudo evenhand lab down linux")
def down(kind: KindArgument, force: ForceOption = False, json_output: JsonOption = False) -> None:
    """Remove the lab and everything it made."""
    refuse_borrowed(str(kind), force=force)
    was_there = lab_down(str(kind), force=force)
    if json_output:
        write_json({"command": "lab", "lab": str(kind), "is_up": False, "was_there": was_there})
    else:
        out().print(f"The lab {kind} is down." if was_there else f"There is no lab {kind}.")


@app.command("status", epilog="Example: evenhand lab status linux")
def status(
    kind: Annotated[
        LabKind | None,
        typer.Argument(metavar="NAME", help="The lab: linux or vm. Default: all labs.", show_default=False),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Show whether a lab is up, and what labs have changed outside their namespaces, with the previous and
    the present values."""
    if kind is not None:
        _show(lab_status(kind), kind, json_output=json_output)
        return
    labs = {each: lab_status(each) for each in get_args(LabKind)}
    if json_output:
        write_json({"command": "lab", "labs": [_describe(lab, name) for name, lab in labs.items()]})
        return
    up = {name: lab for name, lab in labs.items() if lab is not None}
    for name, lab in up.items():
        _show_lab(lab, name)
    if not up:
        out().print(f"No lab is up. To set one up: sudo evenhand lab up {LinuxLab.kind}", markup=False)
    _show_changes(*up)


def _say(text: str) -> None:
    err().print(f"{text[0].upper()}{text[1:]} ...", markup=False)


def _show(lab: Lab | None, name: str, *, json_output: bool) -> None:
    if json_output:
        write_json(_describe(lab, name))
        return
    if lab is None:
        out().print(f"The lab {name} is not up.")
        _show_changes()
        return
    _show_lab(lab, name)
    _show_changes(name)


def _show_lab(lab: Lab, name: str) -> None:
    console = out()
    if isinstance(lab, VmLab):
        # A status that cannot be used is an error like any other: what is wrong, where, and what to do.
        lab.check_running()
    addresses = "" if lab.hosts is None else f" with {' x '.join(map(format_count, lab.hosts))} hosts"
    cpus = ", ".join(map(str, lab.tester_cpus))
    console.print(
        f"The lab {name} is up for {plan_title(lab.plan)}{addresses}: the DUT forwards on CPU"
        f" {lab.dut_cpu}, the tester on CPU{'s' if len(lab.tester_cpus) > 1 else ''} {cpus}.",
        markup=False,
    )
    console.print(f"  left   {lab.device('left')}\n  right  {lab.device('right')}", markup=False)
    if isinstance(lab, VmLab):
        how = (
            "by KVM"
            if lab.accelerator == "kvm"
            else "emulated, because KVM is not available: its rates are meaningless, its shares are not"
        )
        console.print(
            f"  DUT    {lab.system}, Linux {lab.kernel}, {how}{_nat_of(lab)}", markup=False, soft_wrap=True
        )
        console.print(f"  SSH    sudo ssh -F {lab.ssh_config} {lab.ssh_host}", markup=False, soft_wrap=True)
        rate = "5kfps"
    else:
        firewall = f", with a firewall of {format_count(lab.rules)} rules" if lab.rules else ""
        console.print(f"  DUT    namespace {lab.dut_namespace}{firewall}{_nat_of(lab)}", markup=False)
        rate = _first_maximum(lab)
    count = 10_000 if isinstance(lab, VmLab) else 100_000
    verb = (
        f"{THROUGHPUT.name} lab:{name}"
        if lab.nat is None
        else f"{CONNECTIONS.name} lab:{name} --connections {count}"
    )
    # A translator loses one frame in 65,536, whose UDP checksum comes out as 0 (docs/how-to/
    # test-a-translator.md).
    loss = " --loss-ratio 0.01%" if lab.nat is None and translates(lab.plan) else ""
    console.print(f"Next: sudo evenhand {verb} --maximum-rate {rate}{loss} --waits short", markup=False)


def _first_maximum(lab: Lab) -> str:
    """A maximum above what this DUT does, and no more than two CPUs can offer: a search that begins far above
    what the tester keeps has nothing but INVALID trials."""
    # A NAT64 has TAYGA before it.
    has_translator = lab.nat is not None and lab.nat.inside.version != lab.nat.pool.version
    if has_translator or translates(lab.plan):
        return "50kfps"
    return "100kfps" if lab.nat is not None or (isinstance(lab, LinuxLab) and lab.rules) else "500kfps"


def _nat_of(lab: Lab) -> str:
    if isinstance(lab, VmLab) and lab.translator == "jool":
        to = (
            ""
            if lab.nat is None
            else f"\n  {lab.nat.title}  {lab.nat.inside} to {lab.nat.pool}, ports of its choice"
        )
        return f", translating by Jool {lab.translator_version}{to}"
    if lab.nat is None:
        return ""
    ports = "kept where they are free" if lab.nat_ports == "kept" else "random"
    return f"\n  {lab.nat.title}  {lab.nat.inside} to {lab.nat.pool}, ports {ports}"


def _show_changes(*names: str) -> None:
    """Limits of the kernel's neighbour tables are all that a lab changes outside its namespaces, and what is
    changed is so for all labs: it is shown once.

    Args:
        names: Names of the labs that are up; none: others have changed them.
    """
    changes = raised_limits()
    if not changes:
        return
    commands = ", ".join(f"evenhand lab down {name}" for name in names)
    until = f" ({commands})" if commands else ""
    out().print(
        f"Changed outside the namespaces by all labs together, until the last of them is down{until}:"
    )
    for limit in changes:
        now = "not visible in this network namespace" if limit.now is None else format_count(limit.now)
        out().print(f"  {limit.name}  before {format_count(limit.before)}, now {now}", markup=False)


def _describe(lab: Lab | None, name: str) -> dict[str, Any]:
    changes = [asdict(limit) for limit in raised_limits()]
    if lab is None:
        return {"command": "lab", "lab": name, "is_up": False, "changed_outside": changes}
    document = {
        "command": "lab",
        "lab": name,
        "is_up": True,
        "plan": plan_title(lab.plan),
        "largest_frame_size": lab.largest_frame_size,
        "dut_cpu": lab.dut_cpu,
        "tester_cpus": list(lab.tester_cpus),
        "left_device": lab.device("left"),
        "right_device": lab.device("right"),
        "tester_namespace": lab.tester_namespace,
        "changed_outside": changes,
    }
    if isinstance(lab, VmLab):
        document |= lab.translator_facts()
    elif lab.nat is not None:
        document |= {"nat_ports": lab.nat_ports}
    if isinstance(lab, LinuxLab):
        return {**document, "dut_namespace": lab.dut_namespace, "rules": lab.rules}
    return {
        **document,
        "is_running": lab.is_running,
        "accelerator": lab.accelerator,
        "system": lab.system,
        "kernel": lab.kernel,
        "ssh_config": str(lab.ssh_config),
        "ssh_host": lab.ssh_host,
    }
