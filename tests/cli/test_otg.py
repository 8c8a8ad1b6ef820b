# SPDX-License-Identifier: Apache-2.0
"""`evenhand otg`: what is refused before anything is served. What it serves: tests/wire/test_otg.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended

Run = Callable[..., Ended]


@pytest.mark.parametrize(
    ("content", "mode", "code"),
    [
        (None, 0o600, "base.token-not-readable"),
        ("short", 0o600, "base.token-too-short"),
        ("two words of a token", 0o600, "base.token-too-short"),
        ("0123456789abcdef", 0o644, "base.token-not-secret"),
    ],
)
def test_a_token_must_be_a_secret(
    evenhand: Run, testbed: Path, tmp_path: Path, content: str | None, mode: int, code: str
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
        token.chmod(mode)
    ended = evenhand("otg", testbed, "--token-file", token)
    assert (ended.code, ended.error.code) == (2, code)


def test_other_hosts_need_a_token(evenhand: Run, testbed: Path) -> None:
    ended = evenhand("otg", testbed, "--host", "0.0.0.0")
    assert (ended.code, ended.error.code, ended.error.where) == (2, "otg.no-token", "--host")


def test_without_the_extra_it_says_what_to_install(
    evenhand: Run, testbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("evenhand.otg.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "snappi", None)
    ended = evenhand("otg", testbed)
    assert (ended.code, ended.error.code) == (3, "otg.extra-missing")
    assert ".venv/bin/pip install --requirement requirements-otg.lock" in ended.error.next_step


def test_a_testbed_that_is_none_is_refused(evenhand: Run, tmp_path: Path) -> None:
    ended = evenhand("otg", tmp_path / "no.toml", "--https-port", "0", "--grpc-port", "0")
    assert ended.code == 2
