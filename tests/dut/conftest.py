# SPDX-License-Identifier: Apache-2.0
"""A command line in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evenhand.cli.main import main
from tests.cli.running import Ended


@pytest.fixture
def dut_setup(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run `evenhand dut setup`."""

    def run(*arguments: str) -> Ended:
        code = main(["dut", "setup", *arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run
