#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evenhand as the traffic generator of bench-trafficgen's binary-search.py: takes the options of its
trex-txrx.py, and writes its result as that does. docs/how-to/be-the-generator-of-others.md says how.

Frames are sent by `evenhand otg TESTBED`, whose place is --trex-host HOST:PORT (HTTPS)."""

import argparse
import ipaddress
import json
import sys
import time
from typing import Any

import snappi  # type: ignore[import-untyped, unused-ignore]

LOOK_EVERY_S = 0.2
OTG_PORT = 8443
PORTS = {"->": (0, 1), "<-": (1, 0)}
HARMLESS = {
    *("active-device-pairs", "measure-latency", "latency-rate", "runtime-tolerance", "max-loss-pct"),
    *("stream-mode", "random-seed", "src-macs", "use-src-mac-flows", "use-dst-mac-flows"),
    *("use-protocol-flows", "teaching-measurement-interval", "teaching-warmup-packet-rate"),
    *("teaching-measurement-packet-rate", "teaching-warmup-packet-type", "teaching-measurement-packet-type"),
}
"""Options with values that change nothing of what is sent here: all frames are counted and timed."""


def read_options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--trex-host", default="localhost")
    parser.add_argument("--device-pairs", default="0:1", choices=["0:1"])
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--rate-unit", choices=["mpps", "%"], default="mpps")
    parser.add_argument("--size", type=int, required=True, help="octets with the FCS")
    parser.add_argument("--runtime", type=float, required=True)
    parser.add_argument("--run-bidirec", type=int, default=1)
    parser.add_argument("--run-revunidirec", type=int, default=0)
    parser.add_argument("--num-flows", type=int, default=1)
    for name in ("src-ips", "dst-ips", "src-ports", "dst-ports", "dst-macs", "vlan-ids"):
        parser.add_argument(f"--{name}", default="")
    for name in ("src-ip", "dst-ip", "src-port", "dst-port"):
        parser.add_argument(f"--use-{name}-flows", type=int, default=0)
    parser.add_argument("--packet-protocol", choices=["UDP"], default="UDP")
    for name in HARMLESS:
        parser.add_argument(f"--{name}", default=None)
    for name in (
        *("mirrored-log", "skip-hw-flow-stats", "disable-flow-cache", "no-promisc", "enable-segment-monitor"),
        *("send-teaching-warmup", "send-teaching-measurement"),
    ):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(words)


def config_of(options: argparse.Namespace) -> Any:
    """A flow in each direction that is asked for."""
    made = snappi.Config()
    for name in ("left", "right"):
        made.ports.add(name=name, location=name)
    directions = ["<-"] if options.run_revunidirec else ["->", "<-"] if options.run_bidirec else ["->"]
    for direction in directions:
        sender, receiver = PORTS[direction]
        flow = made.flows.add(name=direction)
        names = ("left", "right")
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = names[sender], [names[receiver]]
        flow.size.fixed = options.size
        if options.rate_unit == "%":
            flow.rate.percentage = options.rate
        else:
            flow.rate.pps = round(options.rate * 1e6)
        flow.duration.fixed_seconds.seconds = options.runtime
        flow.metrics.enable = True
        ethernet = flow.packet.ethernet()[-1]
        if options.dst_macs:
            ethernet.dst.value = options.dst_macs.split(",")[sender]
        if options.vlan_ids:
            flow.packet.vlan()[-1].id.value = int(options.vlan_ids.split(",")[sender])
        sources = (options.src_ips or "198.18.0.1,198.19.0.1").split(",")
        targets = (options.dst_ips or ",".join(reversed(sources))).split(",")
        version = ipaddress.ip_address(sources[sender]).version
        ip = flow.packet.ipv4()[-1] if version == 4 else flow.packet.ipv6()[-1]
        udp = flow.packet.udp()[-1]
        # Options are those of the forward direction: the left side's hosts are its sources.
        left, right = (getattr(options, f"use_{end}_ip_flows") for end in ("src", "dst"))
        vary(ip.src, sources[sender], left if sender == 0 else right, options.num_flows)
        vary(ip.dst, targets[sender], right if sender == 0 else left, options.num_flows)
        for field, given, usual, is_varied in (
            (udp.src_port, options.src_ports, "32768", options.use_src_port_flows),
            (udp.dst_port, options.dst_ports, "53", options.use_dst_port_flows),
        ):
            vary(field, int((given or usual).split(",")[0]), is_varied, options.num_flows)
    return made


def vary(field: Any, first: Any, is_varied: int, count: int) -> None:
    if not is_varied or count == 1:
        field.value = first
        return
    is_port = isinstance(first, int)
    step: Any = 1 if is_port else "0.0.0.1" if "." in first else "::1"
    field.increment.start, field.increment.step, field.increment.count = first, step, count


def main(words: list[str]) -> int:
    options = read_options(words)
    place = options.trex_host if ":" in options.trex_host else f"{options.trex_host}:{OTG_PORT}"
    api = snappi.api(location=f"https://{place}", verify=False)
    try:
        return run(api, options)
    finally:
        # What reads this stops at that line.
        print("Connection severed", flush=True)
        print("Connection severed", file=sys.stderr, flush=True)


def run(api: Any, options: argparse.Namespace) -> int:
    api.set_config(config_of(options))
    set_state(api, "start")
    wanted = api.metrics_request()
    wanted.flow.flow_names = []
    found = api.get_metrics(wanted).flow_metrics
    while any(metric.transmit != "stopped" for metric in found):
        time.sleep(LOOK_EVERY_S)
        found = api.get_metrics(wanted).flow_metrics
    verdict = "; ".join(set_state(api, "stop"))
    print(f"Evenhand: {verdict}")
    result: dict[str, Any] = {
        "global": {"runtime": options.runtime, "timeout": False, "early_exit": False, "force_quit": False},
        "flow_stats": {},
        "latency": {},
        **{str(port): dict.fromkeys(("opackets", "ipackets", "obytes", "ibytes"), 0) for port in (0, 1)},
    }
    for number, metric in enumerate(found, 1):
        sender, receiver = PORTS[metric.name]
        result[str(sender)] |= {"opackets": metric.frames_tx, "obytes": metric.bytes_tx}
        result[str(receiver)] |= {"ipackets": metric.frames_rx, "ibytes": metric.bytes_rx}
        result["flow_stats"][str(number)] = {
            "tx_pkts": {str(sender): metric.frames_tx},
            "rx_pkts": {str(receiver): metric.frames_rx},
        }
        said = {
            "default": {"pg_ids": [number], "frame_sizes": [options.size], "traffic_shares": [1.0]},
            "latency": {"pg_ids": [], "frame_sizes": [], "traffic_shares": []},
        }
        path = f"{min(sender, receiver)}{metric.name}{max(sender, receiver)}"
        print(
            f"DEVICE PAIR 0:1 | PARSABLE STREAMS FOR DIRECTION '{path}': {json.dumps(said)}", file=sys.stderr
        )
    if verdict.startswith("INVALID"):
        return 1
    print(f"PARSABLE RESULT: {json.dumps(result)}", file=sys.stderr)
    return 0


def set_state(api: Any, state: str) -> list[str]:
    wanted = api.control_state()
    wanted.traffic.flow_transmit.state = state
    return list(api.set_control_state(wanted).warnings or [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
