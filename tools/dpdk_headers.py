# SPDX-License-Identifier: Apache-2.0
"""Which C++ files see DPDK's headers: those of the ports, and the few that compile a loop over them.

    tools/dpdk_headers.py

It follows the includes from file to file. What is compiled without DPDK's headers can be read and tested
without them, and a new kind of port changes nothing there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "router")
MAY_INCLUDE = ("engine/port/", "router/tables/route_table.cpp", "router/tests/main.cpp")
"""Files, and folders, that may include DPDK themselves."""
MAY_SEE = (*MAY_INCLUDE, "engine/bench/", "router/run/", "router/main.cpp")
"""These may include what includes DPDK, too."""

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_DPDK = re.compile(r"(^|/)rte_\w+\.h$|^(ethdev|bus_\w+)_(driver|vdev|pci)\.h$")


def sources(root: Path) -> list[str]:
    """C++ sources, from the root of the checkout."""
    return sorted(
        str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).rglob("*.[ch]pp")
    )


def violations(root: Path) -> list[str]:
    """One line for each file that should not see DPDK and does, with the way there."""
    files = sources(root)
    own = set(files)
    includes: dict[str, list[str]] = {}
    direct: set[str] = set()
    for file in files:
        includes[file] = []
        for bracket, name in _INCLUDE.findall((root / file).read_text(encoding="utf-8")):
            if bracket == "<" and _DPDK.search(name):
                direct.add(file)
            places = (f"{folder}/{name}" for folder in (*FOLDERS, *(f"{f}/tests" for f in FOLDERS)))
            includes[file] += [place for place in places if place in own]
    found = [f"{file} includes DPDK" for file in sorted(direct) if not file.startswith(MAY_INCLUDE)]
    for file in files:
        way = _way_to(direct, file, includes)
        if way is not None and file not in direct and not file.startswith(MAY_SEE):
            found.append(f"{' includes '.join(way)}, which includes DPDK")
    return found


def _way_to(direct: set[str], file: str, includes: dict[str, list[str]]) -> list[str] | None:
    """The shortest chain of includes from this file to one of these; None if there is none."""
    ways = {file: [file]}
    queue = [file]
    for current in queue:
        if current in direct:
            return ways[current]
        for included in includes[current]:
            if included not in ways:
                ways[included] = [*ways[current], included]
                queue.append(included)
    return None


def main() -> int:
    """1 if a file sees DPDK that should not."""
    found = violations(ROOT)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
