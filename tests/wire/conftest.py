# SPDX-License-Identifier: Apache-2.0
"""Wire tests run the real engine; without a built one they are skipped, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.base.errors import HostError
from evenhand.trial import find_engine
from tests.wire.wire_session import built_router, few_probes

__all__ = ["few_probes"]  # the fixture


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands store runs in the current folder, which must not be the checkout: one that is killed leaves
    its run there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _router() -> None:
    """Skips a test without a built reference router."""
    built_router()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        find_engine()
    except HostError as error:
        for item in items:
            if item.get_closest_marker("wire"):
                item.add_marker(pytest.mark.skip(reason=f"no engine: {error}"))
