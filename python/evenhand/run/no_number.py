# SPDX-License-Identifier: Apache-2.0
"""Station 9: why a procedure ended without a number."""

from __future__ import annotations

from evenhand.run.campaign_record import TESTER_LIMIT

_WITHOUT_NUMBER = {
    "measured": "too many frames were lost for a figure: a lost frame is infinitely late",
    TESTER_LIMIT: "the tester's own limit was reached",
    "dut_gone": "the DUT did not answer any more",
    "below_minimum": "frames were lost at the lowest load as well",
}


def why_no_number(outcome: str | None) -> str:
    """Why there is no number, for people."""
    return _WITHOUT_NUMBER.get(str(outcome), str(outcome).replace("_", " "))
