# SPDX-License-Identifier: Apache-2.0
"""Testbed file: the tunnel that the test frames of a side are in, and whose other end the DUT is."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from evenhand.base.errors import RequestError
from evenhand.base.validation.checked_file import RefusedError, UnfitError
from evenhand.plan import SideCounts, SideName
from evenhand.testbed.values import Mac, TomlTable, as_vlans

_OUTER_IP = {4: 20, 6: 40}
_VXLAN_OVER_UDP = 8 + 8 + 14
"""UDP, VXLAN, and the outer Ethernet header."""
_GRE = 4
_LABEL = 4
FIRST_LABEL = 16
"""RFC 3032, 2.1 reserves the others."""
LARGEST_LABEL = (1 << 20) - 1
LARGEST_VNI = (1 << 24) - 1
MOST_LABELS = 8
VXLAN_PORT = 4789
"""RFC 7348, 8."""


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise RefusedError(
            RequestError(
                f"{value!r} is not an IP address",
                code="rig.not-an-address",
                next_step="Write it as 192.0.2.1 or 2001:db8::1.",
            )
        ) from None
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        raise RefusedError(
            RequestError(
                f"{value} is not an address that an end of a tunnel can have",
                code="rig.not-an-address",
                next_step="Write a unicast address of the link between tester and DUT.",
            )
        )
    return str(address)


Address = Annotated[str, BeforeValidator(_address)]
Labels = Annotated[
    tuple[Annotated[int, Field(ge=FIRST_LABEL, le=LARGEST_LABEL)], ...],
    Field(min_length=1, max_length=MOST_LABELS, strict=False),
    BeforeValidator(as_vlans),
]

_KEYS = {
    "vxlan": (("local", "remote", "vni"), ("udp_port", "mac", "dut_mac")),
    "mpls": (("labels",), ("arriving_labels",)),
    "gre": (("local", "remote"), ()),
    "ip": (("local", "remote"), ()),
}
"""What each kind needs, and what it may have besides."""


class Tunnel(TomlTable):
    """The headers around the test frames of one side."""

    kind: Literal["vxlan", "mpls", "gre", "ip"]
    local: Address | None = None
    """Outer address of the tester's end."""
    remote: Address | None = None
    """Outer address of the DUT's end, whose MAC on the link the tester asks for."""
    vni: Annotated[int, Field(ge=0, le=LARGEST_VNI)] | None = None
    udp_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """UDP destination port; default 4789."""
    mac: Mac | None = None
    """The tester's own inside; default that of the port."""
    dut_mac: Mac | None = None
    """The DUT's inside; default: found by ARP or ND in the tunnel."""
    labels: Labels | None = None
    """What the tester sends, the outermost first."""
    arriving_labels: Labels | None = None
    """What the DUT sends; default `labels`."""

    @model_validator(mode="after")
    def _keys_fit(self) -> Tunnel:
        needed, allowed = _KEYS[self.kind]
        given = set(self.model_dump(exclude_none=True)) - {"kind"}
        for key in needed:
            if key not in given:
                raise UnfitError(f"a tunnel of the kind {self.kind} needs {key}", code="rig.unfit-tunnel")
        for key in sorted(given.difference(needed, allowed)):
            raise UnfitError(f"a tunnel of the kind {self.kind} has no {key}", code="rig.unfit-tunnel")
        if self.local and self.remote:
            ends = ipaddress.ip_address(self.local), ipaddress.ip_address(self.remote)
            if ends[0].version != ends[1].version:
                raise UnfitError(
                    f"the ends {self.local} and {self.remote} are of two IP versions: give both in one",
                    code="rig.unfit-tunnel",
                )
            if ends[0] == ends[1]:
                raise UnfitError(
                    f"local and remote are both {self.local}: the DUT's end has an address of its own",
                    code="rig.unfit-tunnel",
                )
        if self.labels and self.arriving_labels and len(self.labels) != len(self.arriving_labels):
            raise UnfitError(
                f"{len(self.labels)} labels are sent, and {len(self.arriving_labels)} arrive: give as many of"
                " both, so that frames have one size",
                code="rig.unfit-tunnel",
            )
        return self

    @property
    def octets(self) -> int:
        """How much longer it makes a frame."""
        if self.kind == "mpls":
            return _LABEL * len(self.labels or ())
        outer = _OUTER_IP[ipaddress.ip_address(self.local or "").version]
        return outer + {"vxlan": _VXLAN_OVER_UDP, "gre": _GRE, "ip": 0}[self.kind]

    @property
    def arriving(self) -> tuple[object, ...]:
        """What tells the frames that arrive in it from those in another one on the same link."""
        if self.kind == "mpls":
            return self.kind, self.arriving_labels or self.labels
        ends = (ipaddress.ip_address(end or "") for end in (self.local, self.remote))
        return self.kind, *ends, self.vni, self.udp_port or VXLAN_PORT

    @property
    def words(self) -> str:
        """`VXLAN 100 between 192.0.2.2 and 192.0.2.1`."""
        if self.kind == "mpls":
            labels, back = self.labels or (), self.arriving_labels or self.labels or ()
            text = f"MPLS {_words(labels)}"
            return text if back == labels else f"{text}, arriving {_words(back)}"
        name = {"vxlan": f"VXLAN {self.vni}", "gre": "GRE", "ip": "IP"}[self.kind]
        return f"{name} between {self.local} and {self.remote}"

    def to_contract(self) -> dict[str, Any]:
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self.model_dump(exclude_none=True).items()
        }


def _words(labels: tuple[int, ...]) -> str:
    return "label " + " outside ".join(map(str, labels))


def tunnel_octets(tunnels: Mapping[SideName, Tunnel]) -> SideCounts:
    """How much longer the frames of each side are; a side that is not named has no tunnel."""
    return SideCounts(*(tunnels[side].octets if side in tunnels else 0 for side in ("left", "right")))
