# SPDX-License-Identifier: Apache-2.0
"""`simulated_device.py FOLDER`: the command line of a device without a shell, as it is at the other end of an
SSH connection: its prompts, its configuration, its trials, its refusals.

FOLDER/device.json is the device: what it is, its configuration, and what a test wants of it. Written from the
vendors' documentation; a session knows nothing of the others but that file.
"""

from __future__ import annotations

import fcntl
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Path_ = tuple[str, ...]


class Device:
    """What all have: a file, a configuration, and a candidate."""

    prompt_of_shell = "r1> "

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.candidate: list[list[str]] | None = None
        self.state: dict[str, Any] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time; a trial that was not kept is over when its time is."""
        path = self.folder / "device.json"
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.state = json.loads(path.read_text())
            pending = self.state.get("pending")
            if pending is not None and time.time() > pending["until"]:
                self.state |= {"config": pending["before"], "pending": None}
            try:
                yield
            finally:
                new = path.with_suffix(".new")
                new.write_text(json.dumps(self.state))
                new.replace(path)

    @property
    def config(self) -> list[list[str]]:
        """What is changed just now."""
        return self.state["config"] if self.candidate is None else self.candidate

    def wanted(self, what: str, line: str) -> bool:
        """Whether a test wants this of this line."""
        expression = self.state.get(what)
        return expression is not None and re.search(expression, line) is not None

    def begin(self) -> None:
        self.candidate = [list(line) for line in self.state["config"]]

    def drop(self) -> None:
        self.begin()

    def commit(self, minutes: float | None = None, session: str = "") -> None:
        assert self.candidate is not None
        before = self.state["config"]
        self.state["config"] = [list(line) for line in self.candidate]
        self.state["pending"] = (
            None
            if minutes is None
            else {"until": time.time() + 60 * minutes, "before": before, "session": session}
        )

    def reject(self) -> None:
        if self.state["pending"] is not None:
            self.state |= {"config": self.state["pending"]["before"], "pending": None}

    def prompt(self) -> str:
        raise NotImplementedError

    def run(self, line: str) -> str | None:
        """What it answers; None ends the session."""
        raise NotImplementedError


def words_of(line: str) -> Path_:
    return tuple(line.replace("'", "").split())


class Ios(Device):
    """Cisco IOS, and what Arista EOS has of it."""

    host = "r1"
    is_dotted = True
    bad = "                 ^\n% Invalid input detected at '^' marker.\n"
    unknown: tuple[str, ...] = ("no switchport", "switchport")
    """Lines of interfaces that this one does not know."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.below: Path_ = ()
        self.is_configuring = False

    def prompt(self) -> str:
        mode = f"(config{'-if' if self.below else ''})" if self.is_configuring else ""
        return f"{self.host}{mode}#"

    def run(self, line: str) -> str | None:
        if line == "exit" and not self.is_configuring:
            return None
        if line == "end":
            self.is_configuring, self.below, self.candidate = False, (), None
            return ""
        if line.startswith(("term ", "enable")):
            return ""
        if self.is_configuring:
            return self.configure(line)
        if line == "configure terminal":
            self.is_configuring = True
            return "Enter configuration commands, one per line.  End with CNTL/Z.\n"
        return self.show(line)

    def show(self, line: str) -> str:
        match = re.fullmatch(r"show (running-config)?(?: ?interfaces? (\S+))?", line)
        if match is not None:
            name = match[2]
            shown = [each for each in self.config if name is None or each[0] == f"interface {name}"]
            if name is not None and not shown:
                return self.bad
            if match[1] is None:
                return f"{name} is up, line protocol is up (connected)\n"
            # Whoever wrote a line, it is shown below its interface.
            headers = [each for each in shown if len(each) == 1]
            shown = [each for top in headers for each in (top, *(e for e in shown if e[:-1] == top))]
            lines = "".join(f"{'   ' if len(each) > 1 else ''}{each[-1]}\n" for each in shown)
            return f"Building configuration...\n\n!\n{lines}!\nend\n"
        match = re.fullmatch(r"show (ip|ipv6) route static", line)
        return self.bad if match is None else self.routes(match[1])

    def routes(self, family: str) -> str:
        found = ""
        for each in self.config:
            if len(each) == 1 and each[0].startswith(f"{family} route ") and not self.wanted("hide", each[0]):
                _, _, network, *mask, via = each[0].split()
                length = f"/{sum(int(part).bit_count() for part in mask[0].split('.'))}" if mask else ""
                between = " " if family == "ip" else "\n     "
                found += f"S     {network}{length} [1/0]{between}via {via}\n"
        return f"Codes: C - connected, S - static\n\n{found}"

    def configure(self, line: str) -> str:
        line = line.strip()
        if self.wanted("refuse", line):
            return self.bad
        if line == "exit":
            if not self.below:
                self.is_configuring = False
            self.below = ()
            return ""
        if line.startswith(("interface ", "no interface ")):
            return self.interface(line)
        if line.startswith("do clear "):
            self.state["in_use"] = False
            return ""
        if line.startswith("no ip nat inside source ") and self.state.get("in_use"):
            return "%Static entry in use, cannot remove\n"
        if self.below:
            return self.in_interface(line)
        return self.toggle((), line)

    def interface(self, line: str) -> str:
        name = line.removeprefix("no ").split()[1]
        if [f"interface {name.partition('.')[0]}"] not in self.config:
            return self.bad
        header = [f"interface {name}"]
        if line.startswith("no "):
            self.config[:] = [each for each in self.config if each[0] != header[0]]
            return ""
        if header not in self.config:
            self.config.append(header)
        self.below = (header[0],)
        return ""

    def in_interface(self, line: str) -> str:
        above = list(self.below)
        if line in self.unknown:
            return self.bad
        if line in ("switchport", "no switchport"):
            self.config[:] = [
                each for each in self.config if each[:-1] != above or "switchport" not in each[-1]
            ]
            if line.startswith("no "):
                self.insert([*above, line])
            return ""
        if line.startswith("ip address") and not line.endswith("secondary"):
            self.config[:] = [
                each
                for each in self.config
                if each[:-1] != above
                or not each[-1].startswith("ip address")
                or each[-1].endswith("secondary")
            ]
        if line.startswith("no ip address") and not line.endswith("secondary"):
            others = [each for each in self.config if each[:-1] == above and each[-1].endswith("secondary")]
            if others:
                return "% Must delete secondary before deleting primary\n"
        return self.toggle(tuple(above), line)

    def toggle(self, above: Path_, line: str) -> str:
        """`no` takes a line away; some lines are there as `no` if they are off."""
        known = r"(no )?(ip(v6)? (address|route|neighbor|nat) .*|arp .*|shutdown|encapsulation .*|ip routing)"
        if not re.fullmatch(rf"{known}|(no )?ipv6 unicast-routing|(no )?switchport .*", line):
            return self.bad
        is_off = line.startswith("no ")
        plain = [*above, line.removeprefix("no ")]
        opposite = [*above, f"no {plain[-1]}"]
        if is_off and plain not in self.config and plain[-1].startswith("ip route"):
            return "%No matching route to delete\n"
        self.config[:] = [each for each in self.config if each not in (plain, opposite)]
        if plain[-1] == "ip routing" and is_off:
            self.insert(opposite)
        elif not is_off and (plain[-1] != "ip routing" or not self.is_dotted):
            self.insert(plain)
        return ""

    def insert(self, line: list[str]) -> None:
        """Behind the last line of the same interface."""
        places = [n for n, each in enumerate(self.config) if each[0] == line[0]] if len(line) > 1 else []
        self.config.insert(places[-1] + 1 if places else len(self.config), line)


