# SPDX-License-Identifier: Apache-2.0
"""A DUT of ours: a network namespace with OpenSSH's own server in it. The tester is in another one, so that
no address is the host's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from evenhand.lab.napi import make_urgent
from evenhand.plan import SIDES

SSHD = "/usr/sbin/sshd"
TESTBED = """
isolated_test_environment = true
[left]
device = "net_memif0,role=client,id=0,socket=/tmp/none"
[right]
device = "net_memif1,role=client,id=1,socket=/tmp/none"
[tester]
cpus = [0]
[dut]
plan = "gateway-v4"
ssh = "root@192.0.2.2"
os = "linux"
left = "left"
right = "right"
"""
NAMES = ("near", "far", "farther", "farthest")
"""Names of engines."""


def of_engines(pairs: int) -> str:
    """The testbed of a DUT with so many pairs."""
    numbers = ["", *(str(number) for number in range(2, pairs + 1))]
    engines = "".join(
        f"""
[[engine]]
name = "{NAMES[cpu]}"
cpus = [{cpu}]
left = {{ device = "net_af_packet0,iface=left{number}" }}
right = {{ device = "net_af_packet1,iface=right{number}" }}"""
        for cpu, number in enumerate(numbers)
    )
    return f"""
isolated_test_environment = true
{engines}
[dut]
ssh = "root@192.0.2.2"
os = "linux"
left = {json.dumps([f"left{number}" for number in numbers])}
right = {json.dumps([f"right{number}" for number in numbers])}
"""


@contextmanager
def put_back(dut: NamespaceDut) -> Iterator[NamespaceDut]:
    """This DUT, for a test that leaves it as it was before."""
    before = dut.state()
    yield dut
    assert dut.state() == before


def why_not() -> str | None:
    """Why none can be made here; None if one can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [
        program
        for program in ("ip", "ssh", "ssh-keygen", "ethtool", "flock", SSHD)
        if shutil.which(program) is None
    ]
    return f"there is no {missing[0]}" if missing else None


