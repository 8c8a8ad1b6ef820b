# SPDX-License-Identifier: Apache-2.0
"""A virtual machine as a process: QEMU, with KVM where it works, else emulated.

The machine's disk is an image that is never written to. Its console goes to a file, its monitor to a socket
in a folder of the caller's.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.base.errors import HostError
from evenhand.lab.vm_image import INIT, VmImage

QEMU = "qemu-system-x86_64"
QEMU_PACKAGE = "qemu-system-x86"
STOP_TIMEOUT_S = 5.0
MONITOR_TIMEOUT_S = 30.0
_KVM_TIMEOUT_S = 6.0
_PR_SET_PDEATHSIG = 1
_CONSOLE_LINES = 20


def check_qemu() -> None:
    """HostError if there is none."""
    if shutil.which(QEMU) is None:
        raise HostError(
            f"{QEMU} is not installed",
            code="rig.program-missing",
            where="PATH",
            next_step="Install QEMU: sudo apt-get install " + QEMU_PACKAGE,
        )


def has_kvm(image: VmImage) -> bool:
    """Whether KVM runs a machine here. Tried, once since this machine was booted, with the kernel of this
    image: there are hosts with a /dev/kvm on which firmware runs and a kernel gets nowhere."""
    if shutil.which(QEMU) is None or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    known = image.folder.parent / ".kvm"
    this_boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with suppress(OSError, ValueError):
        boot, answer = known.read_text().split()
        if boot == this_boot:
            return answer == "works"
    works = _runs_a_kernel(image)
    with suppress(OSError):  # then it is tried again
        known.write_text(f"{this_boot} {'works' if works else 'fails'}\n")
    return works


def _runs_a_kernel(image: VmImage) -> bool:
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        console = Path(folder) / "console"
        command = [
            QEMU,
            "-nodefaults",
            "-no-user-config",
            "-machine",
            "q35",
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-m",
            "512",
            "-display",
            "none",
            "-kernel",
            str(image.kernel),
            "-append",
            "console=ttyS0 earlyprintk=serial panic=-1",
            "-no-reboot",
            "-serial",
            f"file:{console}",
        ]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            give_up = time.monotonic() + _KVM_TIMEOUT_S
            works = False
            while not works and process.poll() is None and time.monotonic() < give_up:
                time.sleep(0.05)
                works = console.exists() and b"Linux version" in console.read_bytes()
            process.kill()
    return works


class VirtualMachine:
    """One machine that runs. A context manager: leaving it ends the machine, whatever happened inside."""

    def __init__(
        self,
        image: VmImage,
        *,
        folder: Path,
        arguments: Sequence[str] = (),
        memory_mb: int = 2048,
        cpus: int = 2,
        kernel_arguments: str = "",
        accelerator: str = "",
        dies_with_us: bool = True,
        prefix: Sequence[str] = (),
        inherited: Sequence[int] = (),
    ) -> None:
        """Start it. It boots while the caller goes on.

        Args:
            folder: For `console.log` and `monitor.sock` (a short path: a socket's has 107 characters).
            arguments: More devices, as QEMU takes them.
            kernel_arguments: More of them, such as `intel_iommu=on`.
            accelerator: `kvm` or `tcg`; by default KVM if it works here.
            dies_with_us: The kernel kills it when the thread that starts it ends, also by SIGKILL. If not, it
                goes on until `stop`, or until it switches itself off.
            prefix: A command before QEMU's, such as `nsenter` with its options.
            inherited: Descriptors that it gets, under the same numbers, such as of taps.

        Raises:
            HostError: There is no QEMU, or it refuses its arguments.
        """
        check_qemu()
        self.accelerator = accelerator or ("kvm" if has_kvm(image) else "tcg")
        self.console = folder / "console.log"
        self._monitor_path = folder / "monitor.sock"
        self._monitor: socket.socket | None = None
        self._stderr = folder / "qemu.log"
        append = f"root=/dev/vda rw console=ttyS0 quiet panic=-1 net.ifnames=0 init={INIT} {kernel_arguments}"
        self.command = [
            *prefix,
            QEMU,
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-machine",
            "q35,kernel-irqchip=split" if self.accelerator == "kvm" else "q35",
            *(
                ("-accel", "kvm", "-cpu", "host")
                if self.accelerator == "kvm"
                else ("-accel", "tcg,thread=multi", "-cpu", "max")
            ),
            "-smp",
            str(cpus),
            "-m",
            str(memory_mb),
            "-object",
            "rng-random,id=random,filename=/dev/urandom",
            "-device",
            "virtio-rng-pci,rng=random,bus=pcie.0",
            "-kernel",
            str(image.kernel),
            "-initrd",
            str(image.initrd),
            "-append",
            append.strip(),
            "-drive",
            f"file={image.disk},format=raw,if=none,id=root,snapshot=on",
            # Left to itself QEMU takes another root complex where there is one.
            "-device",
            "virtio-blk-pci,drive=root,bus=pcie.0",
            "-serial",
            f"file:{self.console}",
            "-qmp",
            f"unix:{self._monitor_path},server=on,wait=off",
            *arguments,
        ]
        parent = os.getpid()
        death = ctypes.CDLL(None, use_errno=True).prctl if dies_with_us else None

        def die_with_parent() -> None:  # in the child, between fork and exec
            assert death is not None
            death(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with self._stderr.open("wb") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=inherited,
                preexec_fn=die_with_parent if dies_with_us else None,
            )
        try:
            self._connect()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of QEMU, or of what `prefix` names."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> None:
        """Wait until it has switched itself off. HostError if it has not after this time, with the end of its
        console."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.trouble(f"the machine did not switch itself off within {timeout_s:.0f} s") from None

    def ask_monitor(self, command: str, **arguments: Any) -> Any:
        """QEMU's answer to a command of QMP, such as `set_link` with name and up (`id` becomes the device's).
        HostError if it refuses."""
        assert self._monitor is not None
        try:
            self._monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
            while True:
                answer = self._read_monitor()
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise HostError(
                        f"QEMU refuses {command}: {answer['error'].get('desc')}",
                        code="rig.qemu-refuses",
                        where="QEMU",
                        next_step="Correct it.",
                    )
        except OSError as error:
            raise self.trouble(f"QEMU's monitor is gone: {error}") from error

    def stop(self) -> None:
        """Pull the plug. May be called twice."""
        with suppress(OSError):
            if self._monitor is not None:
                self._monitor.close()
        for end in (self._process.terminate, self._process.kill):
            if self._process.poll() is not None:
                break
            end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)

    def console_text(self) -> str:
        """What the machine wrote to its console so far."""
        try:
            return self.console.read_text(errors="replace")
        except OSError:
            return ""

    def trouble(self, what: str) -> HostError:
        """An error with the last lines of console and QEMU."""
        error = HostError(
            what,
            code="rig.machine-in-trouble",
            where=str(self.console),
            next_step="See its console for details.",
        )
        for line in [
            *self._stderr.read_text(errors="replace").splitlines(),
            *self.console_text().splitlines(),
        ][-_CONSOLE_LINES:]:
            error.add_note(line)
        return error

    def _connect(self) -> None:
        give_up = time.monotonic() + MONITOR_TIMEOUT_S
        while self._monitor is None:
            if not self.is_running:
                words = self._stderr.read_text(errors="replace").strip().splitlines()
                raise HostError(
                    f"QEMU does not start: {(words or ['no reason given'])[-1]}",
                    code="rig.qemu-does-not-start",
                    where=QEMU,
                    next_step="Correct its arguments.",
                )
            if time.monotonic() > give_up:
                raise self.trouble("QEMU does not answer")
            monitor = socket.socket(socket.AF_UNIX)
            try:
                monitor.connect(str(self._monitor_path))
                monitor.settimeout(MONITOR_TIMEOUT_S)
                self._monitor = monitor
            except OSError:
                monitor.close()
                time.sleep(0.02)
        self._unread = b""
        self._read_monitor()  # its greeting
        self.ask_monitor("qmp_capabilities")

    def _read_monitor(self) -> dict[str, Any]:
        assert self._monitor is not None
        while b"\n" not in self._unread:
            more = self._monitor.recv(65536)
            if not more:
                raise OSError("closed")
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        document = json.loads(line)
        assert isinstance(document, dict)
        return document
