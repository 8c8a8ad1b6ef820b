# SPDX-License-Identifier: Apache-2.0
"""The golden files of `evenhand dut setup`: every operating system, every plan; set-up and undo in one file.

After a change that is meant, write them anew and read the difference:

    .venv/bin/python -m tests.dut.goldens && git diff tests/dut/golden
"""

from __future__ import annotations

from pathlib import Path

from evenhand.dut import OPERATING_SYSTEMS, DutScript, HashType, Translator, describe_setup
from evenhand.dut.nat import USUAL_NAT, NatWishes
from evenhand.plan import TOPOLOGIES, make_plan
from tests.plan.routed import ROUTED, STATEFUL, TRANSLATED

FOLDER = Path(__file__).with_name("golden")
GATEWAY_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
NAT_CHOICES = NatWishes(ports="random", table_size=1_000_000)
NETWORKS = 3
"""Networks of plans that have some: enough to see what is repeated."""
FEWER_HOSTS = {
    ("openbsd", "direct_v6"): 5000,
    ("openbsd", "nets_v6_direct"): 1500,
    ("vyos", "direct_v6"): 5000,
    ("vyos", "direct_v4_net16"): 5000,
    ("vyos", "nets_v6_direct"): 1500,
}
"""Hosts of systems that have no room for those of a whole plan."""
IPV4_NEIGHBORS = ("vyos",)
"""Systems that have static neighbours for IPv4 alone."""

NO_POOL = (("sonic", "nat44"),)
"""Systems and plans whose pool they refuse: it must be in the network of an interface."""


def cases() -> dict[str, list[tuple[str, str]]]:
    """Name of the file, operating system and plan; each plan as it is, three with all options and few
    hosts; those that are translated, with state or without, for Linux alone."""
    return {
        **{f"{system}/{plan}.txt": [(system, plan)] for system in OPERATING_SYSTEMS for plan in ROUTED},
        **{
            f"{system}/all_options.txt": [
                (system, "gateway_v4"),
                *([] if system in IPV4_NEIGHBORS else [(system, "direct_v6")]),
                (system, "direct_v4_net24"),
            ]
            for system in OPERATING_SYSTEMS
        },
        **{
            f"{system}/{plan}.txt": [(system, plan)]
            for system, chosen in OPERATING_SYSTEMS.items()
            for plan in STATEFUL
            if plan.partition("_")[0].upper() in chosen.nats and (system, plan) not in NO_POOL
        },
        **{f"linux/{plan}.txt": [("linux", plan)] for plan in (*TRANSLATED, *STATEFUL)},
        "linux/jool.txt": [("linux", plan) for plan in (*TRANSLATED, "nat64")],
        "linux/nat_choices.txt": [("linux", plan) for plan in STATEFUL],
    }


def render(name: str) -> str:
    """What `evenhand dut setup` prints for this file, then what it prints with `--undo`."""
    is_all = name.endswith("all_options.txt")
    translator: Translator | None = "jool" if name.endswith("jool.txt") else None
    nat_wishes = NAT_CHOICES if name.endswith("nat_choices.txt") else USUAL_NAT
    return "\n".join(
        script(
            system, plan, is_undo=is_undo, is_all=is_all, translator=translator, nat_wishes=nat_wishes
        ).text()
        for system, plan in cases()[name]
        for is_undo in (False, True)
    )


def script(
    system: str,
    plan: str,
    *,
    is_undo: bool = False,
    is_all: bool = False,
    translator: Translator | None = None,
    nat_wishes: NatWishes = USUAL_NAT,
) -> DutScript:
    hash_type: HashType = "type1" if system == "openbsd" else "type2"
    networks = None if TOPOLOGIES[plan].most_networks is None else NETWORKS
    chosen = OPERATING_SYSTEMS[system]
    left, right = chosen.interfaces
    return DutScript(
        setup=describe_setup(
            make_plan(plan, 2 if is_all else FEWER_HOSTS.get((system, plan)), networks=networks),
            left=left,
            right=right,
            hash_type=hash_type if is_all else None,
            gateway_macs=GATEWAY_MACS if is_all else None,
            translator=translator,
            nat_wishes=nat_wishes,
        ),
        system=chosen,
        is_undo=is_undo,
    )


if __name__ == "__main__":
    for name in cases():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(name), encoding="utf-8")
