# SPDX-License-Identifier: Apache-2.0
"""DUT: the command line of a device without a shell, over the system's own `ssh`. scrapli knows its prompts,
and reads until the next one; it comes with the extra evenhand[devices]."""

from __future__ import annotations

import ipaddress
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import temporary_folder
from evenhand.base.programs import how_to_get_extra
from evenhand.dut.configuration import Line
from evenhand.dut.dialogs import DIALOGS, Dialog, Say
from evenhand.dut.ssh import begin_of_ssh, no_answer, ssh_environment, why_not
from evenhand.testbed import TestbedDut
from evenhand.testbed.workers import check_destination

if TYPE_CHECKING:
    from scrapli.cli import Cli

FIRST_PROMPT_S, ANSWER_S, COMMIT_S = 60, 60, 300
"""A commit on a large router takes minutes."""
_WIDTH, _HEIGHT = 511, 255
_SETTLED_S, _MOST_SETTLING = 0.2, 50
_LINE_OF_ITS_PROMPT = re.compile(r"^\[edit[^\]]*\]$")


class Terminal:
    """One connection to a device, which ends with this process. Made by `open_terminal`."""

    def __init__(self, destination: str, dialog: Dialog, log: Path, *, config: Path | None = None) -> None:
        """Connects.

        Args:
            destination: A text that passes `check_destination`.
            log: A file that `ssh` writes what it says of itself to.
            config: See `SshShell`.

        Raises:
            RequestError: The extra is not installed.
            HostError: There is no ssh; or the device does not answer, is not known, or would ask for a
                password; or nothing that looks like its prompt comes.
        """
        self.destination = check_destination(destination)
        self.dialog = dialog
        known = _resolved(self.destination, config)
        self.addresses = _addresses(known.get("hostname", ""))
        user = known.get("user", "")
        options = ("RequestTTY=force", "ControlMaster=no", "ControlPath=none")
        own = [part for option in options for part in ("-o", option)]
        if dialog.user_options:
            own += ["-l", user + dialog.user_options]
        command = [*begin_of_ssh(config, *own), "-E", str(log), "--", self.destination]
        self._cli = _made(command, dialog.platform)
        from scrapli.exceptions import ScrapliException

        self._failure = ScrapliException
        try:
            self._cli.open()
            self._settle()
            for line in dialog.opening:
                self.ask(line)
        except self._failure as error:
            self.close()
            said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            if said:
                raise why_not(self.destination, said) from None
            raise no_answer(
                self.destination, f"it shows no prompt of {dialog.platform} ({_first_line(error)})"
            ) from None
        except BaseException:
            self.close()
            raise

    def ask(self, command: str, *, timeout_s: int = ANSWER_S) -> str:
        """What it answers at its first prompt."""
        return self._said(Say(command, is_change=False), timeout_s)

    def say(self, say: Say, *, session: str, timeout_s: int = COMMIT_S) -> str:
        """What it answers to this. HostError if the connection is lost, or nothing comes in time."""
        return self._said(Say(say.command.format(session=session), say.is_change, say.question), timeout_s)

    def change(self, line: str) -> str:
        """What it answers to a line of its configuration."""
        return self._said(Say(line), ANSWER_S)

    def refused(self, answer: str) -> str | None:
        """What of an answer says that a command was not taken; None if it was."""
        match = self.dialog.refusal.search(answer)
        if match is None:
            return None
        lines = [" ".join(line.split()) for line in answer.splitlines() if line.strip(" ^")]
        found = [line for line in lines if self.dialog.refusal.search(line)] or lines
        return "; ".join(found[:3])[:400]

    def configuration(self) -> tuple[Line, ...]:
        """All of its configuration. HostError if it shows none."""
        answer = self.ask(self.dialog.configuration, timeout_s=COMMIT_S)
        lines = self.dialog.read(answer)
        if not lines or (self.dialog.change != self.dialog.prompt and self.dialog.refusal.match(answer)):
            raise HostError(
                f"the DUT does not show its configuration: {_first_line(answer) or 'it answers nothing'}",
                code="rig.dut-answer-not-understood",
                where=f"[dut] ssh, {self.destination}",
                next_step="Log in as a user who may see and change all of it, and check [dut] os.",
            )
        return lines

    def close(self) -> None:
        """Ends the connection; what was not committed is lost with it."""
        with suppress(self._failure):
            self._cli.close(force=True)

    def _settle(self) -> None:
        """Read what is left: a line of a banner may look like a prompt, and then each answer would be taken
        for that of the command before."""
        for _ in range(_MOST_SETTLING):
            time.sleep(_SETTLED_S)
            if not self._cli.read():
                break

    def _said(self, say: Say, timeout_s: int) -> str:
        mode = self.dialog.change if say.is_change else self.dialog.prompt
        timeout_ns = timeout_s * 10**9
        try:
            if say.question is None:
                result = self._cli.send_input(
                    say.command, requested_mode=mode, operation_timeout_ns=timeout_ns
                )
            else:
                result = self._cli.send_prompted_input(
                    say.command, "", say.question, "y", requested_mode=mode, operation_timeout_ns=timeout_ns
                )
        except self._failure as error:
            raise HostError(
                f"no answer of the DUT to {say.command[:80]!r}: {_first_line(error)}",
                code="rig.connection-lost",
                where=self.destination,
                next_step="Check whether the DUT still runs. To undo what was set up there: evenhand dut undo"
                " TESTBED.",
            ) from None
        lines = result.result.splitlines()
        return "\n".join(line for line in lines if not _LINE_OF_ITS_PROMPT.match(line.strip()))


