# SPDX-License-Identifier: Apache-2.0
"""Several OTG flows on one port with snappi as it is, on a reference router that loses frames of one DSCP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import snappi
from scapy.layers.inet import IP, UDP

from evenhand.cli.router import testbed_text as text_for
from evenhand.otg.server import Places, RunningServer, otg_server
from evenhand.plan import make_mix
from evenhand.reference import Defects, ReferenceDut, reference_router
from evenhand.run import read_record
from tests.otg.clients import api_of, captured, flows_of, ports_of, refused, send, set_capture, set_state
from tests.otg.configs import DSCPS, LABEL, SHARES, SIZE, several
from tests.wire.wire_session import MOST_ATTEMPTS, built_router

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]
FRAMES = 20
"""As many of voice."""
SENT = [FRAMES * share for share in SHARES.values()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flows") / "a.evenhand"


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[RunningServer]:
    """The router loses half of the frames with voice's DSCP, and no others."""
    built_router()
    lossy = ReferenceDut(defects=Defects(dscp=DSCPS["voice"], ratios={"loss": 0.5}))
    with reference_router(make_mix("gateway-v4+gateway-v6"), lossy) as router:
        (run.parent / "bed.toml").write_text(text_for(router, None))
        places = Places(https_port=None, http_port=0, grpc_port=0)
        with otg_server(str(run.parent / "bed.toml"), places, run=run, command=[]) as running:
            yield running


def dscp_of(frame: Any) -> int:
    octet: int = frame[IP].tos if IP in frame else frame[1].tc
    return octet >> 2


def sent_wholly(api: Any, made: Any, packets: list[int], lossy: str = "voice") -> list[Any]:
    """The metrics of all flows. A busy host may keep tester or router away until frames are lost that the
    router does not lose, or the first frame is too late: then the configuration is set again."""
    for _ in range(MOST_ATTEMPTS):
        api.set_config(made)
        try:
            found = send(api, *packets, before=lambda: set_capture(api, "start"), is_lossy=True)
        except Exception as error:  # snappi raises nothing else
            if "set the configuration again" not in str(error):
                raise
            continue
        others = [metric for metric in found if not metric.name.startswith(lossy)]
        if all(metric.frames_rx == metric.frames_tx for metric in others):
            return found
    raise AssertionError("the flows of other DSCPs never came wholly")


@pytest.mark.parametrize(("transport", "version"), [("http", 4), ("grpc", 6)])
def test_what_is_lost_of_one_dscp_is_charged_to_its_flow_alone(
    server: RunningServer, run: Path, transport: str, version: int
) -> None:
    """What a flow received is what a capture has of its DSCP; ports have the sum."""
    api = api_of(server, transport)
    made = several(version, packets=FRAMES)
    made.captures.add(name="c", port_names=["p1", "p2"])
    found = sent_wholly(api, made, SENT * 2)
    (verdict,) = set_state(api, "stop")
    set_capture(api, "stop")
    assert [metric.name for metric in found] == [f"{n} {way}" for way in ("there", "back") for n in SHARES]
    assert [metric.frames_tx for metric in found] == SENT * 2
    for receiver, metrics in (("p2", found[:3]), ("p1", found[3:])):
        frames = captured(api, receiver, None)
        seen = Counter(map(dscp_of, frames))
        assert [metric.frames_rx for metric in metrics] == [seen[dscp] for dscp in DSCPS.values()]
        voice, *others = metrics
        assert 0 < voice.frames_rx < voice.frames_tx
        assert [metric.loss for metric in others] == [0, 0]
        for metric in metrics:
            lost = metric.frames_tx - metric.frames_rx
            assert metric.loss == pytest.approx(100 * lost / metric.frames_tx, abs=1e-4)
            assert (metric.bytes_tx, metric.bytes_rx) == (metric.frames_tx * SIZE, metric.frames_rx * SIZE)
            assert metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
        assert {frame[UDP].dport for frame in frames if dscp_of(frame) == 46} == {5060}
        assert {frame[UDP].dport for frame in frames if dscp_of(frame) != 46} == {6000}
        if version == 6:
            assert {frame[1].fl for frame in frames if dscp_of(frame) == 34} == {LABEL}
        (port,) = ports_of(api, receiver)
        assert port.frames_rx == sum(metric.frames_rx for metric in metrics) == len(frames)
        assert port.frames_tx == sum(SENT)
    assert verdict.startswith(("FAIL", "INVALID"))
    (trial,) = read_record(run).other_searches[-1].trials
    classes = [each for way in trial.result.directions.values() for each in way.classes]
    assert [each.received_frames for each in classes] == [metric.frames_rx for metric in found]


