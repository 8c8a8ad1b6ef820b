# SPDX-License-Identifier: Apache-2.0
"""Simulated devices whose configuration is a tree, and RouterOS: see simulated_device.py."""

from __future__ import annotations

import re
from pathlib import Path

from tests.dut.simulated_device import Device, Path_, words_of

_ADDRESS = r"[0-9a-f.:]+"
_NETWORK = rf"{_ADDRESS}/\d+"


class Tree(Device):
    """`set` and `delete` in a candidate."""

    verb = "set "
    known = ""
    """An expression for the paths that it has."""
    bad = ""
    nothing = ""
    """What it says if there is nothing to delete."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_configuring = False

    def change(self, line: str) -> str:
        delete = self.verb.replace("set", "delete")
        is_set = line.startswith(self.verb)
        path = words_of(line.removeprefix(self.verb if is_set else delete))
        if self.wanted("refuse", line) or not (is_set or line.startswith(delete)):
            return self.bad
        if is_set:
            if not re.fullmatch(self.known, " ".join(path)):
                return self.bad
            return self.set(path)
        return self.delete(path)

    def paths(self) -> list[Path_]:
        return [words_of(each[0].removeprefix(self.verb)) for each in self.config]

    def write(self, paths: list[Path_]) -> None:
        self.config[:] = [[f"{self.verb}{self.shown(path)}"] for path in sorted(set(paths))]

    def shown(self, path: Path_) -> str:
        return " ".join(path)

    def set(self, path: Path_) -> str:
        # What is only the beginning of another is not shown beside it.
        kept = [each for each in self.paths() if each != path[: len(each)]]
        self.write([*kept, path])
        return ""

    def delete(self, path: Path_) -> str:
        kept = [each for each in self.paths() if each[: len(path)] != path]
        if len(kept) == len(self.paths()):
            return self.nothing
        rest = self.rest(path)
        if rest and not any(each[: len(rest)] == rest for each in kept):
            kept.append(rest)
        self.write(kept)
        return ""

    def rest(self, path: Path_) -> Path_:
        """What stays of a node without children, if it is the last that goes."""
        return ()

    def routes(self, mark: str) -> list[tuple[str, str]]:
        """Networks and next hops."""
        joined = [" ".join(path) for path in self.paths() if not self.wanted("hide", " ".join(path))]
        return [
            (match[1], match[2])
            for each in joined
            if (match := re.search(rf"{mark} ({_NETWORK}) next-hop ({_ADDRESS})", each))
        ]


class Junos(Tree):
    known = (
        rf"interfaces \S+ (unit \d+ )?(family inet6? )?(address {_NETWORK}( (arp|ndp) {_ADDRESS} mac \S+)?|"
        rf"disable|description .*)|routing-options (rib inet6.0 )?static route {_NETWORK} next-hop {_ADDRESS}"
    )
    bad = "                              ^\nsyntax error.\n"
    nothing = "warning: statement not found\n"

    def prompt(self) -> str:
        return "\n[edit]\nadmin@r1# " if self.is_configuring else "\nadmin@r1> "

    def rest(self, path: Path_) -> Path_:
        if path[0] == "interfaces" and "address" in path:
            return path[: path.index("address")]
        return path[: path.index("route")] if "route" in path else ()

    def run(self, line: str) -> str | None:
        if not self.is_configuring:
            if line == "exit":
                return None
            if line == "configure exclusive":
                self.begin()
                self.is_configuring = True
                return "warning: uncommitted changes will be discarded on exit\nEntering configuration mode\n"
            return "" if line.startswith("set cli ") else self.show(line)
        if line == "exit configuration-mode":
            self.is_configuring, self.candidate = False, None
            return "Exiting configuration mode\n"
        if line == "rollback 0":
            self.drop()
            return "load complete\n"
        match = re.fullmatch(r"commit(?: confirmed (\d+))?", line)
        if match is None:
            return self.change(line)
        if self.wanted("fail_commit", line):
            return "error: configuration check-out failed\n"
        self.commit(None if match[1] is None else float(match[1]))
        confirm = (
            f"commit confirmed will be automatically rolled back in {match[1]} minutes unless confirmed\n"
        )
        return f"{confirm if match[1] else ''}commit complete\n"

    def show(self, line: str) -> str:
        if line == "show configuration | display set | no-more":
            return "".join(f"{each[0]}\n" for each in self.config)
        match = re.fullmatch(r"show interfaces ([^. ]+)(?:\.(\d+))? terse", line)
        if match is not None:
            return self.terse(match[1], match[2])
        match = re.fullmatch(r"show route protocol static table (inet6?)\.0 terse \| no-more", line)
        if match is None:
            return "          ^\nunknown command.\n"
        mark = "rib inet6.0 static route" if match[1] == "inet6" else "routing-options static route"
        rows = "".join(f"* {to:<18} S   5                     >{via}\n" for to, via in self.routes(mark))
        return f"\n{match[1]}.0: 9 destinations, 9 routes (9 active, 0 holddown, 0 hidden)\n\nA V {rows}"

    def terse(self, device: str, unit: str | None) -> str:
        if device not in self.state["ports"]:
            return f"error: device {device} not found\n"
        head = "Interface               Admin Link Proto    Local                 Remote\n"
        if unit is None:
            return f"{head}{device:<24}up    up\n"
        begin = f"{device + '.' + unit:<24}up    up   "
        for family in ("inet", "inet6"):
            found = [
                path[7]
                for path in self.paths()
                if path[:6] == ("interfaces", device, "unit", unit, "family", family) and len(path) > 7
            ]
            for number, address in enumerate(dict.fromkeys(found)):
                head += f"{begin if number == 0 else '':<35}{family if number == 0 else '':<9}{address}\n"
                begin = ""
        return head


class Vyos(Tree):
    known = (
        rf"interfaces ethernet \S+ (vif \d+ )?(address {_NETWORK}|hw-id \S+|description .*)|"
        rf"protocols static route6? {_NETWORK} next-hop {_ADDRESS} interface \S+|"
        rf"protocols static arp interface \S+ address {_ADDRESS} mac \S+|"
        r"nat(64|66)? source rule \d+ .*|system .*"
    )
    bad = "\n  Configuration path: [that] is not valid\n  Set failed\n\n"
    nothing = "Nothing to delete (the specified node does not exist)\n"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_asking = False

    def shown(self, path: Path_) -> str:
        return " ".join((*path[:-1], f"'{path[-1]}'"))

    def prompt(self) -> str:
        if self.is_asking:
            return "\nProceed ? [Y/n] "
        return "[edit]\nvyos@r1# " if self.is_configuring else "vyos@r1:~$ "

    def run(self, line: str) -> str | None:
        if self.is_asking:
            self.is_asking = False
            if line != "y":
                return "commit-confirm canceled\n"
            self.commit(self.minutes)
            return f"Initialized commit-confirm; {self.minutes} minutes to confirm before reboot\n"
        if not self.is_configuring:
            if line == "exit":
                return None
            if line == "configure":
                self.begin()
                self.is_configuring = True
                return ""
            return "" if line.startswith(("stty ", "set terminal ")) else self.show(line)
        return self.configure(line)

    def configure(self, line: str) -> str:
        assert self.candidate is not None
        if line == "exit":
            if self.candidate != self.state["config"]:
                return "Cannot exit: configuration modified.\nUse 'exit discard' to discard the changes\n"
            self.is_configuring, self.candidate = False, None
            return "exit\n"
        if line == "discard":
            self.drop()
            return "Changes have been discarded\n"
        if line == "compare saved":
            new = [each[0] for each in self.config if each not in self.state["saved"]]
            return "".join(f"+{each}\n" for each in new) or "No changes between working and saved\n"
        if line == "confirm":
            was, self.state["pending"] = self.state["pending"], None
            return "Reboot timer stopped\n" if was else "No confirm pending\n"
        match = re.fullmatch(r"commit(?:-confirm (\d+))?", line)
        if match is None:
            return self.change(line)
        if self.candidate == self.state["config"]:
            return "No configuration changes to commit\n"
        if self.wanted("fail_commit", line):
            return "[[interfaces ethernet eth1]] failed\nCommit failed\n"
        if match[1] is not None:
            self.minutes, self.is_asking = int(match[1]), True
            asked = f"commit-confirm will automatically reboot in {match[1]} minutes unless changes"
            return f"{asked}\nare confirmed.\n"
        waiting = self.state["pending"]
        self.commit()
        self.state["pending"] = waiting
        return ""

    def show(self, line: str) -> str:
        command, _, wanted = line.partition(" | match ")
        if command == "show configuration commands":
            lines = [each[0] for each in self.config]
        elif command == "show interfaces":
            lines = [f"{name}             -                 default   u/u" for name in self.state["ports"]]
        elif command in ("show ip route static", "show ipv6 route static"):
            mark = "static route6" if "ipv6" in command else "static route"
            lines = [
                f"S>* {to} [1/0] via {via}, eth1, weight 1, 00:00:09" for to, via in self.routes(f"{mark}")
            ]
        else:
            return "\n  Invalid command: [show]\n\n"
        return "".join(f"{each}\n" for each in lines if wanted.strip("'") in each)


class SrLinux(Tree):
    verb = "set / "
    known = (
        r"interface \S+ (admin-state \S+|subinterface \d+ (admin-state \S+|"
        rf"ipv[46] (admin-state \S+|address {_NETWORK}|(arp|neighbor-discovery) neighbor {_ADDRESS} "
        rf"link-layer-address \S+)))|network-instance \S+ (type \S+|admin-state \S+|interface \S+|"
        rf"next-hop-groups group \S+ nexthop 1 ip-address {_ADDRESS}|"
        rf"static-routes route {_NETWORK} next-hop-group \S+)"
    )
    bad = "Parsing error: Unknown token 'that'. Options are ['interface', 'network-instance']\n"
    nothing = "Error: Path '.that' does not exist\n"

    def prompt(self) -> str:
        mode = "* candidate private private-admin" if self.is_configuring else "+ running"
        return f"--{{ {mode} }}--[  ]--\nA:r1# "

    def rest(self, path: Path_) -> Path_:
        """A key of a list stays without what is below it."""
        for key in ("subinterface", "interface"):
            if key in path[:-2]:
                return path[: path.index(key) + 2]
        return ()

    def run(self, line: str) -> str | None:
        if line == "quit":
            return None
        if line == "enter candidate private":
            self.begin()
            self.config.extend([each] for each in self.state.get("staged", ()))
            self.is_configuring = True
            return ""
        if line == "diff":
            new = [each[0] for each in self.config if each not in self.state["config"]]
            return "".join(f"+     {each}\n" for each in new)
        if line in ("discard stay", "discard now"):
            self.drop()
            if line == "discard now":
                self.is_configuring, self.candidate = False, None
            return ""
        if line.startswith("tools system configuration confirmed-"):
            if self.state["pending"] is None:
                return "Error: There is no commit to be confirmed\n"
            self.reject() if line.endswith("reject") else self.state.update(pending=None)
            return "/system/configuration:\n    Done\n"
        match = re.fullmatch(r"commit (?:stay|confirmed timeout (\d+))", line)
        if match is None:
            return self.change(line) if self.is_configuring else self.show(line)
        if self.wanted("fail_commit", line):
            return "Error: Commit failed: interface ethernet-1/1 is a member of a LAG\n"
        self.commit(None if match[1] is None else int(match[1]) / 60)
        if match[1] is not None:
            self.is_configuring, self.candidate = False, None
        return "All changes have been committed.\n"

    def show(self, line: str) -> str:
        if line.startswith("environment "):
            return ""
        if line == "info flat":
            return "".join(f"{each[0]}\n" for each in self.config)
        match = re.fullmatch(r"show interface (\S+) brief", line)
        if match is not None:
            known = match[1] in self.state["ports"]
            return f"| {match[1]} | enable | up | 25G |\n" if known else "Error: Path does not exist\n"
        if line.startswith("info / "):
            path = words_of(line.removeprefix("info / "))
            below = [" ".join(each[len(path) :]) for each in self.paths() if each[: len(path)] == path]
            return "".join(f"                {each}\n" for each in below)
        match = re.fullmatch(r"show network-instance default route-table ipv([46])-unicast summary", line)
        if match is None:
            return "Parsing error: Unknown token\n"
        colon = match[1] == "6"
        networks = [path[4] for path in self.paths() if path[2:4] == ("static-routes", "route")]
        rows = [each for each in networks if (":" in each) == colon and not self.wanted("hide", each)]
        return "".join(
            f"| {each} | 7 | static | static_route_mgr | True | default | 1 | 5 |\n" for each in rows
        )


class RouterOs(Device):
    """Each line is in force at once; entries are found by their comments."""

    defaults = (
        "/ip settings set ip-forward=yes",
        "/ipv6 settings set disable-ipv6=no forward=yes",
        "/ip firewall connection tracking set udp-timeout=10s udp-stream-timeout=3m",
    )

    def prompt(self) -> str:
        return "[admin@MikroTik] > "

    def run(self, line: str) -> str | None:
        if line == "quit":
            return None
        if self.wanted("refuse", line):
            return "failure: already have such address\n"
        if line == "/export terse":
            return "# 2026-11-29 01:00:00 by RouterOS 7.20\n" + "".join(
                f"{each[0]}\n" for each in self.config
            )
        match = re.fullmatch(r"(/[a-z0-9 ]+) (add|set|remove|print where) (.*)", line)
        if match is not None:
            return self.in_menu(match[1], match[2], match[3], line)
        match = re.fullmatch(r':put \[:len \[/interface find name="(\S+)"\]\]', line)
        if match is not None:
            return f"{int(match[1] in self.state['ports'])}\n"
        match = re.fullmatch(r":put \(\[(/\S+ settings) get max-neighbor-entries\] >= \d+\)", line)
        if match is not None or line.startswith(":if ("):
            return "true\n" if match else ""
        return "bad command name that (line 1 column 1)\n"

    def in_menu(self, menu: str, verb: str, rest: str, line: str) -> str:
        if verb == "remove":
            comment = rest.removeprefix('[find comment="').removesuffix('"]')
            self.config[:] = [
                each
                for each in self.config
                if not each[0].startswith(f"{menu} add ") or f"comment={comment}" not in each[0].split()
            ]
            return ""
        if verb == "set":
            self.config[:] = [each for each in self.config if not each[0].startswith(f"{menu} set ")]
            if line not in self.defaults:
                self.config.append([line])
            return ""
        values = dict(part.split("=", 1) for part in rest.split() if "=" in part)
        if verb == "print where":
            (key, value) = next(iter(values.items()))
            found = [each[0] for each in self.config if f"{key}={value}" in each[0].split()]
            rows = [
                self.row(each) for each in found if each.startswith(menu) and not self.wanted("hide", each)
            ]
            return "Flags: D - DYNAMIC; A - ACTIVE; s - STATIC\n" + "".join(rows) + "\n"
        if values.get("interface", "ether1") not in self.state["ports"]:
            return "input does not match any value of interface\n"
        if any(each[0].split(" comment=")[0] == line.split(" comment=")[0] for each in self.config):
            return "failure: already have such address\n"
        self.config.append([line])
        return ""

    def row(self, entry: str) -> str:
        values = dict(part.split("=", 1) for part in entry.split() if "=" in part)
        if "dst-address" in values:
            return f" 0  As {values['dst-address']}  {values['gateway']}  main  1\n"
        return f" 0    {values['address']}  {values['interface']}\n"
