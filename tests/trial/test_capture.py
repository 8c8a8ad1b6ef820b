# SPDX-License-Identifier: Apache-2.0
"""Captures: what is in the file, how much of it, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from evenhand.trial import Load, capture_file
from evenhand.trial.capture import FRAMES_OF_A_KIND, MEANINGS
from tests.errors import raises
from tests.trial.pcapng import read_pcapng

LOAD = Load(rate_fps=1e6, duration_s=1.0)


def frame(**changes: Any) -> dict[str, Any]:
    document = {
        "side": "right",
        "kind": "foreign",
        "fault": None,
        "number": None,
        "unix_ns": 1_700_000_000_123,
    }
    return {**document, "length": 60, "octets": "ff" * 59, **changes}


def test_a_file_has_the_first_of_each_kind_and_port(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with capture_file(path, where="--capture") as file:
        for trial in (1, 2):
            kept = [frame(side=side, kind=kind) for kind in MEANINGS for side in ("left", "right")] * 5
            file.add(kept, trial=trial, load=LOAD)
        assert file.counts == dict.fromkeys(MEANINGS, 2 * FRAMES_OF_A_KIND)
    packets = read_pcapng(path)
    assert len(packets) == 2 * len(MEANINGS) * FRAMES_OF_A_KIND
    assert {packet.kind for packet in packets} == set(MEANINGS)
    assert {(p.at_ns, p.octets, p.length) for p in packets} == {(1_700_000_000_123, b"\xff" * 59, 60)}
    assert packets[0].comment == (
        "trial 1 at 1 Mfps per direction: this frame is no test frame, and no neighbour traffic (foreign)"
    )


def test_a_damaged_frame_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with capture_file(path, where="--capture") as file:
        file.add([frame(kind="corrupted", number=17, fault="udp_checksum")], trial=3, load=LOAD)
    (packet,) = read_pcapng(path)
    assert packet.comment.endswith(": frame 17 is damaged: the UDP checksum (corrupted)")


def test_other_programs_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with capture_file(path, where="--capture") as file:
        file.add([frame(), frame(side="left")], trial=1, load=LOAD)
    command = ["tcpdump", "-qtttr", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len([line for line in shown.splitlines() if not line.startswith("\t")]) == 2


def test_a_file_that_exists_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_text("mine")
    with raises("base.file-exists"), capture_file(path, where="--capture"):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "changes",
    [{"side": "up"}, {"kind": "odd"}, {"octets": "zz"}, {"octets": 5}, {"unix_ns": -1}, {"length": None}],
)
def test_what_is_no_frame_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """An engine may be on another machine."""
    with capture_file(tmp_path / "a.pcapng", where="--capture") as file, raises("trial.kept-frame"):
        file.add([frame(**changes)], trial=1, load=LOAD)


def received(*numbers: int, side: str = "right") -> list[dict[str, Any]]:
    return [frame(kind="received", number=number, side=side) for number in numbers]


def test_all_frames_are_kept_if_asked_for_and_what_is_missing_is_lost(tmp_path: Path) -> None:
    counts = {"received_frames": 20, "offered_frames": 24}
    with capture_file(tmp_path / "a.pcapng", where="--capture", keeps_all=True) as file:
        came = received(*(number for number in range(24) if number not in (0, 7, 8, 23)))
        file.add(came, trial=1, load=LOAD)
        file.note_lost(came, {"directions": {"forward": counts}}, trial=1)
        assert file.counts == {"received": 20}
    (lost,) = file.lost
    assert (lost.trial, lost.direction, lost.numbers) == (1, "forward", (0, 7, 8, 23))
    assert str(lost) == "0,7-8,23"


def test_what_was_not_kept_whole_says_nothing_of_losses(tmp_path: Path) -> None:
    """More came than were kept; and nothing is said where only what is wrong is kept."""
    lossy = {"directions": {"reverse": {"received_frames": 3, "offered_frames": 4}}}
    for keeps_all, numbers in ((True, (0, 1)), (False, (0, 1, 2))):
        path = tmp_path / f"{keeps_all}.pcapng"
        with capture_file(path, where="--capture", keeps_all=keeps_all) as file:
            file.note_lost(received(*numbers, side="left"), lossy, trial=1)
            assert file.lost == []


@pytest.mark.parametrize(("octets", "most"), [(64, 8192), (1518, 1944), (9216, 1464)])
def test_no_more_can_be_kept_than_an_answer_has_room_for(tmp_path: Path, octets: int, most: int) -> None:
    with capture_file(tmp_path / "a.pcapng", where="--capture", keeps_all=True) as file:
        asked = file.request(Load(rate_fps=most, duration_s=1), frame_octets=octets, directions=2)
        assert asked == {"kept_frames": FRAMES_OF_A_KIND, "kept_received": most}
        with raises("trial.too-many-to-capture", match=f"{most:,} can be kept"):
            file.request(Load(rate_fps=most + 1, duration_s=1), frame_octets=octets, directions=2)
    with capture_file(tmp_path / "b.pcapng", where="--capture") as file:
        assert file.request(LOAD, frame_octets=octets, directions=2) == {"kept_frames": FRAMES_OF_A_KIND}
