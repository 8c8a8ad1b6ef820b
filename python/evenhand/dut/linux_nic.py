# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT: what ethtool sets of its NICs. Queues, and the hash by which frames are shared out to them:
fields, key and table."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from evenhand.base.errors import RequestError
from evenhand.dut.description import DutSetup, HashType
from evenhand.dut.items import Item, Move, NotTakenError
from evenhand.dut.linux import HASH_FIELDS
from evenhand.dut.linux_state import FLOWS, NAT_FILES, LinuxState, Route
from evenhand.dut.nat import MODULE, TABLE, hosts_before_nat, nat_rules, settings_of_nat, start_nat, stop_nat
from evenhand.dut.readings_queues import quote
from evenhand.plan.translation import Nat


@dataclass(frozen=True, slots=True, kw_only=True)
class NicWishes:
    """What is asked for of both interfaces in addition to the hash type; None leaves it as it is."""

    channels: int | None = None
    """Queues (`ethtool -L`), and a table that names them all, where `table_queues` asks for no other."""
    hash_key: bytes | None = None
    """Key of the hash (`ethtool -X hkey`), as long as the NIC's own (RSS-03)."""
    table_queues: int | None = None
    """The hash table names the first so many queues, one after the other (`ethtool -X equal`; RSS-04)."""


NO_WISHES = NicWishes()


def nic_items(name: str, state: LinuxState, wishes: NicWishes) -> Iterator[Item]:
    """Items of one interface. The queues come first: a table names queues that must be there. Where fewer
    queues wait for another table, or a driver makes a new table with its queues, the next pass brings them
    right (`setup.settle`). Whoever asks for queues alone gets a table that names all of them, unless the one
    that is there could not be put back.

    Raises:
        NotTakenError: The driver does not report what is to be changed, or it could not be put back.
    """
    if wishes.channels is not None:
        yield _channels(name, state, wishes.channels)
    if wishes.table_queues is not None:
        yield _table(name, state, wishes.table_queues)
    elif wishes.channels is not None and not state.hash_tables.get(name, "0")[0].isdigit():
        yield _table(name, state, min(wishes.channels, state.hash_table_entries[name]))
    if wishes.hash_key is not None:
        yield _key(name, state, wishes.hash_key)


def hash_items(name: str, state: LinuxState, hash_type: HashType) -> Iterator[Item]:
    """Fields of one interface for UDP over both IP versions (RSS-02). Errors as `nic_items`."""
    if (now := state.receive_hashing.get(name)) is not None:
        yield Item("receive_hashing", (name,), now, "on")
    for flow in FLOWS:
        key = (name, flow)
        if key in state.hash_refusals:
            raise NotTakenError(
                f"{name} does not report what it hashes: {state.hash_refusals[key]}",
                code="rig.not-reported-by-nic",
                where=f"hash {hash_type}",
                next_step="Do not change the hash, or use a NIC whose driver can set it.",
            )
        yield Item("hash", key, state.hashes[key], HASH_FIELDS[hash_type])


def _channels(name: str, state: LinuxState, count: int) -> Item:
    now = state.channels.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its channels",
            code="rig.not-reported-by-nic",
            where="--channels",
            next_step="Omit --channels: its driver has one queue, or cannot change their number.",
        )
    kinds = now.split()[::2]
    return Item("channels", (name,), now, " ".join(f"{kind} {count}" for kind in kinds))


def _key(name: str, state: LinuxState, key: bytes) -> Item:
    now = state.hash_keys.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its hash key",
            code="rig.not-reported-by-nic",
            where="--key",
            next_step="Omit --key: its driver cannot set it.",
        )
    octets = len(now.split(":"))
    if len(key) != octets:
        raise NotTakenError(
            f"the hash key of {name} has {octets} octets, but the requested one has {len(key)}",
            code="rig.hash-key-length",
            where="--key",
            next_step=f"Write {octets} octets: 6d:5a:56:da:...",
        )
    return Item("hash_key", (name,), now, key.hex(":"))


