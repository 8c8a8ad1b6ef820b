# SPDX-License-Identifier: Apache-2.0
"""The token of a server: the first line of a file that only its owner may read."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from evenhand.base.errors import RequestError

FEWEST_CHARACTERS = 16
"""One that can be guessed is none."""
MOST_OCTETS = 4096


def read_token(path: Path) -> str:
    """The token of `--token-file`. RequestError if there is none, it is too short, or others may read it."""
    place = shlex.quote(str(path))
    again = f"(umask 077; openssl rand -hex 32 >{place})"
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.readline(MOST_OCTETS).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"the token cannot be read: {getattr(error, 'strerror', None) or 'it is not ASCII'}",
            code="base.token-not-readable",
            where=f"--token-file {path}",
            next_step=f"Make one: {again}",
        ) from error
    if len(token) < FEWEST_CHARACTERS or not re.fullmatch(r"[!-~]+", token):
        raise RequestError(
            f"a token of {len(token)} characters, of which at least {FEWEST_CHARACTERS} without spaces are"
            " needed",
            code="base.token-too-short",
            where=f"--token-file {path}",
            next_step=f"Make another one: {again}",
        )
    # systemd gives credentials to a service's user by an access list, which shows as rights of the group.
    is_credential = path.parent == Path(os.environ.get("CREDENTIALS_DIRECTORY", "-"))
    if mode & (0o007 if is_credential else 0o077):
        raise RequestError(
            f"other users may read the token (mode {mode & 0o777:04o})",
            code="base.token-not-secret",
            where=f"--token-file {path}",
            next_step=f"chmod 600 {place}",
        )
    return token
