# SPDX-License-Identifier: Apache-2.0
"""How the machine of a lab starts: its devices, and until it can be spoken to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from evenhand.base.errors import HostError
from evenhand.dut import DutScript, DutSetup, Translator, describe_setup
from evenhand.dut.linux import LINUX
from evenhand.dut.nat import JOOL_MODULES, JOOL_PACKAGES, USUAL_NAT, NatPorts, NatWishes
from evenhand.dut.readings_queues import quote
from evenhand.dut.shell import Shell
from evenhand.dut.ssh import open_ssh
from evenhand.lab import taps
from evenhand.lab.build import LabNames, demolish
from evenhand.lab.vm_access import HOST, INTERFACES, Access
from evenhand.lab.vm_image import ImageRecipe, VmImage
from evenhand.lab.vm_process import VirtualMachine
from evenhand.plan import SIDES, AddressPlan

QUEUES = 4
"""Queues of each interface; the machine has as many CPUs, so that each queue has one."""
MEMORY_MB = 512
BOOT_TIMEOUT_S = {"kvm": 60.0, "tcg": 300.0}
BOOTS = 3
"""Boots that an emulated machine gets: its kernel may trip over its own code while another CPU changes it.
This was seen with Linux 6.12 in QEMU 7.2, in one boot of ten."""
_LOOK_S = 0.5
_LISTENS = "Server listening on"
"""Message of sshd, on the console."""
_ENDED = "the machine switched itself off while booting"
_PANICS = "Kernel panic"
"""Message of the kernel."""


def boot(image: VmImage, access: Access, port: int, mtu: int, say: Callable[[str], None]) -> VirtualMachine:
    """A machine whose SSH server listens. It goes on after this process.

    Args:
        port: Port on 127.0.0.1, for SSH.

    Raises:
        HostError: It does not come up; with the last lines of its console.
    """
    for boots_left in reversed(range(BOOTS)):
        machine = _start(image, access, port, mtu)
        is_emulated = machine.accelerator != "kvm"
        say(f"the machine boots ({'emulated, without KVM: this takes a while' if is_emulated else 'KVM'})")
        give_up = time.monotonic() + BOOT_TIMEOUT_S[machine.accelerator]
        while _LISTENS not in machine.console_text():
            if not machine.is_running:
                break
            if time.monotonic() > give_up:
                raise machine.trouble(
                    f"the machine was not up within {BOOT_TIMEOUT_S[machine.accelerator]:.0f} s"
                )
            time.sleep(_LOOK_S)
        else:
            return machine
        if not (is_emulated and boots_left and _PANICS in machine.console_text()):
            break
        say("its kernel failed while it booted, which happens to emulated ones: once more")
    raise machine.trouble(_ENDED)


@contextmanager
def shell_of(machine: VirtualMachine, access: Access) -> Iterator[Shell]:
    """The machine's shell, as soon as its SSH server answers; its first answers may take longer than ssh
    waits. HostError if it does not, or the machine has ended."""
    give_up = time.monotonic() + BOOT_TIMEOUT_S[machine.accelerator]
    with ExitStack() as stack:
        while True:
            try:
                shell = stack.enter_context(open_ssh(HOST, config=access.config))
                break
            except HostError:
                if not machine.is_running:
                    raise machine.trouble(_ENDED) from None
                if time.monotonic() > give_up:
                    raise
            time.sleep(_LOOK_S)
        yield shell


def _start(image: VmImage, access: Access, port: int, mtu: int) -> VirtualMachine:
    """Start the machine with new taps: QEMU leaves some queues of those that it has had switched off, and the
    next one stumbles over that."""
    names = LabNames(access.lab)
    demolish(names)
    queues = taps.make_taps(names, QUEUES, mtu)
    try:
        return VirtualMachine(
            image,
            folder=access.folder,
            arguments=_devices(access, port, queues, mtu),
            memory_mb=MEMORY_MB,
            cpus=QUEUES,
            dies_with_us=False,
            inherited=(*queues[0], *queues[1]),
        )
    finally:
        taps.close(queues)


def _devices(access: Access, port: int, queues: tuple[list[int], list[int]], mtu: int) -> list[str]:
    """The machine's part of the keys, a NIC for SSH alone, both test interfaces, and a monitor for these."""
    macs = {name: mac for mac, name in INTERFACES.items()}
    devices = [
        "-drive",
        f"file={access.disk},format=raw,if=virtio,readonly=on",
        # restrict: nothing from inside reaches this machine, or any other network.
        "-netdev",
        f"user,id=mgmt,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        f"virtio-net-pci,netdev=mgmt,mac={macs['mgmt']}",
    ]
    for side, descriptors in zip(SIDES, queues, strict=True):
        # Without vhost QEMU itself hashes, in software; `hash` makes it do so even where it could load a
        # program into the kernel.
        devices += ["-netdev", f"tap,id={side},fds={':'.join(map(str, descriptors))},vhost=off"]
        devices += [
            "-device",
            f"virtio-net-pci,netdev={side},mac={macs[side]},mq=on,vectors={2 * QUEUES + 2},rss=on,hash=on,"
            f"host_mtu={mtu}",
        ]
    return [*devices, "-qmp", f"unix:{access.nics_monitor},server=on,wait=off"]


