# SPDX-License-Identifier: Apache-2.0
"""The OTG server as a script uses it, over memif and the reference router: how soon the first frame leaves
after a start of a configured server, and whether 64 flows of 1 Mfps in all are counted one by one.

The router loses half of the frames of one DSCP, and counts them itself: its number must be the tester's.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import snappi
from pieces import at_length, record

from evenhand.cli.router import testbed_text
from evenhand.otg.server import Places, otg_server
from evenhand.plan import make_mix
from evenhand.reference import Defects, ReferenceDut, ReferenceRouter, reference_router

FLOWS = 64
LOSSY_DSCP = 46
RATE_FPS = 1_000_000
SECONDS = at_length(5, 1)
TRIES = at_length(8, 2)
LATE_S = 0.3
GIVE_UP_S = 60.0
SIZE = 128
HOSTS = {4: ("198.18.0.1", "198.19.0.1"), 6: ("2001:2::2", "2001:2:0:8000::2")}


def config(version: int, *, rate_fps: int = RATE_FPS, seconds: float = SECONDS) -> Any:
    """A flow for each DSCP from the left port to the right one."""
    made = snappi.Config()
    for name, location in (("p1", "left"), ("p2", "right")):
        made.ports.add(name=name, location=location)
    for dscp in range(FLOWS):
        flow = made.flows.add(name=str(dscp))
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
        flow.size.fixed, flow.rate.pps = SIZE, rate_fps // FLOWS
        flow.duration.fixed_packets.packets = int(rate_fps // FLOWS * seconds)
        flow.metrics.enable = flow.metrics.loss = True
        flow.packet.ethernet()
        ip = flow.packet.ipv4()[-1] if version == 4 else flow.packet.ipv6()[-1]
        ip.src.value, ip.dst.value = HOSTS[version]
        field = ip.priority.dscp.phb if version == 4 else ip.traffic_class
        field.value = dscp if version == 4 else dscp << 2
        udp = flow.packet.udp()[-1]
        udp.src_port.value, udp.dst_port.value = 5000, 6000
    return made


def start(api: Any) -> None:
    wanted = api.control_state()
    wanted.traffic.flow_transmit.state = "start"
    api.set_control_state(wanted)


def metrics(api: Any) -> list[Any]:
    wanted = api.metrics_request()
    wanted.flow.flow_names = []  # all of them
    return list(api.get_metrics(wanted).flow_metrics)


def ended(api: Any) -> list[Any]:
    """The metrics of all flows once they have ended."""
    give_up = time.monotonic() + GIVE_UP_S
    while time.monotonic() < give_up:
        found = metrics(api)
        if all(metric.transmit == "stopped" for metric in found):
            return found
        time.sleep(0.1)
    sys.exit(f"otg: the flows have not ended within {GIVE_UP_S:g} s")


def received_frames(router: ReferenceRouter) -> int:
    count: int = router.counters()["left"]["received_frames"]
    return count


def first_frame_s(api: Any, router: ReferenceRouter) -> float:
    """From the call of a start to the first frame that the router receives from the left port."""
    before = received_frames(router)
    caller = threading.Thread(target=start, args=(api,))
    begin = time.monotonic()
    caller.start()
    while received_frames(router) == before:
        if time.monotonic() > begin + GIVE_UP_S:
            sys.exit(f"otg: no frame has come to the router within {GIVE_UP_S:g} s of the start")
        time.sleep(0.001)
    found = time.monotonic() - begin
    caller.join()
    ended(api)
    return found


def one_by_one(api: Any, router: ReferenceRouter) -> dict[str, Any]:
    """What the tester says of its flows, beside what the router has lost on purpose."""
    before = router.counters()
    start(api)
    found = ended(api)
    after = router.counters()
    lost = after["defects"]["lost_frames"] - before["defects"]["lost_frames"]
    missing = {int(metric.name): metric.frames_tx - metric.frames_rx for metric in found}
    return {
        "sent": sum(metric.frames_tx for metric in found),
        "lost by the router on purpose": lost,
        "missing of the lossy flow": missing.pop(LOSSY_DSCP),
        "missing of the others": sum(missing.values()),
        "the router had no room for": after["model"]["overflow_frames"] - before["model"]["overflow_frames"],
    }


@contextmanager
def served() -> Iterator[tuple[Any, ReferenceRouter]]:
    lossy = ReferenceDut(defects=Defects(dscp=LOSSY_DSCP, ratios={"loss": 0.5}))
    with (
        tempfile.TemporaryDirectory() as name,
        reference_router(make_mix("gateway-v4+gateway-v6"), lossy) as router,
    ):
        testbed = Path(name) / "testbed.toml"
        testbed.write_text(testbed_text(router, None))
        places = Places(https_port=None, http_port=None, grpc_port=0)
        with otg_server(str(testbed), places, run=Path(name) / "a.evenhand", command=sys.argv) as server:
            api = snappi.api(location=server.grpc, transport=snappi.Transport.GRPC)
            api.request_timeout = 60
            yield api, router


def main() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("otg: the tester and the router need a CPU each")
    document: dict[str, Any] = {}
    figures: dict[str, float] = {}
    with served() as (api, router):
        for version in (4, 6):
            api.set_config(config(version, rate_fps=64_000, seconds=0.1))
            times = [first_frame_s(api, router) for _ in range(TRIES)]
            late = sum(each > LATE_S for each in times)
            print(
                f"IPv{version}: first frame {min(times) * 1e3:.0f} to {max(times) * 1e3:.0f} ms after the"
                f" start, median {statistics.median(times) * 1e3:.0f} ms; {late} of {TRIES} after {LATE_S} s"
            )
            api.set_config(config(version))
            counts = one_by_one(api, router)
            print(f"IPv{version}: {FLOWS} flows, {RATE_FPS:,} fps: {counts}")
            document[f"IPv{version}"] = {"first_frame_s": times, "counts": counts}
            figures |= {
                f"IPv{version}, start to first frame, ms": statistics.median(times) * 1e3,
                f"IPv{version}, the same, longest": max(times) * 1e3,
                f"IPv{version}, frames missing of the lossy flow that the router did not count": counts[
                    "missing of the lossy flow"
                ]
                - counts["lost by the router on purpose"],
                f"IPv{version}, frames missing of the other flows": counts["missing of the others"],
            }
    record("otg", document, figures)


if __name__ == "__main__":
    main()
