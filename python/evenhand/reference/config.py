# SPDX-License-Identifier: Apache-2.0
"""How the reference router is configured: one document, made from the same plan and the same device model as
the test and its prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan, SideName
from evenhand.predict import DeviceModel, NeighborCost

T = TypeVar("T")
START_S_OF_PREFIX = 30e-6
"""Seconds by which each prefix of its files may delay the router's start."""
MAX_ROUTER_ELEMENTS = 512
MAX_ROUTER_PAIRS = 4
"""Most pairs of ports."""
DEFAULT_QUEUE_FRAMES = 512
DEFECT_KINDS = ("loss", "duplication", "reordering", "corruption")


def _each_once(several: Iterable[T]) -> list[T]:
    """Both plans of a mix may have an address or a route."""
    return list(dict.fromkeys(several))


def write_route_files(plan: AddressPlan, folder: Path) -> list[dict[str, str]]:
    """`route_files` of the configuration, each a new file of that folder: routes of sides that have too many
    to be listed one by one."""
    files = []
    for number, part in enumerate(plan.plans):
        for side in part.sides:
            if side.prefixes is None or side.routes or side.gateway is None:
                continue
            path = folder / f"routes-{number}-{side.name}.txt"
            with path.open("x", encoding="ascii") as file:
                file.writelines(f"{text}\n" for text in side.prefixes.texts())
            files.append({"path": str(path), "via": str(side.gateway.ip)})
    return files


