# SPDX-License-Identifier: Apache-2.0
"""What the engine is asked for each topology with each kind of options.

`python -m tests.plan.contract_goldens` writes the golden lines anew, which only a new contract may need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.base.errors import PlanError
from evenhand.plan import TOPOLOGIES, AddressPlan, FrameSize, UdpRange, make_plan, mix_request, mix_versions
from evenhand.plan.imix import parse_imix
from tests.plan.routed import WITH_PREFIX

FILE = Path(__file__).parent / "files" / "contract.jsonl"
_PORT = UdpRange(first=7, last=7, mode="fixed")
_COUNTED = UdpRange(first=1024, last=2047, mode="decrement")
OPTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "one host": {"hosts": 1},
    "one address pair": {"hosts": 1, "networks": 1},
    "unlike sides": {"hosts": (1, 3)},
    "unlike networks": {"networks": (2, 5)},
    "few": {"hosts": 2, "networks": 3},
    "incrementing hosts": {"host_mode": "increment"},
    "decrementing hosts and networks": {"host_mode": "decrement", "network_mode": "decrement"},
    "fixed hosts": {"host_mode": "fixed"},
    "fixed networks": {"network_mode": "fixed"},
    "fixed source": {"fixed_source": True},
    "fixed source network": {"fixed_source_network": True},
    "common network": {"common_network": True},
    "other ports": {"source_ports": _COUNTED, "destination_ports": _PORT},
}
MIXES = (
    ("gateway-v4", "gateway-v6", (90, 10)),
    ("gateway-v6", "gateway-v4", (1, 1)),
    ("direct-v4-net24", "direct-v6", (50, 50)),
    ("nets-v4-gateway", "nets-v6-gateway", (10, 90)),
    ("siit@2001:db8::/40", "gateway-v6", (90, 10)),
)
SIZES: dict[str, FrameSize] = {
    "64": 64,
    "84": 84,
    "IMIX": parse_imix("imix:aaafg"),
    "own IMIX": parse_imix("imix:AAB:A=84:B=1400"),
    "drawn IMIX": parse_imix("imix:aaz:z=1400:frames=12:seed=7"),
}


def cases() -> Iterator[tuple[str, AddressPlan]]:
    """Each plan that can be made, with a name of its own."""
    for name in TOPOLOGIES:
        for title, options in OPTIONS.items():
            try:
                plan = make_plan(name, **options)
            except PlanError:
                continue
            yield f"{name}, {title}", plan
            if title in ("all", "few"):
                yield f"{name}, {title}, its one address pair", plan.one_pair()
    for name in WITH_PREFIX:
        yield f"{name}, every host", make_plan(name)
        yield f"{name}, unlike sides", make_plan(name, (1, 3))
    for first, second, share in MIXES:
        yield f"{first}+{second} {share}", mix_versions(make_plan(first, 5), make_plan(second, 5), share)


def lines() -> list[str]:
    """One for each case: its name, the plan, and of some sizes the mix."""
    found = [[name, plan.to_contract()] for name, plan in cases()]
    mixes = [
        [f"{name}, {size}", mix_request(plan, SIZES[size])]
        for name, plan in cases()
        if plan.other is not None or name.endswith(", all")
        for size in SIZES
    ]
    return [json.dumps(each) for each in (*found, *mixes)]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