class Eos(Ios):
    host = "sw1"
    is_dotted = False
    bad = "% Invalid input\n"
    unknown = ()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.session = ""

    def prompt(self) -> str:
        mode = f"(config-s-{self.session[:6]}{'-if-Et1' if self.below else ''})"
        return f"{self.host}{mode}#" if self.session else super().prompt()

    def run(self, line: str) -> str | None:
        match = re.fullmatch(r"configure session (\S+)(?: (commit|abort))?", line)
        if match is not None and not self.is_configuring:
            return self.run_session(match[1], match[2])
        if (self.session and line in ("abort", "commit")) or line.startswith("commit timer "):
            if line != "abort" and self.wanted("fail_commit", line):
                return "% Cannot commit session: it has errors\n"
            if line == "commit":
                self.commit()
            elif line != "abort":
                hours, minutes, seconds = map(int, line.split()[2].split(":"))
                self.commit(60 * hours + minutes + seconds / 60, self.session)
            self.session, self.below, self.is_configuring, self.candidate = "", (), False, None
            return ""
        if line == "end":
            self.session = ""
        return super().run(line)

    def run_session(self, name: str, verb: str | None) -> str:
        pending = self.state.get("pending")
        if verb is None:
            if pending is not None:
                return "% Cannot enter session: there is a commit that waits for its confirmation\n"
            self.session, self.is_configuring = name, True
            self.begin()
        elif pending is None or pending["session"] != name:
            return f"% Cannot {verb} session {name}: it does not exist\n"
        elif verb == "commit":
            self.state["pending"] = None
        else:
            self.reject()
        return ""

    def routes(self, family: str) -> str:
        found = re.sub(
            r" \[1/0\]\s+via (\S+)", r" [1/0]\n           via \1, Ethernet1", super().routes(family)
        )
        return f"VRF: default\n{found}"


def device_of(folder: Path) -> Device:
    from tests.dut.simulated_trees import Junos, RouterOs, SrLinux, Vyos

    kinds = {
        "cisco-ios": Ios,
        "arista-eos": Eos,
        "junos": Junos,
        "vyos": Vyos,
        "srlinux": SrLinux,
        "routeros": RouterOs,
    }
    return kinds[json.loads((folder / "device.json").read_text())["os"]](folder)


def serve(folder: Path) -> None:
    device = device_of(folder)
    with device.locked():
        sys.stdout.write(f"\n{device.prompt()}")
    sys.stdout.flush()
    for line in sys.stdin:
        with device.locked():
            device.state["log"].append(line.strip())
            hangs = device.wanted("hang", line)
            answer = None if hangs else device.run(line.strip())
            if device.wanted("deny", line):
                answer = "% Invalid input detected at '^' marker.\n"
            after = device.prompt()
            is_slow = device.wanted("slow", line)
        if hangs or is_slow:
            time.sleep(3600 if hangs else 3)
        if answer is None:
            return
        sys.stdout.write(answer + after)
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    serve(Path(sys.argv[1]))
