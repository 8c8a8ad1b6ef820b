# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT asked for its state, and its answers understood. Reads only."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.base.errors import HostError
from evenhand.dut.linux import HASH_LETTERS
from evenhand.dut.linux_state import (
    FLOWS,
    NAT_FILES,
    NOWHERE,
    TAYGA_FILES,
    Link,
    LinuxState,
    Route,
    carriers_of,
)
from evenhand.dut.many_routes import (
    IP_VERSIONS,
    count_command,
    mended,
    others_command,
    read_counts,
    read_memory,
)
from evenhand.dut.nat import BUCKETS, FOLDER, MOST, TIMEOUTS, show_nat, show_tayga
from evenhand.dut.readings_queues import quote, read_all, understood
from evenhand.dut.shell import Answer, Shell
from evenhand.predict.ethtool import IndirectionTable, read_table

NAT_PROGRAMS = ("nft", "conntrack", "awk")
_LINKS = "ip -j -d address show"
_FOREVER = 0xFFFFFFFF
"""Seconds that an address is valid which does not run out."""
_SYSCTLS = (
    "net/ipv4/conf/*/forwarding",
    "net/ipv6/conf/*/forwarding",
    "net/ipv6/conf/.[!.]*/forwarding",  # `*` leaves out names that begin with a dot
    "net/ipv6/conf/..?*/forwarding",
    "net/ipv6/conf/*/accept_ra",
    "net/ipv4/conf/*/rp_filter",
    "net/ipv4/neigh/default/gc_thresh[123]",
    "net/ipv6/neigh/default/gc_thresh[123]",
    *(f"{FOLDER}/{name}" for name in (*TIMEOUTS, MOST, BUCKETS)),
)


def read_state(
    shell: Shell, interfaces: Iterable[str], *, address: str | None, peer: str | None
) -> LinuxState:
    """What is so now.

    Args:
        interfaces: Whose neighbours, channels and hash, with its key and table, are read.
        address: The DUT's own address, which the connection goes to, if it is known; `peer` is where it comes
            from.

    Raises:
        HostError: As `Shell.run`; or the DUT lacks a program, or it says what is not understood.
    """
    names = list(dict.fromkeys(interfaces))
    commands = {
        "boot": "cat /proc/sys/kernel/random/boot_id",
        "tools": "command -v ip && command -v flock && command -v sed",
        "links": _LINKS,
        "routes 4": others_command(4),
        "routes 6": others_command(6),
        **{f"many routes {version}": count_command(version) for version in IP_VERSIONS},
        "memory": "grep MemAvailable: /proc/meminfo",
        "next hops": "ip -j nexthop show",
        "rules 4": "ip -j -4 rule show",
        "rules 6": "ip -j -6 rule show",
        "sysctls": f"cd /proc/sys && grep -s '' {' '.join(_SYSCTLS)} /dev/null; true",
        "back": _way_back(peer),
        "has tayga": "command -v tayga",
        "tayga": show_tayga(files=TAYGA_FILES),
        **{f"has {program}": f"command -v {program}" for program in NAT_PROGRAMS},
        "nat": show_nat(files=NAT_FILES),
    }
    for name in names:
        commands[f"neighbors {name}"] = f"ip -j neighbor show dev {quote(name)}"
        commands[f"channels {name}"] = f"ethtool -l {quote(name)}"
        commands[f"features {name}"] = f"ethtool -k {quote(name)}"
        commands[f"table {name}"] = f"ethtool -x {quote(name)}"
        commands[f"driver {name}"] = f"ethtool -i {quote(name)}"
        commands |= {f"hash {name} {flow}": f"ethtool -n {quote(name)} rx-flow-hash {flow}" for flow in FLOWS}
    answers = read_all(shell, commands)
    if answers["tools"].exit_code:
        raise HostError(
            "the DUT lacks ip or flock",
            code="rig.program-missing-on-dut",
            where="the DUT's PATH",
            next_step="Install them on the DUT: apt-get install iproute2 util-linux.",
        )
    with understood("itself", where="ip -j"):
        return _state(answers, names, address=address, peer=peer)


