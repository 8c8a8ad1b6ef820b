# SPDX-License-Identifier: Apache-2.0
"""Wire tests run the real engine; without a built one they are skipped, and say so."""

from __future__ import annotations

import pytest

from evenhand.base.errors import HostError
from evenhand.base.programs import ROUTER, find_program
from evenhand.trial import find_engine


@pytest.fixture
def _router() -> None:
    """Skips a test without a built reference router."""
    try:
        find_program(ROUTER)
    except HostError as error:
        pytest.skip(f"no router: {error}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        find_engine()
    except HostError as error:
        for item in items:
            if item.get_closest_marker("wire"):
                item.add_marker(pytest.mark.skip(reason=f"no engine: {error}"))