@contextmanager
def open_terminal(dut: TestbedDut, *, config: Path | None = None) -> Iterator[Terminal]:
    """The command line of the testbed's DUT until the block ends. Errors as `Terminal`."""
    assert dut.ssh is not None
    assert dut.os is not None
    with temporary_folder() as folder:
        log = folder / "ssh.log"
        log.touch()
        terminal = Terminal(dut.ssh, DIALOGS[dut.os], log, config=config)
        try:
            yield terminal
        finally:
            terminal.close()


def _made(command: list[str], platform: str) -> Cli:
    try:
        from scrapli.auth import Options as AuthOptions
        from scrapli.cli import Cli
        from scrapli.session import Options as SessionOptions
        from scrapli.transport import BinOptions
    except ImportError:
        raise RequestError(
            "devices without a shell are reached with scrapli, which is not installed",
            code="rig.devices-not-installed",
            where="evenhand[devices]",
            next_step=f"Install it: {how_to_get_extra('devices')}; or print the commands, and run them by"
            " hand: evenhand dut setup.",
        ) from None
    blank = next((word for word in command if " " in word), None)
    if blank is not None:
        raise HostError(
            f"a path with a blank cannot be passed on to ssh: {blank}",
            code="rig.path-with-blank",
            where="PATH, TMPDIR",
            next_step="Use folders without blanks in their names.",
        )
    return Cli(
        "device",
        definition_file_or_name=platform,
        # ssh itself authenticates; this waits for the first prompt.
        auth_options=AuthOptions(bypass_in_session_auth=False),
        session_options=SessionOptions(operation_timeout_s=FIRST_PROMPT_S),
        transport_options=BinOptions(
            bin=command[0], override_open_args=command, term_width=_WIDTH, term_height=_HEIGHT
        ),
    )


def _resolved(destination: str, config: Path | None) -> dict[str, str]:
    """What the user's own file of ssh makes of a destination."""
    done = subprocess.run(
        [*begin_of_ssh(config, "-G"), "--", destination],
        capture_output=True,
        text=True,
        check=False,
        env=ssh_environment(),
    )
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name, value)
    return found


def _addresses(host: str) -> frozenset[str]:
    """Empty if this machine does not know them, as behind a jump host."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    addresses = (str(address[0]).partition("%")[0] for *_, address in found)
    return frozenset(str(ipaddress.ip_address(address)) for address in addresses)


def _first_line(said: object) -> str:
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    return lines[0][:200] if lines else ""
