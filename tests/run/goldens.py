# SPDX-License-Identifier: Apache-2.0
"""What is written of each recorded run file, as digests in `goldens.json`: exports and `show --json` must
stay the same, octet for octet.

`python -m tests.run.goldens` writes the digests anew; `python -m tests.run.goldens FOLDER` writes the
outputs themselves, to be compared with those of another state of the code.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from evenhand.cli.export import ExportTable, Format, _content
from evenhand.report.campaign_document import summary_document
from evenhand.run import CampaignRecord, read_record

FILES = Path(__file__).parent / "files"
GOLDENS = Path(__file__).parent / "goldens.json"
_EXPORTS: tuple[tuple[Format, ExportTable | None], ...] = (
    (Format.JSON, None),
    (Format.CSV, ExportTable.POINTS),
    (Format.CSV, ExportTable.REPETITIONS),
    (Format.CSV, ExportTable.TRIALS),
    (Format.CSV, ExportTable.SUMMARY),
    (Format.LATEX, None),
    (Format.MARKDOWN, None),
)


def outputs_of(record: CampaignRecord) -> Iterator[tuple[str, bytes]]:
    """By name: each export, and `show --json` of the whole and of every point."""
    for form, table in _EXPORTS:
        yield f"{form}{'' if table is None else f' {table}'}", _content(record, form, table)
    yield "show", json.dumps(summary_document(record)).encode()
    for number, point in enumerate(record.points, start=1):
        yield f"show {number}", json.dumps(summary_document(record, points=[point])).encode()


def digests_of(path: Path) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in outputs_of(read_record(path))}


def main() -> None:
    paths = sorted(FILES.glob("*.evenhand"))
    if len(sys.argv) == 1:
        found = {path.stem: digests_of(path) for path in paths}
        GOLDENS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        for name, content in outputs_of(read_record(path)):
            (folder / f"{path.stem} {name}").write_bytes(content)


if __name__ == "__main__":
    main()
