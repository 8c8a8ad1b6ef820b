# SPDX-License-Identifier: Apache-2.0
"""No frame leaves, no command runs, no file is overwritten: what was tried, through `evenhand trial` and
through the engine by hand.

In a network namespace with a default route over a veth pair that leads nowhere else.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenhand.plan import gateway_v4
from evenhand.trial import find_engine
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.wire.wire_session import NOBODY, engine, one_worker, open_ports

pytestmark = pytest.mark.wire
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace")
ROUND_THE_GUARD = [
    ("net_af_packet_left,iface=p0", []),
    ("net_af_packetX,iface=p0", []),
    ("net_pcap0,rx_iface=d0,tx_iface=p0,tx_iface=d0", []),
    ("net_pcap0,rx_iface=d0,tx_iface=p0", []),
    ("net_null0", ["--vdev=net_pcap0,iface=p0"]),
    ("net_pcap0", ["--vdev=net_pcap0,iface=p0"]),
    ("net_tapX,remote=p0", []),
    ("net_failsafe0,dev(net_af_packet0,iface=p0)", []),
    ("vdev:net_af_packet0,iface=p0", []),
    ("eth_af_packet0,iface=p0", []),
    ("bus=vdev,name=net_pcap0,iface=p0", []),
]
THE_CLIENTS = {"net_af_packet_left,iface=p0", "net_af_packetX,iface=p0", "net_pcap0,rx_iface=d0,tx_iface=p0"}
"""Allowed by the engine: whether an interface is the host's is for its client to see."""
COMMANDS_AND_FILES = [
    ("net_failsafe0,exec(touch {folder}/proof; echo net_null7)", []),
    ("vdev:net_failsafe0,exec(touch {folder}/proof; echo net_null7)", []),
    ("net_null0", ["--vdev=net_failsafe0,exec(touch {folder}/proof; echo net_null7)"]),
    ("net_null0", ["--file-prefix=../../..{folder}/proof/"]),
    ("net_null0", ["--file-prefix", "../../..{folder}/proof/"]),
    ("net_null0", ["-d", "{folder}/kept.pcap"]),
    ("net_pcap0,tx_pcap={folder}/kept.pcap", []),
    ("net_pcap0,tx_pcap={folder}/link.pcap", []),
    ("net_pcap0,tx_pcap={folder}/proof", []),
    ("net_pcap0,tx_pcap=-", []),
    ("net_memif0,role=server,socket={folder}/kept.pcap,socket-abstract=no", []),
    ("net_af_xdp0,iface=d0,xdp_prog={folder}/kept.pcap", []),
]


