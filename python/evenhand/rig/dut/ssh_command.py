# SPDX-License-Identifier: Apache-2.0
"""DUT: how the system's own `ssh` is called, so that the user's configuration, keys, agents and jump hosts
count, and no question is asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evenhand.base.errors import HostError
from evenhand.rig.testbed.ssh_destination import check_destination

CONNECT_TIMEOUT_S = 10
"""For each host on the way; the whole way gets three times as long."""
ALIVE_S, ALIVE_COUNT = 5, 3
"""A DUT that says nothing for so long, so often, is lost."""

OPTIONS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT_TIMEOUT_S}",
    "ControlPersist=no",
    f"ServerAliveInterval={ALIVE_S}",
    f"ServerAliveCountMax={ALIVE_COUNT}",
    "LogLevel=ERROR",
    "ForwardAgent=no",
    "ForwardX11=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "SessionType=default",
    "StdinNull=no",
    "ForkAfterAuthentication=no",
)
"""What of the user's own file would not do here."""


def ssh_command(destination: str, command: str, *options: str, config: Path | None = None) -> list[str]:
    """A connection of its own that runs one command line there, and asks no questions.

    Args:
        destination: A text that passes `check_destination`.
        options: Options of ssh itself; they go before ours.

    Raises:
        RequestError: It is not a destination.
        HostError: There is no ssh.
    """
    return [*begin_of_ssh(config, *options), "--", check_destination(destination), command]


def begin_of_ssh(config: Path | None, *options: str) -> list[str]:
    """What every call begins with. HostError if there is no ssh.

    Args:
        config: A file to be read instead of the user's own.
        options: Words that go before ours.
    """
    own = (part for option in OPTIONS for part in ("-o", option))
    return [ssh_program(), *(("-F", str(config)) if config else ()), *options, *own]


def command_over_ssh(destination: str, command: str) -> list[str]:
    """The same for a program whose input and output are used here. The connection is lost when the host has
    said nothing for three seconds, and the program ends with it. Errors as `ssh_command`."""
    alive = ("ServerAliveInterval=1", "ServerAliveCountMax=3", "ControlPath=none")
    return ssh_command(destination, command, *(part for option in alive for part in ("-o", option)))


def ssh_program() -> str:
    """Its path. HostError if there is none."""
    program = shutil.which("ssh")
    if program is None:
        raise HostError(
            "ssh is not installed on this host",
            code="rig.program-missing",
            where="PATH",
            next_step="Install it: apt-get install openssh-client.",
        )
    return program


def ssh_environment() -> dict[str, str]:
    """No window may ask for what BatchMode does not."""
    return {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}


def escaped(path: Path) -> str:
    """In ssh's options % begins a token, and a space ends the value."""
    return '"' + str(path).replace("%", "%%") + '"'
