# SPDX-License-Identifier: Apache-2.0
"""How a lab's machine is reached: SSH on the loopback, with keys that are made for this one lab and end with
it.

The machine gets its part of them on a disk of its own. Both sides know each other before they first speak, so
no one has to trust a key that just came along.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import HostError
from evenhand.lab import state

HOST = "evenhand-vm"
"""What ssh calls the machine, in the lab's own file."""
NEEDS = {"ssh": "openssh-client", "ssh-keygen": "openssh-client"}
"""Program and its package."""
INSIDE_ADDRESS = "10.0.2.15"
MANAGEMENT_MAC = "02:00:00:00:d0:fe"
CONNECTIONS = 262_144
"""Connections that its kernel has room for, as a larger machine's; for so little memory it would be a few
thousand."""
INTERFACES = {MANAGEMENT_MAC: "mgmt", "02:00:00:00:d0:01": "left", "02:00:00:00:d0:02": "right"}
"""Interfaces by MAC, as the machine names them."""

# Every receive hash that is set or read later is then in use: without `rxhash on` virtio_net keeps what
# `ethtool -N` says for later.
_BOOT = """set -e
modprobe virtio_net
modprobe tun
modprobe nf_conntrack hashsize={connections}
echo {connections} > /proc/sys/net/netfilter/nf_conntrack_max
for address in /sys/class/net/*/address; do
    interface=$(basename "$(dirname "$address")")
    case $(cat "$address") in
{cases}
    esac
done
for interface in left right; do
    ethtool -K "$interface" rxhash on
done
ip address add {address}/24 dev mgmt
ip link set dev mgmt up
chmod 700 /root /root/.ssh
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /etc/ssh/evenhand
"""

_SSHD = """Port 22
HostKey /etc/ssh/evenhand_host_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
LoginGraceTime 600
PidFile none
"""

_CONFIG = """# For the machine of the lab {lab}: ssh -F {folder}/ssh_config {host}
Host {host}
    HostName 127.0.0.1
    Port {port}
    User root
    HostKeyAlias {host}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


@dataclass(frozen=True, slots=True)
class Access:
    """A folder that only root may look into, with keys, console, and the monitors of the machine."""

    lab: str

    @property
    def folder(self) -> Path:
        return state.STATE_DIRECTORY / f"{self.lab}.vm"

    @property
    def config(self) -> Path:
        """For `ssh -F`."""
        return self.folder / "ssh_config"

    @property
    def disk(self) -> Path:
        """What the machine unpacks over its root: a tar archive."""
        return self.folder / "keys.tar"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def nics_monitor(self) -> Path:
        """For `keep_receiving` alone: a monitor serves one program at a time."""
        return self.folder / "nics.sock"

    def remove(self) -> None:
        """Nothing is not an error."""
        shutil.rmtree(self.folder, ignore_errors=True)


def make_access(lab: str, port: int) -> Access:
    """The folder, with new keys.

    Raises:
        HostError: There is no OpenSSH on this machine, or the folder cannot be made.
    """
    _check_programs()
    access = Access(lab)
    try:
        access.remove()
        access.folder.mkdir(mode=0o700, parents=True)
        keys = {name: _make_key(access.folder / name) for name in ("key", "host_key")}
        access.config.write_text(_CONFIG.format(lab=lab, folder=access.folder, host=HOST, port=port))
        (access.folder / "known_hosts").write_text(f"{HOST} {keys['host_key']}\n")
        with os.fdopen(os.open(access.disk, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as disk:
            disk.write(
                _archive(
                    {
                        "etc/evenhand-lab": (boot_script(), 0o755),
                        "etc/ssh/evenhand": (_SSHD, 0o644),
                        "etc/ssh/evenhand_host_key": ((access.folder / "host_key").read_text(), 0o600),
                        "root/.ssh/authorized_keys": (f"{keys['key']}\n", 0o600),
                    }
                )
            )
        (access.folder / "host_key").unlink()
    except OSError as error:
        raise HostError(
            f"cannot write: {error.strerror}",
            code="rig.lab-file-not-writable",
            where=str(access.folder),
            next_step="The lab needs a writable /run.",
        ) from error
    return access


def boot_script() -> str:
    """What the machine does when its file systems are there."""
    cases = "\n".join(
        f'        {mac}) ip link set dev "$interface" name {name} ;;' for mac, name in INTERFACES.items()
    )
    return _BOOT.format(cases=cases, address=INSIDE_ADDRESS, connections=CONNECTIONS)


def free_port() -> int:
    """A port of the loopback that is not in use now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lacking_packages() -> list[str]:
    """That of OpenSSH, with which the machine is reached, if it is not here."""
    return sorted({package for program, package in NEEDS.items() if shutil.which(program) is None})


def _check_programs() -> None:
    if lacking := lacking_packages():
        raise HostError(
            f"the machine of the lab is reached with {', '.join(lacking)}, which is not installed here",
            code="rig.program-missing",
            where="PATH",
            next_step=f"Install what is missing: sudo apt-get install {' '.join(lacking)}",
        )


def _make_key(path: Path) -> str:
    """Its public half, without a comment."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise HostError(
            f"ssh-keygen did not make a key: {made.stderr.strip()}",
            code="rig.ssh-key-not-made",
            where=str(path),
            next_step="The lab needs a writable /run.",
        )
    return path.with_suffix(".pub").read_text().strip()


def _archive(files: dict[str, tuple[str, int]]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content.encode()), mode
            tar.addfile(entry, io.BytesIO(content.encode()))
    return archive.getvalue()