def prefixes_in_files(plan: AddressPlan) -> int:
    """How many `write_route_files` writes."""
    sides = [side for part in plan.plans for side in part.sides]
    return sum(side.prefixes.count for side in sides if side.prefixes is not None and not side.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """What the router does wrong on purpose, to test testers. Ratios of the forwarded frames, or their
    numbers from 0."""

    seed: int = 1
    ratios: dict[str, float] = field(default_factory=dict)
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dscp: int | None = None
    """Only frames with this DSCP are affected, and counted; None: all."""

    def __post_init__(self) -> None:
        for kind in (*self.ratios, *self.at):
            if kind not in DEFECT_KINDS:
                raise RequestError(
                    f"{kind!r} is not a defect",
                    code="rig.not-a-defect",
                    where="defects",
                    next_step=f"Use one of: {', '.join(DEFECT_KINDS)}.",
                )

    def to_document(self) -> dict[str, Any]:
        kinds: dict[str, Any] = {kind: {} for kind in DEFECT_KINDS if kind in self.ratios or kind in self.at}
        for kind, ratio in self.ratios.items():
            kinds[kind]["ratio"] = ratio
        for kind, numbers in self.at.items():
            kinds[kind]["at"] = list(numbers)
        chosen = {} if self.dscp is None else {"dscp": self.dscp}
        return {"seed": self.seed, **chosen, **kinds}


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerDelay:
    """A delay of two points: each `every`-th forwarded frame takes longer."""

    every: int
    us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Times in which no forwarded frame leaves, as of a router that does something else; at the end of each
    `every_ms` from its start on."""

    every_ms: float
    for_ms: float
    queue_frames: int
    """Frames of each side that wait for the end; more are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceDut:
    """The device under test as it is configured. Without a model it forwards as fast as it can."""

    model: DeviceModel | None = None
    extra_delay_us: float = 0.0
    longer_delay: LongerDelay | None = None
    delayed_load_fps: float | None = None
    """The highest load per direction whose frames have room in the delays; None: what the elements serve, or
    100,000 frames per second."""
    stall: Stall | None = None
    neighbor_cost: NeighborCost | None = None
    defects: Defects | None = None
    static_neighbors: dict[str, str] = field(default_factory=dict)
    """Address to MAC, for tests without a tester that answers."""
    largest_frame_size: int = 1518
    """Octets with FCS that its ports take, to 9216."""
    translation_defects: Mapping[str, int] = field(default_factory=dict)
    """Every nth frame is translated wrongly: n by the keys of the router's `translation`."""
    nat_options: Mapping[str, object] = field(default_factory=dict)
    """How it translates connections, and what it does wrong then, by the keys of the router's `nat`; its
    addresses are those of the plan."""
    vlans: Mapping[SideName, tuple[int, ...]] = field(default_factory=dict)
    """Tags of all frames on each link, outermost first."""
    one_armed: bool = False
    """Both of its ports are one, on a single cable: a router on a stick, whose links have different tags."""

    def __post_init__(self) -> None:
        if self.one_armed and self.vlans.get("left", ()) == self.vlans.get("right", ()):
            raise RequestError(
                "a one-armed router without a VLAN for each side",
                code="rig.one-armed",
                where="device.vlan",
                next_step="Give each side its own, such as 10,20.",
            )
        if self.model is not None:
            if self.model.rate_fps is None:
                raise RequestError(
                    "the elements have no rate",
                    code="rig.rate-missing",
                    where="device.rate_fps",
                    next_step="Set the rate that one element forwards.",
                )
            if self.model.elements > MAX_ROUTER_ELEMENTS:
                raise RequestError(
                    f"{self.model.elements} elements: the router must have 1 to {MAX_ROUTER_ELEMENTS}",
                    code="rig.out-of-range",
                    where="device.elements",
                )

    @property
    def connection_timeout_s(self) -> float | None:
        """Seconds without a frame after which it forgets a connection; None: never."""
        timeout_s = self.nat_options.get("timeout_s")
        return float(timeout_s) if isinstance(timeout_s, int | float) and timeout_s > 0 else None

    def justified_limits(self) -> dict[str, str]:
        """Limits of validity that the elements' queues justify, as a testbed file has them; none without a
        model.

        While the tester is away the queues drain. The burst that follows a third of the time that they last
        fills them no higher than they were, or to a third.
        """
        if self.model is None or self.model.rate_fps is None:
            return {}
        queue_s = (self.model.queue_frames or DEFAULT_QUEUE_FRAMES) / self.model.rate_fps
        return {
            "overdue_after": f"{queue_s / 3 * 1e6:.0f}us",
            "overdue_tolerance": "5%",
            "offered_tolerance": "0.25%",
        }

    def _ports(self, plan: AddressPlan, devices: Mapping[SideName, str]) -> dict[str, Any]:
        return {
            side.name: {
                "device": devices[side.name],
                "addresses": _each_once(
                    str(interface) for part in plan.plans for interface in part.side(side.name).dut
                ),
                **({"vlan": list(vlan)} if (vlan := self.vlans.get(side.name)) else {}),
            }
            for side in plan.sides
        }

    def router_config(
        self,
        plan: AddressPlan,
        devices: Mapping[SideName, str],
        *,
        cpu: int,
        more_devices: Sequence[Mapping[SideName, str]] = (),
    ) -> dict[str, Any]:
        """See contract/router-config.schema.json.

        Args:
            devices: DPDK device of each of the router's ports.
            cpu: Gets the router's busy thread.
            more_devices: Devices of each further port pair, between which the same addresses are forwarded.
        """
        config: dict[str, Any] = {
            "ports": self._ports(plan, devices),
            **({"more_ports": [self._ports(plan, each) for each in more_devices]} if more_devices else {}),
            "cpu": cpu,
            "routes": [
                {"network": network, "via": via}
                for network, via in _each_once(
                    (str(route), str(side.gateway.ip))
                    for part in plan.plans
                    for side in part.sides
                    if side.gateway
                    for route in side.routes
                )
            ],
        }
        for translation in (part.translation for part in plan.plans if part.translation is not None):
            config["translation"] = {
                "prefix": str(translation.prefix),
                "mappings": [
                    {
                        "ipv4": str(translation.ipv6_hosts_as_ipv4),
                        **({"ipv6": str(translation.ipv6_hosts)} if translation.needs_mapping else {}),
                    }
                ],
                **self.translation_defects,
            }
        for part in plan.plans:
            if part.nat is None or part.right.peers is None:
                continue
            pool = part.right.peers
            config["nat"] = {
                "inside": part.left.name,
                "pool": {"first": str(pool.first_address), "count": pool.count, "offset": pool.offset},
                **({} if part.nat.prefix is None else {"prefix": str(part.nat.prefix)}),
                **self.nat_options,
            }
        if self.model is not None:
            config["elements"] = {
                "count": self.model.elements,
                "rate_fps": self.model.rate_fps,
                "queue_frames": self.model.queue_frames or DEFAULT_QUEUE_FRAMES,
                "hash": self.model.hash_type,
                "symmetric": self.model.symmetric,
                "key": self.model.key.hex(),
                "table": list(self.model.table),
            }
        neighbors: dict[str, Any] = {}
        if self.neighbor_cost is not None:
            neighbors |= {
                "free_entries": self.neighbor_cost.free_entries,
                "growth": self.neighbor_cost.growth,
            }
        if self.static_neighbors:
            neighbors["static"] = [
                {"address": address, "mac": mac} for address, mac in self.static_neighbors.items()
            ]
        if neighbors:
            config["neighbors"] = neighbors
        if self.defects is not None:
            config["defects"] = self.defects.to_document()
        if self.largest_frame_size != 1518:
            config["largest_frame_size"] = self.largest_frame_size
        if self.extra_delay_us:
            config["extra_delay_us"] = self.extra_delay_us
        if self.longer_delay is not None:
            config["longer_delay"] = asdict(self.longer_delay)
        if self.delayed_load_fps is not None:
            config["delayed_load_fps"] = self.delayed_load_fps
        if self.stall is not None:
            config["stall"] = asdict(self.stall)
        return config
