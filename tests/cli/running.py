# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

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
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)
