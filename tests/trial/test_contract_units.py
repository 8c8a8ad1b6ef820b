# SPDX-License-Identifier: Apache-2.0
"""The contract: every number says its unit in its key, and one quantity has one unit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
SCHEMAS = sorted(path.name for path in CONTRACT.glob("*.schema.json"))
GOLDEN = [json.loads(line) for line in (CONTRACT / "golden" / "replies.jsonl").read_text().splitlines()]

TIMES = {
    "_ns": "the delay of a frame",
    "_us": "a lapse of tester, router or host, and its limit",
    "_ms": "a period of the router",
    "_s": "a duration",
}
UNITS = {
    *TIMES,
    "_unix_ns",
    "_fps",
    "_bps",
    "_ppm",
    "_mb",
    "_fps_per_direction",
    "_per_second",
    "_us_per_entry",
    "_ppm_raw",
    "_ppm_monotonic",
}
"""All that a key may end in: contract/README.md lists them. A new unit is written down there first."""

OTHER_UNITS = {
    "_sec",
    "_secs",
    "_min",
    "_hz",
    "_khz",
    "_mhz",
    "_ghz",
    "_kfps",
    "_mfps",
    "_pps",
    "_kbps",
    "_mbps",
    "_gbps",
    "_bits",
    "_kb",
    "_gb",
    "_percent",
}
"""Units of other instruments, none of which a key of ours ends in."""

WITHOUT_UNIT = {
    # Shares, ratios and factors: 1 is the whole.
    "loss_ratio",
    "loss_at_most",
    "loss-at-most",
    "ratio",
    "offered_tolerance",
    "overdue_tolerance",
    "duplicate_tolerance",
    "remarked_tolerance",
    "performance",
    "fail_below",
    "growth",
    "entry_cost",
    "slope",
    "busy_share",
    "probability",
    "rate_share",
    "search_width",
    "softirq_share",
    "share",
    "most_share",
    "time_left_out_share",
    "first_time_left_out_share",
    "max_offered_error",
    # Statistics: figures of the proof, and numbers whose unit stands beside them in the document.
    "expected",
    "expected_per_value",
    "spread",
    "before",
    "after",
    "value",
    "high",
    "low",
    "level",
    "maximum",
    "median",
    "median_upper",
    "minimum",
    "upper",
    # The unit is the word itself, or octets.
    "seconds",
    "us",
    "mean_frame_size",
}

DELAYS = {"latency", "recent_latency", "delays", "variation", "delay", "own_loop"}
"""Only these hold times in nanoseconds."""


def schema_keys(node: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Each key that a schema names, with what it says of it and the keys and definitions around it."""
    if isinstance(node, list):
        for each in node:
            yield from schema_keys(each, above)
    if not isinstance(node, dict):
        return
    for word, value in node.items():
        if word in ("properties", "$defs") and isinstance(value, dict):
            for key, about in value.items():
                if word == "properties":
                    yield key, about, above
                yield from schema_keys(about, (*above, key))
        else:
            yield from schema_keys(value, above)


def document_keys(node: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    if isinstance(node, list):
        for each in node:
            yield from document_keys(each, above)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield key, value, above
            yield from document_keys(value, (*above, key))


def unit_of(key: str) -> str | None:
    return max((unit for unit in UNITS if key.endswith(unit)), key=len, default=None)


def is_fraction(about: Any) -> bool:
    """Whether a schema allows numbers that are no whole ones: quantities, while whole numbers are counts."""
    if not isinstance(about, dict):
        return False
    types = about.get("type", [])
    return "number" in ([types] if isinstance(types, str) else types) or about.get("$ref") in (
        "#/$defs/delay",
        "#/$defs/rate",
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_quantity_has_its_unit_in_its_key(name: str) -> None:
    """A number without a unit is read in the wrong one; a new unit is a new thing to convert."""
    schema = json.loads((CONTRACT / name).read_text())
    for key, about, _ in schema_keys(schema):
        assert not any(key.endswith(unit) for unit in OTHER_UNITS), (
            f"{key}: a unit that the contract does not have"
        )
        if is_fraction(about):
            assert unit_of(key) or key in WITHOUT_UNIT, f"{key}: no unit"


def test_a_quantity_has_the_same_unit_everywhere() -> None:
    """longest_us here and longest_ns there would be the same word for numbers a thousand apart."""
    units: dict[str, set[str]] = {}
    for name in SCHEMAS:
        for key, _, _ in schema_keys(json.loads((CONTRACT / name).read_text())):
            unit = unit_of(key)
            if unit in TIMES:
                units.setdefault(key.removesuffix(unit), set()).add(unit)
    assert len(units) > 20
    assert not {stem: found for stem, found in units.items() if len(found) > 1}


@pytest.mark.parametrize(
    "document", GOLDEN, ids=lambda d: f"{d['id']}-{d.get('response', d.get('event', 'fault'))}"
)
def test_nanoseconds_are_delays_of_frames_and_nothing_else(document: dict[str, Any]) -> None:
    """What frames experience is in nanoseconds; what tester, host and router do wrong in microseconds."""
    for key, value, above in document_keys(document):
        if unit_of(key) in TIMES and isinstance(value, int | float):
            assert key.endswith("_ns") == bool(DELAYS & set(above)), f"{'.'.join((*above, key))}: {value}"


def test_the_page_of_the_contract_lists_the_units() -> None:
    page = (CONTRACT / "README.md").read_text()
    missing = [unit for unit in UNITS if f"`{unit}`" not in page]
    assert not missing
