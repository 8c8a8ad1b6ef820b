# SPDX-License-Identifier: Apache-2.0
"""Names of files without their folders, which tell more of a run's owner (home, customer, project) than of
the run."""

from __future__ import annotations

import re
from ipaddress import ip_interface
from typing import Any

AS_WRITTEN = "facts"
"""The key of what the user writes to be published: a slash in it is no folder's."""
_PART = re.compile(r"(?:(?<=[,=])|^)[^,=]*(?<!\bGNU)/[^,]*")
"""What has a slash, from the start, a comma or an equals sign to the next comma: a whole text, or a value in
a device's arguments. The slash of GNU/Linux is no folder's."""


def without_folders(value: Any) -> Any:
    """The value, with every text in it, however deep, cut to file names: `socket=/tmp/evenhand-x/left.sock`
    to `socket=left.sock`.

    Addresses with a prefix length have a slash too, and stay.
    """
    match value:
        case str():
            return _PART.sub(
                lambda part: part[0] if _is_prefix(part[0]) else part[0].rstrip("/").rpartition("/")[2], value
            )
        case dict():
            return {key: item if key == AS_WRITTEN else without_folders(item) for key, item in value.items()}
        case list() | tuple():
            return [without_folders(item) for item in value]
        case _:
            return value


def _is_prefix(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return True
