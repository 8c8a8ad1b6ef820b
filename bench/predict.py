# SPDX-License-Identifier: Apache-2.0
"""How long a prediction takes: all hosts of a plan, the smallest even number of them, and the doubling
series. Needs no engine."""

from __future__ import annotations

import time
from collections.abc import Callable

from pieces import at_length, record, spread

from evenhand.plan import gateway_v4, gateway_v6
from evenhand.predict import DeviceModel, doubling_series, loads, predict, smallest_even_hosts

ROUNDS = at_length(5, 1)


def seconds(work: Callable[[], object]) -> float:
    # As in a new process: nothing is remembered from the round before.
    loads._spectrum.cache_clear()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    type1, type2, largest = (
        DeviceModel(),
        DeviceModel(hash_type="type2"),
        DeviceModel(elements=4096, hash_type="type2"),
    )
    works: dict[str, Callable[[], object]] = {
        "65,534 x 65,534, IPv4, type 1": lambda: predict(gateway_v4(), type1),
        "65,536 x 65,536, IPv6, type 1": lambda: predict(gateway_v6(), type1),
        "65,536 x 65,536, IPv6, type 2": lambda: predict(gateway_v6(), type2),
        "65,536 x 65,536, IPv6, type 2, 4096 elements": lambda: predict(gateway_v6(), largest),
        "smallest even number of hosts, IPv4, type 1": lambda: smallest_even_hosts(gateway_v4(), type1),
        "series of 17 points, IPv4, type 1": lambda: doubling_series(gateway_v4(), type1),
    }
    times = {name: spread([seconds(work) for _ in range(ROUNDS)]) for name, work in works.items()}
    for name, values in times.items():
        print(
            f"{name:46} {values['median'] * 1000:7.1f} ms   ({values['min'] * 1000:.1f} .."
            f" {values['max'] * 1000:.1f})"
        )
    figures = {f"{name} (ms)": values["median"] * 1000 for name, values in times.items()}
    record("predict", {"unit": "s", "directions": 2, "times": times}, figures)


if __name__ == "__main__":
    main()
