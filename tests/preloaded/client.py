# SPDX-License-Identifier: Apache-2.0
"""Runs a command line in a child of the server that has loaded everything, as if it were this process.

`client.py SOCKET ARGUMENT...`. The child gets this process's arguments, environment, folder, limits, CPUs,
umask and standard streams; signals are passed on to it, it dies with this process, and this process ends as
it ends. It has an id of its own. Started often, so it loads little.
"""

import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]
PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}


def main(server: str, *arguments: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    umask = os.umask(0)
    os.umask(umask)
    request = {
        "arguments": arguments,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "umask": umask,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
    }
    line = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [line], [0, 1, 2])
    connection.sendall(line[sent:])

    def pass_on(number: int, _: object) -> None:
        with suppress(OSError):  # it has ended, and this process is about to
            connection.sendall(bytes([number]))

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    ended = connection.recv(100)
    if not ended:
        sys.exit("the server of preloaded commands has gone")
    code = int(ended)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
