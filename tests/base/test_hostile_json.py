# SPDX-License-Identifier: Apache-2.0
"""JSON from elsewhere: what is refused, at each bound and just within it."""

from __future__ import annotations

import json

import pytest

from evenhand.base.validation.hostile_json import MAX_DEPTH, read_json

DIGITS = 20
"""As many as 2^64 - 1 has."""


@pytest.mark.parametrize(
    "number",
    [
        "9" * (DIGITS + 1),
        "-" + "9" * (DIGITS + 1),
        "1e31",
        "1E31",
        "1e+31",
        "-1.5e300",
        "1e400",
        "1" * 32 + ".0",
    ],
)
@pytest.mark.parametrize("text", ["%s", "[1, %s]", '{"a": {"b": [%s]}}', '{"1e5": "+", "a":%s}'])
def test_a_number_that_no_one_has_measured_is_refused(number: str, text: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        read_json(text % number)


@pytest.mark.parametrize(
    "number",
    [
        "9" * DIGITS,
        "-" + "9" * DIGITS,
        "1e30",
        "1e+30",
        "2E-40",
        "0.12345678901234567890123",
        "1.5",
        "-0",
        "0",
    ],
)
def test_a_number_within_the_bounds_is_as_json_has_it(number: str) -> None:
    for text in (number, f"[{number}, 7]", f'{{"1e+5":"{number * 2}","é":{number}}}'):
        assert read_json(text) == json.loads(text)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        read_json(f"[{word}]")


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '{"\\udFFF": 1}', '[{"a": ["\\uDc00"]}]', '["\\ud83d", "\\ude00"]', '"\ud800"']
)
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        read_json(text)


def test_a_whole_pair_and_other_escapes_are_text() -> None:
    assert read_json('["\\ud83d\\ude00", "\\u00e9\\\\ud", "😀"]') == ["😀", "é\\ud", "😀"]


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(opened: str, closed: str) -> None:
    def nested(depth: int) -> str:
        return f"{opened * depth}1{closed * depth}"

    wide = f"[{', '.join(['[]'] * (2 * MAX_DEPTH))}, %s]"
    assert read_json(wide % nested(MAX_DEPTH - 1))
    assert read_json(nested(MAX_DEPTH))
    for text in (nested(MAX_DEPTH + 1), wide % nested(MAX_DEPTH), nested(100_000)):
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(text)


def test_a_key_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="has the key 'a' twice"):
        read_json('[{"a": 1, "b": {"a": 2}, "a": 3}]')
