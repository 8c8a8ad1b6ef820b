# SPDX-License-Identifier: Apache-2.0
"""What is written of each recorded run file, as digests in `goldens.json`: exports and `show --json` must
stay the same, octet for octet.

`python -m tests.run.goldens` writes the digests anew; `python -m tests.run.goldens FOLDER` writes the
outputs themselves, to be compared with those of another state of the code. `tests.run.record_files` measures
the files.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

from evenhand.base.errors import RequestError
from evenhand.cli.export import ExportTable, Format, _content
from evenhand.report.campaign_document import summary_document
from evenhand.run import CampaignRecord, read_record
from evenhand.run.run_file import SUFFIX

FILES = Path(__file__).parent / "files"
GOLDENS = Path(__file__).parent / "goldens.json"
PACKED = f"{SUFFIX}.xz"
NAMES = tuple(sorted(path.name.removesuffix(PACKED) for path in FILES.glob(f"*{PACKED}")))
"""The recorded files: `tests/run/record_files.py` says what each is of."""
_EXPORTS: tuple[tuple[Format, ExportTable | None], ...] = (
    ("json", None),
    ("csv", "points"),
    ("csv", "repetitions"),
    ("csv", "trials"),
    ("csv", "summary"),
    ("latex", None),
    ("markdown", None),
    ("uti", None),
)


def recorded(name: str) -> bytes:
    """The content of a recorded file."""
    return lzma.decompress((FILES / f"{name}{PACKED}").read_bytes())


def recorded_file(name: str) -> Path:
    """The file itself, in a folder of this process. It is shared and must not be changed: see
    `copy_recorded`."""
    return copy_recorded(name, Path(_folder().name) / f"{name}{SUFFIX}", exist_ok=True)


def copy_recorded(name: str, target: Path, *, exist_ok: bool = False) -> Path:
    """A copy of the file there, which may be changed."""
    if not (exist_ok and target.exists()):
        target.write_bytes(recorded(name))
    return target


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="evenhand-recorded-")


def outputs_of(record: CampaignRecord) -> Iterator[tuple[str, bytes]]:
    """By name: each export, and `show --json` of the whole and of every point. An export that is refused has
    its message."""
    for form, table in _EXPORTS:
        name = f"{form}{'' if table is None else f' {table}'}"
        try:
            with redirect_stderr(io.StringIO()):
                yield name, _content(record, form, table)
        except RequestError as error:
            yield name, error.what.encode()
    yield "show", json.dumps(summary_document(record)).encode()
    for number, point in enumerate(record.points, start=1):
        yield f"show {number}", json.dumps(summary_document(record, points=[point])).encode()


def digests_of(name: str) -> dict[str, str]:
    """By the names of the outputs."""
    outputs = outputs_of(read_record(recorded_file(name)))
    return {output: hashlib.sha256(content).hexdigest() for output, content in outputs}


def main() -> None:
    if len(sys.argv) == 1:
        found = {name: digests_of(name) for name in NAMES}
        GOLDENS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        for output, content in outputs_of(read_record(recorded_file(name))):
            (folder / f"{name} {output}").write_bytes(content)


if __name__ == "__main__":
    main()
