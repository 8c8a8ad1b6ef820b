# SPDX-License-Identifier: Apache-2.0
"""Station 7: received frames that were not what was sent, in a pcapng file: the first ones of each kind, each
with a comment that says which frame it was and what is wrong with it.

The file grows with each trial. It has at most FRAMES_OF_A_KIND of each kind and port, over all trials; and,
if all are asked for, every frame of slow trials that was what was sent, as far as MOST_FILE_OCTETS allow.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from evenhand.base.errors import EngineError, RequestError
from evenhand.base.new_file import make_new, unwritable
from evenhand.base.units import format_count, format_rate
from evenhand.plan import Direction, SideName, receiving_side
from evenhand.trial.load import Load

FRAMES_OF_A_KIND = 8
"""Frames that are kept of each kind and port."""
KEPT_FRAMES = "kept_frames"
"""The key in request and reply."""
KEPT_RECEIVED = "kept_received"
RECEIVED = "received"
"""The kind of those that are what was sent."""
MOST_RECEIVED = 8192
"""Frames of a trial and direction that the engine keeps of it."""
MOST_REPLY_OCTETS = 12 << 20
"""What all of them may take in the engine's reply: hexadecimal digits, and what is said of each."""
MOST_FILE_OCTETS = 256 << 20
_KEPT_OCTETS, _OTHER_OCTETS = 2048, 200
PORTS: tuple[SideName, SideName] = ("left", "right")
MEANINGS = {
    "foreign": "is no test frame, and no neighbour traffic",
    "icmp_error": "is an ICMP error about a test frame",
    "returned": "came back on the port that had sent it",
    "stale": "belongs to an earlier trial",
    "strayed": "belongs to another engine",
    "wrong_time": "has a time before the trial, or in the future",
    "wrong_length": "has another length than was sent",
    "corrupted": "is damaged",
    "wrong_address": "has another address than was sent",
    "wrong_port": "has another UDP port than was sent",
    "wrong_payload": "has another payload than was sent",
    "mistranslated": "was translated wrongly",
    "duplicated": "came before already",
    "late": "came after the residual wait",
    RECEIVED: "is as it was sent",
}
"""What is wrong with a frame of each kind."""
_FAULTS = {
    "header": "the IP header",
    "length": "a length in the IP or UDP header",
    "fragment": "it is a fragment",
    "header_checksum": "the checksum of the IPv4 header",
    "udp_checksum": "the UDP checksum",
    "destination_mac": "the destination MAC is not the tester's",
    "hop_limit": "the hop limit",
    "number": "no frame with this number was sent",
}
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET = 1
_COMMENT, _NAME, _RESOLUTION, _APPLICATION = 1, 2, 9, 4
_NANOSECONDS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFrames:
    """The numbers of all lost frames of a trial and direction."""

    trial: int
    direction: Direction
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        """`3,17,20-25`, as `evenhand plan frames --numbers` takes it."""
        return show_numbers(self.numbers)


