# SPDX-License-Identifier: Apache-2.0
"""What addresses of one's own cost: the sender's rate with one prefix and with a million from a file, beside
the plan `gateway-v4` (`gateway-v6`) in one run; and the time and memory of reading such a file.

The goals: 1.0 and 0.8 of the plain rate on one core, 2 s and 300 MB.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import time
from ipaddress import ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pieces import at_length, record, spread
from sender_rate import ROUNDS, engine_fps

from evenhand.plan import gateway_v4, gateway_v6
from evenhand.plan.plan_file import read_plan_file

PREFIXES = at_length(1_000_000, 1_000)
LEAST_OF_ONE, LEAST_OF_MANY = 0.95, 0.8
"""Shares of the plain sender's rate; rates of one run differ by some percent."""
MOST_S, MOST_MB = 2.0, 300.0
SIDES = {
    4: ("10.0.0.1/24", "10.0.0.2", "198.18.0.0/16", "10.0.1.1/24", "10.0.1.2", "198.19.0.0/16"),
    6: (
        "2001:2:0:1000::1/64",
        "2001:2:0:1000::2",
        "2001:2::/64",
        "2001:2:0:9000::1/64",
        "2001:2:0:9000::2",
        "2001:2:0:8000::/64",
    ),
}
"""DUT, gateway and hosts of both sides."""
TABLE = {4: ("32.0.0.0/3", 24), 6: ("2400::/12", 48)}
"""In which network the prefixes of a table are, and how long they are."""


def write_plan(folder: Path, version: int, *, prefixes: int) -> Path:
    """A plan file; with several prefixes on its right side they are in a file of their own."""
    left_dut, left_gateway, left_hosts, right_dut, right_gateway, right_hosts = SIDES[version]
    hosts = f'hosts = "{right_hosts}"'
    if prefixes > 1:
        network, length = ip_network(TABLE[version][0]), TABLE[version][1]
        step = 1 << (network.max_prefixlen - length)
        chosen = sorted(random.Random(1).sample(range(network.num_addresses // step), prefixes))
        address = type(network.network_address)
        first = int(network.network_address)
        (folder / f"table{version}.txt").write_text(
            "".join(f"{address(first + place * step)}/{length}\n" for place in chosen)
        )
        hosts = f'prefixes = "table{version}.txt"'
    path = folder / f"own{version}-{prefixes}.toml"
    path.write_text(
        f'name = "own{version}-{prefixes}"\n'
        f'[left]\ndut = "{left_dut}"\ngateway = "{left_gateway}"\nhosts = "{left_hosts}"\n'
        f'[right]\ndut = "{right_dut}"\ngateway = "{right_gateway}"\n{hosts}\n'
    )
    return path


def reading(path: Path) -> tuple[float, float]:
    """Seconds and megabytes that a process takes to read a plan file."""
    asked = [sys.executable, __file__, "--read", str(path)]
    seconds, megabytes = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
    return seconds, megabytes


def read_alone(path: Path) -> None:
    begin = time.monotonic()
    read_plan_file(path)
    took_s = time.monotonic() - begin
    print(json.dumps([took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))


def main() -> None:
    ratios: dict[str, dict[str, Any]] = {}
    read: dict[str, tuple[float, float]] = {}
    with TemporaryDirectory() as name:
        for version, plain in ((4, gateway_v4()), (6, gateway_v6())):
            paths = [write_plan(Path(name), version, prefixes=count) for count in (1, PREFIXES)]
            plans = [plain, *map(read_plan_file, paths)]
            rates = [[engine_fps(plan) for plan in plans] for _ in range(ROUNDS)]
            for place, what in ((1, "one prefix"), (2, f"{PREFIXES:,} prefixes")):
                found = spread([of_round[place] / of_round[0] for of_round in rates])
                ratios[f"v{version}, {what} to plain"] = found
                print(f"v{version}, {what}: {found['median']:.3f} of the plain sender's rate", flush=True)
            plain_fps = statistics.median(of_round[0] for of_round in rates)
            print(f"v{version}, plain: {plain_fps / 1e6:.1f} Mfps")
            read[f"v{version}"] = seconds, megabytes = reading(paths[1])
            print(f"v{version}, {PREFIXES:,} prefixes are read in {seconds:.2f} s and {megabytes:.0f} MB")
    figures = {name: found["median"] for name, found in ratios.items()}
    for name, (seconds, megabytes) in read.items():
        figures |= {f"{name}, read (s)": seconds, f"{name}, read (MB)": megabytes}
    record("own_prefixes", {"ratios": ratios, "prefixes": PREFIXES}, figures)
    missed = [
        name
        for name, found in ratios.items()
        if found["median"] < (LEAST_OF_ONE if "one prefix" in name else LEAST_OF_MANY)
    ]
    missed += [f"{name}, read" for name, (s, mb) in read.items() if s > MOST_S or mb > MOST_MB]
    print("own_prefixes: all goals are met" if not missed else f"own_prefixes: not met: {', '.join(missed)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_alone(Path(sys.argv[2]))
    else:
        main()
