#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the C++ files that have changed since it last found nothing in them.

    tools/tidy.py           what has changed: seconds to minutes
    tools/tidy.py --all     every file: a quarter of an hour on two CPUs

A file has changed if it, a header of ours that it includes, `.clang-tidy` or the version of clang-tidy has.
`tools/tidy-passed.txt` keeps a digest of these for each file that passed; commit it with the change. Most of
the time that clang-tidy takes is spent on parsing headers that are the same in every run.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / "tools" / "tidy-passed.txt"
PROGRAM = ROOT / ".venv" / "bin" / "clang-tidy"
BUILD = "build-lint"
"""Tells how each file is compiled."""
FOLDERS = ("engine", "engine/tests", "router", "router/tests")
"""Where `#include "..."` is looked for, in addition to the file's own folder."""
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
DIGEST_DIGITS = 16


def sources() -> list[str]:
    """What git has or could have, relative to the project."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--cached", "--others", "--exclude-standard",
         "--", "engine/*.cpp", "router/*.cpp"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return sorted({line for line in listed.stdout.splitlines() if (ROOT / line).is_file()})


@cache
def included_by(path: Path) -> frozenset[Path]:
    """The headers of ours that a file includes itself."""
    folders = [path.parent, *(ROOT / folder for folder in FOLDERS)]
    found = set()
    for name in INCLUDE.findall(path.read_text()):
        found.update({header.resolve() for folder in folders if (header := folder / name).is_file()})
    return frozenset(found)


def closure(path: Path) -> list[Path]:
    """A file and all headers of ours that it sees, in an order that is always the same."""
    seen = {path}
    waiting = [path]
    while waiting:
        new = included_by(waiting.pop()) - seen
        seen |= new
        waiting += new
    return sorted(seen)


@cache
def content_digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def common_digest() -> bytes:
    """What all files share: the choice of checks, and the version that makes them."""
    locked = [line for line in (ROOT / "requirements-lint.lock").read_text().splitlines() if "==" in line]
    return hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + "\n".join(locked).encode()).digest()


def digest(source: str, common: bytes) -> str:
    """Changes if clang-tidy could find something else in this file."""
    whole = hashlib.sha256(common)
    for path in closure(ROOT / source):
        whole.update(str(path.relative_to(ROOT)).encode() + content_digest(path))
    return whole.hexdigest()[:DIGEST_DIGITS]


def read_passed() -> dict[str, str]:
    if not PASSED.exists():
        return {}
    lines = [line for line in PASSED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(" ", 1)[::-1] for line in lines)


def write_passed(passed: dict[str, str]) -> None:
    head = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Written by tools/tidy.py: one line for each file that passed.\n"
    )
    PASSED.write_text(head + "".join(f"{passed[source]} {source}\n" for source in sorted(passed)))


def findings(source: str) -> str:
    """What clang-tidy prints about a file with findings, otherwise nothing."""
    done = subprocess.run(
        [PROGRAM, "-p", BUILD, "--quiet", "--warnings-as-errors=*", source],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return (
        "" if done.returncode == 0 else done.stdout or done.stderr or f"{source}: exit code {done.returncode}"
    )


def main() -> int:
    common = common_digest()
    digests = {source: digest(source, common) for source in sources()}
    passed = {} if "--all" in sys.argv[1:] else read_passed()
    changed = [source for source in digests if passed.get(source) != digests[source]]
    found = []
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for source, output in zip(changed, pool.map(findings, changed), strict=True):
            passed.pop(source, None)
            if output:
                found.append(output)
            else:
                passed[source] = digests[source]
    passed = {source: value for source, value in passed.items() if source in digests}
    if passed != read_passed():
        write_passed(passed)
    print("".join(found), end="")
    print(f"clang-tidy: {len(changed)} of {len(digests)} files looked at, {len(found)} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
