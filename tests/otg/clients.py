# SPDX-License-Identifier: Apache-2.0
"""snappi as scripts use it, for tests of the OTG server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import snappi
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from evenhand.otg.server import RunningServer
from tests.wire.wire_session import MOST_ATTEMPTS


def api_of(server: RunningServer, transport: str) -> Any:
    """A client as scripts have it."""
    if transport == "grpc":
        made = snappi.api(location=server.grpc, transport=snappi.Transport.GRPC)
        made.request_timeout = 60
        return made
    return snappi.api(location=getattr(server, transport), verify=False)


def set_state(api: Any, state: str, *names: str) -> list[str]:
    """The warnings of the answer."""
    wanted = api.control_state()
    wanted.traffic.flow_transmit.state = state
    wanted.traffic.flow_transmit.flow_names = list(names)
    return list(api.set_control_state(wanted).warnings or [])


def flows_of(api: Any, *names: str) -> list[Any]:
    wanted = api.metrics_request()
    wanted.flow.flow_names = list(names)
    return list(api.get_metrics(wanted).flow_metrics)


def ports_of(api: Any, *names: str) -> list[Any]:
    wanted = api.metrics_request()
    wanted.port.port_names = list(names)
    return list(api.get_metrics(wanted).port_metrics)


def wait_until_stopped(api: Any) -> list[Any]:
    for _ in range(1000):
        found = flows_of(api)
        if all(metric.transmit == "stopped" for metric in found):
            return found
        time.sleep(0.1)
    raise AssertionError("the flows did not end")


def send(
    api: Any,
    *packets: int,
    before: Callable[[], None] = lambda: None,
    names: tuple[str, ...] = (),
    is_lossy: bool = False,
) -> list[Any]:
    """The metrics of all flows once each has sent so many frames and got them back. A busy host may keep the
    tester from sending them all, or the router from forwarding for longer than its rings hold: then they are
    started again.

    Args:
        before: Called before each start.
        names: The flows that are started; default all.
        is_lossy: The router loses frames on purpose, or is offered too many.
    """
    for _ in range(MOST_ATTEMPTS):
        before()
        set_state(api, "start", *names)
        found = wait_until_stopped(api)
        counts = [(metric.frames_tx, metric.frames_rx) for metric in found]
        if all(
            sent == wanted and (is_lossy or received == wanted)
            for (sent, received), wanted in zip(counts, packets, strict=True)
        ):
            break
    return found


def refused(call: Any) -> Any:
    """The model's `Error`, as snappi gives it to a script."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (snappi raises nothing else)
        call()
    error = snappi.api().from_exception(caught.value)
    assert error is not None, caught.value
    return error


def set_capture(api: Any, state: str, *names: str) -> None:
    wanted = api.control_state()
    wanted.port.capture.state, wanted.port.capture.port_names = state, list(names)
    api.set_control_state(wanted)


def captured(api: Any, name: str, port: int | None = 6000) -> list[Any]:
    """The frames of the flows in the capture of a port: UDP to this port; None: to any."""
    return [frame for frame in all_captured(api, name) if UDP in frame and port in (None, frame[UDP].dport)]


def all_captured(api: Any, name: str) -> list[Any]:
    """Each frame that a port has captured, with its checksums computed anew."""
    wanted = api.capture_request()
    wanted.port_name = name
    frames = list(rdpcap(api.get_capture(wanted)))
    for frame in frames:
        again = frame.copy()
        for layer in again.layers():
            for key in ("chksum", "cksum"):
                if key in again[layer].fields:
                    delattr(again[layer], key)
        assert bytes(again) == bytes(frame), frame.summary()
    return frames


def set_link(api: Any, state: str, *names: str) -> None:
    """Take the links of these ports up or down; those of all if none is named."""
    wanted = api.control_state()
    wanted.port.link.state, wanted.port.link.port_names = state, list(names)
    api.set_control_state(wanted)
