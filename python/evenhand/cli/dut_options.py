# SPDX-License-Identifier: Apache-2.0
"""Options of a DUT that is set up over SSH or by a script, beside those of a NAT."""

from __future__ import annotations

from typing import Annotated

from evenhand.base.errors import RequestError
from evenhand.base.option import Grammar, Option
from evenhand.spec.point import HashType


def parse_hash_type(text: str, *, where: str) -> HashType:
    """RequestError if it is none."""
    match text:
        case "type1" | "type2":
            return text
    raise RequestError(
        f"{text!r} is not a hash type",
        code="cli.not-a-hash-type",
        where=where,
        next_step="Use type1 (addresses) or type2 (addresses and UDP ports).",
    )


NIC_HASH = Grammar("type1|type2", parse_hash_type)
NicHashOption = Annotated[
    str | None,
    Option(
        declared="--hash",
        grammar=NIC_HASH,
        help="Hash of the DUT's NICs: addresses, or addresses and UDP ports (Linux). Default: unchanged.",
    ),
]
StaticNeighborsOption = Annotated[
    str | None,
    Option(
        metavar="MAC,MAC",
        help="MACs of the tester's left and right port, for a DUT that must not resolve its neighbours. With"
        " several engines (dut apply): one pair after the other.",
    ),
]


def read_hash_type(written: str | None) -> HashType | None:
    """`--hash`; None if it is not given."""
    return None if written is None else parse_hash_type(written, where="--hash")