def _table(name: str, state: LinuxState, queues: int) -> Item:
    now = state.hash_tables.get(name)
    if now is None:
        raise NotTakenError(
            f"{name} does not report its hash table",
            code="rig.not-reported-by-nic",
            where="--table-queues",
            next_step="Omit --table-queues: its driver has one queue, or cannot set the table.",
        )
    if now[0].isdigit():
        raise NotTakenError(
            f"{name} has a hash table that ethtool could not restore, as some drivers"
            f" create by themselves: {now[:100]}",
            code="rig.hash-table-not-restorable",
            where="--table-queues",
            next_step=f"Omit --table-queues, or reset that table on the DUT first: ethtool -X {name} default",
        )
    if queues > (entries := state.hash_table_entries[name]):
        raise NotTakenError(
            f"the hash table of {name} has {entries} entries, which is not enough for {queues} queues",
            code="rig.hash-table-too-small",
            where="--table-queues",
            next_step=f"Name {entries} at most.",
        )
    return Item("hash_table", (name,), now, f"equal {queues}")


def nic_move_of(item: Item, target: str | None) -> list[Move]:
    """What brings one of these items to that value."""
    name = quote(item.key[0])
    match item.kind:
        case "hash":  # no letters: a flow that is not hashed
            return [Move(item, f"ethtool -N {name} rx-flow-hash {quote(item.key[1], target or '')}")]
        case _ if not target:
            return []
        case "receive_hashing":
            return [Move(item, f"ethtool -K {name} rxhash {target}")]
        case "channels":
            return [Move(item, f"ethtool -L {name} {target}")]
        case "hash_key":
            return [Move(item, f"ethtool -X {name} hkey {target}")]
        case "hash_table" if target.startswith("default"):
            # Before Linux 6.4 ixgbe refuses its own table if it has more rings than that can name.
            equal = target.replace("default", "equal")
            return [Move(item, f"ethtool -X {name} default 2> /dev/null || ethtool -X {name} {equal}")]
        case "hash_table":
            return [Move(item, f"ethtool -X {name} {target}")]
    return []


PRIORITY = 7300
"""Priority of the rules; the main table's is 32766."""
_STRICT, _LOOSE = "1", "2"
"""Values of rp_filter."""


def routes_of(setup: DutSetup) -> dict[str, str]:
    """All routes that the pair needs, by their networks: in the main table the kernel makes those of the
    links by itself."""
    linked = {
        str(address.network): f"dev {link.interface}" for link in setup.links for address in link.addresses
    }
    behind = {
        str(route): f"via {link.next_hop} dev {link.interface}"
        for link in setup.links
        for route in link.routes
    }
    return (linked if setup.table is not None else {}) | behind


def check_rules(setup: DutSetup, state: LinuxState) -> None:
    """Nothing else may choose or fill the table of this pair.

    Raises:
        RequestError: There is another rule, or another route in the table.
        NotTakenError: The DUT's kernel has no rules.
    """
    wanted = _lookup(setup)
    for link in setup.links:
        version = link.side.ip_version
        rules = state.rules.get(str(version))
        if rules is None:
            raise NotTakenError(
                f"several engines need a table of routes for each, but the DUT's kernel has no rules for"
                f" IPv{version}",
                code="rig.dut-setting-missing",
                where="[dut] ssh",
                next_step="Use a kernel with policy routing (CONFIG_IP_MULTIPLE_TABLES,"
                " CONFIG_IPV6_MULTIPLE_TABLES), as all kernels of Debian have it.",
            )
        other = next((rule for rule in rules.get(link.interface, ()) if rule != wanted), None)
        if other is not None:
            raise RequestError(
                f"the DUT already has a rule for packets that arrive on {link.interface}: {other}",
                code="rig.other-rule-on-dut",
                where=f"[dut] {link.side.name}",
                next_step=f"Remove it on the DUT: ip -{version} rule del iif {link.interface} {other}",
            )


def foreign_route(setup: DutSetup, state: LinuxState) -> Route | None:
    """A route in the pair's table that is not its own."""
    wanted = routes_of(setup)
    return next(
        (
            route
            for route in state.routes
            if route.table == str(setup.table) and wanted.get(route.prefix) != route.text
        ),
        None,
    )


