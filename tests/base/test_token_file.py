# SPDX-License-Identifier: Apache-2.0
"""The token of a server, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.base.token_file import read_token

TOKEN = "0123456789abcdef0123456789abcdef"


def test_a_token_that_is_not_there_is_said_with_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EvenhandError) as refused:
        read_token(tmp_path / "a token")
    assert refused.value.code == "base.token-not-readable"
    assert f">'{tmp_path}/a token'" in refused.value.next_step


@pytest.mark.parametrize(
    ("text", "mode", "code"),
    [
        ("short", 0o600, "base.token-too-short"),
        ("with spaces in it, and long", 0o600, "base.token-too-short"),
        (TOKEN, 0o644, "base.token-not-secret"),
        ("\xff" * 40, 0o600, "base.token-not-readable"),
    ],
)
def test_a_token_that_is_no_secret_is_refused(tmp_path: Path, text: str, mode: int, code: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="latin-1")
    path.chmod(mode)
    with pytest.raises(EvenhandError) as refused:
        read_token(path)
    assert refused.value.code == code


def test_a_token_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\nnot this\n")
    path.chmod(0o600)
    assert read_token(path) == TOKEN


def test_a_credential_of_systemd_may_have_rights_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are how the access list of the service's own user shows."""
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_token(path) == TOKEN
    path.chmod(0o444)
    with pytest.raises(EvenhandError) as refused:
        read_token(path)
    assert refused.value.code == "base.token-not-secret"
