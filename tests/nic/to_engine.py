# SPDX-License-Identifier: Apache-2.0
"""Stands in for an engine: the one in the virtual machine, behind a socket of QEMU's (guest_agent.py).
`to_engine.py SOCKET`."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main() -> int:
    number = b"%d" % os.getpid()  # what an engine before this one still says is passed over
    with socket.socket(socket.AF_UNIX) as port:
        port.connect(sys.argv[1])
        port.sendall(b"\x01%s\n" % number)

        def send_stdin() -> None:
            while data := os.read(0, 65536):
                port.sendall(data)
            port.sendall(b"\x01\n")

        threading.Thread(target=send_stdin, daemon=True).start()
        outputs = {b"O": sys.stdout.buffer, b"E": sys.stderr.buffer}
        with port.makefile("rb") as lines:
            for line in lines:
                mark, _, text = line.partition(b" ")
                if mark[1:] != number:
                    continue
                if mark[:1] == b"X":
                    return int(text) & 0xFF
                outputs[mark[:1]].write(text)
                outputs[mark[:1]].flush()
    return 1


if __name__ == "__main__":
    code = main()
    os._exit(code)  # the thread that reads stdin may wait for ever
