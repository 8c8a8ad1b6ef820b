# SPDX-License-Identifier: Apache-2.0
"""The OTG server under what public suites ask of one: plain UDP with a capture around the flow, a search of
RFC 2544; and as the generator of other projects, by the examples for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether

from evenhand.cli.router import testbed_text as text_for
from evenhand.otg.server import Places, RunningServer, otg_server
from evenhand.plan import make_mix
from evenhand.reference import ReferenceDut, reference_router
from tests.otg.clients import all_captured, api_of, captured, ports_of, refused, send, set_capture, set_state
from tests.otg.configs import SIZE, config
from tests.wire.wire_session import MOST_ATTEMPTS, built_router, thorough, until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]
LINE_BPS = 100_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A router that runs, whose ports are said to have a line rate."""
    built_router()
    folder = tmp_path_factory.mktemp("suites")
    with reference_router(make_mix("gateway-v4+gateway-v6"), ReferenceDut()) as router:
        text = text_for(router, None)
        for side in ("left", "right"):
            text = text.replace(f"[{side}]\n", f'[{side}]\nline_rate = "100Mbps"\n')
        (folder / "bed.toml").write_text(text)
        places = Places(https_port=0, http_port=0, grpc_port=0, locations=("veth-a", "veth-b"))
        with otg_server(str(folder / "bed.toml"), places, run=folder / "a.evenhand", command=[]) as running:
            yield running


@pytest.mark.parametrize(("transport", "version"), [("grpc", 4), ("http", 6)])
@pytest.mark.parametrize("ports", ["value", "values", "increment"])
def test_a_case_of_plain_udp(server: RunningServer, transport: str, version: int, ports: str) -> None:
    """One flow of so many frames, counted and captured: frame k has the k-th ports of their pattern."""
    api = api_of(server, transport)
    made = config(version, packets=40, pps=400, hosts=1, names=("f1",))
    made.captures.add(name="ca", port_names=["p1", "p2"])
    wanted = set_ports(made.flows[0].packet[2], ports)
    api.set_config(made)
    (metric,) = send(api, 40, before=lambda: set_capture(api, "start"))
    assert (metric.frames_tx, metric.frames_rx) == (40, 40)
    set_capture(api, "stop")
    frames = captured(api, "p2", wanted[0][1] if ports == "value" else None)
    assert [(frame[UDP].sport, frame[UDP].dport) for frame in frames] == wanted
    head = 20 if version == 4 else 40
    assert {frame[UDP].len for frame in frames} == {SIZE - 14 - 4 - head}
    assert not captured(api, "p1", None)


def set_ports(header: Any, ports: str) -> list[tuple[int, int]]:
    """Those of 40 frames."""
    if ports == "values":
        header.src_port.values, header.dst_port.values = [5100, 5110, 5105, 5110], [6000, 6001, 6002, 6003]
        return [((5100, 5110, 5105, 5110)[k % 4], 6000 + k % 4) for k in range(40)]
    if ports == "increment":
        field = header.src_port.increment
        field.start, field.step, field.count = 5000, 2, 10
        back = header.dst_port.decrement
        back.start, back.step, back.count = 6012, 4, 4
        return [(5000 + 2 * (k % 10), 6012 - 4 * (k % 4)) for k in range(40)]
    header.src_port.value, header.dst_port.value = 5000, 6000
    return [(5000, 6000)] * 40


def with_header(version: int, name: str, header: str) -> Any:
    """A configuration with one flow of 40 frames with this header behind IP, and captures."""
    made = config(version, packets=40, pps=400, hosts=1, names=(name,))
    made.captures.add(name="ca", port_names=["p1", "p2"])
    flow = made.flows[0]
    source, destination = (getattr(flow.packet[1], end).increment.start for end in ("src", "dst"))
    flow.packet.clear()
    _, ip, _ = getattr(getattr(flow.packet.ethernet(), f"ipv{version}")(), header)()
    ip.src.value, ip.dst.value = source, destination
    return made


