# SPDX-License-Identifier: Apache-2.0
"""The OTG server with snappi as it is, over both transports, and clients that are none, on the reference
router. What it forwards is known; that a busy host made a trial INVALID is no fault of the server's."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests
import snappi
import urllib3
from scapy.layers.inet import UDP
from scapy.utils import rdpcap
from snappi import otg_pb2 as pb
from snappi import otg_pb2_grpc

from evenhand.cli.router import testbed_text as text_for
from evenhand.lab import linux_lab
from evenhand.otg.rest import MOST_OCTETS, VERDICT_HEADER
from evenhand.otg.server import Places, RunningServer, otg_server
from evenhand.plan import make_plan
from evenhand.reference import ReferenceDut, reference_router
from evenhand.reference.config import Defects
from evenhand.run import read_record
from tests.errors import raises
from tests.otg.clients import (
    api_of,
    captured,
    flows_of,
    ports_of,
    refused,
    send,
    set_capture,
    set_link,
    set_state,
    wait_until_stopped,
)
from tests.otg.configs import LINKS, SIZE, config, devices
from tests.wire.wire_session import MOST_ATTEMPTS, built_router, proved, until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]
urllib3.disable_warnings()
ANY = Places(https_port=0, http_port=0, grpc_port=0)
TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("otg") / "otg.evenhand"


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[RunningServer]:
    built_router()
    with otg_server("reference", ANY, run=run, command=["evenhand", "otg", "reference"]) as running:
        yield running


@pytest.mark.parametrize(("transport", "version"), [("https", 4), ("grpc", 6), ("http", 6)])
def test_a_script_gets_exact_counts(server: RunningServer, run: Path, transport: str, version: int) -> None:
    """Over each transport, and with each IP version: all that was asked for is sent, and comes back."""
    api = api_of(server, transport)
    api.set_config(config(version, packets=200))
    assert run.name in " ".join(set_state(api, "start"))
    wait_until_stopped(api)
    found = send(api, 200, 200)
    assert [(m.name, m.port_tx, m.port_rx) for m in found] == [("there", "p1", "p2"), ("back", "p2", "p1")]
    for metric in found:
        assert (metric.frames_tx, metric.frames_rx, metric.loss) == (200, 200, 0.0)
        assert (metric.bytes_tx, metric.bytes_rx) == (200 * SIZE, 200 * SIZE)
        assert metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
    for port in ports_of(api):
        assert (port.frames_tx, port.frames_rx, port.link, port.transmit) == (200, 200, "up", "stopped")
    assert [port.name for port in ports_of(api, "p2")] == ["p2"]
    assert api.get_config().flows[0].name == "there"
    assert "Evenhand" in api.get_version().app_version
    search = read_record(run).other_searches[-1]
    (trial,) = search.trials
    assert search.plan["name"] == f"gateway_v{version}"
    counts = [direction.received_frames for direction in trial.result.directions.values()]
    assert counts == [200, 200]


def all_came_back(metrics: list[Any]) -> bool:
    """Whether each flow got all frames back. A busy host may keep the router from forwarding for longer than
    its rings hold; a test starts its flows again then."""
    return all(metric.frames_rx == metric.frames_tx for metric in metrics)


def test_a_continuous_flow_is_seen_live_and_stopped_exactly(server: RunningServer, run: Path) -> None:
    """Counts survive the stop, and a start clears them; the verdict is that of what was sent."""
    api = api_of(server, "grpc")
    api.set_config(config(4, packets=None, pps=1000))
    for _ in range(MOST_ATTEMPTS):
        set_state(api, "start")
        seen = 0
        for _ in range(600):
            (there, _) = flows_of(api)
            seen = there.frames_rx
            if seen > 200:
                break
            time.sleep(0.05)
        if there.transmit != "started":  # a busy host has ended the trial
            continue
        assert there.frames_tx >= seen > 200
        error = refused(lambda: set_state(api, "start"))
        assert (error.code, error.kind) == (409, "validation")
        (verdict,) = set_state(api, "stop")
        found = flows_of(api)
        if all_came_back(found):
            break
    else:
        raise AssertionError("the flows never came wholly")
    assert verdict.startswith(("PASS", "INVALID"))
    assert [metric.transmit for metric in found] == ["stopped", "stopped"]
    for metric in found:
        assert metric.frames_rx == metric.frames_tx >= seen
    assert flows_of(api)[0].frames_tx == found[0].frames_tx
    (trial,) = read_record(run).other_searches[-1].trials
    assert trial.result.directions["forward"].offered_frames == found[0].frames_tx
    assert trial.result.intended_duration_s == pytest.approx(found[0].frames_tx / 1000, rel=0.01)
    assert "stopped_early" not in {reason.code for reason in trial.result.reasons}
    for _ in range(MOST_ATTEMPTS):
        set_state(api, "start", "back")
        there, back = flows_of(api)
        assert (there.frames_tx, there.transmit, back.transmit) == (0, "stopped", "started")
        set_state(api, "stop")
        there, back = flows_of(api)
        if all_came_back([back]):
            break
    assert there.frames_tx == 0
    assert back.frames_rx == back.frames_tx > 0


def test_what_the_router_loses_is_counted_and_fails_the_trial(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Every tenth frame, by number: the loss is known to the frame."""
    at = {"loss": tuple(range(10, 100, 10))}

    def sent_once(folder: Path) -> tuple[Any, Any, str]:
        """Through a router of its own: the numbers count from its first frame."""
        with reference_router(make_plan("gateway-v4"), ReferenceDut(defects=Defects(at=at))) as router:
            (folder / "bed.toml").write_text(text_for(router, None))
            places = Places(https_port=None, http_port=0, grpc_port=None)
            with otg_server(
                str(folder / "bed.toml"), places, run=folder / "a.evenhand", command=[]
            ) as server:
                api = api_of(server, "http")
                api.set_config(config(4, packets=500, names=("there",)))
                set_state(api, "start")
                (metric,) = wait_until_stopped(api)
                answer = requests.get(f"{server.http}/config", timeout=60)
                (warning,) = set_state(api, "stop")
        return metric, answer, warning

    metric, answer, warning = until(
        lambda found: found[0].frames_tx - found[0].frames_rx == len(at["loss"]),
        lambda: sent_once(tmp_path_factory.mktemp("lossy")),
    )
    assert metric.frames_tx == 500
    lost = len(at["loss"])
    assert metric.loss == pytest.approx(100 * lost / 500, abs=1e-4)
    assert answer.headers[VERDICT_HEADER] == warning
    assert warning.startswith(("FAIL", "INVALID"))


