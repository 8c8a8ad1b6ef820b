# SPDX-License-Identifier: Apache-2.0
"""Exchange: a mix of frame sizes with their weights, as testers of Keysight write it (`64:7,570:4,1518:1`),
as the frame size of a command."""

from __future__ import annotations

import re
from pathlib import Path

from evenhand.base.errors import RequestError
from evenhand.exchange.foreign import read_foreign, shown
from evenhand.exchange.outcome import Became, GivenHardware, Imported, ImportedCommand, row_of, write_testbed
from evenhand.plan import is_weighted, make_plan, parse_imix
from evenhand.procedure.learning import choose_frames

MOST_OCTETS = 4096
USUAL_PLAN = "gateway-v4"


def import_imix(path: Path, given: GivenHardware, *, plan: str | None, testbed: Path) -> Imported:
    """Read the mix. It says nothing of addresses or rates.

    Raises:
        RequestError: There is no such frame, or the sequence would be too long; says which.
    """
    text = read_foreign(path, most_octets=MOST_OCTETS, what="mix of frame sizes, such as 64:7,570:4,1518:1")
    pairs = re.findall(r"(\d+)\s*:\s*(\d+)", text)
    written = ",".join(f"{int(size)}:{int(weight)}" for size, weight in pairs if int(weight))
    if not written:
        raise RequestError(
            f"{shown(text.strip())} has no frame with a weight",
            code="exchange.mix-without-frames",
            where=str(path),
            next_step="Write sizes and weights, such as 64:7,570:4,1518:1.",
        )
    try:
        size = written if is_weighted(written) else written.partition(":")[0]
        choose_frames(make_plan(plan or USUAL_PLAN), parse_imix(size) if size == written else int(size))
    except RequestError as error:
        error.where = str(path)
        raise
    name = make_plan(plan or USUAL_PLAN).title
    rows = [
        row_of(octets, weight, 1, Became.MAPPED, f"{weight} of {sum(int(each) for _, each in pairs)} frames")
        for octets, weight in pairs
    ]
    said, gaps = write_testbed(
        "a mix of frame sizes", given, ports={}, cpus=(), cpus_from="the file names none", plan=name
    )
    words = ("evenhand", "throughput", str(testbed), "--plan", name, "--frame-size", size)
    return Imported(
        kind="imix",
        rows=tuple(rows),
        testbed=said,
        commands=(ImportedCommand(instead_of="the mix", words=words),),
        gaps=gaps,
        notes=("Sizes are those with the FCS, evenly mixed in the shortest sequence with these shares.",),
    )
