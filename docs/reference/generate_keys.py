#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the lists of keys in the pages of docs/reference/ from the schemas of contract/, whose descriptions
say what each key is; `make docs` runs it, tests/docs/ compares.

A page has a list between two comments, such as

    <!-- keys contract/router-config.schema.json # elements neighbors -->
    <!-- /keys -->

with a schema, the place in it where the list begins, and which of the keys there it has (all if none is
named). `deep` before the names: keys of keys are listed too, as `pool.first`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
REGION = re.compile(r"(<!-- keys (\S+) (\S+)( deep)?((?: [\w-]+)*) -->\n).*?(<!-- /keys -->)", re.DOTALL)
ALIKE = {
    "left": "SIDE",
    "right": None,
    "loss": "KIND",
    "duplication": None,
    "reordering": None,
    "corruption": None,
}
"""Keys with siblings that are the same: the name of all of them, and None for those not listed again."""

LINKS = {
    "validity": "../explanation/validity.md",
    "codes of reasons": "../how-to/read-an-invalid-trial.md#the-codes",
    "a mix": "../how-to/mix-frames.md",
    "clean time": "../explanation/clean-time.md",
    "several engines": "../how-to/use-several-engines.md",
    "limits by which": "#limits",
    "see a direction": "#a-direction",
    "port counters": "#port-counters",
    "several receive queues": "../explanation/streams-and-queues.md#order",
    "record": "../developers/decisions.md#one-bit-for-each-frame",
    "queue was filling": "../explanation/filling-queues.md",
    "delays below": "#delays",
    "excluded from all delays": "../explanation/validity.md#delays-count-frame-by-frame",
    "testbed file": "testbed-file.md",
    "left out another share": "../explanation/clean-time.md",
    "not judged": "result.md#the-search",
}
"""Words of descriptions, and the page that explains them: the first time that a list has them, they are a
link. The schemas themselves have no links."""
SAME = (
    "more_ports",
    "directions",
    "ports",
    "engines",
    "share",
    "start",
    "first_mistranslated",
    "classes",
    "last_lost",
    "variation",
    "delays",
    "statistics",
    "ratio",
    "changes",
    "figure",
    "judged_unlike",
    "time_left_out",
    "differences",
)
"""Keys whose own keys their description names, or which are listed elsewhere."""


def pages() -> list[Path]:
    """Those with such a list."""
    return [path for path in sorted(FOLDER.glob("*.md")) if REGION.search(path.read_text(encoding="utf-8"))]


def render(text: str) -> str:
    """A page with its lists as they should be."""
    return REGION.sub(lambda found: found[1] + _list(*found.group(2, 3, 4, 5)) + found[6], text)


@cache
def _schema(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def _list(name: str, place: str, deep: str | None, keys: str) -> str:
    root = node = _schema(name)
    for step in place.strip("#/").split("/") if place != "#" else ():
        node = node[int(step) if isinstance(node, list) else step]
    wanted = keys.split()
    items = [item for item in _items(node, root, "", bool(deep)) if not wanted or item[0] in wanted]
    text = "".join(f"- `{path}`{kind}: {what}\n" for _, path, kind, what in items)
    for words, target in LINKS.items():
        text = re.sub(rf"\b{words}\b", f"[{words}]({target})", text, count=1)
    return f"\n{text}\n"


def _items(
    node: Any, root: Any, above: str, is_deep: bool, top: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """The topmost key, the key with those above it, the values that it takes, and what it is."""
    required = node.get("required", [])
    for name, inner in node.get("properties", {}).items():
        shown = ALIKE.get(name, name) if is_deep else name
        if shown is None:
            continue
        full = _resolved(inner, root)
        path = f"{above}{shown}"
        what = inner.get("description") or full.get("description")
        element = _resolved(full.get("items", {}), root)
        below = full if "properties" in full else element if "properties" in element else None
        if what and path != "SIDE":
            is_required = name in required and "config" in root["$id"]
            yield top or name, path, _kind(full, is_required=is_required), _sentence(what)
        elif not above and (below is None or not is_deep):
            raise SystemExit(f"{root['$id']}: {path} has no description in its schema. Write one.")
        if is_deep and below is not None and name not in SAME:
            dot = "." if below is full else "[]."
            yield from _items(below, root, f"{path}{dot}", True, top or name)


def _resolved(node: Any, root: Any) -> Any:
    if "$ref" not in node:
        return node
    found = root
    for step in node["$ref"].strip("#/").split("/"):
        found = found[step]
    return {**_resolved(found, root), **node}


def _kind(node: Any, *, is_required: bool) -> str:
    """` (1 to 512, required)`: the range of a number, the choices of a text."""
    said = ["required"] if is_required else []
    if "minimum" in node or "exclusiveMinimum" in node:
        least = f"{node.get('minimum', node.get('exclusiveMinimum')):g}"
        above = "above " if "exclusiveMinimum" in node else ""
        most = f" to {node['maximum']:.0f}" if "maximum" in node else "" if above else " or more"
        if least != "0" or above or most != " or more":
            said.insert(0, f"{above}{least}{most}")
    elif "enum" in node and all(isinstance(value, str) for value in node["enum"]):
        said.insert(0, ", ".join(f"`{value}`" for value in node["enum"]))
    return f" ({'; '.join(said)})" if said else ""


def _sentence(text: str) -> str:
    """Descriptions begin in lower case, and end without a stop."""
    first = text if text.startswith("`") else text[0].upper() + text[1:]
    return first if first.endswith(".") else f"{first}."


if __name__ == "__main__":
    for page in pages():
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