@pytest.mark.parametrize("version", [4, 6])
def test_sixty_four_flows_of_each_port_are_counted_one_by_one(server: RunningServer, version: int) -> None:
    """One of each DSCP, in frames of a size of its own."""
    pair = several(version, packets=FRAMES)
    made = snappi.Config()
    for port in pair.ports:
        made.ports.add(name=port.name, location=port.location)
    made.captures.add(name="c", port_names=["p1", "p2"])
    for first in (pair.flows[2], pair.flows[5]):
        for dscp in range(64):
            flow = first.clone()
            flow.name, flow.size.fixed = f"{dscp} {first.name}", SIZE + dscp
            flow.rate.pps, flow.duration.fixed_packets.packets = 20, FRAMES
            ip = flow.packet[1]
            field = ip.priority.dscp.phb if version == 4 else ip.traffic_class
            field.value = dscp if version == 4 else dscp << 2
            made.flows.append(flow)
    lossy = DSCPS["voice"]
    found = sent_wholly(api_of(server, "grpc"), made, [FRAMES] * 128, f"{lossy} ")
    assert len(found) == 128
    for number, metric in enumerate(found):
        dscp = number % 64
        assert metric.name.startswith(f"{dscp} ")
        assert (metric.frames_tx, metric.bytes_rx) == (FRAMES, metric.frames_rx * (SIZE + dscp))
        assert (metric.frames_rx < FRAMES) == (dscp == lossy)


def seen_live_and_ended(api: Any) -> tuple[list[Any], list[Any]]:
    """The metrics of continuous flows while they run, and after a stop; again while a busy host loses frames
    that the router does not lose."""
    for _ in range(MOST_ATTEMPTS):
        api.set_config(several(4, packets=None, names="there"))
        set_state(api, "start")
        live = flows_of(api)
        while live[0].transmit == "started" and live[0].frames_rx < FRAMES // 2:
            time.sleep(0.05)
            live = flows_of(api)
        if live[0].transmit == "started":
            assert "can only stop" in refused(lambda: set_state(api, "pause")).errors[0]
        set_state(api, "stop")
        ended = flows_of(api)
        if all(metric.frames_rx == metric.frames_tx > 0 for metric in ended[1:]):
            return live, ended
    raise AssertionError("the flows of other DSCPs never came wholly")


def test_flows_of_a_port_are_seen_live_and_stop_together(server: RunningServer) -> None:
    """While they run the sequence says what each has sent, and the engine what came of each; the loss, since
    some frames are under way, is known at the end."""
    api = api_of(server, "http")
    api.set_config(several(4, packets=None, names="there"))
    error = refused(lambda: set_state(api, "start", "voice there"))
    assert "start together" in error.errors[0]
    live, ended = seen_live_and_ended(api)
    assert [metric.transmit for metric in live] == ["started"] * 3
    assert [metric.loss for metric in live] == [None] * 3
    voice, video, rest = live
    assert 0 < voice.frames_rx < voice.frames_tx
    assert 2 * video.frames_rx <= rest.frames_rx + 3 <= rest.frames_tx + 3
    assert rest.frames_rx > 3 * voice.frames_rx
    assert rest.bytes_rx == rest.frames_rx * SIZE
    assert live[2].frames_tx == pytest.approx(6 * live[0].frames_tx, abs=6)
    assert [metric.transmit for metric in ended] == ["stopped"] * 3
    assert all(now.frames_tx >= before.frames_tx for now, before in zip(ended, live, strict=True))
    assert 0 < ended[0].frames_rx < ended[0].frames_tx
    sender, receiver = ports_of(api)
    assert sender.frames_tx == sum(metric.frames_tx for metric in ended)
    assert receiver.frames_rx == sum(metric.frames_rx for metric in ended)
