# SPDX-License-Identifier: Apache-2.0
"""Fragments of changelog.d/: which names and texts are accepted, and what a release makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import changelog

LOG = "# Changelog\n\nThe newest version first.\n\n## 0.1.0\n\n- It measures.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a repository that has released one version."""
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("# How to write one\n")
    monkeypatch.setattr(changelog, "ROOT", tmp_path)
    return tmp_path / "changelog.d"


def test_the_fragments_of_this_checkout_are_right() -> None:
    assert changelog.faults() == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("merge.md", "It merges.", "the name must be WORDS.KIND.md"),
        ("merge.new.md", "It merges.", "added, changed, fixed, removed"),
        ("Merge Files.added.md", "It merges.", "the name must be WORDS.KIND.md"),
        ("merge.added.txt", "It merges.", "the name must be WORDS.KIND.md"),
        ("merge.added.md", " \n", "is empty"),
        ("merge.added.md", "- It merges.", "without a heading or list"),
        ("merge.added.md", "It merges.\n\nIt does.", "one paragraph"),
        ("merge.added.md", "It merges", "full stop"),
        ("merge.added.md", "It merges. " * 40 + "Yes.", "letters are more than 400"),
    ],
)
def test_a_wrong_fragment_is_refused_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, fault: str
) -> None:
    (folder / name).write_text(text)
    assert changelog.main([]) == 1
    said = capsys.readouterr().err
    assert name in said
    assert fault in said


def test_a_release_moves_all_fragments_above_the_version_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "29.fixed.md").write_text("A prediction\nis no longer lost.\n")
    (folder / "merge-files.added.md").write_text("`evenhand merge A B` makes one file.\n")
    assert changelog.main([]) == 0
    assert changelog.main(["draft"]) == 0
    printed = capsys.readouterr().out
    assert changelog.main(["release", "0.2.0"]) == 0
    log = (folder.parent / "CHANGELOG.md").read_text()
    assert log == LOG.replace(
        "## 0.1.0",
        "## 0.2.0\n\n### Added\n\n- `evenhand merge A B` makes one file.\n\n"
        "### Fixed\n\n- A prediction is no longer lost.\n\n## 0.1.0",
    )
    assert printed.strip() in log
    assert [path.name for path in folder.iterdir()] == ["README.md"]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["release", "0.2.0"], 1), (["release", "next"], 2), (["publish"], 2)]
)
def test_what_cannot_be_released_changes_nothing(folder: Path, arguments: list[str], code: int) -> None:
    assert changelog.main(arguments) == code
    assert (folder.parent / "CHANGELOG.md").read_text() == LOG