@dataclass
class NamespaceDut:
    """Its server, and a folder with all that its clients need."""

    folder: Path
    name: str
    tester: str
    pairs: int = 1
    server: subprocess.Popen[bytes] | None = None

    @property
    def interfaces(self) -> list[str]:
        """Those that are measured."""
        return [f"{side}{number or ''}" for number in (0, *range(2, self.pairs + 1)) for side in SIDES]

    @property
    def testbed(self) -> Path:
        return self.folder / "lab.toml"

    @property
    def environment(self) -> dict[str, str]:
        """In which `ssh` is a client in the tester's namespace, with a configuration of ours."""
        return {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    @property
    def kept(self) -> str:
        """The folder of what a set-up writes down, as it sees it."""
        return f"/run/evenhand-dut-{self.inside('readlink', '/proc/self/ns/net').strip()[5:-1]}"

    def inside(self, *command: str) -> str:
        """What a command says that runs in the DUT's namespace, and sees the files that it sees."""
        assert self.server is not None
        done = subprocess.run(
            ["nsenter", "--target", str(self._server_pid()), "--net", "--mount", "--root", "--wd", *command],
            capture_output=True,
            text=True,
            errors="surrogateescape",  # of an interface's name
            check=False,
        )
        return done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def state(self) -> str:
        """All that a set-up may change, as the DUT's own programs tell it: without how many connections there
        just are."""
        commands = [
            ["ip", "-j", "address"],
            *(["ip", "-j", version, "route", "show", "table", "all"] for version in ("-4", "-6")),
            *(["ip", "-j", version, "rule", "show"] for version in ("-4", "-6")),
            ["ip", "-j", "neighbor"],
            ["sysctl", "-a", "-r", "^net[.]"],
            *(["ethtool", option, name] for name in self.interfaces for option in ("-l", "-k")),
            *(
                ["ethtool", "-n", name, "rx-flow-hash", flow]
                for name in self.interfaces
                for flow in ("udp4", "udp6")
            ),
        ]
        text = "\n".join(self.inside(*command) for command in commands)
        return re.sub(r"^net\.netfilter\.nf_conntrack_count = \d+$", "", text, flags=re.MULTILINE)

    def start(self) -> None:
        """The server; what it writes below /run is its own."""
        run = self.folder / "run"
        script = f"mount --bind {run} /run && exec {SSHD} -D -e -f {self.folder / 'sshd.conf'}"
        self.server = subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "--mount", "sh", "-c", script],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        listening = ["ip", "netns", "exec", self.name, "ss", "-ltn"]
        wait_until(
            lambda: (
                "192.0.2.2:22"
                in subprocess.run(listening, capture_output=True, text=True, check=False).stdout
            ),
            "sshd does not listen",
        )

    def make_urgent(self) -> None:
        """Its programs are as urgent as a tester on the same CPU, which would starve them."""
        assert self.server is not None
        for process in _ip("netns", "pids", self.name).split():
            if int(process) != self.server.pid:
                with suppress(ProcessLookupError):
                    make_urgent(int(process))

    def stop(self) -> None:
        """The server and each session of it, at once: no answer comes any more."""
        for process in subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=False
        ).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(process), 9)
        if self.server is not None:
            self.server.wait()

    def _server_pid(self) -> int:
        assert self.server is not None
        return self.server.pid


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """The host may be busy."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


@contextmanager
def namespace_dut_of_whole_frames(folder: Path, *, pairs: int = 1) -> Iterator[NamespaceDut]:
    """One for test frames: a frame whose checksum is left to a NIC would be a wrong one."""
    with namespace_dut(folder, pairs=pairs) as dut:
        for name in dut.interfaces:
            for namespace in (dut.name, dut.tester):
                offloads = ("ethtool", "-K", name, "tx", "off", "gro", "off")
                subprocess.run(["ip", "netns", "exec", namespace, *offloads], check=True)
        yield dut


@contextmanager
def namespace_dut(
    folder: Path, *, programs: Path | None = None, pairs: int = 1, instead_of_shell: str | None = None
) -> Iterator[NamespaceDut]:
    """With interfaces `left` and `right`, which the tester's namespace has too, and `mgmt`, over which SSH
    goes.

    Args:
        pairs: With more, `left2` and `right2` and so on, too; the testbed is that of `of_engines` then.
        programs: A folder whose programs who logs in finds before all others.
        instead_of_shell: A command that whoever logs in gets.
    """
    number = f"{os.getpid()}-{time.monotonic_ns() % 1_000_000}"
    dut = NamespaceDut(
        folder=folder, name=f"evenhand-dut-{number}", tester=f"evenhand-tester-{number}", pairs=pairs
    )
    _write_files(dut)
    with (folder / "sshd.conf").open("a") as file:
        # What the host's own root has in ~/.bashrc may take long, or wait for ever.
        file.write(f"SetEnv HOME={folder / 'home'}")
        file.write("\n" if programs is None else f" PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin\n")
    if instead_of_shell is not None:
        with (folder / "sshd.conf").open("a") as file:
            file.write(f"ForceCommand {instead_of_shell}\n")
    try:
        for name in (dut.name, dut.tester):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        for name in ("mgmt", *dut.interfaces):
            _ip(
                "-n", dut.tester, "link", "add", name, "type", "veth", "peer", "name", name, "netns", dut.name
            )
            # A tester without IPv6 of its own is no neighbour that comes by itself.
            _ip("-n", dut.tester, "link", "set", name, "addrgenmode", "none")
            _ip("-n", dut.tester, "link", "set", name, "up")
        for where, own in ((dut.tester, "192.0.2.1/24"), (dut.name, "192.0.2.2/24")):
            # Without IPv6 on it no neighbour comes and goes there by itself.
            _ip("-n", where, "link", "set", "mgmt", "down")
            _ip("-n", where, "link", "set", "mgmt", "addrgenmode", "none")
            _ip("-n", where, "address", "add", own, "dev", "mgmt")
            _ip("-n", where, "link", "set", "mgmt", "up")
        peer = json.loads(_ip("-n", dut.tester, "-j", "link", "show", "mgmt"))[0]["address"]
        _ip("-n", dut.name, "neighbor", "add", "192.0.2.1", "lladdr", peer, "dev", "mgmt", "nud", "permanent")
        for name in dut.interfaces:
            # An interface that was never up has no queueing discipline; it keeps the first one that it gets.
            _ip("-n", dut.name, "link", "set", name, "up")
            _ip("-n", dut.name, "link", "set", name, "down")
        dut.start()
        wait_until(lambda: "state UP" in dut.inside("ip", "link", "show", "mgmt"), "its interface is not up")
        yield dut
    finally:
        dut.stop()
        for name in (dut.name, dut.tester):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def _write_files(dut: NamespaceDut) -> None:
    folder = dut.folder
    for name in ("bin", "home", "run/sshd", "state"):
        (folder / name).mkdir(parents=True)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    kind, key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"192.0.2.2 {kind} {key}\n")
    (folder / "sshd.conf").write_text(
        f"HostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'authorized'}\nPidFile none\nStrictModes"
        " no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nListenAddress 192.0.2.2\nMaxStartups 100\n"
    )
    (folder / "ssh.conf").write_text(
        f"IdentityFile {folder / 'user'}\nIdentitiesOnly yes\nUserKnownHostsFile {folder / 'known'}\n"
    )
    ssh = folder / "bin" / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nexec ip netns exec {dut.tester} {shutil.which("ssh")} -F {folder / "ssh.conf"} "$@"\n'
    )
    ssh.chmod(0o755)
    dut.testbed.write_text(TESTBED if dut.pairs == 1 else of_engines(dut.pairs))
