# SPDX-License-Identifier: Apache-2.0
"""The configuration of a device as lines that can be compared: what a set-up has added to it and taken from
it, and how that is put back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Line = tuple[str, ...]
"""One line of a configuration with the lines that it is below, the outermost first."""

_SEPARATORS = re.compile(r"[\s='\";,\[\]{}]+")
_NOISE = ("!", "#", "Building configuration", "Current configuration", "end")
"""What a configuration is printed with, and is not of it."""


def read_flat(text: str) -> tuple[Line, ...]:
    """A line for each statement, with its whole path."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return tuple((line,) for line in lines if line and not line.startswith(_NOISE))


def read_indented(text: str) -> tuple[Line, ...]:
    """Lines as IOS prints them: what is indented is below the last line that is less so."""
    found: list[Line] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith(_NOISE[:-1]) or words == _NOISE[-1]:
            continue
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        found.append((*(text for _, text in above), words))
        above.append((depth, words))
    return tuple(found)


def shown(line: Line) -> str:
    """For people."""
    return ", ".join(line)


class Footprint:
    """What of a configuration a set-up may have changed. All else is somebody else's."""

    def __init__(self, sent: Iterable[str], interfaces: Iterable[str]) -> None:
        """
        Args:
            sent: Commands of the set-up.
            interfaces: The DUT's two interfaces.
        """
        self._sent, self._names, self._settings = set[str](), set[str](), set[str]()
        for name in interfaces:
            self._names |= {name.lower(), name.partition(".")[0].lower()}
        for command in sent:
            line = _plain(command)
            self._sent |= {line, line.removeprefix("no "), f"no {line}", line.removeprefix("set ")}
            # Addresses, networks and MACs, and not a mask.
            self._names |= {
                word
                for word in _SEPARATORS.split(line)
                if ("." in word or ":" in word) and not word.startswith("255.")
            }
            if line.startswith("/") and " set " in line:
                self._settings.add(line.partition(" set ")[0] + " set ")

    def has(self, line: Line) -> bool:
        last = _plain(line[-1])
        return (
            "evenhand" in last
            or last in self._sent
            or last.removeprefix("set ") in self._sent
            or last.startswith(tuple(self._settings))
            or any(word in self._names for part in line for word in _SEPARATORS.split(part.lower()))
        )


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("'", "").split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """What a set-up did to a configuration."""

    added: tuple[Line, ...]
    removed: tuple[Line, ...]

    @classmethod
    def between(
        cls, before: Sequence[Line], after: Sequence[Line], footprint: Footprint
    ) -> ConfigurationChange:
        was, now = set(before), set(after)
        return cls(
            added=tuple(line for line in after if line not in was and footprint.has(line)),
            removed=tuple(line for line in before if line not in now and footprint.has(line)),
        )

    def left(self, before: Sequence[Line], now: Sequence[Line]) -> ConfigurationChange:
        """What of it is still so: lines that are there, also as the empty rest of one, and lines that are
        missing."""
        was, there, added = set(before), set(now), set(self.added)
        beginnings = {
            " ".join(words[:length])
            for line in added
            if len(line) == 1
            for words in (line[0].split(),)
            for length in range(1, len(words))
        }
        return ConfigurationChange(
            added=tuple(
                line
                for line in now
                if line not in was and (line in added or (len(line) == 1 and line[0] in beginnings))
            ),
            removed=tuple(line for line in self.removed if line not in there),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


PutBack = Callable[[ConfigurationChange, Sequence[Line]], list[str]]
"""Commands that put this back in a configuration that is so now."""


def put_back_indented(change: ConfigurationChange, now: Sequence[Line]) -> list[str]:
    """`no` before each line that was added, below the lines that it is below; `no no` is nothing. A primary
    address goes after all secondary ones."""
    commands: list[str] = []
    added = set(change.added)
    last_first = list(reversed(change.added))
    for line in sorted(last_first, key=lambda line: not line[-1].endswith(" secondary")):
        # What is below a line that goes, goes with it.
        if not any(line[:depth] in added for depth in range(1, len(line))):
            commands += _below(line[:-1], _negated(line[-1]))
    for line in change.removed:
        commands += _below(line[:-1], line[-1])
    return commands


def _below(above: Line, command: str) -> list[str]:
    return [*above, command, *(["exit"] * len(above))]


def _negated(line: str) -> str:
    return line.removeprefix("no ") if line.startswith("no ") else f"no {line}"


def put_back_tree(verb: str, keyed: Iterable[str]) -> PutBack:
    """For `set` and `delete` with a path: of what was added, the nearest node to the root goes that nothing
    else is below.

    Args:
        verb: What is before the path: `set `, `set / `.
        keyed: Words of paths that another word belongs to, and that are no nodes without it.
    """
    keys = frozenset(keyed)

    def put_back(change: ConfigurationChange, now: Sequence[Line]) -> list[str]:
        added = set(change.added)
        stays = {
            words[:length]
            for line in (*now, *change.removed)
            if line not in added
            for words in (tuple(line[0].removeprefix(verb).split()),)
            for length in range(1, len(words) + 1)
        }
        gone = [_node(tuple(line[0].removeprefix(verb).split()), stays, keys) for line in change.added]
        delete = verb.replace("set", "delete")
        return [
            *(f"{delete}{' '.join(words)}" for words in dict.fromkeys(reversed(gone))),
            *(line[0] for line in change.removed),
        ]

    return put_back


def _node(words: tuple[str, ...], stays: set[tuple[str, ...]], keys: frozenset[str]) -> tuple[str, ...]:
    """Below one key at least: what is above them all is everybody's."""
    for length in range(1, len(words)):
        node = words[:length]
        if words[length - 1] not in keys and keys.intersection(node) and node not in stays:
            return node
    return words


_COMMENT = re.compile(r"^(?P<menu>/.*?) add .*\bcomment=\"?(?P<comment>evenhand-[^\s\"]+)")


def put_back_entries(change: ConfigurationChange, now: Sequence[Line]) -> list[str]:
    """For RouterOS: entries by their comments, and settings as they were written. One that has its default
    again is not written."""
    matches = [match for line in change.added if (match := _COMMENT.match(line[0]))]
    removals = [f'{match["menu"]} remove [find comment="{match["comment"]}"]' for match in matches]
    return [*dict.fromkeys(removals), *(line[0] for line in change.removed)]