@pytest.mark.parametrize(
    ("transport", "version", "ports"), [("grpc", 4, "value"), ("http", 6, "increment"), ("grpc", 4, "values")]
)
def test_a_case_of_tcp_ports(server: RunningServer, transport: str, version: int, ports: str) -> None:
    """Counted and captured as one of UDP is, with the header that the script asks for and right sums."""
    api = api_of(server, transport)
    made = with_header(version, "f1", "tcp")
    tcp = made.flows[0].packet[2]
    wanted = set_ports(tcp, ports)
    tcp.seq_num.value, tcp.window.value, tcp.ctl_syn.value, tcp.ecn_echo.value = 7, 4096, 1, 1
    api.set_config(made)
    (metric,) = send(api, 40, before=lambda: set_capture(api, "start"))
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (40, 40, 0.0)
    set_capture(api, "stop")
    frames = all_captured(api, "p2")
    assert [(frame[TCP].sport, frame[TCP].dport) for frame in frames] == wanted
    for frame in frames:
        assert (frame[TCP].seq, frame[TCP].ack, frame[TCP].window) == (7, 0, 4096)
        assert (str(frame[TCP].flags), frame[TCP].dataofs, len(frame)) == ("SE", 5, SIZE - 4)
    assert not all_captured(api, "p1")


@pytest.mark.parametrize(("transport", "version"), [("http", 4), ("grpc", 6)])
def test_flows_of_udp_tcp_and_icmp_are_sent_side_by_side(
    server: RunningServer, transport: str, version: int
) -> None:
    """Each is counted by itself; the numbers of echo requests rise."""
    api = api_of(server, transport)
    made = with_header(version, "udp", "udp")
    made.flows[0].packet[2].src_port.value, made.flows[0].packet[2].dst_port.value = 5000, 6000
    made.flows.append(with_header(version, "tcp", "tcp").flows[0])
    made.flows[1].packet[2].src_port.value, made.flows[1].packet[2].dst_port.value = 5000, 80
    made.flows.append(with_header(version, "ping", "icmp" if version == 4 else "icmpv6").flows[0])
    echo = made.flows[2].packet[2].echo
    echo.identifier.value = 0
    number = echo.sequence_number.increment
    number.start, number.step, number.count = 0, 1, 65536
    api.set_config(made)
    found = send(api, 40, 40, 40, before=lambda: set_capture(api, "start"))
    assert [(metric.frames_tx, metric.frames_rx) for metric in found] == [(40, 40)] * 3
    set_capture(api, "stop")
    frames = all_captured(api, "p2")
    kind = ICMP if version == 4 else ICMPv6EchoRequest
    pings = [frame[kind] for frame in frames if kind in frame]
    assert [(ping.id, ping.seq) for ping in pings] == [(0, k) for k in range(40)]
    assert {ping.type for ping in pings} == {8 if version == 4 else 128}
    assert {frame[TCP].dport for frame in frames if TCP in frame} == {80}
    assert {frame[UDP].dport for frame in frames if UDP in frame} == {6000}
    assert len(frames) == 120


@pytest.mark.parametrize(("transport", "version"), [("grpc", 4), ("http", 6)])
def test_sizes_are_drawn_and_those_of_each_direction(
    server: RunningServer, transport: str, version: int
) -> None:
    """Octets are those of the captured frames, to the last one; the other direction has its own size and
    ports."""
    api = api_of(server, transport)
    made = config(version, packets=200, pps=1000, hosts=1)
    there, back = made.flows
    there.size.random.min, there.size.random.max = 100, 1400
    back.size.fixed, back.packet[2].src_port.value = 1518, 5001
    made.captures.add(name="ca", port_names=["p1", "p2"])
    api.set_config(made)
    found = send(api, 200, 200, before=lambda: set_capture(api, "start"))
    set_capture(api, "stop")
    assert [metric.frames_rx for metric in found] == [200, 200]
    frames = captured(api, "p2")
    sizes = [len(frame) + 4 for frame in frames]
    assert (found[0].bytes_tx, found[0].bytes_rx) == (sum(sizes), sum(sizes))
    assert len({*sizes}) > 50
    assert (min(sizes) >= 100, max(sizes) <= 1400) == (True, True)
    assert {frame[UDP].sport for frame in frames} == {5000}
    frames = captured(api, "p1")
    assert {(len(frame) + 4, frame[UDP].sport) for frame in frames} == {(1518, 5001)}
    assert found[1].bytes_rx == 200 * 1518
    sender, receiver = ports_of(api, "p1", "p2")
    assert (sender.bytes_tx, receiver.bytes_tx) == (sum(sizes), 200 * 1518)