def test_a_mix_of_sizes_is_sent_in_its_shares(server: RunningServer) -> None:
    """Octets are exact when the flow has ended: seven of 64, four of 570, one of 1518, again and again."""
    api = api_of(server, "grpc")
    made = config(4, packets=240, names=("there",))
    made.flows[0].size.weight_pairs.predefined = "imix"
    api.set_config(made)
    (metric,) = send(api, 240)
    assert (metric.frames_tx, metric.frames_rx) == (240, 240)
    assert metric.bytes_tx == metric.bytes_rx == 20 * (7 * 64 + 4 * 570 + 1518)


@pytest.mark.parametrize(("transport", "version"), [("http", 4), ("grpc", 6)])
def test_devices_have_neighbours_flows_and_captures(
    server: RunningServer, transport: str, version: int
) -> None:
    """As scripts for any OTG server have it: devices with a gateway, protocols started, neighbours found,
    a capture around the flows. Its frames have the devices' addresses."""
    api = api_of(server, transport)
    made = devices(version, packets=50, pps=1000)
    made.captures.add(name="c", port_names=["p1", "p2"])
    api.set_config(made)
    protocols = api.control_state()
    protocols.protocol.all.state = "start"
    api.set_control_state(protocols)
    wanted = api.states_request()
    neighbours = wanted.ipv4_neighbors if version == 4 else wanted.ipv6_neighbors
    neighbours.ethernet_names = ["d1.eth", "d2.eth"]
    states = api.get_states(wanted)
    found = states.ipv4_neighbors if version == 4 else states.ipv6_neighbors
    assert [each.ethernet_name for each in found] == ["d1.eth", "d2.eth"]
    assert all(each.link_layer_address for each in found)
    set_capture(api, "start", "p2")
    assert [port.capture for port in ports_of(api)] == ["stopped", "started"]
    for metric in send(api, 50, 50, before=lambda: set_capture(api, "start", "p2")):
        assert (metric.frames_tx, metric.frames_rx) == (50, 50)
    set_capture(api, "stop", "p2")
    frames = captured(api, "p2")
    assert len(frames) == 50
    ends = {(frame[1].src, frame[1].dst) for frame in frames}
    assert ends == {tuple(link[0] for link in LINKS[version])}
    assert {frame.dst for frame in frames} == {"02:00:00:00:01:02"}
    assert {len(frame) for frame in frames} == {SIZE - 4}
    assert "nothing was captured there" in refused(lambda: captured(api, "p1")).errors[0]


