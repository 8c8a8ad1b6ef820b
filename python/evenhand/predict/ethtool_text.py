# SPDX-License-Identifier: Apache-2.0
"""Text that has what `ethtool -x` and `ethtool -n` print, as people save, quote and cut it: the parts that it
is made of.

RX flow hash indirection table for eth0 with 2 RX ring(s):
    0:      0     1     0     1
RSS hash key:
6d:5a:...
RSS hash function:
    toeplitz: on
    xor: off
RSS input transformation:
    symmetric-xor: off
UDP over IPV4 flows use these fields for computing Hash flow key:
IP SA
IP DA
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_QUOTE = re.compile(r"^[ \t]*(?:[>|][ \t]?)+", re.MULTILINE)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TABLE = re.compile(
    r"RX flow hash indirection table for\s+(\S+)\s+with\s+(\d{1,5})\s+RX ring\(s\)"
    r"(?:,\s*context\s+(\d+))?\s*:?[ \t]*"
)
_HEADING = re.compile(
    r"RX flow hash indirection table for|RSS hash key:|RSS hash function:|(?<!in )RSS input transformation:"
    r"|(?:[A-Z0-9]+ over )?[A-Z0-9]+ flows use these fields for computing Hash flow key:"
)
_ROW = re.compile(r"\s*\d+:\s+\d")
_NUMBERS = re.compile(r"\s*\d+:?(?:[\s,]+\d+:?)*[\s,]*")
_LABELLED = re.compile(r"\s*\d+:(?:\s|$)")
_SWITCH = re.compile(r"(?<![\w-])([a-z][a-z0-9-]*)\s*:\s*(on|off)(?![\w-])")
_NO_CHANGE = "Unknown bits in RSS input transformation: 0xfc"
"""Below transformations that are all on: what kernels show of a context that has none of its own."""
_GAP = re.compile(r"\.\.|…|snip|omitted|skip|trunc|\bso on\b|\betc\b|\brest\b", re.IGNORECASE)
_PAGER = re.compile(r"\W*(?:more|end)?\W*", re.IGNORECASE)
_ERROR = re.compile(
    r"^(?:cannot |netlink error|.*\bethtool\b.*:|.*command not found|.*not permitted|.*not supported"
    r"|.*no such device|.*permission denied|.*a password is required)",
    re.IGNORECASE,
)
_FIELDS = (("IP SA", "s"), ("IP DA", "d"), ("bytes 0 & 1", "f"), ("bytes 2 & 3", "n"))
"""What `ethtool -n` prints of each field, and the letters that `ethtool -N` takes for them."""
_OTHER_FIELDS = ("l2da", "vlan tag", "l3 proto", "gtp teid", "flow label")
"""In lower case: the newest of them is written in more than one way."""


@dataclass(slots=True)
class TableText:
    """One table with what the text says of its NIC's hash."""

    name: str = ""
    """The interface; empty if the text does not have its heading."""
    rings: int | None = None
    words: list[str] = field(default_factory=list)
    problem: str = ""
    """Why the entries are not the whole table."""
    has_key: bool = False
    """Whether there is a place for the key: all but the oldest drivers have one, with or without a key."""
    key: str = ""
    """Hexadecimal, without colons."""
    key_problem: str = ""
    """What the text has in place of the key, or why it is not whole."""
    has_function: bool = False
    function_problem: str = ""
    switches: dict[str, str] = field(default_factory=dict)

    def add_row(self, line: str, gap: str) -> None:
        """Takes labels as what proves that nothing is missing.

        Args:
            gap: What the text had before this line that is no row; empty if nothing.
        """
        for word in line.replace(",", " ").split():
            if not word.endswith(":"):
                self.words.append(word)
                continue
            label, count = int(word[:-1][:9]), len(self.words)
            if label != count and not self.problem:
                missing = f"entries {count} to {label - 1} are missing" if label > count else ""
                where = f", where the text has {gap[:40]!r}" if gap else ""
                self.problem = missing + where if missing else f"the row {word} comes after entry {count - 1}"