def _state(
    answers: Mapping[str, Answer], names: Sequence[str], *, address: str | None, peer: str | None
) -> LinuxState:
    links = _links(answers["links"])
    hashes = {(name, flow): _hash_fields(answers[f"hash {name} {flow}"]) for name in names for flow in FLOWS}
    tables = {
        name: read_table(answer.stdout)
        for name in names
        if not (answer := answers[f"table {name}"]).exit_code
    }
    next_hops = _next_hops(answers["next hops"])
    return LinuxState(
        boot_id=answers["boot"].stdout.strip(),
        links=links,
        routes=tuple(
            _route(row, 4 if what.endswith("4") else 6, next_hops)
            for what in ("routes 4", "routes 6")
            for row in _rows(what, answers[what])
        ),
        neighbors={name: _neighbors(answers[f"neighbors {name}"]) for name in names if name in links},
        rules={
            what[-1]: _rules(_rows(what, answers[what]))
            for what in ("rules 4", "rules 6")
            if not answers[what].exit_code
        },
        # Names of interfaces may have what Python takes for the end of a line.
        sysctls=dict(line.split(":", 1) for line in answers["sysctls"].stdout.split("\n") if ":" in line),
        hashes={key: fields for key, (fields, _) in hashes.items() if fields is not None},
        hash_refusals={key: refusal for key, (_, refusal) in hashes.items() if refusal is not None},
        receive_hashing={
            name: text
            for name in names
            if (text := _receive_hashing(answers[f"features {name}"])) is not None
        },
        channels={
            name: text for name in names if (text := _channels(answers[f"channels {name}"])) is not None
        },
        hash_keys={name: table.key.hex(":") for name, table in tables.items() if table.key is not None},
        hash_tables={
            name: text
            for name, table in tables.items()
            if (text := _hash_table(table, _driver(answers[f"driver {name}"]))) is not None
        },
        hash_table_entries={
            name: len(entries) for name, table in tables.items() if (entries := _entries(table))
        },
        peer=_plain(peer) if peer else None,
        carrying=_carrying(links, answers["back"], address),
        has_tayga=not answers["has tayga"].exit_code,
        tayga=None if answers["tayga"].exit_code else f"{answers['tayga'].stdout}\n",
        missing_for_nat=tuple(program for program in NAT_PROGRAMS if answers[f"has {program}"].exit_code),
        nat=None if answers["nat"].exit_code else f"{answers['nat'].stdout}\n",
        many_routes=read_counts({version: answers[f"many routes {version}"] for version in IP_VERSIONS}),
        memory_left_octets=read_memory(answers["memory"]),
    )


def read_carriers(shell: Shell, *, address: str | None, peer: str | None) -> frozenset[str]:
    """`LinuxState.kept_from` alone; empty if the DUT does not report it. Arguments and errors as of
    `read_state`."""
    answers = read_all(shell, {"links": _LINKS, "back": _way_back(peer)})
    with understood("itself", where="ip -j"):
        links = _links(answers["links"])
        return carriers_of(links, _carrying(links, answers["back"], address))


def _links(answer: Answer) -> dict[str, Link]:
    return {link["ifname"]: _link(link) for link in _rows("links", answer) if "ifname" in link}


def _way_back(peer: str | None) -> str:
    return f"ip -j route get {quote(_plain(peer))}" if peer else "echo '[]'"


def _carrying(links: Mapping[str, Link], way_back: Answer, address: str | None) -> tuple[str, ...]:
    back = [] if way_back.exit_code else _rows("back", way_back)
    own = _plain(address) if address else None
    at = [name for name, link in links.items() if own in {each.split("/")[0] for each in link.addresses}]
    return tuple(dict.fromkeys([*at, *(str(row["dev"]) for row in back if "dev" in row)]))