def paused_and_resumed(api: Any) -> tuple[list[Any], list[Any]]:
    """The metrics of two flows in a pause and after all is sent. A busy host may keep the router from
    forwarding for longer than its rings hold, or this process from saying that there is a pause; the flows
    are started again then."""
    for _ in range(MOST_ATTEMPTS):
        set_state(api, "start")
        set_state(api, "pause")
        paused = flows_of(api)
        set_state(api, "resume")
        stopped = wait_until_stopped(api)
        if all(metric.transmit != "stopped" for metric in paused) and all_came_back([*paused, *stopped]):
            break
    return paused, stopped


def test_a_pause_ends_the_sending_and_a_resume_sends_what_is_left(server: RunningServer, run: Path) -> None:
    """To the frame: metrics are those of both trials."""
    api = api_of(server, "http")
    api.set_config(config(4, packets=6000, pps=1000))
    paused, stopped = paused_and_resumed(api)
    assert {metric.transmit for metric in paused} == {"paused"}
    assert {metric.frames_rx for metric in paused} == {metric.frames_tx for metric in paused}
    assert 0 < paused[0].frames_tx < 6000
    for metric in stopped:
        assert (metric.frames_tx, metric.frames_rx, metric.bytes_rx) == (6000, 6000, 6000 * SIZE)
        assert metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
        # 6 s of sending, and a pause between them.
        assert metric.timestamps.last_timestamp_ns - metric.timestamps.first_timestamp_ns >= 6e9
        assert abs(metric.timestamps.last_timestamp_ns / 1e9 - time.time()) < 3600
    trials = [search.trials[-1].result for search in read_record(run).other_searches[-2:]]
    assert sum(each.directions["forward"].offered_frames for each in trials) == 6000
    set_state(api, "resume")
    assert flows_of(api)[0].frames_tx == 6000


def test_a_stop_after_a_pause_ends_the_flow(server: RunningServer) -> None:
    """It is not resumed then. A flow that ended before its pause was never paused."""
    api = api_of(server, "http")
    api.set_config(config(4, packets=None, names=("there",)))
    set_state(api, "start")
    set_state(api, "pause")
    assert flows_of(api)[0].transmit == "paused"
    set_state(api, "stop")
    stopped = flows_of(api)[0]
    set_state(api, "resume")
    assert (stopped.transmit, flows_of(api)[0].frames_tx) == ("stopped", stopped.frames_tx)


def test_bursts_and_unlike_rates_are_sent_to_the_frame(server: RunningServer) -> None:
    api = api_of(server, "grpc")
    made = config(4, names=("there",), pps=1000)
    burst = made.flows[0].duration.burst
    burst.bursts, burst.packets, burst.inter_burst_gap.microseconds = 5, 20, 30_000
    api.set_config(made)
    (metric,) = send(api, 100)
    assert (metric.frames_tx, metric.frames_rx) == (100, 100)
    made = config(4, packets=400, pps=2000)
    made.flows[1].rate.pps, made.flows[1].duration.fixed_packets.packets = 500, 100
    api.set_config(made)
    assert [metric.frames_rx for metric in send(api, 400, 100)] == [400, 100]
    assert [metric.frames_rx for metric in send(api, 0, 100, names=("back",))] == [0, 100]


