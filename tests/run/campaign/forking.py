# SPDX-License-Identifier: Apache-2.0
"""Runs command lines in children of a process that has loaded everything: a campaign is started a hundred
times in one test.

Reads lines of JSON, `{"arguments": [...], "log": FILE}`; writes the id of the child, and its exit code when
it has ended.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from evenhand.cli.main import app_of, run


def main(verb: str, *modules: str) -> None:
    app_of((verb,))
    for module in modules:
        import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for stream in (1, 2):
                os.dup2(log, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.argv = ["evenhand", *request["arguments"]]
            run()
            os._exit(4)  # `run` does not return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
