# SPDX-License-Identifier: Apache-2.0
"""A DUT whose programs are broken: whatever they print, it is read or refused in words, and costs neither
memory nor patience."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand import testbed as testbeds
from evenhand.base.errors import EvenhandError
from evenhand.dut.facts import facts_command, parse_facts
from evenhand.dut.linux_answers import read_state
from evenhand.dut.readings import parse_reading, reading_command
from evenhand.dut.readings_queues import MOST_OCTETS, read_all
from evenhand.dut.shell import Answer
from evenhand.dut.ssh import MOST_ANSWERED, open_shell
from tests.dut.namespace_dut import NamespaceDut, namespace_dut, why_not
from tests.errors import raises

needs_dut = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
needs_ip = pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
DUT = testbeds.TestbedDut.model_validate(
    {"ssh": "root@192.0.2.2", "os": "linux", "left": "left", "right": "right"}
)
ODD = "eth0; reboot $(x) `y` 'z'\n"
"""No kernel has it, but a broken `ip` may print it."""
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**40)
    | st.floats()
    | st.text(max_size=20)
    | st.just(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@dataclass
class LocalShell:
    """This machine's own, of which one command says something else."""

    changed: dict[str, str]

    def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
        mark = re.search(r"evenhand-[0-9a-f]{16}", input_text)
        assert mark is not None
        told = _answers() | self.changed
        return Answer(
            exit_code=0, stdout="".join(f"{mark[0]} 0\n{text}\n" for text in told.values()), stderr=""
        )


@cache
def _answers() -> dict[str, str]:
    """What `read_state` asks for `lo`, and what this machine says."""
    asked: dict[str, Answer] = {}

    class Listener:
        def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
            done = subprocess.run(
                ["sh", "-c", command], input=input_text, capture_output=True, text=True, check=False
            )
            return Answer(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def listening(shell: Any, commands: Any, **options: Any) -> dict[str, Answer]:
        asked.update(read_all(Listener(), commands, **options))
        return asked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand.dut.linux_answers.read_all", listening)
        read_state(LocalShell({}), ["lo"], address="192.0.2.2", peer="192.0.2.1")
    return {name: answer.stdout for name, answer in asked.items()}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


def _put(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _put(value[path[0]], path[1:], junk)
    return copied


@st.composite
def changed_state(draw: st.DrawFn) -> dict[str, str]:
    """An answer with something else in one place: a value of its JSON, or a piece of its text."""
    answers = _answers()
    name = draw(st.sampled_from(sorted(answers)))
    text = answers[name]
    if text[:1] == "[" and draw(st.booleans()):
        document = json.loads(text)
        place = draw(st.sampled_from(list(_places(document))))
        return {name: json.dumps(_put(document, place, draw(JUNK)))}
    first = draw(st.integers(0, len(text)))
    last = draw(st.integers(first, min(len(text), first + 40)))
    return {name: text[:first] + draw(st.text(max_size=20)) + text[last:]}


def refusal_of(read: Callable[[], object]) -> EvenhandError | None:
    """What it is refused with. Any other exception is a defect."""
    try:
        read()
    except EvenhandError as error:
        return error
    return None


@needs_ip
@given(changed=changed_state())
@example(changed={"links": "[" * 200_000})
@example(changed={"links": '[{"ifname": ["lo"]}]'})
@example(changed={"links": '[{"ifname": "lo", "flags": 5}]'})
@example(
    changed={
        "table lo": "RX flow hash indirection table for lo with 1 RX ring(s):\n    0:      " + "9" * 5000
    }
)
def test_whatever_ip_and_ethtool_print_is_read_or_refused(changed: dict[str, str]) -> None:
    refused = refusal_of(
        lambda: read_state(LocalShell(changed), ["lo"], address="192.0.2.2", peer="192.0.2.1")
    )
    assert refused is None or (refused.next_step and len(refused.what) < 600)


LOOPBACK = {"left": "lo", "right": "lo"}


@cache
def _said(kind: str) -> str:
    command = {"facts": facts_command, "counters": reading_command}[kind](LOOPBACK)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout


@needs_ip
@pytest.mark.parametrize("kind", ["facts", "counters"])
@given(data=st.data())
def test_facts_and_counters_of_any_shape_are_read_or_refused(kind: str, data: st.DataObject) -> None:
    lines = _said(kind).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        words = lines[at].split(" ")
        if lines[at].startswith("@@evenhand") and data.draw(st.booleans()):
            continue
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
            st.text(max_size=12) | st.sampled_from(["-1", "1e999", "9" * 5000, "[]"])
        )
        lines[at] = " ".join(words)
    parse = {"facts": parse_facts, "counters": parse_reading}[kind]
    refused = refusal_of(lambda: parse("\n".join(lines), LOOPBACK, where="here"))
    assert refused is None or refused.next_step


@pytest.fixture(scope="module")
def dut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", made.environment["PATH"])
        yield made


@pytest.mark.thorough
@pytest.mark.root
@needs_dut
def test_a_program_that_prints_without_end_is_cut_off(
    dut: NamespaceDut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There and here: neither the DUT nor the tester keeps what never ends."""
    monkeypatch.setattr("evenhand.dut.readings_queues.MOST_OCTETS", 100_000)
    monkeypatch.setattr("evenhand.dut.ssh.MOST_ANSWERED", 2_000_000)
    assert MOST_OCTETS < MOST_ANSWERED
    with open_shell(DUT) as shell:
        answers = read_all(shell, {"endless": "yes", "other": "echo fine; exit 3", "many": "seq 1000"})
        assert answers["endless"].exit_code == 141
        assert len(answers["endless"].stdout) <= 100_000
        assert (answers["other"].exit_code, answers["other"].stdout) == (3, "fine")
        assert answers["many"].stdout.splitlines() == [str(n) for n in range(1, 1001)]
        with raises("rig.dut-answer-too-long", match="1 MiB .*yes"):
            shell.run("yes")
        with raises("rig.no-answer-in-time", match="1 s "):
            shell.run("while :; do echo; sleep 0.01; done", timeout_s=1)
        assert shell.run("echo still there").stdout == "still there\n"


@pytest.mark.root
@needs_dut
@pytest.mark.parametrize(
    ("program", "named"),
    [
        ('echo \'[{"ifname": 5}, {"ifname": [1]}]\'', "about itself "),
        ("echo '{broken'", "about its links "),
        ("exit 1", "about its links "),
    ],
)
def test_a_broken_ip_is_named_and_nothing_is_changed(
    dut: NamespaceDut, tmp_path: Path, program: str, named: str
) -> None:
    """The real way, with an `ip` on the DUT that somebody has put before the distribution's."""
    before = dut.state()
    broken = tmp_path / "ip"
    broken.write_text(f"#!/bin/sh\n{program}\n")
    broken.chmod(0o755)
    with open_shell(DUT) as shell:

        class Broken:
            def run(self, command: str, *, input_text: str = "", timeout_s: float = 30.0) -> Answer:
                return shell.run(
                    command, input_text=f"PATH={tmp_path}:$PATH\n{input_text}", timeout_s=timeout_s
                )

        with raises("rig.dut-answer-not-understood", match=named) as refused:
            read_state(Broken(), ["left", "right"], address="192.0.2.2", peer="192.0.2.1")
    assert refused.value.next_step
    assert dut.state() == before
