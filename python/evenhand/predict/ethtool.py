# SPDX-License-Identifier: Apache-2.0
"""What `ethtool -x` and `ethtool -n` print of a NIC, as it is, and as far as a prediction takes it over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenhand.base.errors import RequestError
from evenhand.predict.ethtool_text import EthtoolText, TableText, read_text

TOEPLITZ = "toeplitz"
SYMMETRIC_XOR = "symmetric-xor"
_SAVE = "Save it again, whole: ethtool -x INTERFACE > FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndirectionTable:
    """The entries as words, and what the output says of the hash."""

    words: list[str]
    """Empty if the whole table is not there."""
    name: str = ""
    """The interface, if it was shown."""
    key: bytes | None = None
    """None: it was not shown."""
    why_no_key: str = ""
    """What the output has in its place."""
    why_no_function: str = ""
    """What the output has in place of the hash functions; empty if they are listed, or not mentioned."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """`on` or `off`, by hash function and transformation."""
    rings: int | None = None
    """Receive queues that the NIC has, if it was shown; the table need not name all of them."""
    fields: Mapping[int, str] = field(default_factory=dict)
    """Fields that are hashed for UDP, by IP version, as `ethtool -N` takes them: `sd`, `sdfn`. Empty if they
    have no such letters. Only of the versions that the text mentions."""
    fields_words: Mapping[int, str] = field(default_factory=dict)
    """The same as the text has them."""
    ends_after_table: bool = False
    """The text has nothing after the table, as with the oldest drivers, or if it was cut."""

    @property
    def is_symmetric(self) -> bool:
        return self.switches.get(SYMMETRIC_XOR) == "on"


def is_ethtool(text: str) -> bool:
    """Whether this is output of ethtool, and not a plain list."""
    found = read_text(text)
    return bool(found.tables or found.fields_words or found.errors or found.broken_json)


def read_table(text: str) -> IndirectionTable:
    """The only table of the text. Refuses nothing: what is not stated, or not whole, is missing from what is
    returned."""
    found = read_text(text)
    table = found.tables[0] if len(found.tables) == 1 else TableText()
    return _of(TableText() if table.problem else table, found)


def read_ethtool(text: str, *, where: str) -> IndirectionTable:
    """RequestError if the text does not have exactly one whole table; or if the NIC chooses queues by a hash
    that is not predicted: another function, or another transformation."""
    found = read_text(text)
    table = _only_table(found, where)
    if table.problem:
        raise RequestError(
            f"the indirection table{_of_name(table)} is not whole: {table.problem}",
            code="predict.table-cut",
            where=where,
            next_step=_SAVE,
        )
    if (
        table.rings is not None
        and 0 < len(table.words) < table.rings
        and len(set(table.words)) == len(table.words)
    ):
        raise RequestError(
            f"the indirection table{_of_name(table)} has {len(table.words)} entries, all unlike, for"
            f" {table.rings} RX rings: the rest of it is missing",
            code="predict.table-cut",
            where=where,
            next_step=_SAVE,
        )
    _refuse_other_hash(table, where)
    for version, (one, other) in found.contrary_fields.items():
        raise RequestError(
            f"the text says twice which fields are hashed for UDP over IPv{version}: {one}; and {other}",
            code="predict.fields-twice",
            where=where,
            next_step="Keep what `ethtool -n` printed of the interface that the frames come to.",
        )
    return _of(table, found)


def _only_table(found: EthtoolText, where: str) -> TableText:
    if found.broken_json:
        raise RequestError(
            f"the output of `ethtool --json -x` cannot be read: {found.broken_json}",
            code="predict.table-cut",
            where=where,
            next_step="Save it again, whole: ethtool --json -x INTERFACE > FILE",
        )
    tables = found.tables
    if len(tables) > 1:
        named = ", ".join(
            f"{table.name or 'a NIC without a name'} ({len(table.words)} entries)" for table in tables
        )
        raise RequestError(
            f"{len(tables)} indirection tables: of {named}",
            code="predict.several-tables",
            where=where,
            next_step=f"Keep the one of the interface that the frames come to: ethtool -x"
            f" {tables[0].name.split(',')[0] or 'INTERFACE'} > FILE",
        )
    if tables and (tables[0].words or tables[0].problem):
        return tables[0]
    if found.errors:
        raise RequestError(
            f"no indirection table, but an error: {found.errors[0]}",
            code="predict.no-table",
            where=where,
            next_step=_next_after(found.errors[0]),
        )
    if tables:
        raise RequestError(
            f"the heading of an indirection table{_of_name(tables[0])}, but no entries",
            code="predict.no-table",
            where=where,
            next_step=_SAVE,
        )
    raise RequestError(
        f"no indirection table, only the fields that are hashed ({_words_of_fields(found)})",
        code="predict.no-table",
        where=where,
        next_step="Add the table to the same file: ethtool -x INTERFACE >> FILE",
    )


def _refuse_other_hash(table: TableText, where: str) -> None:
    on = [name for name, state in table.switches.items() if state == "on"]
    # A transformation is not a function: the functions that are on then are named.
    functions = [name for name in on if not name.startswith("symmetric-")]
    if table.switches.get(TOEPLITZ) == "off" or any(name != TOEPLITZ for name in functions):
        raise RequestError(
            f"this NIC hashes with {' and '.join(functions) or 'a function of its own'}, but"
            " predictions are made for Toeplitz",
            code="predict.hash-not-toeplitz",
            where=where,
            next_step="Switch to it (ethtool -X INTERFACE hfunc toeplitz), and save the output again.",
        )
    unknown = [name for name in on if name.startswith("symmetric-") and name != SYMMETRIC_XOR]
    if unknown:
        raise RequestError(
            f"this NIC transforms the input of its hash by {unknown[0]}, which cannot be predicted",
            code="predict.hash-input-transformed",
            where=where,
            next_step="Switch this off (ethtool -X INTERFACE xfrm none), and save its output again.",
        )


def _of(table: TableText, found: EthtoolText) -> IndirectionTable:
    no_function = ""
    if table.has_function and not table.switches:
        no_function = table.function_problem or "the text ends where it should be"
    return IndirectionTable(
        words=table.words,
        name=table.name,
        key=bytes.fromhex(table.key) if table.key else None,
        why_no_key=table.key_problem or "the output has none",
        why_no_function=no_function,
        switches=table.switches,
        rings=table.rings,
        fields=found.fields,
        fields_words=found.fields_words,
        ends_after_table=bool(table.words) and not table.has_key,
    )


def _of_name(table: TableText) -> str:
    return f" of {table.name}" if table.name else ""


def _words_of_fields(found: EthtoolText) -> str:
    return "; ".join(f"UDP over IPv{version}: {words}" for version, words in found.fields_words.items())


def _next_after(error: str) -> str:
    lower = error.lower()
    if "permitted" in lower or "permission" in lower or "password" in lower:
        return "Save the output again as root: sudo ethtool -x INTERFACE > FILE"
    if "not supported" in lower:
        return (
            "This driver does not report its table: give what you know of the device with --elements,"
            " --key and --hash."
        )
    if "no such device" in lower:
        return "Name an interface that the router has (ip link), and save the output again."
    return "Save the output of: ethtool -x INTERFACE > FILE"
