# SPDX-License-Identifier: Apache-2.0
"""Names of files without their folders, which say more about a run's owner (home, customer, project) than
about the run."""

from __future__ import annotations

import re
from ipaddress import ip_interface
from typing import Any

AS_WRITTEN = "facts"
"""The key of what the user writes to be published: a slash in it does not mark a folder."""
_PART = re.compile(r"(?:(?<=[,=])|^)[^,=]*(?<!\bGNU)/[^,]*")
"""What has a slash, from the start, a comma or an equals sign to the next comma: a whole text, or a value in
a device's arguments. The slash of GNU/Linux does not mark a folder."""
_FOLDER = re.compile(r"(?<!\bGNU)/")
_PREFIX = re.compile(r"(?<![\w./])[0-9a-fA-F:.]+(/)[0-9]{1,3}(?![\w./])")
_SHARE = re.compile(r"[0-9]{1,3}/[0-9]{1,3}")
"""Share of two plans in a mix."""


def without_folders(value: Any) -> Any:
    """The value, with every text in it, however deep, cut to file names: `socket=/tmp/evenhand-x/left.sock`
    to `socket=left.sock`.

    Addresses with a prefix length have a slash too, and stay, also in `siit@2001:db8::/40`; and a share,
    90/10.
    """
    match value:
        case str():
            return _PART.sub(lambda part: _cut(part[0]), value)
        case dict():
            return {key: item if key == AS_WRITTEN else without_folders(item) for key, item in value.items()}
        case list() | tuple():
            return [without_folders(item) for item in value]
        case _:
            return value


def _cut(text: str) -> str:
    """What is behind the last slash of a folder."""
    if _SHARE.fullmatch(text):
        return text
    of_prefixes = {found.start(1) for found in _PREFIX.finditer(text) if _is_prefix(found[0])}
    text = text.rstrip("/")
    return text[max((s.end() for s in _FOLDER.finditer(text) if s.start() not in of_prefixes), default=0) :]


def _is_prefix(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return True
