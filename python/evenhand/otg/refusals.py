# SPDX-License-Identifier: Apache-2.0
"""OTG: why something of a client's is refused, as the model's `Error` says it, and the keys of a
configuration that are honoured. Whatever is not among them is refused."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from evenhand.base.errors import EvenhandError, HostError
from evenhand.base.programs import how_to_get_extra

Kind = Literal["validation", "internal"]
VALIDATION = 400
UNAUTHORIZED = 401
BUSY = 409
TOO_LARGE = 413
INTERNAL = 500
MOST_NAMED = 20
"""Reasons that one error names; the others are counted."""


class OtgError(Exception):
    """What a client asked for cannot be done; nothing was sent for it. `status` is the model's `code`."""

    def __init__(self, errors: Iterable[str], *, status: int = VALIDATION, kind: Kind = "validation") -> None:
        found = list(errors)
        more = len(found) - MOST_NAMED
        self.errors = found[:MOST_NAMED] + ([f"and {more:,} more"] if more > 0 else [])
        self.status, self.kind = status, kind
        super().__init__("; ".join(self.errors))


def error_of_model(error: EvenhandError, *, at: str = "") -> OtgError:
    """An error of the tester's as a client gets it.

    Args:
        at: The key of the request.
    """
    is_request = error.exit_code == 2
    next_step = f". {error.next_step}" if error.next_step else ""
    return OtgError(
        [f"{at}{': ' if at else ''}{error}{next_step}"],
        status=VALIDATION if is_request else INTERNAL,
        kind="validation" if is_request else "internal",
    )


def check_token(given: str, token: str | None, *, place: str) -> None:
    """OtgError if a request does not bear the token; None: there is none.

    Args:
        given: The value of `Authorization`, empty if the request has none.
        place: Where the request bears it, for the error.
    """
    if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise OtgError([f"the token is missing or wrong: {place}: Bearer TOKEN"], status=UNAUTHORIZED)


HONOURED: Mapping[str, tuple[str, ...]] = {
    "config": ("ports", "devices", "flows", "captures", "layer1", "options"),
    "ports[]": ("name", "location"),
    "layer1[]": ("name", "port_names", "speed", "mtu", "promiscuous"),
    "options": ("port_options",),
    "options.port_options": ("location_preemption", "data_integrity"),
    "flows[]": ("name", "tx_rx", "packet", "size", "rate", "duration", "metrics", "payload"),
    "devices[]": ("name", "ethernets"),
    "devices[].ethernets[]": (
        "name",
        "connection",
        "mac",
        "mtu",
        "vlans",
        "ipv4_addresses",
        "ipv6_addresses",
    ),
    "devices[].ethernets[].connection": ("choice", "port_name"),
    "devices[].ethernets[].vlans[]": ("name", "id", "tpid", "priority"),
    "devices[].ethernets[].ip_addresses[]": ("name", "address", "gateway", "prefix", "gateway_mac"),
    "devices[].ethernets[].ip_addresses[].gateway_mac": ("choice", "auto", "value"),
    "captures[]": ("name", "port_names", "format", "packet_size", "overwrite"),
    "flows[].tx_rx": ("choice", "port", "device"),
    "flows[].tx_rx.port": ("tx_name", "rx_name", "rx_names"),
    "flows[].tx_rx.device": ("mode", "tx_names", "rx_names", "bidirectional"),
    "flows[].packet[]": (
        "choice",
        "ethernet",
        "vlan",
        "ipv4",
        "ipv6",
        "udp",
        "tcp",
        "icmp",
        "icmpv6",
        "custom",
    ),
    "flows[].packet[].ethernet": ("src", "dst"),
    "flows[].packet[].vlan": ("id", "priority"),
    "flows[].packet[].ipv4": ("src", "dst", "priority", "time_to_live", "protocol"),
    "flows[].packet[].ipv4.priority": ("choice", "raw", "tos", "dscp"),
    "flows[].packet[].ipv4.priority.dscp": ("phb", "ecn"),
    "flows[].packet[].ipv4.priority.tos": (
        "precedence",
        "delay",
        "throughput",
        "reliability",
        "monetary",
        "unused",
    ),
    "flows[].packet[].ipv6": ("src", "dst", "traffic_class", "flow_label", "hop_limit", "next_header"),
    "flows[].packet[].udp": ("src_port", "dst_port"),
    "flows[].packet[].tcp": (
        "src_port",
        "dst_port",
        "seq_num",
        "ack_num",
        "data_offset",
        "ecn_ns",
        "ecn_cwr",
        "ecn_echo",
        "ctl_urg",
        "ctl_ack",
        "ctl_psh",
        "ctl_rst",
        "ctl_syn",
        "ctl_fin",
        "window",
    ),
    "flows[].packet[].icmp": ("choice", "echo"),
    "flows[].packet[].icmp.echo": ("type", "code", "identifier", "sequence_number"),
    "flows[].packet[].icmpv6": ("choice", "echo"),
    "flows[].packet[].icmpv6.echo": ("type", "code", "identifier", "sequence_number"),
    "flows[].packet[].custom": ("bytes",),
    "flows[].size": ("choice", "fixed", "increment", "random", "weight_pairs"),
    "flows[].size.increment": ("start", "end", "step"),
    "flows[].size.random": ("min", "max"),
    "flows[].rate": ("choice", "pps", "bps", "kbps", "mbps", "gbps", "percentage"),
    "flows[].duration": ("choice", "fixed_packets", "fixed_seconds", "burst", "continuous"),
    "flows[].duration.fixed_packets": ("packets", "gap", "delay"),
    "flows[].duration.fixed_seconds": ("seconds", "gap", "delay"),
    "flows[].duration.burst": ("bursts", "packets", "gap", "inter_burst_gap"),
    "flows[].duration.burst.inter_burst_gap": ("choice", "bytes", "nanoseconds", "microseconds"),
    "flows[].duration.continuous": ("gap", "delay"),
    "flows[].metrics": ("enable", "loss", "latency", "timestamps", "predefined_metric_tags"),
    "flows[].metrics.latency": ("enable", "mode"),
    "flows[].payload": ("choice",),
}
"""Keys by the object that has them. docs/reference/otg.md has this list."""


def other_keys(found: Mapping[str, Any], kind: str, at: str) -> list[str]:
    """A reason for each key of this object that is not honoured and is not empty.

    Args:
        kind: The object's place in `HONOURED`.
        at: Its place in the configuration; empty for the whole.
    """
    return [
        f"{at}{'.' if at else ''}{key}: is not honoured here"
        for key, value in found.items()
        if key not in HONOURED[kind] and value not in ({}, [], None)
    ]


def missing_extra(error: ImportError) -> HostError:
    """The server's libraries are not installed."""
    return HostError(
        f"the OTG server needs {error.name}, which is not installed",
        code="otg.extra-missing",
        where="evenhand[otg]",
        next_step=f"Install it: {how_to_get_extra('otg')}",
    )
