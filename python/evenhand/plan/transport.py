# SPDX-License-Identifier: Apache-2.0
"""Station 2: the header of a flow's frames in place of UDP's: TCP's or ICMP's, without any state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from evenhand.plan.ranges import IpVersion

UDP_OCTETS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Ports are those of the flow, of ICMP its identifier and its sequence number; checksums are computed."""

    protocol: Literal["tcp", "icmp"]
    """icmp: ICMPv6 in IPv6."""
    header: bytes
    """20 octets of TCP, 8 of ICMP; 0 where each frame has its own values."""

    @classmethod
    def of_tcp(
        cls, *, sequence: int = 0, acknowledgement: int = 0, flags: int = 0, window: int = 0
    ) -> Transport:
        """A header without options.

        Args:
            flags: The nine bits from NS to FIN.
        """
        fields = (
            (0).to_bytes(4),
            sequence.to_bytes(4),
            acknowledgement.to_bytes(4),
            (5 << 12 | flags).to_bytes(2),
            window.to_bytes(2),
            (0).to_bytes(4),
        )
        return cls(protocol="tcp", header=b"".join(fields))

    @classmethod
    def of_echo(cls, version: IpVersion, *, is_reply: bool = False) -> Transport:
        """An echo request or reply."""
        kind = (0 if is_reply else 8) if version == 4 else 128 + is_reply
        return cls(protocol="icmp", header=bytes([kind, *bytes(7)]))

    @property
    def more_octets(self) -> int:
        """How much longer it is than UDP's header."""
        return len(self.header) - UDP_OCTETS

    @property
    def words(self) -> str:
        return {"tcp": "TCP", "icmp": "ICMP"}[self.protocol]

    def to_document(self) -> dict[str, Any]:
        """As the engine reads it (contract/request.schema.json)."""
        return {"protocol": self.protocol, "header": self.header.hex()}
