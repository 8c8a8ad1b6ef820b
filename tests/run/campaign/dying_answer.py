# SPDX-License-Identifier: Apache-2.0
"""A worker that is killed while its answer is fetched, if a file `die-answering` is in its folder."""

from __future__ import annotations

import os
import signal
from functools import wraps
from pathlib import Path
from typing import Any

from distributed import Worker

ASKED = Path("die-answering")
_get_data = Worker.get_data


@wraps(_get_data)  # dask looks at its arguments
async def get_data(self: Worker, *arguments: Any, **keywords: Any) -> Any:
    """Called when somebody fetches a result."""
    if ASKED.exists():
        ASKED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return await _get_data(self, *arguments, **keywords)


setattr(Worker, "get_data", get_data)  # noqa: B010
