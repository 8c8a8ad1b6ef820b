# SPDX-License-Identifier: Apache-2.0
"""Station 7: where the engine is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from evenhand.errors import HostError

ENGINE_NAME = "evenhand-engine"
ENGINE_VARIABLE = "EVENHAND_ENGINE"
CHECKOUT_ENGINE = Path(__file__).resolve().parents[3] / "build" / "engine" / ENGINE_NAME
"""Where the build puts it when this package runs from its checkout."""


def find_engine(
    option: Path | None = None, *, environment: Mapping[str, str] | None = None, checkout_engine: Path = CHECKOUT_ENGINE
) -> Path:
    """The engine named by `--engine`, else by EVENHAND_ENGINE, else the checkout's, else the one on PATH.

    Raises:
        HostError: There is none, or the one that was named cannot be run.
    """
    environment = os.environ if environment is None else environment
    if option is not None:
        return _named(option, "--engine")
    if environment.get(ENGINE_VARIABLE):
        return _named(Path(environment[ENGINE_VARIABLE]), ENGINE_VARIABLE)
    if _is_executable(checkout_engine):
        return checkout_engine
    on_path = shutil.which(ENGINE_NAME, path=environment.get("PATH"))
    if on_path is None:
        raise HostError(
            f"there is no {ENGINE_NAME}",
            where=f"{checkout_engine}, PATH",
            next_step=f"Run `make build`, or name it with --engine or {ENGINE_VARIABLE}.",
        )
    return Path(on_path)


def _named(path: Path, where: str) -> Path:
    if not path.exists():
        raise HostError(f"{path} does not exist", where=where, next_step=f"Name an {ENGINE_NAME}, or run `make build`.")
    if not _is_executable(path):
        raise HostError(f"{path} is not an executable file", where=where, next_step=f"Name an {ENGINE_NAME}.")
    return path.resolve()


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
