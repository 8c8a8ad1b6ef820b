# SPDX-License-Identifier: Apache-2.0
"""Comments and docstrings are sentences that can be read on their own. `tools/lint comment-words` reads those
of the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import comment_words


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Of a file."""\n', 1),
        ('def f():\n    """A number.\n\n    Args:\n        a: Of both.\n    """\n', 4),
        ('A = 1\n"""Of a file."""\n', 2),
        ("a = 1\n# Of both sides, where the DUT\n# does not translate.\n", 2),
        ("a = 1  # Of both.\n", 1),
        ("# SPDX-License-Identifier: Apache-2.0\n# Of a file.\n", 2),
    ],
)
def test_comments_and_docstrings_of_python_are_read_too(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "python" / "a.py"
    file.parent.mkdir()
    file.write_text(text)
    (found,) = comment_words.violations(tmp_path)
    assert found.startswith(f"python/a.py:{line}: ")


@pytest.mark.parametrize(
    "text", ['A = "Of a text"\n', '"""The length\nOf a file."""\n', "# The length\n# Of a file.\n"]
)
def test_what_is_no_comment_of_python_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "python" / "a.py"
    file.parent.mkdir()
    file.write_text(text)
    assert comment_words.violations(tmp_path) == []