@dataclass(slots=True)
class EthtoolText:
    """All that was found. A table that the text has twice is there once."""

    tables: list[TableText] = field(default_factory=list)
    fields: dict[int, str] = field(default_factory=dict)
    """`sd`, `sdfn` ... of UDP by IP version, for `ethtool -n`; empty if it has none of these fields, or
    others too."""
    fields_words: dict[int, str] = field(default_factory=dict)
    """The same in the words of the text."""
    contrary_fields: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By IP version, if the text says two unlike things of it, as of two NICs: the words of both."""
    errors: list[str] = field(default_factory=list)
    """Lines in which a program reports an error."""
    broken_json: str = ""


def read_text(text: str) -> EthtoolText:
    """Refuses nothing: what is not there is missing from what is returned."""
    found = EthtoolText()
    plain = _clean(text)
    documents, rest, found.broken_json = split_documents(plain)
    reader = _Reader(found)
    for line in _lines(rest):
        reader.take(line)
    reader.end()
    tables = [*found.tables, *map(_table_of, documents)]
    found.tables = [table for i, table in enumerate(tables) if table not in tables[:i]]
    return found


def fields_of(lines: list[str]) -> str:
    """`sd`, `sdfn` ... of the lines that `ethtool -n` prints; empty if it says none, or one that has no
    letter here."""
    if any(other in line.lower() for line in lines for other in _OTHER_FIELDS):
        return ""
    return "".join(letter for words, letter in _FIELDS if any(words in line for line in lines))


class _Reader:
    """Where in the text a line stands."""

    def __init__(self, found: EthtoolText) -> None:
        self._found = found
        self._table = TableText()
        self._part = ""
        self._version = 0
        self._gap = ""
        self._key = ""
        self._key_words = ""
        self._fields: list[str] = []

    def take(self, line: str) -> None:
        heading = _HEADING.match(line)
        if heading is not None:
            if self._part == "table" and line.startswith("RSS"):
                self._end_rows()
            self.end()
            self._begin(heading[0], line)
            return
        if self._part not in ("key", "fields") and _ROW.match(line):
            if self._part != "table" or (_LABELLED.match(line) and int(line.split(":")[0][:9]) == 0):
                self._begin_table(TableText() if self._table.words or self._table.has_key else self._table)
            self._part = "table"
        if not line.strip():
            if self._part == "fields":
                self.end()
        elif self._part == "table":
            self._take_row(line)
        elif self._part == "key":
            self._take_key(line)
        elif self._part == "function":
            self._take_switches(line)
        elif self._part == "fields":
            self._fields.append(line.strip())
        if _ERROR.match(line.strip()):
            self._found.errors.append(" ".join(line.split())[:200])

    def end(self) -> None:
        """What stood under the last heading is complete."""
        if self._part == "table":
            if _GAP.search(self._gap) and not self._table.problem:
                count = len(self._table.words)
                self._table.problem = f"after entry {count - 1} the text has {self._gap[:40]!r}"
        elif self._part == "key":
            self._end_key()
        elif self._part == "fields" and self._version:
            self._end_fields(self._version, fields_of(self._fields), ", ".join(self._fields) or "no field")
        self._part, self._version, self._gap, self._fields = "", 0, "", []

    def _end_fields(self, version: int, letters: str, words: str) -> None:
        found = self._found
        if found.fields.get(version, letters) != letters:
            found.contrary_fields[version] = (found.fields_words[version], words)
        found.fields[version], found.fields_words[version] = letters, words

    def _end_rows(self) -> None:
        """What stands between the rows and the next part of the same table is in place of rows."""
        count = len(self._table.words)
        if not count and _ERROR.match(self._gap):
            return  # the driver reports no table, which is among the errors
        if self._gap and not _PAGER.fullmatch(self._gap) and not self._table.problem:
            after = f"after entry {count - 1}" if count else "in place of entries"
            self._table.problem = f"{after} the text has {self._gap[:40]!r}"

    def _begin(self, heading: str, line: str) -> None:
        rest = line[len(heading) :]
        if heading.startswith("RX flow"):
            name = _TABLE.match(line)
            table = TableText()
            if name is not None:
                context = f", context {name[3]}" if name[3] else ""
                table.name, table.rings, rest = name[1] + context, int(name[2]), line[name.end() :]
            self._begin_table(table)
            self._part = "table"
        elif heading.endswith("key:") and "Hash flow" not in heading:
            self._part, self._table.has_key, self._key, self._key_words = "key", True, "", ""
        elif heading.startswith("RSS"):
            self._part = "function"
            self._table.has_function |= "function" in heading
        else:
            self._part = "fields"
            self._version = {"UDP over IPV4": 4, "UDP over IPV6": 6}.get(heading.split(" flows")[0], 0)
        if rest.strip():
            self.take(rest)

    def _begin_table(self, table: TableText) -> None:
        self._table = table
        if all(table is not each for each in self._found.tables):
            self._found.tables.append(table)

    def _take_row(self, line: str) -> None:
        if _NUMBERS.fullmatch(line):
            self._table.add_row(line, self._gap)
            self._gap = ""
        elif _LABELLED.match(line):
            self._table.problem = (
                self._table.problem or f"the row {' '.join(line.split())[:60]!r} has more than numbers"
            )
        else:
            self._gap = self._gap or " ".join(line.split())

    def _take_key(self, line: str) -> None:
        octets = "".join(line.split())
        if re.fullmatch(r"[0-9a-fA-F:]+", octets) and not self._key_words:
            self._key += octets
        else:
            self._key_words = self._key_words or " ".join(line.split())

    def _end_key(self) -> None:
        table, key = self._table, self._key
        if not key:
            table.key_problem = self._key_words or "the text ends where it should be"
        elif _GAP.search(self._key_words):
            table.key_problem = f"the text has only a part of it: {key[-8:]}, then {self._key_words[:40]!r}"
        elif re.fullmatch(r"(?:[0-9a-fA-F]{2}:)+[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{2})+", key):
            table.key = key.replace(":", "").lower()
        else:
            table.key_problem = f"the text has only a part of it, which ends in {key[-8:]!r}"

    def _take_switches(self, line: str) -> None:
        switches = _SWITCH.findall(line)
        self._table.switches.update(switches)
        if line.strip() == _NO_CHANGE:
            self._table.switches.update({name: "off" for name in self._table.switches if "symmetric" in name})
            return
        if not switches and not self._table.switches and not self._table.function_problem:
            self._table.function_problem = " ".join(line.split())[:80]


def _clean(text: str) -> str:
    """Without what mail, terminals and other systems put around lines."""
    text = _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).lstrip("\ufeff")
    text = _QUOTE.sub("", text)
    # Whatever stands before the first heading of a table stands before all lines: "# ", "+", "// ".
    heading = re.search(r"^(\S{1,3}[ \t]*|[ \t]+)(?=RX flow hash indirection table for)", text, re.MULTILINE)
    if heading is not None:
        text = re.sub(
            rf"^(?:{re.escape(heading[1])}|{re.escape(heading[1].rstrip())}$)", "", text, flags=re.M
        )
    return text


def _lines(text: str) -> Iterator[str]:
    """One for each heading, even if a mailer has broken it, or the text has all in one line."""
    text = _TABLE.sub(lambda found: " ".join(found[0].split()) + "\n", text)
    text = _HEADING.sub(lambda found: ("\n" if not _starts_line(found) else "") + found[0], text)
    for line in text.split("\n"):
        yield line.lstrip() if _HEADING.match(line.lstrip()) else line


def _starts_line(found: re.Match[str]) -> bool:
    before = found.string[: found.start()].rpartition("\n")[2]
    return not before.strip()


def _table_of(document: dict[str, object]) -> TableText:
    """A document of `ethtool --json -x`."""
    entries, key = document.get("rss-indirection-table"), document.get("rss-hash-key")
    context = document.get("rss-context")
    table = TableText(
        name=str(document.get("ifname", ""))[:40] + (f", context {context}" if context else ""),
        has_key=True,
        has_function=True,
    )
    if isinstance(entries, list) and all(type(entry) is int and entry >= 0 for entry in entries):
        table.words = [str(entry) for entry in entries]
    elif entries is not None:
        table.problem = "rss-indirection-table is not a list of numbers"
    if isinstance(key, list) and key and all(type(octet) is int and 0 <= octet <= 255 for octet in key):
        table.key = bytes(key).hex()
    else:
        table.key_problem = (
            "the output has no rss-hash-key" if key is None else "rss-hash-key is not a list of octets"
        )
    function = document.get("rss-hash-function")
    if isinstance(function, str):
        table.switches |= {"toeplitz": "off"} | {function: "on"}
    for part in (function, document.get("rss-input-transformation")):
        if isinstance(part, dict):
            table.switches |= {
                str(name): "on" if value in (True, "on") else "off" for name, value in part.items()
            }
    if not table.switches:
        table.function_problem = "the output has no rss-hash-function"
    return table


_BEGIN = re.compile(r"^[ \t]*[\[{]\s*[{\"\]}]?", re.MULTILINE)
_SIGN = '"rss-'
"""Every document about a hash has such a key."""


def split_documents(text: str) -> tuple[list[dict[str, Any]], str, str]:
    """The documents of NICs, the text without them, and what is wrong with a document that cannot be read;
    empty if nothing is."""
    documents: list[dict[str, Any]] = []
    rest: list[str] = []
    if _SIGN not in text:
        return documents, text, ""
    decoder, place = json.JSONDecoder(), 0
    while (begin := _BEGIN.search(text, place)) is not None:
        start = begin.start() + len(begin[0]) - len(begin[0].lstrip())
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            return documents, "", _why(error)
        rest.append(text[place:start])
        place = end
        documents += [
            each
            for each in (value if isinstance(value, list) else [value])
            if isinstance(each, dict) and any(key.startswith("rss-") for key in each)
        ]
    rest.append(text[place:])
    return documents, "\n".join(rest), "" if documents else "it does not begin with [ or {"


def _why(error: ValueError | RecursionError) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:80]
    shown = error.doc[error.pos :].split("\n", 1)[0].strip()
    return f"line {error.lineno} has {shown[:40]!r}" if shown else "the text ends before it is complete"
