# SPDX-License-Identifier: Apache-2.0
"""Stands in for an engine: the one in the virtual machine, behind a socket of QEMU's (guest_agent.py). `to_engine.py SOCKET`."""

from __future__ import annotations

import os
import socket
import sys
import threading

END_OF_STDIN = b"\x04"


def main() -> int:
    with socket.socket(socket.AF_UNIX) as port:
        port.connect(sys.argv[1])

        def send_stdin() -> None:
            while data := os.read(0, 65536):
                port.sendall(data)
            port.sendall(END_OF_STDIN)

        threading.Thread(target=send_stdin, daemon=True).start()
        outputs = {b"O": sys.stdout.buffer, b"E": sys.stderr.buffer}
        with port.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"X"):
                    return int(line[1:]) & 0xFF
                output = outputs[line[:1]]
                output.write(line[1:])
                output.flush()
    return 1


if __name__ == "__main__":
    code = main()
    os._exit(code)  # the thread that reads stdin may wait for ever