@dataclass(frozen=True)
class Place:
    """A namespace and a folder to watch."""

    namespace: str
    folder: Path

    def run(self, *command: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
        inside = ["ip", "netns", "exec", self.namespace, *map(str, command)]
        return subprocess.run(
            inside, input=text, capture_output=True, text=True, timeout=60, check=False, cwd=self.folder
        )

    def left_frames(self) -> dict[str, int]:
        """What came out at the other ends of both pairs."""
        found = {}
        for name in ("p1", "d1"):
            answer = json.loads(self.run("ip", "-j", "-s", "link", "show", name).stdout)
            found[name] = answer[0]["stats64"]["rx"]["packets"]
        return found

    def files(self) -> dict[str, str | None]:
        return {
            str(path): path.read_text() if path.is_file() else None
            for path in sorted(self.folder.rglob("*"))
            if path.name != "testbed.toml"
        }

    def filled(self, text: str) -> str:
        return text.format(folder=self.folder)


@pytest.fixture
def place(namespace: str, tmp_path: Path) -> Place:
    (tmp_path / "kept.pcap").write_text("kept")
    (tmp_path / "link.pcap").symlink_to(tmp_path / "proof")
    return Place(namespace, tmp_path)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The namespace of all these tests: none may send a frame in it."""
    place = Place(f"ehguard-{os.getpid()}", tmp_path_factory.mktemp("namespace"))
    subprocess.run(["ip", "netns", "add", place.namespace], check=True)
    try:
        for command in (
            # The kernel's own frames would be counted.
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
            "ip link set lo up",
            "ip link add p0 type veth peer name p1",
            "ip link add d0 type veth peer name d1",
            *(f"ip link set {name} up" for name in ("p0", "p1", "d0", "d1")),
            "ip address add 192.0.2.1/24 dev p0",
            "ip route add default via 192.0.2.2",
        ):
            done = place.run(*command.split())
            assert done.returncode == 0, done.stderr
        yield place.namespace
    finally:
        subprocess.run(["ip", "netns", "delete", place.namespace], check=False)


def lab_file(left: str, arguments: list[str]) -> str:
    return f"""isolated_test_environment = true
[left]
device = {json.dumps(left)}
dut_mac = "{NOBODY[0]}"
[right]
device = "net_null1,no-rx=1"
dut_mac = "{NOBODY[1]}"
[tester]
cpus = [{sorted(os.sched_getaffinity(0))[-1]}]
extra_eal_arguments = {json.dumps(arguments)}
"""


@pytest.mark.root
@ROOT
@pytest.mark.parametrize(("device", "arguments"), ROUND_THE_GUARD + COMMANDS_AND_FILES)
def test_a_testbed_sends_nothing_away_runs_nothing_and_overwrites_nothing(
    place: Place, device: str, arguments: list[str]
) -> None:
    """SEED-80, R6815-01: refused in three lines, before anything is touched."""
    file = place.folder / "testbed.toml"
    file.write_text(lab_file(place.filled(device), [place.filled(argument) for argument in arguments]))
    before = place.left_frames(), place.files()
    done = place.run(
        *evenhand_command("ip", "netns", "exec", place.namespace),
        "trial",
        file,
        "--rate",
        "1kfps",
        "--duration",
        "1s",
        "--waits",
        "short",
        "--no-learning",
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["Error", "Where", "Next"]
    assert done.stdout == ""
    assert (place.left_frames(), place.files()) == before


@pytest.mark.root
@ROOT
@pytest.mark.parametrize(
    ("device", "arguments"),
    [case for case in ROUND_THE_GUARD + COMMANDS_AND_FILES if case[0] not in THE_CLIENTS],
)
def test_the_engine_by_hand_refuses_what_no_testbed_may_say(
    place: Place, device: str, arguments: list[str]
) -> None:
    """SEED-80: it knows no default routes, which is what its client is for, but all the rest."""
    ports = {
        "left": {"device": place.filled(device), "dut_mac": NOBODY[0]},
        "right": {"device": "net_null1,no-rx=1", "dut_mac": NOBODY[1]},
    }
    request = {
        "id": 1,
        "request": "open",
        "host": {"extra_eal_arguments": [place.filled(argument) for argument in arguments]},
        "ports": ports,
        "workers": one_worker(),
        "plan": gateway_v4().to_contract(),
        "frame_size": 64,
        "seed": 1,
    }
    before = place.left_frames(), place.files()
    done = place.run(find_engine(), text=json.dumps(request) + "\n")
    (reply,) = (json.loads(line) for line in done.stdout.splitlines())
    assert reply["fault"]["kind"] == "bad_request", reply
    assert reply["fault"]["where"] in ("ports.left.device", "host.extra_eal_arguments")
    assert (place.left_frames(), place.files()) == before


def test_a_capture_is_made_new_and_a_port_that_does_not_open_leaves_none(tmp_path: Path) -> None:
    """What a port of net_pcap wrote is there after it, and nothing takes its place."""
    first, second = tmp_path / "first.pcap", tmp_path / "second.pcap"
    with engine() as session:
        open_ports(session, gateway_v4(), f"net_pcap0,tx_pcap={first}", "net_null0,no-rx=1")
        session.request("close")
        size = first.stat().st_size
        assert size >= 24  # a capture's header
        with raises("engine.bad-request", match=f"tx_pcap={first} "):
            open_ports(
                session, gateway_v4(), f"net_pcap0,tx_pcap={second},tx_pcap={first}", "net_null0,no-rx=1"
            )
    assert first.stat().st_size == size
    assert not second.exists()
