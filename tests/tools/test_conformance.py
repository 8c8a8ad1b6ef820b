# SPDX-License-Identifier: Apache-2.0
"""The conformance table says what the tests say."""

from __future__ import annotations

import textwrap

import pytest

from tools import conformance
from tools.conformance import Claim


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("see SEED-13.", ["SEED-13"]),
        ("SEED-40/41/43 and MLR-13", ["SEED-40", "SEED-41", "SEED-43", "MLR-13"]),
        ("R4814-01..03", ["R4814-01", "R4814-02", "R4814-03"]),
        ("R4814-01 .. R4814-02", ["R4814-01", "R4814-02"]),
        ("R2544-18, R5180-10", ["R2544-18", "R5180-10"]),
        ("UTF-16, SHA-25, XSEED-13, SEED-130", []),
    ],
)
def test_ids_are_found_and_short_forms_written_out(text: str, ids: list[str]) -> None:
    assert conformance.ids_in(text) == ids


def test_python_claims_come_from_docstrings_and_comments_of_tests() -> None:
    source = textwrap.dedent('''
        """Station 8: MLR-12."""
        def test_one() -> None:
            """A load that lost frames is never the result (R2544-21)."""
            assert 1  # SEED-80
        def helper() -> None:
            """SEED-99 is no claim of a helper."""
        class TestTwo:
            def test_two(self) -> None:
                """SEED-13/14."""
    ''')
    assert list(conformance.claims_of_python("t.py", source)) == [
        Claim("MLR-12", "t.py", ""),
        Claim("R2544-21", "t.py", "test_one"),
        Claim("SEED-80", "t.py", "test_one"),
        Claim("SEED-13", "t.py", "test_two"),
        Claim("SEED-14", "t.py", "test_two"),
    ]


def test_cpp_claims_come_from_the_head_and_from_comments_at_a_case() -> None:
    source = textwrap.dedent("""
        // Station 2: SEED-47.
        #include <vector>
        // SEED-99: a helper claims nothing.
        int helper() {
            return 0;  // SEED-98
        }
        // R2544-31
        TEST_CASE("lengths are computed") {
            CHECK(true);  // R2544-32
        }
        int between() {
            return 0;  // SEED-97
        }
        TEST_CASE("R2544-33 holds") {
        }
    """)
    assert list(conformance.claims_of_cpp("t.cpp", source)) == [
        Claim("SEED-47", "t.cpp", ""),
        Claim("R2544-31", "t.cpp", "lengths are computed"),
        Claim("R2544-32", "t.cpp", "lengths are computed"),
        Claim("R2544-33", "t.cpp", "R2544-33 holds"),
    ]


def test_a_requirement_has_one_line_whatever_the_number_of_tests() -> None:
    text = conformance.page([Claim("SEED-13", "b.py", "test_b"), Claim("SEED-13", "a.cpp", ""), Claim("SEED-13", "b.py", "test_c")])
    assert "| SEED-13 | `a.cpp`<br>`b.py`: test_b; test_c |" in text
    assert text.count("SEED-13") == 1