def show_numbers(numbers: Sequence[int]) -> str:
    """Rising numbers, with ranges: `3,17,20-25`."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


@dataclass(slots=True)
class CaptureFile:
    """Made by `capture_file`."""

    path: Path
    _file: BinaryIO
    keeps_all: bool = False
    """Frames that are what was sent, too."""
    is_cut: bool = False
    """The file is full, so that later ones of these are missing."""
    lost: list[LostFrames] = field(default_factory=list)
    """The lost frames of each trial and direction that lost some, where all that came are kept."""
    _octets: int = 0
    _kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Frames in the file, by port and kind."""

    def add(self, frames: Sequence[Mapping[str, Any]], *, trial: int, load: Load) -> None:
        """The frames that a trial has kept, as far as there is room for their kind.

        Args:
            frames: `kept_frames` of the engine's reply.

        Raises:
            EngineError: They are not what an engine may say.
            HostError: They cannot be written.
        """
        places = [_checked(frame) for frame in frames]
        for place, frame in sorted(zip(places, frames, strict=True), key=lambda each: each[1]["unix_ns"]):
            side, kind = place
            if kind == RECEIVED and self.keeps_all:
                self.is_cut = self.is_cut or self._octets > MOST_FILE_OCTETS
                if self.is_cut:
                    continue
            elif self._kept[side, kind] >= FRAMES_OF_A_KIND:
                continue
            self._kept[side, kind] += 1
            where = f"trial {trial} at {format_rate(load.rate_fps)} per direction"
            self._write(_packet(frame, f"{where}: {comment_of(frame)}"))

    def request(self, load: Load, *, frame_octets: int, directions: int) -> dict[str, int]:
        """What a `trial` request asks for.

        Raises:
            RequestError: All frames are to be kept, and there are more than can be.
        """
        if not self.keeps_all:
            return {KEPT_FRAMES: FRAMES_OF_A_KIND}
        octets = 2 * min(frame_octets, _KEPT_OCTETS) + _OTHER_OCTETS
        most = min(MOST_RECEIVED, MOST_REPLY_OCTETS // octets // directions)
        frames = load.rate_fps * load.sending_s
        if frames > most:
            raise RequestError(
                f"{format_count(round(frames))} frames of each direction in a trial at"
                f" {format_rate(load.rate_fps)}, but of {frame_octets} octets at most"
                f" {format_count(most)} can be kept",
                code="trial.too-many-to-capture",
                where="--capture-all",
                next_step="Send more slowly, or for a shorter time. What is wrong is captured without it.",
            )
        return {KEPT_FRAMES: FRAMES_OF_A_KIND, KEPT_RECEIVED: most}

    def note_lost(
        self, frames: Sequence[Mapping[str, Any]], document: Mapping[str, Any], *, trial: int
    ) -> None:
        """The numbers of the frames that did not come as they were sent, where all that did were kept.

        Args:
            frames: `kept_frames` of the engine's reply.
            document: The rest of the reply.
        """
        if not self.keeps_all:
            return
        for direction, counts in document["directions"].items():
            side = receiving_side(direction)
            came = {each["number"] for each in frames if (each["side"], each["kind"]) == (side, RECEIVED)}
            if len(came) == counts["received_frames"] < counts["offered_frames"]:
                lost = sorted(set(range(counts["offered_frames"])) - came)
                self.lost.append(LostFrames(trial=trial, direction=direction, numbers=tuple(lost)))

    @property
    def counts(self) -> dict[str, int]:
        """Frames in the file, by kind."""
        found: Counter[str] = Counter()
        for (_, kind), count in self._kept.items():
            found[kind] += count
        return {kind: found[kind] for kind in MEANINGS if found[kind]}

    def _write(self, block: bytes) -> None:
        try:
            self._file.write(block)
            self._file.flush()
            self._octets += len(block)
        except OSError as error:
            raise unwritable(str(self.path), error) from error


@contextmanager
def capture_file(path: Path, *, where: str, keeps_all: bool = False) -> Iterator[CaptureFile]:
    """A new file for as long as the block takes.

    Args:
        keeps_all: Keep all received frames, also those that are what was sent.

    Raises:
        RequestError: It exists already.
        HostError: It cannot be written.
    """
    with os.fdopen(make_new(path, where=where), "wb") as file:
        capture = CaptureFile(path, file, keeps_all=keeps_all)
        capture._write(_head())
        yield capture


def comment_of(frame: Mapping[str, Any]) -> str:
    """`frame 17 is damaged: the UDP checksum (corrupted)`."""
    kind, number, fault = frame["kind"], frame["number"], frame["fault"]
    which = "this frame" if number is None else f"frame {number}"
    why = f": {_FAULTS.get(fault, fault)}" if fault else ""
    return f"{which} {MEANINGS[kind]}{why} ({kind})"


def _checked(frame: Mapping[str, Any]) -> tuple[str, str]:
    side, kind, octets = frame.get("side"), frame.get("kind"), frame.get("octets")
    numbers = (frame.get("unix_ns"), frame.get("length"))
    is_sound = (
        side in PORTS
        and kind in MEANINGS
        and isinstance(octets, str)
        and all(isinstance(each, int) and each >= 0 for each in numbers)
        and frame.get("number", 0) is not False
        and (frame.get("fault") is None or isinstance(frame["fault"], str))
    )
    try:
        bytes.fromhex(octets if is_sound and isinstance(octets, str) else "-")
    except ValueError:
        raise EngineError(
            "the engine has kept a frame that is none",
            code="trial.kept-frame",
            where=KEPT_FRAMES,
            next_step="Use an engine of the same version.",
        ) from None
    return str(side), str(kind)


def _head() -> bytes:
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _options([(_APPLICATION, b"Evenhand")])
    interfaces = b"".join(
        _block(
            _INTERFACE,
            struct.pack("<HHI", _ETHERNET, 0, 0)
            + _options([(_NAME, side.encode()), (_RESOLUTION, bytes([_NANOSECONDS]))]),
        )
        for side in PORTS
    )
    return _block(_SECTION, section) + interfaces


def _packet(frame: Mapping[str, Any], comment: str) -> bytes:
    octets, at_ns = bytes.fromhex(frame["octets"]), int(frame["unix_ns"])
    head = struct.pack(
        "<IIIII",
        PORTS.index(frame["side"]),
        at_ns >> 32,
        at_ns & 0xFFFFFFFF,
        len(octets),
        int(frame["length"]),
    )
    return _block(_PACKET, head + _padded(octets) + _options([(_COMMENT, comment.encode())]))


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _options(options: Sequence[tuple[int, bytes]]) -> bytes:
    each = (struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    return b"".join(each) + struct.pack("<HH", 0, 0)


def _padded(octets: bytes) -> bytes:
    return octets + bytes(-len(octets) % 4)
