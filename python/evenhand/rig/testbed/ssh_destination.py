# SPDX-License-Identifier: Apache-2.0
"""Testbed: where the DUT is reached over SSH. No file can make `ssh` run a command or take an option."""

from __future__ import annotations

import re

from evenhand.base.errors import RequestError

_USER = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}@"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
_ADDRESS = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]{1,15})?"
_PORT = r"(?::[0-9]{1,5})?"
_DESTINATION = re.compile(
    rf"(?:{_USER})?(?:{_NAME}|{_ADDRESS})|ssh://(?:{_USER})?(?:{_NAME}|\[{_ADDRESS}\]){_PORT}", re.ASCII
)


def check_destination(text: str) -> str:
    """A host, or a name of the user's own ~/.ssh/config, with or without a user: `root@r1`,
    `ssh://root@[2001:db8::1]:2222`.

    Nothing else passes: what begins with `-` would be an option of ssh, and `%h` and `%r` of the user's own
    file hand names to shells.

    Raises:
        RequestError: It is not one of these.
    """
    if not _DESTINATION.fullmatch(text):
        raise RequestError(
            f"{text[:300]!r} is not a host that may be passed to ssh",
            code="rig.not-an-ssh-destination",
            next_step='Write, for example, "root@r1", "ssh://root@192.0.2.1:2222" or a Host of'
            " ~/.ssh/config: only letters, digits and ._-.",
        )
    return text
