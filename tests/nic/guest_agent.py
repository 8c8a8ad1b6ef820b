# SPDX-License-Identifier: Apache-2.0
"""Inside the virtual machine: runs commands that come over one virtio port, and an engine for each connection
to another.

Port `commands`: a line {"run": "shell text", "timeout_s": n}, and one back: {"code", "stdout", "stderr"}.
Port `engine`: a line of octet 1 and a number starts an engine, and ends the one before; octet 1 alone closes
its stdin. Other lines go to its stdin. Back come lines that begin with O (stdout), E (stderr) or X (the exit
code, the last line), the number and a blank.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO


def port_path(name: str) -> str:
    """There is no udev that would make links by name."""
    for folder in Path("/sys/class/virtio-ports").iterdir():
        if (folder / "name").read_text().strip() == name:
            return f"/dev/{folder.name}"
    raise FileNotFoundError(name)


def serve_commands() -> None:
    descriptor = os.open(port_path("commands"), os.O_RDWR)
    unread = b""
    while True:
        data = os.read(descriptor, 65536)
        if not data:
            time.sleep(0.05)
            continue
        unread += data
        while b"\n" in unread:
            line, unread = unread.split(b"\n", 1)
            answer = json.dumps(run(**json.loads(line))).encode() + b"\n"
            while answer:
                answer = answer[os.write(descriptor, answer) :]


def run(run: str, timeout_s: float) -> dict[str, object]:
    try:
        ended = subprocess.run(
            ["sh", "-c", run],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"code": -1, "stdout": "", "stderr": f"did not end within {timeout_s} s"}
    return {"code": ended.returncode, "stdout": ended.stdout, "stderr": ended.stderr}


class Engine:
    """One that runs; what it says goes to the port as it comes."""

    def __init__(self, program: str, number: int, descriptor: int) -> None:
        self._number = number
        self._descriptor = descriptor
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        threading.Thread(target=self._forward_all, daemon=True).start()

    def write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _forward_all(self) -> None:
        errors = threading.Thread(target=self._forward, args=(b"E", self._process.stderr))
        errors.start()
        self._forward(b"O", self._process.stdout)
        errors.join()
        self._tell(b"X", b"%d\n" % self._process.wait())

    def _forward(self, mark: bytes, stream: IO[bytes] | None) -> None:
        assert stream is not None
        for line in stream:
            self._tell(mark, line)

    def _tell(self, mark: bytes, line: bytes) -> None:
        whole = b"%s%d %s" % (mark, self._number, line)
        with self._writing:
            while whole:
                whole = whole[os.write(self._descriptor, whole) :]


def serve_engines(program: str) -> None:
    descriptor = os.open(port_path("engine"), os.O_RDWR)
    engine: Engine | None = None
    unread = b""
    while True:
        data = os.read(descriptor, 65536)
        if not data:  # nobody is connected
            time.sleep(0.02)
        unread += data
        while b"\n" in unread:
            line, unread = unread.split(b"\n", 1)
            if line == b"\x01":
                if engine is not None:
                    engine.close_stdin()
            elif line.startswith(b"\x01"):
                if engine is not None:
                    engine.kill()
                engine = Engine(program, int(line[1:]), descriptor)
            elif engine is not None:
                engine.write(line + b"\n")


if __name__ == "__main__":
    threading.Thread(target=serve_engines, args=(sys.argv[1],), daemon=True).start()
    print("guest agent: ready", flush=True)
    serve_commands()