def test_tags_and_values_are_those_of_the_frames(server: RunningServer) -> None:
    """The router has a VLAN on its left link; what it forwards comes from the addresses in their order."""
    values = ["198.18.0.1", "198.18.7.9", "198.18.200.3"]
    api = api_of(server, "http")
    made = config(4, packets=30, names=("there",))
    made.captures.add(name="c", port_names=["p2"])
    made.flows[0].packet.clear()
    made.flows[0].packet.ethernet().vlan().ipv4().udp()
    _, vlan, ip, udp = made.flows[0].packet
    vlan.id.value, ip.src.values, ip.dst.value = 100, values, "198.19.0.1"
    udp.src_port.value, udp.dst_port.value = 5000, 6000
    api.set_config(made)
    (metric,) = send(api, 30, before=lambda: set_capture(api, "start"))
    assert (metric.frames_tx, metric.frames_rx) == (30, 30)
    assert [frame[1].src for frame in captured(api, "p2")] == values * 10


def test_what_a_capture_cannot_keep_is_refused(server: RunningServer) -> None:
    api = api_of(server, "http")
    made = config(4, packets=9000, names=("there",))
    api.set_config(made)
    assert "has no captures" in refused(lambda: set_capture(api, "start")).errors[0]
    made.captures.add(name="c", port_names=["p2"])
    api.set_config(made)
    assert "p1 has no capture" in refused(lambda: set_capture(api, "start", "p1")).errors[0]
    set_capture(api, "start", "p2")
    assert "can be kept of a start" in refused(lambda: set_state(api, "start")).errors[0]
    (why,) = refused(lambda: set_link(api, "down", "p1")).errors
    assert why.startswith("port.link: ")
    assert "net_memif cannot take its link down" in why
    states = api.states_request()
    states.ipv4_neighbors.ethernet_names = ["nobody"]
    assert "there is no 'nobody'" in refused(lambda: api.get_states(states)).errors[0]


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_what_cannot_be_done_is_an_error_of_the_model_and_the_server_lives_on(
    server: RunningServer, transport: str
) -> None:
    api = api_of(server, transport)
    api.set_config(snappi.Config())
    assert refused(lambda: set_state(api, "start")).errors == ["traffic: no configuration is set"]
    assert refused(lambda: flows_of(api)).errors == ["metrics: no configuration is set"]
    bad = config(4)
    bad.flows[0].packet[1].src.value = "10.1.2.3"
    error = refused(lambda: api.set_config(bad))
    assert (error.code, error.kind) == (400, "validation")
    assert "in" in error.errors[0]
    api.set_config(config(4))
    assert refused(lambda: flows_of(api, "nobody")).errors == ["flow_names: there is no 'nobody'"]
    assert refused(lambda: set_state(api, "start", "nobody")).errors == ["flow_names: there is no 'nobody'"]
    capture = api.capture_request()
    capture.port_name = "p1"
    assert refused(lambda: api.get_capture(capture)).code == 400
    protocols = api.control_state()
    protocols.protocol.all.state = "start"
    assert "ARP and ND" in api.set_control_state(protocols).warnings[0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b'{"flows": 1}', 400),
        (b'{"flows": [{"name": "a", "rate": {"choice": "warp"}}]}', 400),
        (b'{"nothing": {}}', 400),
        (b"[" * 100_000, 400),
        (json.dumps({"flows": [{"name": "x" * (MOST_OCTETS + 1)}]}).encode(), 413),
        (
            json.dumps(
                {
                    "ports": [{"name": "p1"}, {"name": "p2"}],
                    "flows": [
                        {
                            "name": "a",
                            "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
                            "packet": [
                                {"choice": "ethernet", "ethernet": {}},
                                {
                                    "choice": "ipv4",
                                    "ipv4": {
                                        "src": {"choice": "values", "values": ["198.18.0.1"] * 10**6},
                                        "dst": {"choice": "value", "value": "198.19.0.1"},
                                    },
                                },
                                {"choice": "udp", "udp": {}},
                            ],
                        }
                    ],
                }
            ).encode(),
            400,
        ),
    ],
    ids=["broken", "wrong type", "unknown enum", "unknown key", "nested", "too large", "many values"],
)
def test_bodies_that_are_no_configuration_are_refused(server: RunningServer, body: bytes, code: int) -> None:
    answer = requests.post(f"{server.http}/config", data=body, timeout=120)
    assert answer.status_code == code
    assert (answer.json()["code"], answer.json()["kind"]) == (code, "validation")
    assert api_of(server, "http").get_version().app_version


