# SPDX-License-Identifier: Apache-2.0
"""Specification: options of a device that shares its load by a hash: for `evenhand predict`, and for the
reference router."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from evenhand.base.errors import RequestError
from evenhand.base.option import Option
from evenhand.base.units import is_whole, parse_rate, short_repr
from evenhand.predict import (
    COMMON_TABLE_SIZE,
    VERIFICATION_KEY,
    DeviceModel,
    round_robin_table,
    symmetric_key,
)
from evenhand.predict.ethtool import is_ethtool, read_ethtool
from evenhand.predict.model import HashType

OPENBSD = "openbsd"
COMMON = "common"
MOST_OCTETS = 4 << 20
"""The largest file with a table: 65,536 entries have a tenth of that."""


_HASHES: Mapping[str, HashType] = {"sd": "type1", "sdfn": "type2"}
"""By the letters of the hashed fields."""


def elements_option(default: str) -> Option:
    """`--elements`; what it is if it is left out depends on the verb."""
    return Option(
        metavar="N",
        help=(f"Number of processing elements of the device: cores, queues, pipelines. Default: {default}."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOptions:
    """How an element is chosen, and what each forwards."""

    rate: Annotated[
        str | None,
        Option(declared="--rate", metavar="RATE", help="Rate that one element forwards, such as 50kfps."),
    ] = None
    hash_type: Annotated[
        HashType | None,
        Option(
            declared="--hash",
            help="type1: addresses; type2: addresses and ports. Default: the fields in --table, otherwise"
            " type1.",
        ),
    ] = None
    symmetric: Annotated[
        bool, Option(declared="--symmetric", help="Hash source XOR destination (symmetric XOR).")
    ] = False
    key: Annotated[
        str | None,
        Option(
            declared="--key",
            metavar="HEX|common|openbsd[:HHHH]",
            help="The hash key, with or without colons; common; or OpenBSD's 16 bits, which are"
            " repeated (6d5a in its sources; newer kernels draw them). Default: the key in"
            " --table, otherwise common.",
        ),
    ] = None
    table_size: Annotated[
        int | None,
        Option(
            declared="--table-size",
            metavar="N",
            help="Number of entries of the indirection table, filled round robin. Default: 128 or more.",
        ),
    ] = None
    table: Annotated[
        str | tuple[int, ...] | None,
        Option(
            declared="--table",
            metavar="FILE|LIST",
            help="The indirection table: 0,1,2,3 or a file. The output of `ethtool -x` also contains"
            " the key and symmetric XOR, that of `ethtool -n` in the same file the hashed fields.",
        ),
    ] = None

    def read(
        self, elements: int | None, *, default: int, ip_versions: frozenset[int] = frozenset()
    ) -> DeviceModel:
        """The device. RequestError names the option.

        Args:
            default: How many elements there are, if neither `elements` nor a table states it.
            ip_versions: Those of the frames that it will hash.
        """
        return self.read_with_notes(elements, default=default, ip_versions=ip_versions)[0]

    def read_with_notes(
        self, elements: int | None, *, default: int, ip_versions: frozenset[int] = frozenset()
    ) -> tuple[DeviceModel, list[str]]:
        """Like `read`, with sentences on what of the table's file a reader might miss."""
        if self.table is not None and self.table_size is not None:
            raise RequestError(
                "both a table and the size of a table are given",
                code="spec.options-exclude-each-other",
                where="--table, --table-size",
                next_step="Give only one of them.",
            )
        given = self._given_table()
        if given.why_no_key and self.key is None:
            raise RequestError(
                f"the hash key of this NIC is not known: {given.why_no_key}",
                code="spec.hash-key-unknown",
                where=f"--table {self._table_text}",
                next_step="Give the key with --key; --key common is the key of many NICs.",
            )
        if given.why_no_function and self.key is None:
            raise RequestError(
                f"the hash function of this NIC is not known: {given.why_no_function}",
                code="spec.hash-function-unknown",
                where=f"--table {self._table_text}",
                next_step="If it is Toeplitz, confirm this by giving its key with --key.",
            )
        if given.entries:
            named = max(given.entries) + 1
            if elements not in (None, named, given.rings):
                raise self._contradiction(elements or 0, named, given.rings)
            elements = elements or named
        elif elements is None:
            elements = default
        entries = given.entries
        if self.table_size is not None:
            if self.table_size < 1 or self.table_size & (self.table_size - 1):
                raise RequestError(
                    f"{self.table_size} entries: the low bits of the hash choose an entry, so"
                    " the number of entries must be a power of two",
                    code="spec.table-size",
                    where="--table-size",
                    next_step=f"Use {1 << max(self.table_size, 1).bit_length()}, or another power of two.",
                )
            entries = round_robin_table(max(elements, 1), self.table_size)
        hash_name, notes = self._hash_of(given, ip_versions)
        try:
            model = DeviceModel(
                elements=elements,
                hash_type=hash_name,
                symmetric=self.symmetric or given.is_symmetric,
                key=read_key(self.key) if self.key is not None else given.key or VERIFICATION_KEY,
                table=entries,
                rate_fps=None if self.rate is None else parse_rate(self.rate, where="--rate"),
            )
        except RequestError as error:
            raise self._in_words_of_options(error) from error
        return model, [*given.notes(elements), *notes]

    def _hash_of(self, given: GivenTable, ip_versions: frozenset[int]) -> tuple[HashType, list[str]]:
        """The fields that the file states for these frames, unless the option says it; and a sentence if the
        file states others only."""
        where = f"--table {self._table_text}"
        stated: HashType | None = None
        for version in sorted(ip_versions & given.fields.keys()):
            fields, words = given.fields[version], given.fields_words[version]
            found = _HASHES.get(fields)
            if found is None:
                raise RequestError(
                    f"this NIC hashes {words} for UDP over IPv{version}: predictions are made for both"
                    " addresses (type1), or both addresses and both ports (type2)",
                    code="spec.hash-of-other-fields",
                    where=where,
                    next_step=f"Set it (ethtool -N INTERFACE rx-flow-hash udp{version} sd), and save the"
                    " output again.",
                )
            if found != (self.hash_type or stated or found):
                contrary = f"--hash {self.hash_type} is given" if self.hash_type else f"{stated} for IPv4"
                raise RequestError(
                    f"the file says {found} for UDP over IPv{version} ({words}), but {contrary}",
                    code="spec.table-contradicts-hash",
                    where=where,
                    next_step="Omit --hash." if self.hash_type else "Predict one IP version at a time.",
                )
            stated = found
        missing = sorted(ip_versions - given.fields.keys())
        if self.hash_type is None and given.fields and missing:
            return stated or "type1", [
                f"The file does not say which fields are hashed for UDP over IPv{missing[0]}; type1 is taken."
            ]
        return self.hash_type or stated or "type1", []

    @property
    def _table_text(self) -> str:
        """The table as it would be written."""
        return self.table if isinstance(self.table, str) else ",".join(map(str, self.table or ()))

    def _given_table(self) -> GivenTable:
        if self.table is None:
            return GivenTable()
        return read_table(self.table) if isinstance(self.table, str) else GivenTable(entries=self.table)

    def _contradiction(self, elements: int, named: int, rings: int | None) -> RequestError:
        """What is predicted would be of neither device."""
        more = f", and this NIC has {rings} queues" if rings not in (None, named) else ""
        counts = f"{named} or {rings}" if more else str(named)
        return RequestError(
            f"{elements} elements are given, but the table names elements up to {named - 1}{more}",
            code="spec.table-contradicts-elements",
            where=f"--elements {elements}, --table {self._table_text}",
            next_step=f"Omit --elements, or give {counts}; or give the table of a device with {elements}.",
        )

    def _in_words_of_options(self, error: RequestError) -> RequestError:
        """A field of the model is the option that fills it."""
        table = "--table-size" if self.table is None else f"--table {self._table_text}"
        options = {
            "device.elements": ("--elements", "Write a number from 1 to 4096."),
            "device.key": ("--key" if self.key is not None else table, error.next_step),
            "device.table": (
                table,
                error.next_step or "Set --elements to the number of elements in the table, or omit it.",
            ),
        }
        where, next_step = options.get(error.where, (error.where, error.next_step))
        return RequestError(error.what, code=error.code, where=where, next_step=next_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTable:
    """What `--table` brings."""

    entries: tuple[int, ...] = ()
    key: bytes | None = None
    why_no_key: str = ""
    """Why there is no key; not empty if the key should have been there, and is not."""
    why_no_function: str = ""
    """The same of the hash function."""
    is_symmetric: bool = False
    rings: int | None = None
    """Receive queues of the NIC, if they are known."""
    fields: Mapping[int, str] = field(default_factory=dict)
    """Fields that are hashed for UDP, by IP version, as `ethtool -N` takes them."""
    fields_words: Mapping[int, str] = field(default_factory=dict)
    ends_after_table: bool = False
    """Nothing follows it in its file, so rows may be missing."""
    is_of_nic: bool = False

    def notes(self, elements: int) -> list[str]:
        used, size = len(set(self.entries)), len(self.entries)
        notes = []
        if self.rings is not None and used != self.rings and elements != self.rings:
            highest = max(self.entries, default=0)
            notes.append(
                f"The NIC has {_rings(self.rings)}; its table uses {used} of them."
                if highest < self.rings
                else f"The NIC has {_rings(self.rings)}, but its table names number {highest}: it may be the"
                " table of another NIC."
            )
        if self.ends_after_table:
            notes.append(
                f"The output ends after {size} entries, before the key. If it was cut there, the table is"
                " longer, and the prediction wrong."
            )
        elif self.is_of_nic and used > 1 and size < COMMON_TABLE_SIZE:
            notes.append(
                f"The table has {size} entries; many NICs have 128 or more. If rows were left out, save the"
                " output again, whole."
            )
        return notes


def read_key(text: str) -> bytes:
    """`6d5a56da...`, or `6d:5a:56:da:...` as ethtool writes it; `common`; `openbsd`, or `openbsd:6d5a`."""
    name, colon, seed = text.partition(":")
    if text == COMMON:
        return VERIFICATION_KEY
    if name == OPENBSD:
        if not colon:
            return symmetric_key()
        if re.fullmatch(r"[0-9a-fA-F]{4}", seed):
            return symmetric_key(int(seed, 16))
        raise RequestError(
            f"{seed!r} is not 16 bits",
            code="spec.not-16-bits",
            where="--key openbsd:",
            next_step="Write four hexadecimal digits: openbsd:6d5a.",
        )
    try:
        return bytes.fromhex(text.replace(":", ""))
    except ValueError as error:
        raise RequestError(
            f"{text!r} is not a hexadecimal key",
            code="spec.not-a-hash-key",
            where="--key",
            next_step="Write 40 octets such as 6d:5a:56:da:..., or common, or openbsd.",
        ) from error


def read_table(text: str) -> GivenTable:
    """A list with commas, a file with numbers, or what `ethtool -x` printed. RequestError for anything
    else."""
    where, found = "--table", None
    if not re.fullmatch(r"[\d\s,]+", text):
        where = f"--table {text}"
        try:
            text = _text_of(Path(text))
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise RequestError(
                f"neither a list nor a readable file: {reason}",
                code="spec.not-a-hash-table",
                where=where,
                next_step="Write 0,1,2,3, or name a file.",
            ) from error
        found = read_ethtool(text, where=where) if is_ethtool(text) else None
    words = text.replace(",", " ").split() if found is None else found.words
    wrong = next((word for word in words if not is_whole(word)), None)
    if wrong is not None or not words:
        raise RequestError(
            "no numbers" if wrong is None else f"{short_repr(wrong)} is not the number of an element",
            code="spec.not-a-hash-table",
            where=where,
            next_step="Write element numbers, one for each entry: 0,1,2,3; or save the output of: ethtool -x"
            " INTERFACE",
        )
    entries = tuple(int(word) for word in words)
    if found is None:
        return GivenTable(entries=entries)
    return GivenTable(
        entries=entries,
        key=found.key,
        why_no_key="" if found.key is not None else found.why_no_key,
        why_no_function=found.why_no_function,
        is_symmetric=found.is_symmetric,
        rings=found.rings,
        fields=found.fields,
        fields_words=found.fields_words,
        ends_after_table=found.ends_after_table,
        is_of_nic=True,
    )


def _rings(count: int) -> str:
    return "1 RX ring" if count == 1 else f"{count} RX rings"


def _text_of(path: Path) -> str:
    """UTF-8, or as Windows saves what a command prints. OSError, or UnicodeError."""
    with path.open("rb") as file:
        octets = file.read(MOST_OCTETS + 1)
    if len(octets) > MOST_OCTETS:
        raise OSError(errno.EFBIG, f"it has more than {MOST_OCTETS >> 20} MiB")
    is_16_bits = octets[:2] in (b"\xff\xfe", b"\xfe\xff")
    return octets.decode("utf-16" if is_16_bits else "utf-8-sig")