@pytest.mark.parametrize(("transport", "version"), [("http", 4), ("grpc", 6)])
def test_a_case_of_ip_alone_with_ecn(server: RunningServer, transport: str, version: int) -> None:
    """A script that writes no header behind IP gets its counts, and ECN in the octet that it asks for."""
    api = api_of(server, transport)
    made = config(version, packets=40, pps=400, hosts=1, names=("f1",))
    made.flows[0].packet.remove(2)
    ip = made.flows[0].packet[1]
    if version == 4:
        ip.priority.dscp.phb.value, ip.priority.dscp.ecn.value = 46, 2
    else:
        ip.traffic_class.value = 46 << 2 | 2
    made.captures.add(name="ca", port_names=["p2"])
    (note,) = api.set_config(made).warnings
    assert note.startswith("flows[0].packet: has no header behind IP")
    (metric,) = send(api, 40, before=lambda: set_capture(api, "start"))
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (40, 40, 0.0)
    set_capture(api, "stop")
    frames = captured(api, "p2", 7)
    assert {frame[1].tos if version == 4 else frame[1].tc for frame in frames} == {46 << 2 | 2}
    assert len(frames) == 40


@pytest.mark.parametrize(("transport", "version"), [("https", 4), ("grpc", 6)])
def test_a_quickstart_names_the_sending_port_alone(
    server: RunningServer, transport: str, version: int
) -> None:
    """One port by the location that the script has for it, ports in patterns, and metrics by a poll."""
    api = api_of(server, transport)
    made = config(version, packets=60, pps=600, hosts=1, names=("f1",))
    made.ports.remove(1)
    made.ports[0].location = "veth-a"
    flow = made.flows[0].serialize(encoding=made.DICT)
    del flow["tx_rx"]["port"]["rx_names"]
    made.flows[0].deserialize(flow)
    udp = made.flows[0].packet[2]
    udp.src_port.values = [5110, 5115, 5120, 5125, 5130]
    port = udp.dst_port.increment
    port.start, port.step, port.count = 6110, 5, 5
    (note,) = api.set_config(made).warnings
    assert note.startswith("flows[0].tx_rx.port: names no port that receives")
    (metric,) = send(api, 60)
    assert (metric.port_tx, metric.port_rx) == ("p1", "")
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (60, 60, 0.0)


def test_cases_that_need_other_frames_are_refused_by_their_key(server: RunningServer) -> None:
    """Headers that no test frame has: each says why, and what to write instead."""
    api = api_of(server, "http")
    made = config(4, names=("f1",), hosts=1)
    made.flows[0].packet.clear()
    made.flows[0].packet.ethernet().ipv4().gre()
    (error,) = refused(lambda: api.set_config(made)).errors
    assert error.startswith("flows[0].packet[2].gre: test frames are")
    made = config(6, names=("f1",), hosts=1)
    made.flows[0].packet.custom().custom()
    for header in made.flows[0].packet[-2:]:
        header.bytes = "2e2e"
    assert "flows[0].packet[3].custom" in refused(lambda: api.set_config(made)).errors[0]


