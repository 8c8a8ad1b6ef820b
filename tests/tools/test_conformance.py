# SPDX-License-Identifier: Apache-2.0
"""The conformance table says what the tests say."""

from __future__ import annotations

import textwrap

import pytest

from tools import conformance
from tools.conformance import Claim, Note


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
            assert "# SEED-98 is no comment"  # SEED-80
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


def test_a_test_that_only_make_prove_runs_is_told_apart() -> None:
    """Marked itself, by its class or by its file; a slow parameter leaves the others to `make test-all`."""
    source = textwrap.dedent('''
        pytestmark = [pytest.mark.root, pytest.mark.skipif(slow, reason="no")]
        @pytest.mark.slow
        def test_one() -> None:
            """SEED-01."""
        @pytest.mark.parametrize("a", [1, pytest.param(2, marks=pytest.mark.slow)])
        def test_two(a: int) -> None:
            """SEED-02."""
        @pytest.mark.slow
        class TestThree:
            def test_three(self) -> None:
                """SEED-03."""
    ''')
    claims = list(conformance.claims_of_python("t.py", source))
    assert [(claim.requirement, claim.is_slow) for claim in claims] == [
        ("SEED-01", True),
        ("SEED-02", False),
        ("SEED-03", True),
    ]
    of_slow_file = conformance.claims_of_python(
        "t.py", source.replace("pytest.mark.root", "pytest.mark.slow")
    )
    assert all(claim.is_slow for claim in of_slow_file)
    notes = {"SEED-01": Note("a"), "SEED-02": Note("b"), "SEED-03": Note("c", deviates="d")}
    text = conformance.page(claims, notes)
    assert "3 requirements: 1 are tested, 1 are proved, 1 are met with a deviation" in text
    assert "\n- SEED-01, *proved*: a.\n" in text
    assert "\n- SEED-02: b.\n" in text
    assert "\n- SEED-03, *deviates*: c. D.\n" in text
    tests = conformance.list_of_tests(claims, notes)
    assert "- SEED-01: a\n  - `t.py`: test_one (slow)\n- SEED-02: b\n  - `t.py`: test_two\n" in tests


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


def test_a_requirement_has_one_line_and_all_its_tests_in_the_list() -> None:
    claims = [
        Claim("SEED-13", "b.py", "test_b"),
        Claim("SEED-13", "a.cpp", ""),
        Claim("SEED-13", "b.py", "test_c"),
    ]
    notes = {"SEED-13": Note("gateways")}
    text = conformance.page(claims, notes)
    assert "- SEED-13: gateways.\n" in text
    assert text.count("SEED-13") == 1
    assert conformance.list_of_tests(claims, notes).endswith(
        "- SEED-13: gateways\n  - `a.cpp`\n  - `b.py`: test_b; test_c\n"
    )


def test_the_page_tells_deviations_beside_their_requirement_and_what_is_not_offered() -> None:
    notes = {
        "R2544-17": Note("bursts", not_offered="frames are evenly spaced"),
        "R2544-18": Note("waits", deviates="they can be shortened"),
    }
    text = conformance.page([Claim("R2544-18", "a.py", "test_a")], notes)
    assert "- R2544-17, *not offered*: bursts. Frames are evenly spaced.\n" in text
    assert "- R2544-18, *deviates*: waits. They can be shortened.\n" in text
    assert (
        "2 requirements: 0 are tested, 0 are proved, 1 are met with a deviation, and 1 are not offered"
        in text
    )


@pytest.mark.parametrize(
    ("note", "is_tested", "problem"),
    [
        (Note("t"), True, None),
        (Note("t", deviates="d"), True, None),
        (Note("t", deviates="d"), False, None),
        (Note("t", not_offered="n"), False, None),
        (Note("t"), False, "no test names it"),
        (Note("t", not_offered="n"), True, "yet a.py tests it"),
        (Note("t", deviates="d", not_offered="n"), False, "both"),
        (None, True, "does not list it"),
    ],
)
def test_each_requirement_has_exactly_one_status(
    note: Note | None, is_tested: bool, problem: str | None
) -> None:
    """A page that leaves one open, or says two things of it, would claim what nobody checked."""
    claims = [Claim("MLR-01", "a.py", "test_a")] if is_tested else []
    found = conformance.problems(claims, {} if note is None else {"MLR-01": note})
    assert [problem is not None and problem in text for text in found] == ([] if problem is None else [True])


@pytest.mark.parametrize(
    "text",
    [
        '[SEED-1]\ntitle = "t"',
        "[SEED-01]",
        '[SEED-01]\ntitle = "t"\nnot_ofered = "n"',
        '[SEED-01]\ntitle = "t"\ndeviates = ""',
    ],
)
def test_notes_with_a_slip_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="SEED-"):
        conformance.read_notes(text)


@pytest.mark.thorough
def test_tests_and_notes_of_this_checkout_agree() -> None:
    notes = conformance.read_notes((conformance.ROOT / conformance.NOTES).read_text())
    assert conformance.problems(conformance.all_claims(conformance.ROOT), notes) == []
    assert {requirement.partition("-")[0] for requirement in notes} == set(conformance.DOCUMENTS)