SET_UP_TIMEOUT_S = 300.0
"""An emulated machine takes a minute for thousands of routes."""
_PACKAGES = ("openssh-server", "ethtool", "nftables", "conntrack", "tayga")


def recipe(suite: str = "", translator: Translator = "tayga") -> ImageRecipe:
    """Recipe of the machine's root: a router that one can log into. All else comes from the lab, on a disk of
    its own. With Jool it is another one, because its modules need a compiler."""
    has_jool = translator == "jool"
    name = "lab-router-jool" if has_jool else "lab-router"
    return ImageRecipe(
        name=f"{name}-{suite}" if suite else name,
        packages=(*_PACKAGES, *(("linux-headers-amd64", *JOOL_PACKAGES) if has_jool else ())),
        boot="tar -xf /dev/vdb -C / && exec /bin/sh /etc/evenhand-lab\n",
        modules=JOOL_MODULES if has_jool else (),
        suite=suite,
        size_mb=3000 if has_jool else 2000,
    )


def describe_router(plan: AddressPlan, nat_ports: NatPorts, translator: Translator | None) -> DutSetup:
    """The set-up as `dut setup` has it. Errors as `describe_setup`."""
    left, right = (INTERFACES[mac] for mac in list(INTERFACES)[1:])
    wishes = USUAL_NAT if plan.nat is None else NatWishes(ports=nat_ports)
    return describe_setup(plan, left=left, right=right, nat_wishes=wishes, translator=translator)


def set_up_router(shell: Shell, setup: DutSetup, mtu: int) -> None:
    """HostError if the machine does not take it."""
    script = DutScript(setup=setup, system=LINUX, is_undo=False)
    first = "".join(f"ip link set dev {link.interface} mtu {mtu}\n" for link in setup.links)
    if setup.translator == "jool":  # see the notes of the script
        first += "".join(f"ethtool -K {link.interface} gro off\n" for link in setup.links)
    for file in script.files:
        shell.run(f"cat > {quote(file.name)}", input_text="".join(file.lines()), timeout_s=SET_UP_TIMEOUT_S)
    answer = shell.run("exec sh -e", input_text=first + script.text(), timeout_s=SET_UP_TIMEOUT_S)
    if answer.exit_code != 0:
        said = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostError(
            f"the machine does not accept the set-up of the plan: {said}",
            code="rig.set-up-not-accepted",
            where=HOST,
            next_step="Please report this kernel.",
        )


def read_facts(shell: Shell, translator: Translator) -> dict[str, str]:
    """What the machine says of itself."""
    version = "jool --version" if translator == "jool" else "true"
    answer = shell.run(
        f'. /etc/os-release; echo "$PRETTY_NAME"; uname -r; cat /etc/debian_version; {version}'
    )
    system, kernel, debian, of_jool = (answer.stdout.splitlines() + [""] * 4)[:4]
    return {
        "system": f"{system}, {debian}",
        "kernel": kernel,
        **({"translator_version": of_jool.strip()} if translator == "jool" else {}),
    }
