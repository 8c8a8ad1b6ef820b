# SPDX-License-Identifier: Apache-2.0
"""One table in all the forms in which ethtool prints it, and people save, quote and cut it."""

from __future__ import annotations

import json
from typing import Any

ENTRIES = [(3 * i + i // 7) % 6 for i in range(128)]
"""Entries of six queues, in no order that could be guessed."""
KEY = bytes((7 * i + 19) % 256 for i in range(52))
RINGS = 6
UDP4_TYPE2 = (
    "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"
    "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n\n"
)
UDP6_TYPE1 = "UDP over IPV6 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n\n"
FUNCTION = "RSS hash function:\n    toeplitz: on\n    xor: off\n    crc32: off\n"


def heading(name: str = "eth0", rings: int = RINGS, context: str = "") -> str:
    return f"RX flow hash indirection table for {name} with {rings} RX ring(s){context}:\n"


def rows(entries: list[int] = ENTRIES, *, first: int = 0) -> list[str]:
    return [
        f"{first + i:5}:  " + " ".join(f"{entry:5}" for entry in entries[i : i + 8]) + "\n"
        for i in range(0, len(entries), 8)
    ]


def key_part(key: bytes = KEY) -> str:
    return f"RSS hash key:\n{key.hex(':')}\n"


def whole(name: str = "eth0", entries: list[int] = ENTRIES, function: str = FUNCTION) -> str:
    return heading(name) + "".join(rows(entries)) + key_part() + function


def document(name: str = "eth0", more: dict[str, Any] | None = None) -> str:
    """As `ethtool --json -x` prints it."""
    found = {
        "ifname": name,
        "rss-indirection-table": ENTRIES,
        "rss-hash-key": list(KEY),
        "rss-hash-function": "toeplitz",
        "rss-input-transformation": {"symmetric-xor": False},
        **(more or {}),
    }
    return json.dumps([found], indent=4) + "\n"


def _folded(text: str, width: int) -> str:
    """As a mailer breaks long lines."""
    lines = []
    for line in text.splitlines():
        while len(line) > width:
            at = line.rfind(" ", 1, width) if " " in line.strip() else width
            lines.append(line[:at])
            line = line[at:]
        lines.append(line)
    return "\n".join(lines) + "\n"


def _prefixed(prefix: str, text: str) -> str:
    return "".join((prefix + line).rstrip() + "\n" for line in text.splitlines())


FORMS: dict[str, str] = {
    "as printed": whole(),
    "with tabs": whole().replace("    0:", "\t0:").replace("     ", "\t"),
    "quoted": _prefixed("> ", whole()),
    "quoted twice": _prefixed("> > ", whole()),
    "quoted without a space": _prefixed(">", whole()),
    "a comment": _prefixed("# ", whole()),
    "added by a patch": _prefixed("+", whole()),
    "indented": _prefixed("        ", whole()),
    "with line ends of Windows": whole().replace("\n", "\r\n"),
    "with a mark of UTF-8": "\ufeff" + whole(),
    "between fences": f"```\n{whole()}```\n",
    "after a prompt": "root@dut:~# ethtool -x eth0\n" + whole() + "root@dut:~# \n",
    "in colours": "\x1b[32m" + whole() + "\x1b[0m",
    "in one line": " ".join(whole().split()) + "\n",
    "folded": _folded(whole(), 38),
    "key in the line of its heading": whole().replace("key:\n", "key: ").replace("function:\n", "function: "),
    "key without colons": whole().replace(KEY.hex(":"), KEY.hex().upper()),
    "function before the key": heading() + "".join(rows()) + FUNCTION + key_part(),
    "the same twice": whole() + whole(),
    "with a transformation": whole() + "RSS input transformation:\n    symmetric-xor: off\n",
    "with a pager's line": heading() + "".join(rows()[:5]) + "--More--\n" + "".join(rows()[5:]) + key_part(),
    "with a pager's line before the key": heading() + "".join(rows()) + "--More--\n" + key_part() + FUNCTION,
    "without functions": heading() + "".join(rows()) + key_part(),
    "after other parts": "driver: ice\nversion: 6.1\n\n" + whole(),
    "JSON": document(),
    "JSON in one line": json.dumps(json.loads(document())),
    "JSON after a prompt": "$ ethtool --json -x eth0\n" + document() + "$ \n",
    "JSON quoted": _prefixed("> ", document()),
    "JSON with functions as switches": document(more={"rss-hash-function": {"toeplitz": True, "xor": False}}),
}

CUT: dict[str, tuple[str, str]] = {
    "rows left out": (
        heading() + "".join(rows()[:4]) + "".join(rows()[8:]) + key_part() + FUNCTION,
        "entries 32 to 63 are missing",
    ),
    "dots between rows": (
        heading() + "".join(rows()[:1]) + "   ...skip similar lines...\n" + "".join(rows()[-1:]) + key_part(),
        "entries 8 to 119 are missing, where the text has '...skip similar lines...'",
    ),
    "dots after rows": (
        heading() + "".join(rows()[:8]) + "...\n" + key_part() + FUNCTION,
        "after entry 63 the text has '...'",
    ),
    "a word after rows": (
        heading() + "".join(rows()[:8]) + "[...snip...]\n" + key_part() + FUNCTION,
        "after entry 63 the text has '[...snip...]'",
    ),
    "quoted and cut": (
        _prefixed("> ", heading() + "".join(rows()[:8]) + "[…]\n" + key_part() + FUNCTION),
        "after entry 63 the text has '[…]'",
    ),
    "the rest in words": (
        heading() + "".join(rows()[:8]) + "(likewise up to 127)\n" + key_part() + FUNCTION,
        "after entry 63 the text has '(likewise up to 127)'",
    ),
    "the rest in words, without a key": (
        heading() + "".join(rows()[:8]) + "   and so on\n",
        "after entry 63 the text has 'and so on'",
    ),
    "a number lost": (
        heading() + rows()[0].rstrip()[:-6] + "\n" + "".join(rows()[1:]) + key_part(),
        "entries 7 to 7 are missing",
    ),
    "a row twice": (
        heading() + "".join(rows()[:2]) + "".join(rows()[1:]) + key_part(),
        "the row 8: comes after entry 15",
    ),
    "a damaged row": (
        (heading() + "".join(rows()) + key_part()).replace(rows()[3], "   24:      x     1\n"),
        "the row '24: x 1' has more than numbers",
    ),
    "first rows only": (
        heading(rings=34) + "".join(rows(list(range(32)))) + key_part() + FUNCTION,
        "32 entries, all unlike, for 34 RX rings",
    ),
    "JSON cut": (document()[:300], "the text ends before it is complete"),
    "JSON with dots": (document().replace("        3,\n", "        ...\n", 1), "has '...'"),
}
"""Each with what is said of it."""
