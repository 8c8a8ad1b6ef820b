# SPDX-License-Identifier: Apache-2.0
"""OTG: what ports receive while a client captures there: the frames of the flows, and the first ones of each
other kind."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.otg.refusals import OtgError
from evenhand.plan import SideName
from evenhand.trial import CaptureFile, Load
from evenhand.trial.capture import KEPT_RECEIVED

_PCAP_NS, _SNAP_OCTETS, _ETHERNET = 0xA1B23C4D, 65535, 1
_NS = 10**9


@dataclass(slots=True)
class PortCaptures(CaptureFile):
    """Takes the place of a file of a run, for the ports that are captured now."""

    path: Path = Path("capture")
    _file: io.BytesIO = field(default_factory=io.BytesIO)
    keeps_all: bool = True
    sides: frozenset[SideName] = frozenset()
    """Where frames are kept."""
    frames: dict[SideName, list[tuple[int, int, bytes]]] = field(default_factory=dict)
    """Time, length and octets of each, by port; without those of a port that is captured anew."""

    def start(self, sides: frozenset[SideName]) -> None:
        """Keep what comes from now on; what was kept there before is given up."""
        self.sides |= sides
        for side in sides:
            self.frames[side] = []

    def stop(self, sides: frozenset[SideName]) -> None:
        self.sides -= sides

    def most_of(self, frame_octets: int, directions: int) -> int:
        """How many frames of a trial and direction can be kept."""
        load = Load(rate_fps=1.0, duration_s=1.0)
        return self.request(load, frame_octets=frame_octets, directions=directions)[KEPT_RECEIVED]

    def request(self, load: Load, *, frame_octets: int, directions: int) -> dict[str, int]:
        """The most of them, whatever the load: where it has no end, the first are kept."""
        least = Load(rate_fps=1.0, duration_s=1.0)
        return CaptureFile.request(self, least, frame_octets=frame_octets, directions=directions)

    def add(self, frames: Sequence[Mapping[str, Any]], *, trial: int, load: Load) -> None:
        for frame in sorted(frames, key=lambda each: each["unix_ns"]):
            if frame["side"] in self.sides:
                octets = bytes.fromhex(frame["octets"])
                self.frames[frame["side"]].append((int(frame["unix_ns"]), int(frame["length"]), octets))

    def note_lost(
        self, frames: Sequence[Mapping[str, Any]], document: Mapping[str, Any], *, trial: int
    ) -> None:
        """Metrics count them."""

    def pcap(self, side: SideName, most_octets: int | None) -> bytes:
        """A pcap file of what the port has received, with times in ns.

        Raises:
            OtgError: Nothing was captured there.
        """
        if side not in self.frames:
            raise OtgError(["port_name: nothing was captured there; start a capture before the flows"])
        found = [struct.pack("<IHHiIII", _PCAP_NS, 2, 4, 0, 0, _SNAP_OCTETS, _ETHERNET)]
        for at_ns, length, octets in self.frames[side]:
            kept = octets if most_octets is None else octets[:most_octets]
            found.append(struct.pack("<IIII", *divmod(at_ns, _NS), len(kept), length) + kept)
        return b"".join(found)
