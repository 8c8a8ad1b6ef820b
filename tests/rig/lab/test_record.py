# SPDX-License-Identifier: Apache-2.0
"""What is kept of a lab."""

from __future__ import annotations

from evenhand.rig.lab.record import lab_of
from evenhand.rig.lab.vm import VmLab
from tests.errors import raises


def test_a_lab_of_another_version_is_an_error_that_says_what_to_do() -> None:
    """Its record has what this version does not know, or lacks what it needs."""
    for document in ({"plan": "gateway-v4", "is_odd": True}, {"plan": "gateway-v4"}):
        with raises("rig.lab-of-another-version") as error:
            lab_of(VmLab, "vm", document)
        assert "evenhand lab down vm" in str(error.value.next_step)
