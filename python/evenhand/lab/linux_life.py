# SPDX-License-Identifier: Apache-2.0
"""The life of a Linux lab: set up, found again from its record, taken down; nothing is left of one that
fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from evenhand.base.errors import HostError, RequestError
from evenhand.dut.nat import NatPorts
from evenhand.lab import state
from evenhand.lab.build import (
    USUAL_MAX_FRAME_SIZE,
    LabNames,
    build,
    demolish,
    many_routes_of_lab,
    translations_of,
)
from evenhand.lab.limits import give_back, make_room
from evenhand.lab.linux import LinuxLab
from evenhand.lab.linux_programs import check_linux_programs, require_root, share_cpus
from evenhand.lab.machine import end_machine
from evenhand.lab.many_routes import check_many_routes
from evenhand.lab.namespaces import namespace_path
from evenhand.lab.state import RECORD_VERSION, addresses_of, lab_of
from evenhand.lab.translator import check_translator, end_translator
from evenhand.plan import AddressPlan


def lab_up(
    plan: AddressPlan,
    *,
    name: str = "linux",
    dut_cpu: int | None = None,
    force: bool = False,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
    rules: int = 0,
) -> LinuxLab:
    """Set up the lab; one of that name that is there, whole or in ruins, is removed first.

    Args:
        name: 1 to 9 characters. Labs of different names do not touch each other.
        dut_cpu: CPU of the DUT; by default the lowest that this process may use, so that the tester gets the
            others.
        force: Go on even if a tester uses the lab that is there; that spoils its trial.
        largest_frame_size: Octets with FCS that both links take.
        nat_ports: What becomes of the hosts' ports, if the DUT keeps state.
        rules: Number of rules of a firewall that each forwarded frame is held against.

    Raises:
        RequestError: Bad name or CPU.
        HostError: Not root, another process holds the lab or tests with it, or the kernel lacks something.
    """
    state.check_name(name)
    require_root()
    with state.hold(name), state.kept_from_testers(name, force=force):
        return _set_up(plan, name, dut_cpu, largest_frame_size, nat_ports, rules)


def lab_down(name: str = "linux", *, force: bool = False) -> bool:
    """Remove the lab of that name, and what was raised for it; False if nothing was there.

    Args:
        force: Go on even if a tester uses the lab; that spoils its trial.

    Raises:
        HostError: Not root, another process holds the lab or tests with it, or the namespaces are not
            Evenhand's.
    """
    state.check_name(name)
    if not _is_anything_there(name):
        return False
    require_root()
    with state.hold(name), state.kept_from_testers(name, force=force):
        return take_down(name)


def read_lab(name: str, record: dict[str, Any]) -> LinuxLab | None:
    """The lab of a record of this kind; None if the lab is not whole."""
    names = LabNames(name)
    is_there = all(namespace_path(n).exists() for n in (names.tester_namespace, names.dut_namespace))
    if not record.get("is_complete") or not is_there:
        return None
    return lab_of(LinuxLab, name, record["lab"])


@contextmanager
def linux_lab(
    plan: AddressPlan,
    *,
    name: str = "linux",
    dut_cpu: int | None = None,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
    rules: int = 0,
) -> Iterator[LinuxLab]:
    """A lab for the length of a `with` block, taken down however the block ends; see lab_up.

    Meanwhile other processes can neither replace nor remove it.
    """
    state.check_name(name)
    require_root()
    with state.hold(name), ExitStack() as stack:
        # Before the block that takes the lab down: one that is in use by a tester stays.
        stack.enter_context(state.kept_from_testers(name, force=False))
        try:
            lab = _set_up(plan, name, dut_cpu, largest_frame_size, nat_ports, rules)
            stack.close()
            yield lab
        finally:
            take_down(name)


def _set_up(
    plan: AddressPlan,
    name: str,
    dut_cpu: int | None,
    largest_frame_size: int,
    nat_ports: NatPorts,
    rules: int,
) -> LinuxLab:
    if plan.other is not None and plan.is_direct:
        raise RequestError(
            f"{plan.title} has hosts of both IP versions on the links, but the Linux lab has room for the"
            " neighbours of only one",
            code="rig.lab-mix-of-direct-plans",
            where="plan",
            next_step="Use gateway plans, such as gateway-v4+gateway-v6.",
        )
    check_linux_programs(plan, rules)
    if translations_of(plan):
        check_translator()  # and the kernel's part of it
    cpu, tester_cpus = share_cpus(dut_cpu)
    lab = LinuxLab(
        name=name,
        dut_cpu=cpu,
        tester_cpus=tester_cpus,
        largest_frame_size=largest_frame_size,
        nat_ports=nat_ports,
        rules=rules,
        **addresses_of(plan),
    )
    check_many_routes(many_routes_of_lab(LabNames(name), plan))
    take_down(name)
    record = {"version": RECORD_VERSION, "is_complete": False, "lab": asdict(lab)}
    state.write_record(name, record)
    try:
        if lab.ip_version is not None:  # translators and mixes have gateways alone
            make_room(name, lab.ip_version, sum(side.dut_neighbors for side in plan.sides))
        build(LabNames(name), plan, cpu, largest_frame_size, nat_ports, rules)
        state.write_record(name, {**record, "is_complete": True})
    except BaseException:
        take_down(name)
        raise
    return lab


def take_down(name: str) -> bool:
    names = LabNames(name)
    if state.read_record(name) is None:
        for namespace in (names.tester_namespace, names.dut_namespace):
            if namespace_path(namespace).exists():
                raise HostError(
                    "this network namespace exists, but Evenhand has no record of having created it",
                    code="rig.namespace-not-ours",
                    where=namespace,
                    next_step=f"If you do not need it: ip netns delete {namespace}",
                )
        return False
    with _second_interrupt_waits():
        end_machine(name)
        end_translator(name)
        demolish(names)
        give_back(name)
        state.remove_record(name)
    return True


def _is_anything_there(name: str) -> bool:
    names = LabNames(name)
    namespaces = (names.tester_namespace, names.dut_namespace)
    return state.read_record(name) is not None or any(namespace_path(n).exists() for n in namespaces)


@contextmanager
def _second_interrupt_waits() -> Iterator[None]:
    """Ctrl-C, Ctrl-C: the second one is delivered after the lab is gone, not instead of that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
