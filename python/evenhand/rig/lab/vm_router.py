# SPDX-License-Identifier: Apache-2.0
"""What the machine of a lab is inside: the packages of its root, and the router that it is set up as."""

from __future__ import annotations

from evenhand.base.errors import HostError
from evenhand.plan import AddressPlan
from evenhand.rig.dut import OPERATING_SYSTEMS, DutScript, DutSetup, Translator, describe_setup
from evenhand.rig.dut.jool import JOOL_MODULES, JOOL_PACKAGES
from evenhand.rig.dut.nat import USUAL_NAT, NatPorts, NatWishes
from evenhand.rig.dut.shell import Shell
from evenhand.rig.lab.vm_access import HOST, INTERFACES
from evenhand.rig.lab.vm_image import ImageRecipe

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
    script = DutScript(setup=setup, system=OPERATING_SYSTEMS["linux"], is_undo=False)
    first = "".join(f"ip link set dev {link.interface} mtu {mtu}\n" for link in setup.links)
    if setup.translator == "jool":  # see the notes of the script
        first += "".join(f"ethtool -K {link.interface} gro off\n" for link in setup.links)
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
