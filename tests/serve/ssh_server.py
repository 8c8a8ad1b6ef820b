# SPDX-License-Identifier: Apache-2.0
"""OpenSSH's own server on loopback, for the user of the tests, and a client that knows it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serve.served import wait_until

SSHD = "/usr/sbin/sshd"
NEEDED = ("ssh", "ssh-keygen", SSHD)


def why_not() -> str | None:
    """Why none can be started here; None if one can."""
    missing = [program for program in NEEDED if shutil.which(program) is None]
    return f"there is no {missing[0]}" if missing else None


@contextmanager
def ssh_server(folder: Path) -> Iterator[Path]:
    """Listens on 127.0.0.1 and ::1. Gives the folder of an `ssh` that finds it under both addresses."""
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = _free_port()
    kind, key = (folder / "host.pub").read_text().split()[:2]
    names = ("127.0.0.1", "::1")
    (folder / "known").write_text("".join(f"[{name}]:{port} {kind} {key}\n" for name in names))
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nListenAddress ::1\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {folder / 'authorized'}\nPidFile none\nStrictModes no\nUsePAM no\n"
        # What the host's own user has in ~/.bashrc may take long, or wait for ever.
        f"PermitRootLogin prohibit-password\nSetEnv HOME={folder}\n"
    )
    (folder / "ssh.conf").write_text(
        f"Port {port}\nIdentityFile {folder / 'user'}\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {folder / 'known'}\n"
    )
    programs = folder / "bin"
    programs.mkdir()
    client = programs / "ssh"
    client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder / "ssh.conf"} "$@"\n')
    client.chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    command = [SSHD, "-D", "-e", "-f", str(folder / "sshd.conf")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stderr=log)
    try:

        def answers() -> bool:
            assert server.poll() is None, (folder / "log").read_text()
            with socket.socket() as asked:
                return asked.connect_ex(("127.0.0.1", port)) == 0

        wait_until(answers, "sshd does not listen")
        yield programs
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    return port