def _plain(address: str) -> str:
    """The address without the zone of a link-local one; an IPv4-mapped IPv6 address becomes IPv4."""
    bare = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(bare, "ipv4_mapped", None)
    return str(mapped or bare)


def _rows(what: str, answer: Answer) -> list[dict[str, Any]]:
    if answer.exit_code:
        # A namespace without IPv6 has none of its routes.
        if what == "routes 6":
            return []
        raise _not_understood(what, answer.stdout)
    try:
        found = json.loads(mended(answer.stdout) if what.startswith("routes") else answer.stdout or "[]")
    except json.JSONDecodeError:
        raise _not_understood(what, answer.stdout) from None
    if not isinstance(found, list):
        raise _not_understood(what, answer.stdout)
    return [row for row in found if isinstance(row, dict)]


def _not_understood(what: str, text: str) -> HostError:
    return HostError(
        f"the DUT's answer about its {what.split()[0]} cannot be understood: {text[:200]!r}",
        code="rig.dut-answer-not-understood",
        where="ip -j",
        next_step="The DUT needs iproute2 of 2018 or later.",
    )


def _link(row: Mapping[str, Any]) -> Link:
    flags = row.get("flags", [])
    return Link(
        name=row["ifname"],
        mac=str(row.get("address", "")),
        is_up="UP" in flags,
        has_carrier="LOWER_UP" in flags,
        master=row.get("master"),
        is_in_vrf=_linkinfo(row).get("info_slave_kind") == "vrf",
        lower=row.get("link"),
        addresses={
            f"{info['local']}/{info['prefixlen']}": _options(info, row["ifname"])
            for info in row.get("addr_info", [])
            if "local" in info
        },
    )


