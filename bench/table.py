# SPDX-License-Identifier: Apache-2.0
"""Every recorded figure beside that of the recording before: what `make bench` ends with.

Figures of two machines say nothing about a change of the code, so each recording names its processor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pieces import RESULTS


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    """The heading of one bench, then each figure: newest, last, newest / last."""
    last = document.get("last") or {}
    yield ""
    yield f"{document['name']}: {_recording(document)}" + (f"; last: {_recording(last)}" if last else "")
    before = last.get("figures", {})
    for name, value in document.get("figures", {}).items():
        old = before.get(name)
        ratio = f"{value / old:8.3f}" if old else f"{'-':>8}"
        yield f"  {name:72} {_shown(value):>14} {_shown(old):>14} {ratio}"
    if not document.get("figures"):
        yield "  recorded before figures were named: run this bench again"


def _recording(of: dict[str, Any]) -> str:
    return f"{of['at'][:10]}, {of.get('cpu_model') or of['host']['cpu_model']}"


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.4g}"


def main(folder: Path = RESULTS) -> None:
    print(f"  {'figure':72} {'newest':>14} {'last':>14} {'ratio':>8}")
    for path in sorted(folder.glob("*.json")):
        print("\n".join(lines_of(json.loads(path.read_text()))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
