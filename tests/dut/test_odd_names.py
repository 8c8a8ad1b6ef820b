# SPDX-License-Identifier: Apache-2.0
"""Interfaces of a DUT with names that a shell, `ip` or /proc would read as something else: Linux takes any 15
octets without '/' and white space."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.cli.main import main
from evenhand.dut.facts import read_facts
from evenhand.dut.systems import System
from evenhand.dut.witness import DutWitness
from tests.dut.namespace_dut import TESTBED, NamespaceDut, namespace_dut, why_not
from tests.dut.namespace_shell import NamespaceShell
from tests.dut.test_over_ssh import PLANS, document, done, refused, run

pytestmark = [pytest.mark.root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
TAKEN = (("left.100", "END"), ("dev", "via"), ("up", "all."), ("a--help", "default-"))
"""Left and right: a letter, then letters, digits and '._-'. No kernel takes a colon."""
WORDS = r"""
a;b $(id) `x` 'q' "q" * -x --help ..x a\b é a%b a@b 0 a&b a|b
a>b a#b #a ~ {a,b} a!b a=b [a] a? $HOME a+b a,b ^a . _a
"""
REFUSED = tuple(WORDS.split())
OTHERS = (*(name for name in REFUSED if name not in ("a%b", ".")), "x..", "..y", ".z", "a\u2028b", "\x85")
"""Interfaces that are nobody's business."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as dut:
        yield dut


def ip(dut: NamespaceDut, *arguments: str) -> str:
    return subprocess.run(
        ["ip", "-n", dut.name, *arguments],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    ).stderr


@contextmanager
def named(dut: NamespaceDut, left: str, right: str) -> Iterator[str]:
    """Why the DUT cannot have interfaces of these names; empty if it has."""
    problem = ip(dut, "link", "set", "left", "name", left) or ip(dut, "link", "set", "right", "name", right)
    dut.testbed.write_text(
        TESTBED.replace('\nleft = "left"', f"\nleft = {json.dumps(left)}").replace(
            '\nright = "right"', f"\nright = {json.dumps(right)}"
        )
    )
    try:
        yield problem
    finally:
        ip(dut, "link", "set", "dev", left, "name", "left")
        ip(dut, "link", "set", "dev", right, "name", "right")


@pytest.mark.thorough
@pytest.mark.parametrize(("left", "right"), TAKEN, ids=[f"{left} {right}" for left, right in TAKEN])
def test_a_dut_with_such_names_is_set_up_and_then_as_it_was(
    made: NamespaceDut, left: str, right: str
) -> None:
    """SEED-23: its own two interfaces, and no others."""
    with named(made, left, right) as problem:
        assert not problem
        shell, both = NamespaceShell(made.name), {"left": left, "right": right}
        facts = read_facts(shell, both, where="here")
        assert [facts["interfaces"][side]["name"] for side in ("left", "right")] == [left, right]
        assert f"net.ipv4.conf.{left}.forwarding" in facts["sysctls"]
        seen = DutWitness(shell=shell, interfaces=both, where="here").read()
        assert {found.name for found in seen.interfaces.values()} == {left, right}
        before = made.state()
        assert [found["name"] for found in document(made, "check", "lab.toml")["interfaces"]] == [left, right]
        assert made.state() == before
        for plan in PLANS[:2]:
            applied = document(made, "apply", "lab.toml", "--plan", plan)
            names = {change["name"] for change in applied["held"]["changes"]}
            assert names >= {f"interface {left}", f"interface {right}"}
            assert "UP" in made.inside("ip", "-br", "link", "show", "dev", left)
            done(made, "undo", "lab.toml")
            assert made.state() == before


def test_a_dut_with_other_names_is_refused_before_anything_is_changed(made: NamespaceDut) -> None:
    before = made.state()
    for name in REFUSED:
        with named(made, name, "right"):
            for verb in ("check", "apply", "status", "undo"):
                ended = run(made, verb, "lab.toml")
                assert ended.returncode == 2, (name, verb)
                assert "is not an interface name" in ended.stderr
    assert made.state() == before


@pytest.mark.thorough
def test_other_interfaces_of_the_dut_are_as_they_were_whatever_their_names(made: NamespaceDut) -> None:
    """IPv6 forwarding is one switch for all of them, and takes what each had with it."""
    made.testbed.write_text(TESTBED)
    with others(made, OTHERS):
        for parity in (0, 1):
            for number, name in enumerate(OTHERS):
                forward_v6(made, name, (number + parity) % 2)
            before = made.state()
            document(made, "check", "lab.toml")
            document(made, "apply", "lab.toml", "--plan", "gateway-v6")
            done(made, "undo", "lab.toml")
            assert made.state() == before


@pytest.mark.thorough
def test_an_interface_that_could_not_be_put_back_by_its_name_is_refused(made: NamespaceDut) -> None:
    """IPv6 alone has one switch for all."""
    made.testbed.write_text(TESTBED)
    with others(made, ["\udcff"]):
        forward_v6(made, "\udcff", 1)
        said = refused(made, 2, "apply", "lab.toml", "--plan", "gateway-v6")
        assert "an interface whose name is not UTF-8" in said
        before = made.state()
        document(made, "apply", "lab.toml", "--plan", "gateway-v4")
        done(made, "undo", "lab.toml")
        assert made.state() == before


@contextmanager
def others(dut: NamespaceDut, names: Sequence[str]) -> Iterator[None]:
    """Besides, an interface of each of these names."""
    for number, name in enumerate(names):
        made = ip(dut, "link", "add", "name", name, "type", "veth", "peer", "name", f"end{number}")
        assert not made, (name, made)
    try:
        yield
    finally:
        for number in range(len(names)):
            ip(dut, "link", "del", "dev", f"end{number}")


def forward_v6(dut: NamespaceDut, name: str, value: int) -> None:
    path = f"/proc/sys/net/ipv6/conf/{name}/forwarding"
    assert not dut.inside("sh", "-c", 'echo "$1" > "$2"', "sh", str(value), path)


def assert_refused_or_plain(name: str) -> None:
    """For each operating system, what is not plain is refused, and prints no command."""
    is_plain = re.fullmatch("[A-Za-z][A-Za-z0-9._/:-]*", name) is not None
    for system in get_args(System):
        for pair in (("--left", name, "--right", "ok1"), ("--left", "ok1", "--right", name)):
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
                code = main(["dut", "setup", "gateway-v4", "--os", system, *pair])
            assert code == (0 if is_plain and name != "ok1" else 2)
            assert bool(output.getvalue()) == (code == 0)


@settings(max_examples=30, deadline=None)
@given(name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=15))
def test_commands_for_a_dut_have_no_name_that_a_shell_could_read_otherwise(name: str) -> None:
    assert_refused_or_plain(name)


def test_no_system_gets_commands_with_an_odd_name() -> None:
    for name in REFUSED:
        assert_refused_or_plain(name)


def test_a_dot_in_a_name_stands_for_itself() -> None:
    """`left.100` was up before, and `leftX100` was not."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        main(["dut", "setup", "gateway-v4", "--os", "linux", "--left", "left.100", "--right", "r", "--undo"])
    (line,) = (line for line in output.getvalue().splitlines() if "set dev left.100 down" in line)
    # A file for each interface, by its whole name.
    assert "grep -q '[<,]UP[,>]' $evenhand/link.left.100;" in line
    assert "used links 'left.100' " in line
