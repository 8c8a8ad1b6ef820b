# SPDX-License-Identifier: Apache-2.0
"""DUT: a way to its command line. Whoever sets it up, reads it or watches it knows no more of the way than
this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command of the DUT left."""

    exit_code: int
    stdout: str
    stderr: str


class Shell(Protocol):
    """Runs commands on the DUT, one at a time, each in a shell of its own."""

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        """Runs a command of `sh` with `input_text` on its standard input, and waits for its end.

        Raises:
            HostError: The DUT cannot be reached, or did not answer within `timeout_s`. A command that fails
                is not an error here.
        """
        ...