def test_a_message_of_grpc_that_is_too_large_is_refused(server: RunningServer) -> None:
    channel = grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", 1 << 30)])
    stub = otg_pb2_grpc.OpenapiStub(channel)
    request = pb.SetConfigRequest(config=pb.Config(flows=[pb.Flow(name="x" * (100 << 20))]))
    with pytest.raises(grpc.RpcError) as caught:
        stub.SetConfig(request, timeout=120)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    chunk = pb.Data(datum=b"x" * (1 << 20), chunk_size=1 << 20)
    with pytest.raises(grpc.RpcError) as caught:
        stub.streamSetConfig(iter([chunk] * 17), timeout=120)
    assert "octets" in json.loads(caught.value.details())["errors"][0]
    assert stub.GetVersion(pb.google_dot_protobuf_dot_empty__pb2.Empty(), timeout=60).version.app_version
    channel.close()


def test_a_large_configuration_comes_in_a_stream(server: RunningServer) -> None:
    api = api_of(server, "grpc")
    api.enable_grpc_streaming, api._chunk_size = True, 100
    api.set_config(config(6))
    assert [flow.name for flow in api.get_config().flows] == ["there", "back"]
    assert [metric.name for metric in flows_of(api)] == ["there", "back"]


def test_clients_that_go_in_the_middle_leave_the_flows_and_the_server(server: RunningServer) -> None:
    api = api_of(server, "http")
    api.set_config(config(4, packets=None, pps=500))
    set_state(api, "start")
    host, port = str(server.http).removeprefix("http://").split(":")
    for part in (b"POST /config HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n{", b"GE", b"\x00\xff"):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(part)
    threads = [threading.Thread(target=flows_of, args=(api_of(server, "grpc"),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = config(6)
    assert refused(lambda: api_of(server, "grpc").set_config(other)).code == 409
    other.options.port_options.location_preemption = True
    said = api_of(server, "grpc").set_config(other).warnings
    assert "stopped" in said[0]
    assert flows_of(api)[0].transmit == "stopped"


def test_tls_of_today_is_spoken_and_none_of_yesterday(server: RunningServer) -> None:
    host, port = str(server.https).removeprefix("https://").split(":")
    for newest, is_spoken in ((ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_1, False)):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # yesterday's are what it is about
            context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            try:
                with context.wrap_socket(plain, server_hostname=host) as secure:
                    assert is_spoken, secure.version()
            except (ssl.SSLError, OSError):
                assert not is_spoken


def test_a_token_is_wanted_where_it_is_set_and_elsewhere_than_on_this_host(tmp_path: Path) -> None:
    with raises("otg.no-token"):
        Places(host="0.0.0.0")
    places = Places(https_port=None, http_port=0, grpc_port=0, token=TOKEN)
    with otg_server("reference", places, run=tmp_path / "a.evenhand", command=[]) as server:
        url = f"{server.http}/capabilities/version"
        for header, code in (
            ({}, 401),
            ({"Authorization": "Bearer x"}, 401),
            ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ):
            assert requests.get(url, headers=header, timeout=60).status_code == code
        channel = grpc.insecure_channel(server.grpc)
        stub, empty = otg_pb2_grpc.OpenapiStub(channel), pb.google_dot_protobuf_dot_empty__pb2.Empty()
        with pytest.raises(grpc.RpcError) as caught:
            stub.GetVersion(empty, timeout=60)
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        bearing = (("authorization", f"Bearer {TOKEN}"),)
        assert stub.GetVersion(empty, timeout=60, metadata=bearing).version.app_version
        channel.close()
    assert not (tmp_path / "a.evenhand").exists()


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        for places in (
            Places(https_port=None, http_port=number, grpc_port=None),
            Places(https_port=None, grpc_port=number),
        ):
            with (
                raises("otg.cannot-listen"),
                otg_server("reference", places, run=tmp_path / "a.evenhand", command=[]),
            ):
                pass


def documented_script(location: str, version: str) -> subprocess.CompletedProcess[str]:
    """It fails where not all of its frames come back, as on a busy host."""
    return subprocess.run(
        [sys.executable, ROOT / "examples" / "otg_flow.py", location, version],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("transport", "version"), [("HTTPS", "4"), ("gRPC", "6")])
def test_the_documented_script_runs_as_it_is_and_nothing_outlives_a_killed_server(
    tmp_path: Path, transport: str, version: str
) -> None:
    """As a user would: the command, the script. Then the server is killed while a flow runs: engine and
    router end with it."""
    command = [sys.executable, "-m", "evenhand", "otg", "reference", "--https-port", "0", "--grpc-port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            places = {}
            while "Trials are stored" not in (line := process.stderr.readline()):
                assert line, "the server ended"
                kind, _, where = line.strip().partition(": ")
                places[kind] = where
            ended = until(
                lambda done: done.returncode == 0, lambda: documented_script(places[transport], version)
            )
            assert "1000 sent, 1000 received, 0.0 % lost" in ended.stdout
            api = snappi.api(location=places["HTTPS"], verify=False)
            api.set_config(config(4, packets=None))
            set_state(api, "start")
            children = children_of(process.pid)
            assert {"evenhand-engine", "evenhand-router"} <= set(children.values())
        finally:
            process.send_signal(signal.SIGKILL)
    for _ in range(100):
        if not any(Path(f"/proc/{pid}/exe").exists() and is_alive(pid) for pid in children):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {children}")


def children_of(pid: int) -> dict[int, str]:
    """Names of the programs that a process has started, and those that they have, by their ids."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found[int(stat.parent.name)] = (
                name if len(name) < 15 else Path(os.readlink(stat.parent / "exe")).name
            )
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.root
@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, *proved(4)])
def test_the_kernels_router_forwards_what_the_script_counts(tmp_path: Path, version: int) -> None:
    """The documented script on the Linux lab: its counts are those of tcpdump on the DUT's own interface. The
    host may take the DUT's CPU and frames with it: then script and tcpdump agree on a later try."""
    plan = make_plan(f"gateway-v{version}")
    places = Places(https_port=None, http_port=0, grpc_port=None)
    with (
        linux_lab(plan, name="otgtest") as lab,
        otg_server("lab:otgtest", places, run=tmp_path / "a.evenhand", command=[]) as server,
    ):
        for _ in range(MOST_ATTEMPTS):
            capture = tmp_path / "there.pcap"
            watching = subprocess.Popen(
                [
                    *("ip", "netns", "exec", lab.dut_namespace, "tcpdump", "-i", lab.dut_interface("right")),
                    *("-Q", "out", "-U", "-w", capture, "udp", "and", "dst", "port", "6000"),
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
            assert watching.stderr is not None
            while "listening" not in (line := watching.stderr.readline()):
                assert line, "tcpdump did not start"
            ended = documented_script(str(server.http), str(version))
            watching.terminate()
            watching.communicate(timeout=20)
            # Those of the trial: before it, a few frames show that the DUT forwards, and learn its way.
            trials = Counter(bytes(frame[UDP].payload)[:5] for frame in rdpcap(str(capture)))
            seen = max(trials.values(), default=0)
            if ended.returncode == 0 and seen == 1000:
                break
        assert "1000 sent, 1000 received, 0.0 % lost" in ended.stdout
        assert seen == 1000
