# SPDX-License-Identifier: Apache-2.0
"""Numbers of any magnitude, wherever a command line takes one: refused with the option, or taken, but never
"a bug in Evenhand", and never as another number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended
from tests.cli.test_help import VERBS

Run = Callable[..., Ended]
HUGE = (
    "1" + "0" * 400,
    "-" + "9" * 400,
    "9" * 5000,
    "1." + "9" * 5000,
    "1e-400",
    "1e9999999",
    *(f"1e400{unit}" for unit in ("", "s", "fps", "%")),
)
SOME = 2
ARGUMENTS = {"TESTBED": "testbed.toml", "PLAN": "gateway-v4", "RUN": "none.evenhand"}
"""What stands for a verb's own arguments; for others a name that is no file."""


def takes_value() -> Iterator[tuple[str, str]]:
    """Each verb with each of its options that has a value."""
    for verb, command in VERBS.items():
        for parameter in command.params:
            long = [name for name in parameter.opts if name.startswith("--")]
            if long and not parameter.is_flag and verb not in ("demo", "demo linux"):
                yield verb, long[0]


def words_of(verb: str) -> list[str]:
    """The verb with its arguments, so that only the option can be wrong; a server would serve for ever."""
    known = {} if verb == "otg" else ARGUMENTS
    arguments = [
        known.get(str(parameter.metavar or parameter.name).strip("[].").upper(), "none")
        for parameter in VERBS[verb].params
        if not any(name.startswith("-") for name in parameter.opts)
    ]
    return [*verb.split(), *arguments]


def some_of_each() -> Iterator[Any]:
    """Each verb with each of its options and the numbers it gets: all of them where the option comes first,
    since verbs that share an option read it alike, and a few, in turn, in each other verb."""
    turns: dict[str, Iterator[str]] = {}
    for verb, option in takes_value():
        count = SOME if option in turns else len(HUGE)
        numbers = tuple(islice(turns.setdefault(option, cycle(HUGE)), count))
        yield pytest.param(verb, option, numbers, id=f"{verb}-{option}")


@pytest.fixture
def no_engine(testbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a number is taken, as a name is, the engine that would measure does not start."""
    monkeypatch.setenv("EVENHAND_ENGINE", "/bin/false")


@pytest.mark.thorough
@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(("verb", "option", "numbers"), list(some_of_each()))
def test_a_huge_number_is_no_bug(evenhand: Run, verb: str, option: str, numbers: tuple[str, ...]) -> None:
    check(evenhand, verb, option, numbers)


@pytest.mark.slow
@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize(("verb", "option"), list(takes_value()), ids=str)
def test_no_huge_number_is_a_bug_with_any_verb(evenhand: Run, verb: str, option: str) -> None:
    check(evenhand, verb, option, HUGE)


def check(evenhand: Run, verb: str, option: str, numbers: tuple[str, ...]) -> None:
    for number in numbers:
        ended = evenhand(*words_of(verb), f"{option}={number}")
        assert ended.code in (0, 1, 2, 3, 4), ended.err
        assert "a bug in Evenhand" not in ended.err, number[:20]
