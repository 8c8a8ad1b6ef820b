# SPDX-License-Identifier: Apache-2.0
"""Comments of C++ are sentences that can be read on their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import comment_words


def test_no_comment_has_such_a_word() -> None:
    assert comment_words.violations(comment_words.ROOT) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/// Of both sides.\nint a;\n", 1),
        ("int a;\n    // Of both sides, where the DUT\n    // does not translate.\n", 2),
        ("int a = 0;  // Of both sides.\n", 1),
        ('const char* a = "//";  // Of a text.\n', 1),
        ("/// The first part.\n///\n/// Of which more.\nint a;\n", 3),
        ("// SPDX-License-Identifier: Apache-2.0\n// Of a file.\n#pragma once\n", 2),
        ("/// The rest. Of both sides the larger one.\n", 1),
        ("/// A number. By which frames are delayed.\n", 1),
        ("// Every so manieth\n// frame.\n", 1),
        ("int a;\n// In two lines: every so\n// manieth frame.\n", 2),
    ],
)
def test_a_comment_that_has_one_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "engine" / "a.hpp"
    file.parent.mkdir()
    file.write_text(text)
    (found,) = comment_words.violations(tmp_path)
    assert found.startswith(f"engine/a.hpp:{line}: ")


@pytest.mark.parametrize(
    "text",
    [
        "/// The length of both.\nint of;\n",
        "// A sentence that goes on in the next line: the length\n// Of is no beginning there.\n",
        "int a;  // of both sides\n",
        'const char* a = "// Of a text";\n',
        "/// Offsets.\n",
    ],
)
def test_other_comments_are_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "router" / "a.cpp"
    file.parent.mkdir()
    file.write_text(text)
    assert comment_words.violations(tmp_path) == []


def test_comments_behind_code_are_read() -> None:
    texts = [comment.text for comment in comment_words.comments_of('f("a // b");  // c\nint a;\n/// d\n')]
    assert texts == ["c", "d"]