@pytest.mark.parametrize(
    ("transport", "version", "octets"), [("grpc", 4, b"Hello"), ("http", 6, bytes.fromhex("e5e401") * 43)]
)
def test_a_case_of_a_payload(server: RunningServer, transport: str, version: int, octets: bytes) -> None:
    """Its octets stand right behind UDP's header in each frame, and the checksum covers them."""
    api = api_of(server, transport)
    made = config(version, packets=40, pps=400, hosts=1, names=("f1",))
    made.captures.add(name="ca", port_names=["p1", "p2"])
    made.flows[0].size.fixed = 300
    made.flows[0].packet.custom()[-1].bytes = octets[:128].hex()
    api.set_config(made)
    (metric,) = send(api, 40, before=lambda: set_capture(api, "start"))
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (40, 40, 0.0)
    set_capture(api, "stop")
    frames = captured(api, "p2", None)
    assert len(frames) == 40
    for k, frame in enumerate(frames):
        payload = bytes(frame[UDP].payload)
        length = len(octets[:128])
        assert payload[:length] == octets[:128]
        tag, pattern = payload[length : length + 18], payload[length + 18 :]
        assert (tag[:3].hex(), int.from_bytes(tag[6:12])) == ("e5e401", k)
        assert pattern == bytes((length + i) % 256 for i in range(len(pattern)))


def test_a_search_of_rfc_2544_by_percentages(server: RunningServer) -> None:
    """As scripts have it: a configuration, an update of the rates for each further load, a start, and the
    sums over all flows."""
    api = api_of(server, "grpc")
    low, high, tried = 0.0, 100.0, 0
    for _ in range(3):
        load = (low + high) / 2
        made = config(4)
        for flow in made.flows:
            flow.size.fixed = 512
            flow.rate.percentage = load
            flow.duration.fixed_seconds.seconds = 0.3
        if tried == 0:
            api.set_config(made)
        else:
            update = api.config_update()
            update.flows.property_names = [update.flows.RATE]
            for flow in made.flows:
                update.flows.flows.append(flow)
            api.update_config(update)
        packets = round(load / 100 * LINE_BPS / 8 / (512 + 20) * 0.3)
        found = send(api, packets, packets, is_lossy=True)
        set_state(api, "stop")
        sent, received = (sum(getattr(each, key) for each in found) for key in ("frames_tx", "frames_rx"))
        assert sent == 2 * packets
        low, high = (load, high) if received == sent else (low, load)
        tried += 1
    assert tried == 3
    assert high > low


class _TrafficGenerator(ABC):
    """What DTS has of one, as far as it is used."""

    def __init__(self, tg_node: Any, config: Any, **kwargs: Any) -> None:
        self._tg_node, self._config = tg_node, config

    @abstractmethod
    def close(self) -> None: ...


@dataclass(slots=True)
class _Stats:
    tx_pps: float
    tx_bps: float
    rx_pps: float
    rx_bps: float
    frame_size: int | None = None


class _PerformanceGenerator(_TrafficGenerator):
    @abstractmethod
    def calculate_traffic_and_stats(
        self, packet: Any, duration: float, send_mpps: int | None = None
    ) -> _Stats: ...


