# SPDX-License-Identifier: Apache-2.0
"""What is kept from one command to the next in a folder of the user's: files that save time, and that may be
lost."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def state_file(name: str) -> Path:
    """The file of this name in $XDG_STATE_HOME/evenhand, by default below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path(os.path.expanduser("~/.local/state"))) / "evenhand" / name


def read_state(path: Path, *, version: int, key: str) -> Any:
    """The value under this key of a document of this version; None if it is not there, or cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return document[key] if document["version"] == version else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def replace_state(path: Path, document: Any) -> None:
    """Whole or not at all, also when two commands end at once. OSError if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
