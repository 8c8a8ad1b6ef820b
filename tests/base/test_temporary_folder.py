# SPDX-License-Identifier: Apache-2.0
"""Where temporary folders are made: a socket in one has a path that the kernel and DPDK accept."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from evenhand.base import folders as module
from evenhand.base.folders import temporary_folder
from tests.errors import raises


def set_tmpdir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))


@pytest.mark.parametrize("name", ["a" * 100, "with,comma", "with space", "[brackets]"])
def test_a_folder_that_is_no_place_for_sockets_is_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    set_tmpdir(place, monkeypatch)
    with temporary_folder() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "right.sock"))
        assert folder.parent in module.SHORT_FOLDERS
    assert not folder.exists()
    assert list(place.iterdir()) == []


def test_a_usual_folder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_folder() as outer:
        set_tmpdir(outer, monkeypatch)
        with temporary_folder() as folder:
            assert folder.parent == outer


def test_without_any_place_the_variable_to_set_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_tmpdir(tmp_path / ("a" * 100), monkeypatch)
    monkeypatch.setattr(module, "SHORT_FOLDERS", ())
    with raises("base.temporary-path-unusable") as caught, temporary_folder():
        pass
    assert caught.value.where == "TMPDIR"
    assert list((tmp_path / ("a" * 100)).iterdir()) == []
