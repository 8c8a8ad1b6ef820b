# SPDX-License-Identifier: Apache-2.0
"""The lab whose DUT is a computer of its own: Debian's kernel in a virtual machine, with virtio NICs of four
queues that hash (RSS-02).

    tester namespace                     virtual machine
    ehtl-NAME (tap, 4 queues)  -------  left  \\
                                               forwarding     mgmt ------- 127.0.0.1:port (SSH)
    ehtr-NAME (tap, 4 queues)  -------  right /

The queues' frames come from QEMU's own hash, by the key, the table and the fields that the machine's kernel
has set. The machine has no way to any network but the taps and its SSH port. Without KVM it is emulated: its
rates are those of the emulation, its shares are not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from evenhand.base.errors import HostError
from evenhand.dut import DutSetup, Translator
from evenhand.dut.nat import NatPorts
from evenhand.lab import state, taps, vm_access
from evenhand.lab.build import AROUND_PACKET, USUAL_MAX_FRAME_SIZE, LabNames
from evenhand.lab.linux_life import take_down
from evenhand.lab.linux_programs import require_root, share_cpus
from evenhand.lab.machine import machine_processes
from evenhand.lab.namespaces import namespace_path
from evenhand.lab.ports import LabThatIsUp, af_packet_device
from evenhand.lab.state import RECORD_VERSION, addresses_of, lab_of
from evenhand.lab.vm_access import HOST, Access, free_port, make_access
from evenhand.lab.vm_boot import (
    MEMORY_MB,
    QUEUES,
    boot,
    describe_router,
    read_facts,
    recipe,
    set_up_router,
    shell_of,
)
from evenhand.lab.vm_image import VmImage, cache_folder, vm_image
from evenhand.lab.vm_image import lacking_packages as lacking_for_image
from evenhand.lab.vm_nics import keep_receiving
from evenhand.lab.vm_process import QEMU, QEMU_PACKAGE
from evenhand.plan import SIDES, AddressPlan, SideName, plan_title

KIND = "vm"


@dataclass(frozen=True, slots=True, kw_only=True)
class VmLab(LabThatIsUp):
    """A virtual machine on this machine forwards."""

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = KIND
    has_hash: ClassVar[bool] = True
    mixes_direct_plans: ClassVar[bool] = True
    ssh_port: int
    """SSH port on 127.0.0.1."""
    translator: Translator = "tayga"
    """Translator of a DUT that translates: the program, or with Jool the module, that does. Jool chooses
    ports itself, so `nat_ports` says nothing of it."""
    translator_version: str = ""
    """Version of Jool, as it reports it."""
    accelerator: str = ""
    """`kvm`, or `tcg`: emulated."""
    system: str = ""
    """What the machine said of itself when it was up: name and version of its Debian."""
    kernel: str = ""
    suite: str = ""
    """Debian's code name that its user chose; that of this machine by default."""

    @staticmethod
    def check_programs() -> None:
        """See `check_vm_programs`."""
        check_vm_programs()

    @property
    def ring_frames(self) -> int:
        """Frames of one direction that wait while the machine does not run, at least: all may be of one
        queue."""
        return taps.QUEUE_FRAMES

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`; only root may read it."""
        return Access(self.name).config

    @property
    def ssh_host(self) -> str:
        """What the machine is called there."""
        return HOST

    @property
    def is_running(self) -> bool:
        """Whether the machine is still there."""
        return bool(machine_processes(self.name))

    def device(self, side: SideName) -> str:
        """EAL device string of one tester port, to be opened inside the tester's namespace."""
        # Past the queueing discipline a tap whose queue is full refuses frames: the tester could offer no
        # more than the machine takes. Behind it the tap drops them, as a NIC does.
        device = af_packet_device(SIDES.index(side), self.tester_interface(side), self.largest_frame_size)
        return f"{device},qdisc_bypass=0"

    def dut_threads(self) -> list[int]:
        """QEMU's, on this machine."""
        return [
            int(thread.name)
            for process in machine_processes(self.name)
            for thread in Path(f"/proc/{process}/task").glob("*")
        ]

    def dut_interface(self, side: SideName) -> str:
        """Interface as the machine names it."""
        return side

    def check_running(self) -> None:
        """HostError if the machine has ended."""
        if not self.is_running:
            raise HostError(
                "the machine of this lab has ended (it was killed or switched off, or its kernel"
                " failed), so nothing is forwarded",
                code="rig.machine-ended",
                where=f"lab:{self.name}",
                next_step=f"Its console: {Access(self.name).console}. To set it up again: evenhand"
                f" lab up vm {self.options}",
            )

    @property
    def options(self) -> str:
        """Options of `lab up vm`, for the plan."""
        jool = " --translator jool" if self.translator == "jool" else ""
        debian = f" --debian {self.suite}" if self.suite else ""
        return f"--plan {plan_title(self.plan)}{jool}{debian}"

    def testbed_dut(self) -> dict[str, Any]:
        """For `[dut]` of the testbed that the lab is."""
        return {
            "ssh": HOST,
            "os": "linux",
            "left": self.dut_interface("left"),
            "right": self.dut_interface("right"),
        }

    def translator_facts(self) -> dict[str, Any]:
        """What the user has chosen of its NAT or translator."""
        if self.translator == "jool":
            return {"translator": f"Jool {self.translator_version}"}
        return {} if self.nat is None else {"nat_ports": self.nat_ports}

    def facts(self) -> dict[str, Any]:
        """What the DUT is made of; recorded in results, never used for a verdict (SEED-07). As it was when
        the lab came up."""
        return {
            "dut": "virtual machine",
            "accelerator": self.accelerator,
            "system": self.system,
            "kernel": self.kernel,
            "plan": self.plan,
            **self.translator_facts(),
            "dut_cpu": self.dut_cpu,
            "tester_cpus": list(self.tester_cpus),
            "cpus": QUEUES,
            "memory_mb": MEMORY_MB,
            "interfaces": {
                side: {"name": self.dut_interface(side), "driver": "virtio_net", "queues": QUEUES}
                for side in SIDES
            },
        }


def check_vm_programs() -> None:
    """HostError if this machine lacks what a machine needs: QEMU, OpenSSH, taps, and what makes its image, if
    none was made here before. It names all at once. The packages of the image are not looked at."""
    taps.check_tun()
    lacking = [] if shutil.which(QEMU) is not None else [QEMU_PACKAGE]
    lacking += vm_access.lacking_packages()
    if not any(cache_folder().glob(f"*-{'[0-9a-f]' * 16}")):
        lacking += lacking_for_image()
    if lacking:
        raise HostError(
            f"a lab with a virtual machine needs {', '.join(lacking)}, which this machine does not have",
            code="rig.program-missing",
            where="PATH",
            next_step=f"Install what is missing: sudo apt-get install {' '.join(lacking)}",
        )


def vm_up(
    plan: AddressPlan,
    *,
    name: str = KIND,
    dut_cpu: int | None = None,
    force: bool = False,
    largest_frame_size: int = USUAL_MAX_FRAME_SIZE,
    nat_ports: NatPorts = "kept",
    translator: Translator | None = None,
    suite: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> VmLab:
    """Set up the lab; one of that name that is there, whole or in ruins, is removed first. The machine goes
    on after this process.

    Args:
        name, dut_cpu, force, largest_frame_size, nat_ports: As for `lab_up`.
        translator: None: TAYGA, if the plan needs one.
        suite: Debian's code name, such as trixie; that of this machine by default.
        say: Gets lines on what takes long.

    Raises:
        RequestError: Bad name or CPU; or as `describe_setup`.
        HostError: Not root; QEMU, OpenSSH or the packages of the image cannot be had; another process holds
            the lab or tests with it; or the machine does not come up.
    """
    state.check_name(name)
    require_root(
        "for taps in a namespace, through which the tester's ports reach the virtual machine", lab=KIND
    )
    check_vm_programs()
    setup = describe_router(plan, nat_ports, translator)
    image = vm_image(recipe(suite, setup.translator), say=say)
    with state.hold(name), state.kept_from_testers(name, force=force):
        return _set_up(setup, name, dut_cpu, largest_frame_size, nat_ports, image, suite, say)


def read_lab(name: str, record: dict[str, Any]) -> VmLab | None:
    """The lab of a record of this kind; None if the lab is not whole. A machine that has ended does not
    matter here."""
    if not record.get("is_complete") or not namespace_path(LabNames(name).tester_namespace).exists():
        return None
    return lab_of(VmLab, name, record["lab"])


def _set_up(
    setup: DutSetup,
    name: str,
    dut_cpu: int | None,
    largest_frame_size: int,
    nat_ports: NatPorts,
    image: VmImage,
    suite: str,
    say: Callable[[str], None],
) -> VmLab:
    cpu, tester_cpus = share_cpus(dut_cpu)
    document: dict[str, Any] = asdict(
        VmLab(
            name=name,
            dut_cpu=cpu,
            tester_cpus=tester_cpus,
            ssh_port=free_port(),
            largest_frame_size=largest_frame_size,
            nat_ports=nat_ports,
            translator=setup.translator,
            suite=suite,
            **addresses_of(setup.plan),
        )
    )
    take_down(name)
    record = {"version": RECORD_VERSION, "kind": KIND, "is_complete": False, "lab": document}
    state.write_record(name, record)
    try:
        mtu = largest_frame_size - AROUND_PACKET
        access = make_access(name, document["ssh_port"])
        machine = boot(image, access, document["ssh_port"], mtu, say)
        with shell_of(machine, access) as shell:
            document |= {"accelerator": machine.accelerator, **read_facts(shell, setup.translator)}
            set_up_router(shell, setup, mtu)
        for thread in Path(f"/proc/{machine.pid}/task").glob("*"):
            with suppress(ProcessLookupError):  # a helper of QEMU's that has ended
                os.sched_setaffinity(int(thread.name), {cpu})
        if not keep_receiving(str(access.nics_monitor), SIDES, cpu):
            raise machine.trouble("QEMU's monitor for its NICs does not answer")
        state.write_record(name, {**record, "is_complete": True, "lab": document})
    except BaseException:
        take_down(name)
        raise
    return VmLab(**document)
