# SPDX-License-Identifier: Apache-2.0
"""A command line in this process, and a skip without root."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from evenhand.cli.main import main
from tests.cli.running import Ended


@pytest.fixture(autouse=True)
def _needs_root(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")


@pytest.fixture
def dut_setup(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run `evenhand dut setup`."""

    def run(*arguments: str) -> Ended:
        code = main(["dut", "setup", *arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run
