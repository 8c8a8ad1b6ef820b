# SPDX-License-Identifier: Apache-2.0
"""Labs of the tests have names of their own, so that they never meet a lab that somebody works with."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from evenhand.lab import lab_down


@pytest.fixture
def lab_name() -> Iterator[str]:
    """A name that no other test run has; what the test leaves of it is taken down."""
    name = f"t{os.getpid() % 10_000_000}"
    yield name
    if os.geteuid() == 0:
        lab_down(name)


@pytest.fixture
def other_lab_name() -> Iterator[str]:
    name = f"o{os.getpid() % 10_000_000}"
    yield name
    if os.geteuid() == 0:
        lab_down(name)
