# SPDX-License-Identifier: Apache-2.0
"""A router that we did not write: DPDK's l3fwd, from the examples of Debian's `dpdk-doc`. `make prove` runs
it.

It runs on CPU 0 and the tester on CPU 1, joined by memif, and everything is asked for as a user does, by
`evenhand` commands. The exit code is 1 if one of these is off, for IPv4 or IPv6:

* a trial well below what both can: PASS, and l3fwd lost nothing;
* the same with a router that knows one of the two networks only: FAIL, with every frame to the other network
  lost and none to this one;
* an IMIX of both versions over veth, in a namespace of its own: what came back of each size and version, as
  the tester counts it, is what tcpdump has in its file, read by scapy (R6985-01, R5180-14); needs root;
* a search, which may rightly end with "tester_ceiling" (two cores, shared with other machines), but never
with
  a load that a trial refuted;
* a campaign of throughput, loss and latency over both versions, up to what tester and router both can: every
  point has a number, a lower bound for throughput, or the tester's ceiling as the reason; no frame is lost
  at a load that it can carry; its report is made, and its comparison with itself is 1.000;
* what `evenhand import` makes of siitperf's files: the example of its repository, and those that its README
  has for many addresses. The testbed files that it writes and the trials that it prints, as they stand: PASS.

    third_party.py [--rate FPS]     per direction; default 1,000,000
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from pieces import record, started
from scapy.layers.inet import IP, UDP
from scapy.utils import PcapReader

EXAMPLES = Path("/usr/share/dpdk/examples")
EVENHAND = [sys.executable, "-m", "evenhand"]
DUT_MACS = ("02:00:00:00:d0:01", "02:00:00:00:d0:02")
TESTER_MACS = ("02:00:00:00:a0:01", "02:00:00:00:a0:02")
NETWORKS = {
    "gateway-v4": ("198.18.0.0/16", "198.19.0.0/16"),
    "gateway-v6": ("2001:2::/49", "2001:2:0:8000::/49"),
}
MEMIF = "net_memif{0},role={1},id={0},socket={2},socket-abstract=no,rsize=11"
MAGIC = b"\xe5\xe4\x01"
"""The beginning of the tag in each test frame; docs/reference/frame.md."""
AF_PACKET = "net_af_packet0,iface={}"
VETH = ("l3fwd-right", "tester-right")
MIXED = (
    "--plan",
    "gateway-v4+gateway-v6",
    "--mix",
    "90/10",
    "--frame-size",
    "imix:AAAFG:A=84:F=1280:G=1518",
    "--rate",
    "5000",
)
SIITPERF = Path(__file__).resolve().parents[1] / "tests" / "exchange" / "files"
SIITPERF_MACS = (("f4:03:43:ec:cd:b0", "f4:03:43:ec:cd:b8"), ("f4:03:43:ec:e3:30", "f4:03:43:ec:e3:38"))
"""In those files: of the tester and of the DUT, left and right."""
CAMPAIGN_POINTS = 12
CAMPAIGN = """
name = "l3fwd"
testbed = "{testbed}"
[every-suite]
hosts = [1, "max"]
repetitions = 2
waits = "short"
duration = "1s"
patience = 20
"""
SUITES = """
[[suite]]
name = "{name}"
plan = "{plan}"
procedure = ["throughput", "latency"]
maximum-rate = "1Mfps"
precision = "5%"
final-duration = "2s"
from = "100ms"
inner-repetitions = 2
[[suite]]
name = "{name}, loss"
plan = "{plan}"
procedure = "loss"
maximum-rate = "200kfps"
"""
"""One for each IP version."""
PATIENT = ("--overdue-tolerance", "99%", "--longest-overdue", "5s", "--offered-tolerance", "10%")
"""Where counts are what matters, and not the pace."""
ATTEMPTS = 10
"""A host that takes CPUs away makes a trial INVALID."""


def build(folder: Path) -> Path:
    """The router, from its source. It asks for a checksum offload that memif does not have; nothing here
    needs it."""
    if not (EXAMPLES / "l3fwd").is_dir():
        sys.exit("third_party: there is no /usr/share/dpdk/examples/l3fwd; install dpdk-doc")
    for part in ("common", "l3fwd"):
        shutil.copytree(EXAMPLES / part, folder / part)
    source = folder / "l3fwd" / "main.c"
    offload = ".offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM"
    text = source.read_text()
    assert offload in text, f"l3fwd of this DPDK asks for other offloads: {source}"
    source.write_text(text.replace(offload, ".offloads = 0"))
    subprocess.run(
        ["make", "-s", "-C", folder / "l3fwd", "shared"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return folder / "l3fwd" / "build" / "l3fwd-shared"


@contextmanager
def l3fwd(
    program: Path, folder: Path, *, known_sides: tuple[int, ...] = (0, 1), veth: Sequence[str] = ()
) -> Iterator[Path]:
    """The router with routes to the networks behind `known_sides`; gives a testbed file for it.

    Args:
        veth: The command that enters the namespace in which its right port is `VETH[0]` instead of a memif.
    """
    rules = {version: folder / f"ipv{version}.cfg" for version in (4, 6)}
    for version, file in rules.items():
        networks = [ip_network(network) for network in NETWORKS[f"gateway-v{version}"]]
        lines = [
            f"R{network.exploded} {side}" for side, network in enumerate(networks) if side in known_sides
        ]
        file.write_text("".join(f"{line}\n" for line in lines))
    sockets = [folder / "left.sock", folder / "right.sock"][: 1 if veth else 2]
    for socket in sockets:
        socket.unlink(missing_ok=True)
    ports = [
        f"{MEMIF.format(side, 'server', socket)},mac={DUT_MACS[side]}" for side, socket in enumerate(sockets)
    ]
    process = started(
        [
            *veth,
            str(program),
            "--no-huge",
            "-m",
            "1024",
            "--no-shconf",
            f"--file-prefix=l3fwd-{folder.name}",
            "--no-pci",
            "--no-telemetry",
            "--lcores",
            "0@0",
            *(f"--vdev={port}" for port in [*ports, *([AF_PACKET.format(VETH[0])] if veth else [])]),
            "--",
            "-p",
            "0x3",
            "-P",
            "--config=(0,0,0),(1,0,0)",
            "--lookup=lpm",
            f"--rule_ipv4={rules[4]}",
            f"--rule_ipv6={rules[6]}",
            *(f"--eth-dest={side},{TESTER_MACS[side]}" for side in (0, 1)),
            "--parse-ptype",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not all(socket.exists() for socket in sockets):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"third_party: l3fwd does not start: {process.args!r}")
            time.sleep(0.1)
        testbed = folder / "l3fwd.toml"
        text = "isolated_test_environment = true\n"
        for side, name in enumerate(("left", "right")):
            device = AF_PACKET.format(VETH[1])
            if side < len(sockets):
                device = f"{MEMIF.format(side, 'client', sockets[side])},mac={TESTER_MACS[side]}"
            text += f"[{name}]\ndevice = '{device}'\ndut_mac = '{DUT_MACS[side]}'\n"
        testbed.write_text(f"{text}[tester]\ncpus = [1]\n")
        yield testbed
    finally:
        process.terminate()
        process.wait(10)


def evenhand(*arguments: str | Path, inside: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON document of a command."""
    done = subprocess.run(
        [*inside, *EVENHAND, *map(str, arguments), "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def valid_trial(testbed: Path, plan: str, rate_fps: float) -> tuple[dict[str, Any], list[list[str]]]:
    """The trial that decides, and why those before it were INVALID."""
    spoiled: list[list[str]] = []
    while True:
        document = evenhand(
            "trial",
            testbed,
            "--plan",
            plan,
            "--rate",
            f"{rate_fps:.0f}",
            "--duration",
            "5s",
            "--waits",
            "short",
        )["trial"]
        if document["verdict"] != "INVALID" or len(spoiled) == ATTEMPTS:
            return document, spoiled
        spoiled.append([reason["code"] for reason in document["reasons"]])


@contextmanager
def namespace() -> Iterator[list[str]]:
    """The command that enters a network namespace with a veth pair between router and tester, which have the
    MACs of their right ports."""
    name = f"evenhand-l3fwd-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        ends = zip(VETH, (DUT_MACS[1], TESTER_MACS[1]), strict=True)
        (near, near_mac), (far, far_mac) = ends
        for command in (
            f"ip link add {near} address {near_mac} type veth peer name {far} address {far_mac}",
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
            *(f"sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1" for end in VETH),
            *(f"ethtool -K {end} tx off rx off gso off gro off tso off" for end in VETH),
            *(f"ip link set {end} up" for end in VETH),
        ):
            subprocess.run([*inside, *command.split()], check=True, stdout=subprocess.DEVNULL)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@contextmanager
def captured(inside: Sequence[str], capture: Path) -> Iterator[None]:
    """All that comes to the tester's right port."""
    tcpdump = started(
        [*inside, "tcpdump", "-i", VETH[1], "-Q", "in", "-B", "65536", "-w", str(capture), "-U", "udp"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not capture.exists():
            time.sleep(0.1)
        yield
        time.sleep(1)
    finally:
        tcpdump.terminate()
        tcpdump.wait(10)


def mixed_case(program: Path, folder: Path) -> tuple[bool, dict[str, Any]]:
    """One trial of both versions and three sizes, counted by the tester and by scapy."""
    spoiled: list[list[str]] = []
    with namespace() as inside, l3fwd(program, folder, veth=inside) as testbed:
        for attempt in range(ATTEMPTS):
            capture = folder / f"mixed-{attempt}.pcap"
            with captured(inside, capture):
                document = evenhand(
                    "trial",
                    testbed,
                    *MIXED,
                    "--duration",
                    "4s",
                    "--waits",
                    "short",
                    "--no-run",
                    inside=inside,
                )["trial"]
            if document["verdict"] != "INVALID":
                break
            spoiled.append([reason["code"] for reason in document["reasons"]])
    forward = document["directions"]["forward"]
    counted = {(c["ip_version"], c["frame_size"]): c["received_frames"] for c in forward["classes"]}
    found = Counter(
        (4 if IP in frame else 6, len(frame) + 4)
        for frame in PcapReader(str(capture))
        if UDP in frame and MAGIC in bytes(frame[UDP].payload)
    )
    is_right = (
        document["verdict"] == "PASS"
        and counted == dict(found)
        and sum(found.values()) == forward["offered_frames"]
    )
    shown = {f"IPv{version}, {size} octets": frames for (version, size), frames in sorted(found.items())}
    return is_right, {"in_the_capture": shown, "counts": counts(document), "spoiled": spoiled}


def campaign(program: Path, folder: Path) -> tuple[bool, dict[str, Any]]:
    """Both versions, three procedures, one address pair and all addresses; then the verbs that read such a
    file."""
    with l3fwd(program, folder) as testbed:
        suites = [SUITES.format(name=f"IPv{plan[-1]}", plan=plan) for plan in NETWORKS]
        (folder / "campaign.toml").write_text(CAMPAIGN.format(testbed=testbed.name) + "".join(suites))
        run = folder / "campaign.evenhand"
        evenhand("run", folder / "campaign.toml", "--run", run)
    points = evenhand("show", run)["points"]
    without = {point["key"]: point["reason"] for point in points if point["state"] != "measured"}
    ratios = [
        other["ratio"] for point in evenhand("compare", run, run)["points"] for other in point["others"]
    ]
    page = folder / "campaign.html"
    subprocess.run([*EVENHAND, "report", run, "--output", page], stdout=subprocess.DEVNULL, check=True)
    is_right = (
        len(points) == CAMPAIGN_POINTS
        # A tester that shares two cores with other machines may fall short: then there is no number, and
        # never a wrong one.
        and all("tester's ceiling" in reason for reason in without.values())
        and {ratio["ratio"] for ratio in ratios if ratio is not None} <= {1.0}
        and all(
            point["median"] == 0
            for point in points
            if point["procedure"] == "loss" and point["key"] not in without
        )
        and page.exists()
    )
    medians = {point["key"]: point["median"] for point in points}
    return is_right, {"medians": medians, "without_a_number": without}


def counts(document: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        name: (direction["offered_frames"], direction["lost_frames"])
        for name, direction in document["directions"].items()
    }


def cases(
    program: Path, folder: Path, plan: str, rate_fps: float
) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    with l3fwd(program, folder) as testbed:
        document, spoiled = valid_trial(testbed, plan, rate_fps)
        yield (
            f"trial at {rate_fps:,.0f} fps",
            document["verdict"] == "PASS",
            {"counts": counts(document), "spoiled": spoiled},
        )
        search = evenhand(
            "throughput",
            testbed,
            "--plan",
            plan,
            "--maximum-rate",
            "6Mfps",
            "--duration",
            "2s",
            "--final-duration",
            "5s",
            "--precision",
            "2%",
            "--waits",
            "short",
            "--patience",
            "10",
            "--no-run",
        )
        trials = search["trials"]
        failed = [trial["result"]["intended_fps"] for trial in trials if trial["result"]["verdict"] == "FAIL"]
        found = search["throughput_fps_per_direction"]
        is_right = (search["outcome"] == "found" and found < min(failed)) or search[
            "outcome"
        ] == "tester_ceiling"
        yield (
            "search",
            is_right,
            {
                "outcome": search["outcome"],
                "throughput_fps": found,
                "trials": len(trials),
                "lowest_failed_fps": min(failed, default=None),
            },
        )
    with l3fwd(program, folder, known_sides=(1,)) as testbed:
        document, spoiled = valid_trial(testbed, plan, rate_fps / 4)
        (_, forward_lost), (reverse, reverse_lost) = counts(document).values()
        is_right = document["verdict"] == "FAIL" and forward_lost == 0 and reverse_lost == reverse
        yield "no route to the left networks", is_right, {"counts": counts(document), "spoiled": spoiled}


def imported(program: Path, folder: Path) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """siitperf's own files through the router: its example (what is left of it without NAT), and its README's
    many addresses."""
    with l3fwd(program, folder) as own:
        devices = {side: tomllib.loads(own.read_text())[side]["device"] for side in ("left", "right")}
        for name, arguments in (
            ("example", "84 20000 5 300 2 2 1000 500 100 2000 50000"),
            ("many-v4", "84 20000 5 300 2 2"),
            ("many-v6", "84 20000 5 300 2 2"),
        ):
            text = (SIITPERF / f"{name}.conf").read_text()
            for theirs, ours in zip(SIITPERF_MACS, (TESTER_MACS, DUT_MACS), strict=True):
                for mac, other in zip(theirs, ours, strict=True):
                    text = text.replace(mac, other)
            conf, testbed = folder / f"{name}.conf", folder / f"{name}.toml"
            conf.write_text(text)
            line = [
                "import",
                conf,
                "--output",
                testbed,
                "--command",
                f"siitperf-tp {arguments}",
                "--left",
                devices["left"],
                "--right",
                devices["right"],
                "--cpus",
                "1",
                "--isolated-test-environment",
                "--json",
            ]
            ended = subprocess.run(
                [*EVENHAND, *map(str, line)], stdout=subprocess.PIPE, text=True, check=False
            )
            made = json.loads(ended.stdout)
            words = made["commands"][0]["words"]
            spoiled: list[list[str]] = []
            while True:
                document = evenhand(*words[1:], *PATIENT, "--waits", "short", "--no-run")["trial"]
                if document["verdict"] != "INVALID" or len(spoiled) == ATTEMPTS:
                    break
                spoiled.append([reason["code"] for reason in document["reasons"]])
            is_right = (
                document["verdict"] == "PASS"
                and ended.returncode == (1 if name == "example" else 0)
                and not made["gaps"]
            )
            yield (
                f"siitperf {name}",
                is_right,
                {"command": shlex.join(words[3:]), "counts": counts(document), "spoiled": spoiled},
            )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1e6)
    rate_fps = parser.parse_args().rate
    rows: list[dict[str, Any]] = []

    def tell(plan: str, case: str, is_right: bool, facts: dict[str, Any]) -> None:
        print(f"{'right' if is_right else 'WRONG'}  {plan} {case}: {facts}", flush=True)
        rows.append({"plan": plan, "case": case, "is_right": is_right, **facts})

    with tempfile.TemporaryDirectory(prefix="evenhand-l3fwd-") as name:
        program = build(Path(name))
        for plan in NETWORKS:
            for case, is_right, facts in cases(program, Path(name), plan, rate_fps):
                tell(plan, case, is_right, facts)
        tell("gateway-v4, gateway-v6", "campaign", *campaign(program, Path(name)))
        for case, is_right, facts in imported(program, Path(name)):
            tell("import", case, is_right, facts)
        if os.geteuid() == 0:
            tell(MIXED[1], "IMIX of both versions", *mixed_case(program, Path(name)))
        else:
            print("left out  IMIX of both versions: needs root")
    wrong = sum(not row["is_right"] for row in rows)
    record("third_party", {"router": "l3fwd of dpdk-doc", "cases": rows}, {"wrong rows": wrong})
    print(f"third_party: {'WRONG' if wrong else 'all right'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
