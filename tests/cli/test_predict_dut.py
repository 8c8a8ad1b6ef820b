# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict --dut`: the DUT's own table, key and hash fields. No NIC here has them: the answers are
of tests/dut/files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand import testbed as testbeds
from evenhand.dut.shell import Answer, Shell
from evenhand.lab import linux_lab
from evenhand.plan import gateway_v4
from tests.cli.running import TESTBED, Ended
from tests.dut.namespace_shell import NamespaceShell
from tests.dut.test_facts import output, text

Run = Callable[..., Ended]
DUT = '\n[dut]\nssh = "root@r1"\nos = "linux"\nleft = "eth1"\nright = "eth2"\n'

OF_TWO_ENGINES = """
isolated_test_environment = true
[[engine]]
name = "a"
cpus = [0]
left = { device = "net_null0" }
right = { device = "net_null1" }
[[engine]]
name = "b"
cpus = [1]
left = { device = "net_null2" }
right = { device = "net_null3" }
[dut]
ssh = "root@r1"
os = "linux"
left = ["eth1", "eth3"]
right = ["eth2", "eth4"]
"""


class AnsweringShell:
    """Gives this answer to whatever it is asked."""

    def __init__(self, stdout: str) -> None:
        self.stdout = stdout

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        return Answer(exit_code=0, stdout=self.stdout, stderr="")


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Shell], Path]:
    """A testbed whose DUT has this shell instead of ssh's."""

    def reached(shell: Shell) -> Path:
        @contextmanager
        def open_shell(dut: testbeds.TestbedDut, *, config: Path | None) -> Iterator[Shell]:
            assert (dut.ssh, config) == ("root@r1", None)
            yield shell

        monkeypatch.setattr("evenhand.cli.device_of_dut.open_shell", open_shell)
        path = tmp_path / "r1.toml"
        path.write_text(TESTBED + DUT)
        (tmp_path / "several.toml").write_text(OF_TWO_ENGINES)
        return path

    return reached


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_the_duts_own_table_key_and_fields_are_used(evenhand: Run, reach: Any, plan: str) -> None:
    """RSS-02, RSS-04: the same as with its `ethtool -x` in a file, without anything to be copied by hand."""
    file = reach(AnsweringShell(output()))
    asked = evenhand("predict", plan, "--hosts", "4", "--dut", file, "--json")
    assert asked.code == 0, asked.err
    by_hand = evenhand("predict", plan, "--hosts", "4", "--elements", "2", "--hash", "type1", "--json")
    assert asked.json["counts"] == by_hand.json["counts"]
    assert asked.json["device"] == by_hand.json["device"]
    shown = evenhand("predict", plan, "--hosts", "4", "--dut", file)
    assert "as eth1 and eth2 of the DUT have it" in " ".join(shown.out.split())


def test_interfaces_that_hash_differently_are_predicted_one_by_one(evenhand: Run, reach: Any) -> None:
    """One number for both would be that of neither."""
    told = output().replace(
        f"interface right table\nexit 0\n{text('ixgbe-x')}", f"interface right table\nexit 0\n{text('ice-x')}"
    )
    file = reach(AnsweringShell(told))
    both = evenhand("predict", "gateway-v4", "--dut", file)
    assert both.code == 2
    assert both.error.code == "cli.directions-differ"
    assert both.error.what.startswith("eth1 and eth2 of the DUT")
    assert "(table, key, symmetric)" in both.error.what
    one = evenhand("predict", "gateway-v4", "--dut", file, "--direction", "reverse", "--json")
    assert len(one.json["device"]["table"]) == 512
    assert one.json["device"]["symmetric"] is True


def test_the_pairs_of_several_engines_are_one_device_or_none(evenhand: Run, reach: Any) -> None:
    """A direction comes to one interface of each pair."""
    told = output(("left", "right", "left-2", "right-2"))
    file = reach(AnsweringShell(told)).with_name("several.toml")
    asked = evenhand("predict", "gateway-v4", "--hosts", "4", "--dut", file)
    assert asked.code == 0, asked.err
    assert "as eth1 and eth3 and eth2 and eth4 of the DUT have it" in " ".join(asked.out.split())
    differ = told.replace(
        f"interface left-2 table\nexit 0\n{text('ixgbe-x')}",
        f"interface left-2 table\nexit 0\n{text('ice-x')}",
    )
    file = reach(AnsweringShell(differ)).with_name("several.toml")
    refused = evenhand("predict", "gateway-v4", "--dut", file, "--direction", "forward")
    assert refused.code == 2
    assert refused.error.code == "cli.pairs-differ"
    assert refused.error.what.startswith("eth1 and eth3 of the DUT")
    assert evenhand("predict", "gateway-v4", "--dut", file, "--direction", "reverse").code == 0


def test_what_the_dut_is_asked_for_is_not_given_beside_it(evenhand: Run, reach: Any) -> None:
    refused = evenhand(
        "predict",
        "gateway-v4",
        "--dut",
        reach(AnsweringShell(output())),
        "--elements",
        "4",
        "--key",
        "common",
    )
    assert refused.code == 2
    assert refused.error.code == "cli.options-exclude-each-other"
    assert refused.error.where == "--dut, --elements, --key"


def test_a_testbed_that_does_not_say_where_its_dut_is_is_refused(evenhand: Run, testbed: Path) -> None:
    refused = evenhand("predict", "gateway-v4", "--dut", testbed)
    assert refused.code == 2
    assert (refused.error.code, refused.error.where) == ("rig.dut-without-ssh", "[dut] ssh")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ethtool") is None, reason="needs root and ethtool")
def test_a_driver_that_does_not_tell_is_refused_with_its_answer(
    evenhand: Run, reach: Any, tmp_path: Path
) -> None:
    """RSS-02: veth has no RSS, and says so."""
    with linux_lab(gateway_v4(), name="predict") as lab:
        file = reach(NamespaceShell(lab.dut_namespace))
        names = {"eth1": lab.dut_interface("left"), "eth2": lab.dut_interface("right")}
        content = file.read_text()
        for old, new in names.items():
            content = content.replace(old, new)
        file.write_text(content)
        refused = evenhand("predict", "gateway-v4", "--dut", file)
    assert refused.code == 2
    assert refused.error.code == "rig.not-reported-by-nic"
    assert f"{names['eth1']} (veth)" in refused.error.what
    assert "Operation not supported" in refused.error.what
