# SPDX-License-Identifier: Apache-2.0
"""DUT: its command line over one connection of the system's own `ssh`.

The connection carries all commands. It ends with this process, however that ends, and no password is asked
for or kept.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import selectors
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import temporary_folder
from evenhand.dut.shell import Answer
from evenhand.testbed import TestbedDut
from evenhand.testbed.workers import check_destination

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
            "ssh is not installed on this machine",
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


def no_answer(destination: str, said: str) -> HostError:
    return HostError(
        f"the DUT does not answer: {said}",
        code="rig.dut-does-not-answer",
        where=f"[dut] ssh, {destination}",
        next_step=f"Check whether it is on and can be reached from here: ssh {destination} true",
    )


def why_not(destination: str, said: list[str]) -> HostError:
    """What ssh says, which is English everywhere, as an error of ours."""
    text = "\n".join(said)
    last = said[-1] if said else "ssh ended without a message"
    where = f"[dut] ssh, {destination}"
    if "IDENTIFICATION HAS CHANGED" in text:
        return HostError(
            "its host key has changed: it is another host, or the connection is intercepted",
            code="rig.host-key-changed",
            where=where,
            next_step="If it was reinstalled, remove the old key: ssh-keygen -R HOST (ssh prints the line)."
            " Then connect by hand once.",
        )
    if "Host key verification failed" in text:
        return HostError(
            "its host key is not known on this machine",
            code="rig.host-key-unknown",
            where=where,
            next_step=f"Connect by hand once, and verify the key: ssh {destination} true",
        )
    if "Permission denied" in text or "Too many authentication failures" in text:
        return HostError(
            f"it accepts none of your keys, and a password is never asked for ({last})",
            code="rig.ssh-key-refused",
            where=where,
            next_step=f"Add your key there (ssh-copy-id {destination}); if the key has a"
            " passphrase, add it to an agent (ssh-add).",
        )
    return no_answer(destination, last)


MOST_ANSWERED = 1 << 28
"""Octets of one answer: many commands may be asked at once."""
_READY = "evenhand-ready"
_KERNELS = {"openbsd": "OpenBSD", "freebsd": "FreeBSD", "opnsense": "FreeBSD", "pfsense": "FreeBSD"}
"""What `uname -s` says, where it is not Linux."""
_SSH_FAILED = 255
"""The exit code of ssh itself; a command may have it too."""

_Lines = queue.SimpleQueue[str | None]
"""Lines as they come, then None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DutHost:
    """What the DUT said of itself when the connection was made."""

    kernel: str
    """The kernel's name, as `uname -s` prints it."""
    user_id: int
    peer: str | None
    """Where the connection comes from, as the DUT sees it; None if it does not report it."""
    address: str | None
    """Its own, which the connection goes to."""


class SshShell:
    """A `Shell` over one connection of `ssh`. Made by `open_ssh`."""

    def __init__(self, destination: str, control: Path, *, config: Path | None = None) -> None:
        """Connects.

        Args:
            destination: A text that passes `check_destination`.
            control: A socket that this makes, in a folder that no one else can look into.
            config: A file to be read instead of the user's own ~/.ssh/config, for a DUT that this program
                made.

        Raises:
            HostError: There is no ssh; or the DUT does not answer, is not known, or would ask for a password.
        """
        self._begin = [
            *begin_of_ssh(config),
            "-o",
            "ClearAllForwardings=yes",
            "-o",
            f"ControlPath={escaped(control)}",
        ]
        self.destination = check_destination(destination)
        self._errors: _Lines = queue.SimpleQueue()
        # It lives as long as its input is open, so it ends when this process does. In a session of its own,
        # Ctrl-C leaves it to whoever takes a set-up back.
        self._master = self._begun("ControlMaster=yes", command=_WELCOME)
        try:
            self.host = self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        """See `Shell`."""
        if self._master.poll() is not None:
            raise self._lost()
        # Without the connection there is no other: a second one might reach another host, and would ask once
        # more.
        client = self._begun(
            "ControlMaster=no", "ProxyCommand=false", command=f"exec sh -c {shlex.quote(command)}"
        )
        try:
            stdout, stderr = _communicate(client, input_text, timeout_s)
        except OverflowError:
            raise HostError(
                f"an answer of more than {MOST_ANSWERED >> 20} MiB to: {_shortened(command)}",
                code="rig.dut-answer-too-long",
                where=self.destination,
                next_step="Run it there by hand: a program that prints without end is not the one of its"
                " distribution.",
            ) from None
        except subprocess.TimeoutExpired:
            if self._has_ended():
                raise self._lost() from None
            raise HostError(
                f"no answer within {timeout_s:g} s to: {_shortened(command)}",
                code="rig.no-answer-in-time",
                where=self.destination,
                next_step="Check whether the DUT still runs, and try again.",
            ) from None
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()
            # The connection has the same pipes: their end would come with that of the command, which goes on.
            for pipe in (client.stdin, client.stdout, client.stderr):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()
        if client.returncode == _SSH_FAILED and self._has_ended():
            raise self._lost()
        return Answer(exit_code=client.returncode, stdout=stdout, stderr=stderr)

    def _begun(self, *options: str, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *self._begin,
                *(part for option in options for part in ("-o", option)),
                "--",
                self.destination,
                command,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
            env=ssh_environment(),
        )

    def close(self) -> None:
        """Ends the connection. What was lost already is closed all the same."""
        with contextlib.suppress(OSError):
            self._close_input()
        try:
            self._master.wait(2)
        except subprocess.TimeoutExpired:
            self._master.kill()
            self._master.wait()

    def _close_input(self) -> None:
        if self._master.stdin is not None:
            self._master.stdin.close()

    def _has_ended(self) -> bool:
        """Its last client may see the end a little before it has."""
        try:
            self._master.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _lost(self) -> HostError:
        said = _all(self._errors)[-1:]
        return HostError(
            ": ".join(("the connection to the DUT was lost", *said)),
            code="rig.connection-lost",
            where=self.destination,
            next_step="Check whether the DUT still runs. To undo what was set up there: evenhand dut undo"
            " TESTBED.",
        )

    def _wait_until_ready(self) -> DutHost:
        output, errors = self._master.stdout, self._master.stderr
        assert output is not None
        assert errors is not None
        lines: _Lines = queue.SimpleQueue()
        reader = threading.Thread(target=_read_lines, args=(output, lines), daemon=True)
        listener = threading.Thread(target=_read_lines, args=(errors, self._errors), daemon=True)
        reader.start()
        listener.start()
        end = time.monotonic() + 3 * CONNECT_TIMEOUT_S
        while True:
            try:
                line = lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise no_answer(self.destination, f"no answer within {3 * CONNECT_TIMEOUT_S} s") from None
            if line is None:
                self._master.wait()
                listener.join(1)
                raise why_not(self.destination, _all(self._errors))
            words = line.split()
            if len(words) >= 3 and words[0] == _READY and words[2].isdecimal():
                peer, address = words[3:] if len(words) == 5 else (None, None)
                return DutHost(kernel=words[1], user_id=int(words[2]), peer=peer, address=address)


