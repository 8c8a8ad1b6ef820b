# SPDX-License-Identifier: Apache-2.0
"""Inside the virtual machine: runs commands that come over one virtio port, and an engine for each connection to another.

Port `commands`: a line {"run": "shell text", "timeout_s": n}, and one back: {"code", "stdout", "stderr"}.
Port `engine`: each connection starts an engine. Lines go to its stdin; back come lines that begin with O (stdout), E (stderr), or X and the
exit code, after which nothing comes. When the other end hangs up, the engine's stdin is closed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO


def port_path(name: str) -> str:
    """There is no udev that would make links by name."""
    for folder in Path("/sys/class/virtio-ports").iterdir():
        if (folder / "name").read_text().strip() == name:
            return f"/dev/{folder.name}"
    raise FileNotFoundError(name)


def is_connected(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not any(event & select.POLLHUP for _, event in poll.poll(0))


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
        ended = subprocess.run(["sh", "-c", run], capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {"code": -1, "stdout": "", "stderr": f"did not end within {timeout_s} s"}
    return {"code": ended.returncode, "stdout": ended.stdout, "stderr": ended.stderr}


def serve_engines(engine: str) -> None:
    descriptor = os.open(port_path("engine"), os.O_RDWR)
    while True:
        while not is_connected(descriptor):
            time.sleep(0.02)
        serve_engine(engine, descriptor)
        while is_connected(descriptor):
            time.sleep(0.02)


def serve_engine(engine: str, descriptor: int) -> None:
    process = subprocess.Popen([engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    writing = threading.Lock()

    def tell(mark: bytes, line: bytes) -> None:
        with writing:
            whole = mark + line
            while whole and is_connected(descriptor):
                whole = whole[os.write(descriptor, whole) :]

    def forward(mark: bytes, stream: IO[bytes] | None) -> None:
        assert stream is not None
        for line in stream:
            tell(mark, line)

    readers = [
        threading.Thread(target=forward, args=(b"O", process.stdout)),
        threading.Thread(target=forward, args=(b"E", process.stderr)),
    ]
    for reader in readers:
        reader.start()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    is_open = True
    while process.poll() is None:
        if not is_open:
            time.sleep(0.02)
            continue
        poll.poll(50)
        if not is_connected(descriptor):
            data = b""
        elif any(event & select.POLLIN for _, event in poll.poll(0)):
            data = os.read(descriptor, 65536)
        else:
            continue
        try:
            if data == b"" or data.endswith(b"\x04"):
                process.stdin.write(data.removesuffix(b"\x04"))
                process.stdin.close()
                is_open = False
            else:
                process.stdin.write(data)
                process.stdin.flush()
        except BrokenPipeError:
            is_open = False
    for reader in readers:
        reader.join()
    tell(b"X", b"%d\n" % process.returncode)


if __name__ == "__main__":
    threading.Thread(target=serve_engines, args=(sys.argv[1],), daemon=True).start()
    print("guest agent: ready", flush=True)
    serve_commands()
