# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT as it is: what of it a set-up may change, and what it must not touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evenhand.dut.shell_parts import KEPT

TAYGA_FILES = f"{KEPT}/tayga"
"""What the paths of its files begin with, next to the record of the set-up, as the DUT's shell knows it after
`KEPT_HERE`; `NAT_FILES` likewise."""
NAT_FILES = f"{KEPT}/nat"
FLOWS = ("udp4", "udp6")
"""Flows that have hash fields of their own (RSS-02)."""
NOWHERE = ("blackhole", "unreachable", "prohibit")
"""Types of routes that end here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An interface of the DUT."""

    name: str
    mac: str
    is_up: bool
    has_carrier: bool
    master: str | None
    """The bridge, bond or VRF that it belongs to."""
    is_in_vrf: bool
    lower: str | None
    """The interface below it, or the other end of a veth in the same namespace."""
    addresses: Mapping[str, str | None]
    """Each with its prefix length, and what else `ip address add` needs to make it again; None if it comes
    and goes by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route of any table."""

    prefix: str
    """`0.0.0.0/0` and `::/0` for a default route."""
    text: str
    """`via 10.0.0.2 dev eth1`, for people and to compare."""
    interfaces: tuple[str, ...]
    table: str | None
    """`main`, or another; None: of a kind that no set-up makes, such as a local one."""
    is_learned: bool
    """Whether it is from a router advertisement, which a router no longer listens to."""

    @property
    def is_default(self) -> bool:
        return self.prefix in ("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxState:
    """What was read at one moment."""

    boot_id: str
    links: Mapping[str, Link]
    routes: tuple[Route, ...]
    neighbors: Mapping[str, Mapping[str, str]]
    """Neighbours by interface and address: `02:00:00:00:00:01 permanent`, or the state alone; only of the
    interfaces that were asked for."""
    rules: Mapping[str, Mapping[str, tuple[str, ...]]]
    """For what comes in on an interface, by IP version and interface: `lookup 7301 pref 7300`. Nothing of an
    IP version whose kernel part has none."""
    sysctls: Mapping[str, str]
    """Values by path below /proc/sys."""
    hashes: Mapping[tuple[str, str], str]
    """Letters of `ethtool -N`, by interface and flow."""
    hash_refusals: Mapping[tuple[str, str], str]
    """The same: what ethtool or the driver said instead."""
    receive_hashing: Mapping[str, str]
    """`on` or `off` by interface, where the driver lets it be switched. Some use no hash fields while it is
    off (virtio_net)."""
    channels: Mapping[str, str]
    """Channels by interface: `combined 4` or `rx 2 tx 2`; nothing where it is not known."""
    hash_keys: Mapping[str, str]
    """Keys by interface: octets as ethtool writes them, `6d:5a:...`; nothing where it is not known."""
    hash_tables: Mapping[str, str]
    """Tables by interface: `equal 4` if entry i names queue i modulo 4, `default 4` if these are all the
    queues that there are, and else the entries; nothing where it is not known."""
    hash_table_entries: Mapping[str, int]
    """Number of entries by interface, where it is known."""
    peer: str | None
    """Where this connection comes from, as the DUT sees it."""
    carrying: tuple[str, ...]
    """Interfaces that this connection goes over."""
    has_tayga: bool = False
    """Whether the program is there."""
    tayga: str | None = None
    """The configuration of the TAYGA that a set-up has started; "other" if that does not run, but its
    interface is there; None: nothing is."""
    missing_for_nat: tuple[str, ...] = ()
    """Programs that a NAT needs, and that are not there."""
    nat: str | None = None
    """The rules of the NAT that a set-up has set; "other" if their table has others; None: there are none."""
    many_routes: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Routes that are too many for `routes`, by interface, IP version and table: `1000000 via 10.0.0.2`."""
    memory_left_octets: int | None = None
    """What the kernel could still give; None if it does not say."""

    @property
    def kept_from(self) -> frozenset[str]:
        """Interfaces that carry this connection, and the interfaces below them."""
        return self.carriers(self.carrying)

    def route(self, prefix: str, table: str = "main") -> Route | None:
        return next((each for each in self.routes if (each.table, each.prefix) == (table, prefix)), None)

    def carriers(self, names: Iterable[str]) -> frozenset[str]:
        """See `carriers_of`."""
        return carriers_of(self.links, names)


def carriers_of(links: Mapping[str, Link], names: Iterable[str]) -> frozenset[str]:
    """These interfaces, those below them, and the ports of those that are bridges or bonds."""
    found: set[str] = set()
    left = [name for name in names if name in links]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        lower = links[name].lower
        left += [lower] if lower is not None and lower in links else []
        left += [link.name for link in links.values() if link.master == name]
    return frozenset(found)
