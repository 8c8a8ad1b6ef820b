# SPDX-License-Identifier: Apache-2.0
"""A lab that a borrower uses for plans of its own and gives back as it was: down, or up for the plan that it
had.

What it was is on disk before anything is changed, and stays there until the lab is given back. So whoever
comes after a process that was killed knows it: the guardian of that process (`rig/lab_guardian.py`), or
the next borrower.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.base import locks
from evenhand.base.errors import RequestError
from evenhand.base.locks import Resource
from evenhand.base.programs import uninterrupted
from evenhand.lab import state, vm
from evenhand.lab.build import USUAL_MAX_FRAME_SIZE
from evenhand.lab.labs import LABS, Lab, lab_status
from evenhand.lab.linux import LinuxLab
from evenhand.lab.linux_life import lab_down, lab_up
from evenhand.lab.linux_programs import require_root
from evenhand.lab.state import is_for, networks_to_ask_for, with_tuples
from evenhand.lab.vm import VmLab
from evenhand.plan import AddressPlan, SideCounts, make_mix, make_plan

BORROWED_DIRECTORY = state.STATE_DIRECTORY.parent / "borrowed"
VERSION = 1
PLAIN_PLAN = make_plan("gateway_v6")
"""What a machine boots with if its plans are set up over SSH: nothing of it is in the way of any of them."""
KINDS = tuple(lab.kind for lab in LABS)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabWish:
    """What a lab must be set up for: the union of what several points send. It can be pickled."""

    plan: str
    """Name of the address plan; of a mix both, with a plus."""
    hosts: SideCounts
    """Least number of hosts in each network, left and right."""
    networks: SideCounts | None
    """Least number of networks; None for a plan with one network a side."""
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE
    """Octets with FCS that both links must take, at least."""
    rules: int | None = None
    """Number of rules of a Linux lab's firewall; None: as many as the user's lab has."""
    own: AddressPlan | None = None
    """The whole plan of a plan file, which has no name that it could be made of; None of others."""

    def make_plan(self) -> AddressPlan:
        """The addresses. PlanError if there are none such."""
        return self.own or make_mix(self.plan, self.hosts, networks=self.networks)


def kind_of(name: str) -> str | None:
    """Kind of the lab of this name, up or down: `linux` or `vm`. A lab that is down is the one that was
    borrowed, or else known by its name: `linux`, `linux-2`, `vm`.

    None: no lab of this name is up, and none could be set up. RequestError for a name that no lab can have.
    """
    lab = lab_status(name) or lab_before(name)
    if lab is not None:
        return lab.kind
    return next((kind for kind in KINDS if name == kind or name.startswith(f"{kind}-")), None)


def borrowing(name: str) -> Resource:
    """What a borrower holds, and its guardian with it, until the lab is given back."""
    return Resource(key=f"lab {name} borrowed", label=f"the lab {name!r}")


def refuse_borrowed(name: str, *, force: bool) -> None:
    """For whoever sets the lab up or takes it down by hand: a borrower is about to do so as well.

    Args:
        force: Go on although there is one.

    Raises:
        InUseError: There is one; names the process.
    """
    borrower = locks.holder_of(borrowing(name))
    if borrower is not None and not force:
        raise locks.InUseError(
            f"the lab {name!r} is in use by a campaign, or is given back after one: {borrower}",
            code="rig.lab-borrowed",
            where="lab",
            next_step="Wait until it has ended, or stop it; then its lab is what it was before.",
        )


@contextmanager
def borrowed(name: str) -> Iterator[tuple[BorrowedLab, tuple[int, ...]]]:
    """The lab is this process's to set up, and what it was is on disk. The caller gives it back before the
    block ends.

    Gives the lab, and the descriptors of the lock for a guardian to inherit.

    Raises:
        InUseError: Another process has borrowed it.
        HostError: Not root, or nothing can be written.
    """
    state.check_name(name)
    require_root(lab=kind_of(name) or "Linux")
    next_step = "Wait until that campaign has ended, or stop it."
    with locks.holding([borrowing(name)], where=f"lab:{name}", next_step=next_step) as descriptors:
        if _read(name) is None:
            lab = lab_status(name)
            before = None if lab is None else {"kind": lab.kind, "lab": asdict(lab)}
            state.write_file(_path(name), {"version": VERSION, "before": before})
        yield BorrowedLab(name=name), descriptors


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowedLab:
    """Sets the lab up for one plan after the other."""

    name: str

    @property
    def takes_rules(self) -> bool:
        """Whether it can have a firewall."""
        return kind_of(self.name) == LinuxLab.kind

    @property
    def users_rules(self) -> int:
        """How many rules its firewall had before it was borrowed."""
        before = lab_before(self.name)
        return before.rules if isinstance(before, LinuxLab) else 0

    def set_up_for(self, wish: LabWish, *, say: Say = lambda text: None) -> Lab:
        """The lab that is right for this wish. One that is up and right already stays as it is.

        A virtual machine stays too if only its plan is another one: whoever uses it sets that up over SSH.
        Where one of the plans is translated it boots with a third one, which is in no one's way.

        Raises:
            RequestError: The lab was up with Jool, which no campaign translates with.
            HostError: As `lab_up` and `vm_up`.
        """
        now = lab_status(self.name)
        if now is not None and _is_right(now, wish):
            return now
        # A lab of the user's keeps its CPU, its Debian, and what its NAT does; frames that it took it takes
        # again.
        known = now or lab_before(self.name)
        largest = max(
            wish.largest_frame_size, USUAL_MAX_FRAME_SIZE if known is None else known.largest_frame_size
        )
        dut_cpu = None if known is None else known.dut_cpu
        rules = wish.rules
        if rules is None:
            rules = known.rules if isinstance(known, LinuxLab) else 0
        plan = wish.make_plan()
        _refuse_jool(lab_before(self.name), plan)
        firewall = f", with a firewall of {rules:,} rules" if rules and self.takes_rules else ""
        say(
            f"the lab {self.name} is set up for {plan.title},"
            f" {' x '.join(f'{side.host_range.count:,}' for side in plan.sides)} hosts{firewall}"
        )
        if kind_of(self.name) == VmLab.kind:
            # The rest of a mix is set up over SSH; so is all that has to be taken away for another plan.
            plan = PLAIN_PLAN if _keeps_more_than_routes(plan) else replace(plan, other=None)
            return vm.vm_up(
                plan,
                name=self.name,
                dut_cpu=dut_cpu,
                largest_frame_size=largest,
                suite=known.suite if isinstance(known, VmLab) else "",
                say=say,
            )
        return lab_up(
            plan,
            name=self.name,
            dut_cpu=dut_cpu,
            largest_frame_size=largest,
            nat_ports=known.nat_ports if isinstance(known, LinuxLab) else "kept",
            rules=rules,
        )

    def give_back(self) -> None:
        """Give the lab back as it was found. Interrupts wait until it is. HostError if a tester is still on
        it, or it cannot be set up again."""
        give_back(self.name)


def lab_before(name: str) -> Lab | None:
    """What the lab was when it was borrowed; None if it was down, or is not borrowed."""
    found = (_read(name) or {}).get("before")
    if not isinstance(found, dict):
        return None
    with suppress(KeyError, TypeError, AttributeError):
        document = with_tuples(found["lab"])
        return VmLab(**document) if found["kind"] == VmLab.kind else LinuxLab(**document)
    return None


def give_back(name: str) -> None:
    """See `BorrowedLab.give_back`. A lab that is not borrowed stays as it is."""
    if _read(name) is None:
        return
    with uninterrupted():
        before, now = lab_before(name), lab_status(name)
        if before is None:
            lab_down(name)
        elif now is None or not _is_alike(now, before):
            plan = _plan_of(before)
            if isinstance(before, VmLab):
                vm.vm_up(
                    plan,
                    name=name,
                    dut_cpu=before.dut_cpu,
                    largest_frame_size=before.largest_frame_size,
                    nat_ports=before.nat_ports,
                    translator="jool" if before.translator == "jool" else None,
                    suite=before.suite,
                )
            else:
                lab_up(
                    plan,
                    name=name,
                    dut_cpu=before.dut_cpu,
                    largest_frame_size=before.largest_frame_size,
                    nat_ports=before.nat_ports,
                    rules=before.rules,
                )
        forget(name)


def forget(name: str) -> None:
    """The lab is what it is now: its user has set it up or taken it down by hand."""
    with suppress(OSError):
        _path(name).unlink(missing_ok=True)


def _is_right(lab: Lab, wish: LabWish) -> bool:
    if lab.largest_frame_size < wish.largest_frame_size:
        return False
    if isinstance(lab, VmLab):
        is_plain = lab.plan == PLAIN_PLAN.name
        keeps_more = any(map(_keeps_more_than_routes, (wish.make_plan(), _plan_of(lab))))
        return lab.is_running and (is_plain or not keeps_more)
    if wish.rules not in (None, lab.rules):
        return False
    plan = wish.make_plan()
    if not is_for(lab.plan, plan) or (plan.is_own and plan.hosts != lab.hosts):
        return False
    return all(
        side.host_range.count <= host_count and side.host_range.network_count <= network_count
        for side, host_count, network_count in zip(plan.sides, lab.hosts, lab.networks, strict=True)
    )


def _refuse_jool(lab: Lab | None, plan: AddressPlan) -> None:
    """It would be TAYGA that is measured, and the user has chosen another translator."""
    if isinstance(lab, VmLab) and lab.translator == "jool" and _keeps_more_than_routes(plan):
        raise RequestError(
            f"the lab {lab.name} was up with Jool, and a campaign would set up TAYGA instead",
            code="rig.jool-in-a-campaign",
            where=f"lab:{lab.name}",
            next_step="Measure Jool with a single verb, such as evenhand throughput; or take the lab down"
            " before a campaign with TAYGA.",
        )


def _keeps_more_than_routes(plan: AddressPlan) -> bool:
    """Whether a DUT of it translates: what was set up for that is in the way of another plan."""
    return any(each.translation is not None or each.nat is not None for each in plan.plans)


def _is_alike(now: Lab, before: Lab) -> bool:
    """A machine that was started anew has another SSH port, which does not matter."""
    if isinstance(now, VmLab) and not now.is_running:
        return False
    parts = (
        "kind",
        "plan",
        "hosts",
        "networks",
        "dut_cpu",
        "largest_frame_size",
        "nat_ports",
        "translator",
        "suite",
        "rules",
    )
    return all(getattr(now, part, None) == getattr(before, part, None) for part in parts)


def _plan_of(lab: Lab) -> AddressPlan:
    return make_mix(lab.plan, lab.hosts, networks=networks_to_ask_for(lab.plan, lab.networks))


def _path(name: str) -> Path:
    return BORROWED_DIRECTORY / f"{name}.json"


def _read(name: str) -> dict[str, Any] | None:
    try:
        found = json.loads(_path(name).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("version") == VERSION else None
