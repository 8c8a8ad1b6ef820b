# SPDX-License-Identifier: Apache-2.0
"""What `ethtool -x` prints of a NIC: read as it is, and as far as a prediction takes it over.

RX flow hash indirection table for eth0 with 2 RX ring(s):
    0:      0     1     0     1
RSS hash key:
6d:5a:...
RSS hash function:
    toeplitz: on
    xor: off
RSS input transformation:
    symmetric-xor: off
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evenhand.base.errors import RequestError

_RINGS = re.compile(r"with (\d{1,4}) RX ring")
_ROW = re.compile(r"^\s*\d+:\s+(.*)$", re.MULTILINE)
_KEY = re.compile(
    r"^\s*RSS hash key:\s*\n\s*((?:[0-9a-f]{2}:)+[0-9a-f]{2})\s*$", re.MULTILINE | re.IGNORECASE
)
_SWITCH = re.compile(r"^\s*([a-z][a-z0-9-]*):\s+(on|off)\s*$", re.MULTILINE)
_NO_FUNCTION = re.compile(
    r"^\s*RSS hash function:\s*\n(?!\s*[a-z][a-z0-9-]*:\s+(?:on|off)\s*$)\s*(\S.*)$", re.MULTILINE
)
_NO_KEY = re.compile(r"^\s*RSS hash key:\s*\n\s*(\S.*)$", re.MULTILINE)
TOEPLITZ = "toeplitz"
SYMMETRIC_XOR = "symmetric-xor"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndirectionTable:
    """The entries as words, and what the output says of the hash."""

    words: list[str]
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

    @property
    def is_symmetric(self) -> bool:
        return self.switches.get(SYMMETRIC_XOR) == "on"


def is_ethtool(text: str) -> bool:
    """Whether this is output of `ethtool -x`, and not a plain list."""
    return _ROW.search(text) is not None


def read_table(text: str) -> IndirectionTable:
    """Refuses nothing: what is not stated is missing from what is returned."""
    no_function = _NO_FUNCTION.search(text)
    key, instead, rings = _KEY.search(text), _NO_KEY.search(text), _RINGS.search(text)
    return IndirectionTable(
        words=" ".join(_ROW.findall(text)).replace(",", " ").split(),
        key=None if key is None else bytes.fromhex(key[1].replace(":", "")),
        why_no_key="the output has none" if instead is None else instead[1].strip(),
        why_no_function="" if no_function is None else no_function[1].strip(),
        switches=dict(_SWITCH.findall(text)),
        rings=None if rings is None else int(rings[1]),
    )


def read_ethtool(text: str, *, where: str) -> IndirectionTable:
    """RequestError if the NIC chooses queues by a hash that is not predicted: another function, or another
    transformation."""
    table = read_table(text)
    on = [name for name, state in table.switches.items() if state == "on"]
    if table.switches.get(TOEPLITZ) == "off":
        # A transformation is not a function: the functions that are on then are named.
        functions = [name for name in on if not name.startswith("symmetric-")]
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
    return table
