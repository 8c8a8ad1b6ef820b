# SPDX-License-Identifier: Apache-2.0
"""A plan is one declaration: help, lists, campaigns, set-ups, predictions and exports follow from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from evenhand.cli.main import main
from evenhand.plan import TOPOLOGIES, make_plan
from evenhand.plan.topologies import _topology_of, gateway_v4, gateway_v6
from evenhand.plan.topology import Topology
from evenhand.spec.file import make_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import plan_of

TOYS = {
    4: replace(
        gateway_v4,
        name="toy_v4",
        figure="a toy",
        left=replace(gateway_v4.left, dut="10.0.7.1/24", gateway="10.0.7.2/24"),
        most_hosts=1000,
    ),
    6: replace(gateway_v6, name="toy_v6", figure="a toy", most_hosts=1000),
}


@pytest.fixture(params=TOYS)
def toy(request: pytest.FixtureRequest) -> Iterator[Topology]:
    found = TOYS[request.param]
    TOPOLOGIES[found.name] = found
    _topology_of.cache_clear()
    yield found
    del TOPOLOGIES[found.name]
    _topology_of.cache_clear()


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_a_plan_of_one_declaration_is_everywhere(toy: Topology, capsys: pytest.CaptureFixture[str]) -> None:
    name = toy.name.replace("_", "-")
    plan = make_plan(name)
    left, right = plan.left, plan.right
    assert name in said(capsys, "plan", "show")
    assert str(left.dut[0]) in said(capsys, "plan", "show", name)
    setup = said(capsys, "dut", "setup", name, "--os", "linux", "--left", "eth1", "--right", "eth2")
    assert str(left.dut[0]) in setup
    campaign = {"name": "x", "testbed": "reference", "suite": [{"name": "a", "plan": name, "hosts": ["max"]}]}
    point = expand(make_campaign(campaign, where="x")).points[-1]
    assert plan_of(point) == plan
    assert point.hosts == (1000, 1000)
    predicted = json.loads(said(capsys, "predict", name, "--elements", "4", "--json"))
    assert predicted["plan"] == name
    exported = json.loads(said(capsys, "plan", "export", name, "--rate", "1kfps", "--duration", "1s"))
    assert str(right.host_range.address(0)) in json.dumps(exported)


def test_the_help_names_it() -> None:
    """As it would, if the declaration stood in its file."""
    program = (
        "from evenhand.plan import TOPOLOGIES, gateway_v4\nfrom dataclasses import replace\n"
        "TOPOLOGIES['toy'] = replace(gateway_v4, name='toy')\n"
        "from evenhand.cli.main import main\nmain(['dut', 'setup', '--help'])\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "toy" in shown