@pytest.fixture
def dts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example, with a fake of the framework that it belongs to."""
    names = (
        "framework",
        "framework.testbed_model",
        "framework.testbed_model.traffic_generator",
        "framework.testbed_model.traffic_generator.performance_traffic_generator",
    )
    for name in names:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module: Any = sys.modules[names[-1]]
    module.PerformanceTrafficGenerator, module.PerformanceTrafficStats = _PerformanceGenerator, _Stats
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.delitem(sys.modules, "dts_traffic_generator", raising=False)
    import dts_traffic_generator  # type: ignore[import-not-found]

    return dts_traffic_generator


@pytest.mark.parametrize("version", [6, *thorough(4)])
def test_the_class_for_dts_sends_its_packet_both_ways(server: RunningServer, dts: Any, version: int) -> None:
    where = types.SimpleNamespace(location=server.https)
    generator = dts.EvenhandTrafficGenerator(tg_node=None, config=where)
    ip = (
        IP(src="198.18.0.7", dst="198.19.0.9")
        if version == 4
        else IPv6(src="2001:2::2", dst="2001:2:0:8000::2")
    )
    packet = Ether() / ip / UDP(sport=7, dport=9) / (b"x" * 100)
    stats = None
    for _ in range(MOST_ATTEMPTS):
        with contextlib.suppress(RuntimeError):  # the host was busy
            # Without privileges the engine yields to the server's threads for 3 ms: 1 % of 0.2 s is less.
            stats = generator.calculate_traffic_and_stats(packet, duration=1, send_mpps=0.001)
            if stats.verdict.startswith("PASS"):
                break
    assert stats is not None
    assert (stats.tx_pps, stats.rx_pps) == (2000, 2000)
    assert (stats.frame_size, stats.tx_bps) == (len(packet), 2000 * (len(packet) + 4))
    assert stats.verdict.startswith("PASS")
    with pytest.raises(RuntimeError, match="only UDP"):
        generator.calculate_traffic_and_stats(Ether() / ip, duration=0.2, send_mpps=0.001)
    generator.close()


def parsed(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a search of bench-trafficgen reads of its generator."""
    (line,) = (each for each in ended.stderr.split("\n") if each.startswith("PARSABLE RESULT: "))
    result: dict[str, Any] = json.loads(line.partition(": ")[2])
    return result


@pytest.mark.parametrize("direction", ["both", "reverse"])
def test_the_program_for_bench_trafficgen_says_what_its_search_reads(
    server: RunningServer, direction: str
) -> None:
    """The options are those that the search gives its generator; the lines, those that it looks for."""
    options = [
        *(f"--trex-host={str(server.https).removeprefix('https://')}", "--device-pairs=0:1"),
        *("--active-device-pairs=0:1", "--mirrored-log", "--measure-latency=0", "--latency-rate=1000"),
        *("--rate=0.001", "--rate-unit=mpps", "--size=128", "--runtime=0.2", "--runtime-tolerance=5"),
        *(f"--run-bidirec={int(direction == 'both')}", f"--run-revunidirec={int(direction != 'both')}"),
        *("--num-flows=4", "--src-ips=198.18.0.1,198.19.0.1", "--dst-ips=198.19.0.1,198.18.0.1"),
        *("--use-src-ip-flows=1", "--use-dst-ip-flows=1", "--use-src-mac-flows=0", "--use-dst-mac-flows=0"),
        *("--use-src-port-flows=0", "--use-dst-port-flows=0", "--use-protocol-flows=0"),
        *("--packet-protocol=UDP", "--stream-mode=continuous", "--max-loss-pct=0.0", "--skip-hw-flow-stats"),
    ]
    sent = {0: 200 if direction == "both" else 0, 1: 200}

    def has_come(ended: subprocess.CompletedProcess[str]) -> bool:
        """Whether all came back, if the trial counts: a busy host may keep the router from its CPU."""
        if ended.returncode or "INVALID" in ended.stdout:
            return True
        result = parsed(ended)
        return [result[str(port)]["ipackets"] for port in (0, 1)] == [sent[1], sent[0]]

    ended = until(
        has_come,
        lambda: subprocess.run(
            [sys.executable, ROOT / "examples" / "evenhand_txrx.py", *options],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        ),
    )
    assert "Connection severed" in ended.stdout
    if "INVALID" in ended.stdout:
        assert ended.returncode == 1
        return
    assert ended.returncode == 0, ended.stderr
    result = parsed(ended)
    assert [result[str(port)]["opackets"] for port in (0, 1)] == [sent[0], sent[1]]
    assert result["global"]["runtime"] == 0.2
    streams = ended.stderr.count("PARSABLE STREAMS FOR DIRECTION")
    assert streams == len(result["flow_stats"]) == (2 if direction == "both" else 1)
