# SPDX-License-Identifier: Apache-2.0
"""Send 1,000 frames through a router: examples/otg_flow.py [LOCATION] [4|6]"""

import sys
import time

import snappi  # type: ignore[import-untyped, unused-ignore]

location = sys.argv[1] if len(sys.argv) > 1 else "https://127.0.0.1:8443"
version = sys.argv[2] if len(sys.argv) > 2 else "4"
is_rest = location.startswith("http")
api = (
    snappi.api(location=location, verify=False)
    if is_rest
    else snappi.api(location=location, transport=snappi.Transport.GRPC)
)
config = snappi.Config()
config.ports.add(name="p1", location="left")
config.ports.add(name="p2", location="right")
flow = config.flows.add(name="there")
flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
flow.size.fixed, flow.rate.pps, flow.duration.fixed_packets.packets = 128, 1000, 1000
flow.metrics.enable = flow.metrics.loss = True
flow.packet.ethernet()
ip = flow.packet.ipv4()[-1] if version == "4" else flow.packet.ipv6()[-1]
udp = flow.packet.udp()[-1]
step = "0.0.0.1" if version == "4" else "::1:0"
starts = ("198.18.0.1", "198.19.0.1") if version == "4" else ("2001:2::2", "2001:2:0:8000::2")
for field, start in zip((ip.src, ip.dst), starts, strict=True):
    field.increment.start, field.increment.step, field.increment.count = start, step, 16
udp.src_port.value, udp.dst_port.value = 5000, 6000
api.set_config(config)
state = api.control_state()
state.traffic.flow_transmit.state = "start"
api.set_control_state(state)
wanted = api.metrics_request()
wanted.flow.flow_names = ["there"]
while (metric := api.get_metrics(wanted).flow_metrics[0]).transmit != "stopped":
    time.sleep(0.2)
print(metric.frames_tx, "sent,", metric.frames_rx, "received,", metric.loss, "% lost")
assert metric.frames_rx == metric.frames_tx == 1000