def _linkinfo(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("linkinfo")
    return found if isinstance(found, dict) else {}


def _options(info: Mapping[str, Any], interface: str) -> str | None:
    is_link_local = info.get("family") == "inet6" and info.get("scope") == "link"
    if (
        is_link_local
        or info.get("dynamic")
        or "address" in info
        or info.get("valid_life_time", _FOREVER) != _FOREVER
    ):
        return None
    options = []
    if "broadcast" in info:
        options += ["brd", info["broadcast"]]
    if info.get("scope", "global") != "global":
        options += ["scope", info["scope"]]
    if info.get("label", interface) != interface:
        options += ["label", info["label"]]
    if info.get("metric"):
        options += ["metric", str(info["metric"])]
    options += [flag for flag in ("noprefixroute", "nodad", "home") if info.get(flag)]
    return " ".join(str(option) for option in options)


def _next_hops(answer: Answer) -> dict[int, list[Mapping[str, Any]]]:
    """Next hops of each object that routes name by its number: itself, or those of its group. Empty before
    Linux 5.3."""
    rows = {row["id"]: row for row in ([] if answer.exit_code else _rows("next hops", answer)) if "id" in row}
    return {
        number: [rows[each["id"]] for each in row.get("group", [row]) if each.get("id") in rows]
        for number, row in rows.items()
    }


def _way(hop: Mapping[str, Any]) -> str:
    """`via 10.0.0.2 dev eth1`; the next hop of an IPv4 route may be an IPv6 address."""
    via = hop.get("via")
    other = via if isinstance(via, dict) else {}
    gateway = hop.get("gateway") or (f"{other.get('family')} {other['host']}" if "host" in other else None)
    return f"{f'via {gateway} ' if gateway else ''}dev {hop['dev']}"


def _route(
    row: Mapping[str, Any], version: int, next_hops: Mapping[int, Sequence[Mapping[str, Any]]]
) -> Route:
    prefix = str(row.get("dst", "default"))
    if prefix == "default":
        prefix = "0.0.0.0/0" if version == 4 else "::/0"
    elif "/" not in prefix:
        prefix += "/32" if version == 4 else "/128"
    hops = [row, *(hop for hop in row.get("nexthops", []) if isinstance(hop, dict))]
    if "nhid" in row and not any("dev" in hop for hop in hops):
        hops = list(next_hops.get(row["nhid"], ()))
    text = " ".join(_way(hop) for hop in hops if "dev" in hop)
    if not text and "nhid" in row:
        text = f"nhid {row['nhid']}"
    kind = str(row.get("type", ""))
    return Route(
        prefix=prefix,
        # An IPv6 route that leads nowhere names an interface all the same.
        text=kind if kind in NOWHERE else text or kind,
        interfaces=tuple(str(hop["dev"]) for hop in hops if "dev" in hop),
        table=str(row.get("table", "main")) if row.get("type", "unicast") in ("unicast", *NOWHERE) else None,
        is_learned=version == 6 and (row.get("protocol") == "ra" or "expires" in row),
    )


def _rules(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if "iif" in row:
            text = f"lookup {row.get('table')} pref {row.get('priority')}"
            found[str(row["iif"])] = (*found.get(str(row["iif"]), ()), text)
    return found


def _neighbors(answer: Answer) -> dict[str, str]:
    found = {}
    for row in _rows("neighbors", answer):
        state = [str(each).lower() for each in row.get("state", [])]
        if "noarp" not in state and "dst" in row:
            found[str(row["dst"])] = (
                f"{row.get('lladdr', '')} {'permanent' if 'permanent' in state else 'learned'}".strip()
            )
    return found


def _hash_fields(answer: Answer) -> tuple[str | None, str | None]:
    """Letters, or why there are none."""
    if answer.exit_code:
        said = " ".join(answer.stdout.split())
        return None, said[:300] or f"ethtool ended with {answer.exit_code}"
    letters = "".join(
        letter
        for begin, letter in HASH_LETTERS.items()
        if re.search(rf"^[ \t]*{begin}", answer.stdout, re.MULTILINE)
    )
    return letters, None


def _receive_hashing(answer: Answer) -> str | None:
    found = re.search(
        r"^\s*receive-hashing: (on|off)$", answer.stdout, re.MULTILINE
    )  # "off [fixed]" cannot be switched
    return None if found is None or answer.exit_code else found[1]


def _channels(answer: Answer) -> str | None:
    if answer.exit_code:
        return None
    now = answer.stdout.partition("Current hardware settings:")[2]
    found = {
        name.lower(): number for name, number in re.findall(r"^(RX|TX|Combined):\s+(\d+)", now, re.MULTILINE)
    }
    return (
        " ".join(f"{name} {found[name]}" for name in ("rx", "tx", "combined") if found.get(name, "0") != "0")
        or None
    )


def _driver(answer: Answer) -> str | None:
    found = re.search(r"^driver: (\S+)", answer.stdout, re.MULTILINE)
    return found[1] if found and not answer.exit_code else None


_IXGBE_QUEUES = 16
"""Most queues that the table of an 82599 or X540 can name, whatever number of rings it has."""


def _own_queues(rings: int, entries: int, driver: str | None) -> int:
    """Queues that the driver's own table names."""
    if driver in ("ixgbe", None) and entries == 128:
        return min(rings, _IXGBE_QUEUES)
    if driver == "mlx4_en":
        return 1 << rings.bit_length() - 1
    return rings


def _hash_table(table: IndirectionTable, driver: str | None) -> str | None:
    if table.rings is None or not (entries := _entries(table)):
        return None
    count = max(entries) + 1
    if entries != [i % count for i in range(len(entries))]:
        return " ".join(map(str, entries))
    own = (table.rings, _own_queues(table.rings, len(entries), driver))
    return f"default {count}" if count in own else f"equal {count}"


def _entries(table: IndirectionTable) -> list[int]:
    return [int(word) for word in table.words] if all(word.isdecimal() for word in table.words) else []
