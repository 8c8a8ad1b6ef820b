# SPDX-License-Identifier: Apache-2.0
"""Station 7: where the engine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evenhand.base.programs import ENGINE, find_program

CHECKOUT_ENGINE = ENGINE.checkout


def find_engine(
    option: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    checkout_engine: Path = CHECKOUT_ENGINE,
) -> Path:
    """The engine named by `--engine`, else by EVENHAND_ENGINE, else the checkout's, else the one on PATH.

    Raises:
        HostError: There is none, or the one that was named cannot be run.
    """
    return find_program(replace(ENGINE, checkout=checkout_engine), option, environment=environment)