@contextmanager
def open_ssh(destination: str, *, config: Path | None = None) -> Iterator[SshShell]:
    """A shell on that host until the block ends. Errors as `SshShell`."""
    with temporary_folder() as folder:
        shell = SshShell(destination, folder / "ssh", config=config)
        try:
            yield shell
        finally:
            shell.close()


@contextmanager
def open_shell(dut: TestbedDut, *, config: Path | None = None) -> Iterator[SshShell]:
    """Root's shell on the testbed's DUT until the block ends.

    Args:
        config: See `SshShell`.

    Raises:
        RequestError: The testbed does not say where the DUT is, or it has another operating system than said.
        HostError: As `SshShell`; or it is not root's.
    """
    if dut.ssh is None or dut.os is None:
        raise RequestError(
            "the testbed does not say how to reach its DUT",
            code="rig.dut-without-ssh",
            where="[dut] ssh",
            next_step='Write ssh = "root@r1", os = "linux", left = "eth1" and right = "eth2" there, with the'
            " names of your lab.",
        )
    with open_ssh(dut.ssh, config=config) as shell:
        if shell.host.kernel != _KERNELS.get(dut.os, "Linux"):
            raise RequestError(
                f"{dut.os!r} is configured, but the DUT runs {shell.host.kernel}",
                code="rig.other-system-on-dut",
                where=f"[dut] os, {dut.ssh}",
                next_step="Correct os, or correct ssh if it names the wrong host.",
            )
        if shell.host.user_id != 0:
            raise HostError(
                f"the user on the DUT has the id {shell.host.user_id} and is not root",
                code="rig.not-root-on-dut",
                where=f"[dut] ssh, {dut.ssh}",
                next_step="Only root can set up a router: use root, such as root@r1, and add your key to its"
                " authorized_keys.",
            )
        yield shell


def _communicate(client: subprocess.Popen[str], input_text: str, timeout_s: float) -> tuple[str, str]:
    """As `Popen.communicate`, which would keep whatever comes.

    Raises:
        subprocess.TimeoutExpired: As there.
        OverflowError: It answers more than `MOST_ANSWERED`.
    """
    assert client.stdin is not None
    assert client.stdout is not None
    assert client.stderr is not None
    heard = {client.stdout.fileno(): bytearray(), client.stderr.fileno(): bytearray()}
    unsaid = memoryview(input_text.encode())
    end = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for stream in heard:
            selector.register(stream, selectors.EVENT_READ)
        selector.register(client.stdin.fileno(), selectors.EVENT_WRITE)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready or time.monotonic() > end:
                raise subprocess.TimeoutExpired(client.args, timeout_s)
            for key, _ in ready:
                if key.fd in heard:
                    part = os.read(key.fd, 1 << 16)
                    heard[key.fd] += part
                    if not part:
                        selector.unregister(key.fd)
                    elif len(heard[key.fd]) > MOST_ANSWERED:
                        raise OverflowError
                    continue
                try:
                    # A pipe that is ready takes so many at least.
                    unsaid = unsaid[os.write(key.fd, unsaid[: select.PIPE_BUF]) :]
                except BrokenPipeError:
                    unsaid = unsaid[:0]
                if not unsaid:
                    selector.unregister(key.fd)
                    client.stdin.close()
    client.wait(max(0.0, end - time.monotonic()))
    stdout, stderr = (octets.decode(errors="replace").replace("\r\n", "\n") for octets in heard.values())
    return stdout, stderr


_WELCOME = (
    f"exec sh -c 'set -- $SSH_CONNECTION; echo \"{_READY} $(uname -s) $(id -u) $1 $3\"; exec cat >/dev/null'"
)
"""A line of a Bourne shell or of csh alike."""


def _read_lines(stream: Iterable[str], lines: _Lines) -> None:
    with contextlib.suppress(ValueError):  # closed
        for line in stream:
            lines.put(line.strip())
    lines.put(None)


def _all(lines: _Lines) -> list[str]:
    found = []
    while not lines.empty():
        line = lines.get()
        if line:
            found.append(line)
    return found


def _shortened(command: str) -> str:
    first = command.split("\n", 1)[0]
    return first if len(first) <= 80 else f"{first[:77]}..."