def rule_items(setup: DutSetup, state: LinuxState) -> Iterator[Item]:
    """The rules, and what they need of the reverse path filter: a neighbour's question is for the DUT itself,
    and of several interfaces to one network the strict filter takes those of the first one alone."""
    for link in setup.links:
        name, version = link.interface, link.side.ip_version
        if version == 4 and _reverse_path_filter(name, state) == _STRICT:
            path = f"net/ipv4/conf/{name}/rp_filter"
            yield Item("sysctl", (path,), state.sysctls[path], _LOOSE)
        key = (name, str(version))
        yield Item("rule", key, value_of_rule(key, state, _lookup(setup)), _lookup(setup))


def value_of_rule(key: tuple[str, ...], state: LinuxState, wanted: str | None) -> str | None:
    """The rule, if it is there."""
    name, version = key
    return wanted if wanted in state.rules.get(version, {}).get(name, ()) else None


def move_rule(item: Item, now: str | None, target: str | None) -> list[Move]:
    """It is never another one that is there: see `check_rules`."""
    name, version = item.key
    verb, rule = ("del", now) if target is None else ("add", target)
    return [Move(item, f"ip -{version} rule {verb} iif {quote(name)} {rule}")]


def _lookup(setup: DutSetup) -> str:
    return f"lookup {setup.table} pref {PRIORITY}"


def _reverse_path_filter(name: str, state: LinuxState) -> str:
    """The kernel takes the larger one of the interface's own and that of all."""
    return max(state.sysctls.get(f"net/ipv4/conf/{each}/rp_filter", "0") for each in ("all", name))


_PACKAGES = {"nft": "nftables", "conntrack": "conntrack", "awk": "mawk"}


def nat_items(setup: DutSetup, nat: Nat, state: LinuxState) -> Iterator[Item]:
    """The rules, the route that ends what belongs to no connection, timeouts and limits.

    Raises:
        NotTakenError: The DUT lacks a program, or its kernel tracks no connections.
        RequestError: A table of this name is there already.
    """
    if state.missing_for_nat:
        packages = " ".join(_PACKAGES[program] for program in state.missing_for_nat)
        raise NotTakenError(
            f"the plan needs a NAT, and the DUT has no {', '.join(state.missing_for_nat)}",
            code="rig.nat-program-missing-on-dut",
            where="[dut] ssh",
            next_step=f"Install what is missing on the DUT: apt-get install {packages}",
        )
    if state.nat is not None:
        raise RequestError(
            f"the DUT already has a table {TABLE!r} of nftables",
            code="rig.nat-already-there",
            where="[dut] ssh",
            next_step="It belongs to a printed set-up: undo that (evenhand dut setup --undo), or run on the"
            f" DUT: nft delete table ip {TABLE}; nft delete table ip6 {TABLE}",
        )
    wishes, settings = setup.nat_wishes, settings_of_nat(setup.nat_wishes)
    missing = [path for path in settings if path not in state.sysctls]
    if missing:
        raise NotTakenError(
            f"the DUT has no {missing[0].replace('/', '.')}: its kernel tracks no connections yet",
            code="rig.no-connection-tracking-on-dut",
            where="[dut] ssh",
            next_step=f"Load the module on the DUT, which by itself changes nothing: modprobe {MODULE}",
        )
    if not nat.is_own_address:
        yield Item("route", (str(nat.pool),), None, "blackhole")
    inside = hosts_before_nat(nat)
    rules = nat_rules(nat, setup.outsides, wishes.ports, addresses=wishes.addresses, with_hosts=False)
    yield Item("nat", ("nftables", str(inside), str(nat.pool)), None, rules)
    for path, value in settings.items():
        yield Item("sysctl", (path,), state.sysctls[path], str(value))


def move_nat(item: Item, now: str | None, target: str | None) -> Move:
    """What brings the rules to that; None: away."""
    lines = ["set -e"]
    if now is not None or target is None:
        lines += stop_nat(files=NAT_FILES)
    if target is not None:
        inside, pool = (ipaddress.ip_network(text) for text in item.key[1:])
        lines += start_nat(target, inside, pool, files=NAT_FILES)
    return Move(item, "\n".join(lines))
