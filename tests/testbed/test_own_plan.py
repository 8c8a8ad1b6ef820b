# SPDX-License-Identifier: Apache-2.0
"""A testbed whose DUT is set up for a plan file."""

from __future__ import annotations

from pathlib import Path

from evenhand.plan import make_plan, read_plan_file
from evenhand.rig import plan_defaults_of, read_setup
from tests.cli.running import TESTBED
from tests.errors import raises

EDGE = """
[left]
dut = "10.0.0.1/24"
gateway = "10.0.0.2"
hosts = "198.18.0.0/16"
[right]
dut = "10.0.1.1/24"
gateway = "10.0.1.2"
hosts = ["198.19.0.0/24", "198.19.8.0/22"]
"""


def test_its_plan_is_the_default_and_no_other_is_measured(tmp_path: Path) -> None:
    edge, other, testbed = (tmp_path / name for name in ("my_edge.toml", "other.toml", "testbed.toml"))
    edge.write_text(EDGE)
    other.write_text(EDGE)
    testbed.write_text(f'{TESTBED}[dut]\nplan = "{edge}"\n')
    assert plan_defaults_of(str(testbed)).plan == str(edge)
    setup = read_setup(str(testbed))
    assert setup.make_own_plan() == read_plan_file(edge)
    setup.check_plan(read_plan_file(edge))
    for plan in (read_plan_file(other), make_plan("gateway-v4")):
        with raises("rig.dut-of-other-plan", match="my-edge"):
            setup.check_plan(plan)
