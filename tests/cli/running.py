# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.cli import main as cli_main
from evenhand.cli.error_output import report_error

TESTBED = """
isolated_test_environment = true
[left]
device = "net_ring0"
[right]
device = "net_ring1"
[tester]
cpus = [0]
"""


@dataclass(frozen=True)
class Ended:
    """What a command line did."""

    code: int
    """The exit code."""
    out: str
    err: str
    failure: EvenhandError | None = None
    """What was reported on stderr; None if nothing was."""

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> EvenhandError:
        """With which it failed. Tests compare its code, and what it must name."""
        if self.failure is None:
            raise AssertionError(f"no error, but exit code {self.code}:\n{self.out}\n{self.err}")
        return self.failure


def run_here(arguments: Sequence[str | Path], capsys: pytest.CaptureFixture[str]) -> Ended:
    """Run a command line in this process."""
    reported: list[EvenhandError] = []

    def record(error: EvenhandError, command: str | None, *, is_json: bool, is_debug: bool) -> int:
        reported.append(error)
        return report_error(error, command, is_json=is_json, is_debug=is_debug)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_main, "report_error", record)
        code = cli_main.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err, *reported)
