# SPDX-License-Identifier: Apache-2.0
"""Where a run is stored when nobody said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.cli.run_options import run_file
from evenhand.run import RunStore
from tests.errors import raises


def test_each_run_gets_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs in one second do not meet."""
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        file = run_file("demo", None, False)
        assert file is not None
        file.touch()
        names.append(file)
    assert len(set(names)) == 3
    assert all(name.name.startswith("demo-") and name.suffix == ".evenhand" for name in names)


def test_a_named_file_is_taken_and_none_is_none() -> None:
    assert run_file("demo", Path("a.evenhand"), False) == Path("a.evenhand")
    assert run_file("demo", None, True) is None
    with raises("cli.options-exclude-each-other"):
        run_file("demo", Path("a.evenhand"), True)


def test_a_run_that_never_began_leaves_no_file(tmp_path: Path) -> None:
    """A refused request must not litter the folder."""
    file = tmp_path / "a.evenhand"
    with raises("engine.no-device"), RunStore.create(file, command=["evenhand"]):
        raise HostError("no device", code="engine.no-device")
    assert not file.exists()
