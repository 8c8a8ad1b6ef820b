# SPDX-License-Identifier: Apache-2.0
"""A Linux DUT asked for the routes that are too many to be read one by one: how many there are, by the mark
that they have, and all others without them."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.dut.shell import Answer
from evenhand.plan import IpVersion

IP_VERSIONS: tuple[IpVersion, ...] = (4, 6)
PROTOCOL = 173
"""The mark: a number of rtnetlink's that no routing daemon uses."""


def count_command(version: IpVersion) -> str:
    """Prints interface, table, next hop and number of all routes with the mark."""
    return (
        f"ip -{version} route show table all proto {PROTOCOL} | awk '"
        '{ via = dev = "-"; table = "main"; for (i = 2; i < NF; i++) { if ($i == "via") via = $(i + 1);'
        ' else if ($i == "dev") dev = $(i + 1); else if ($i == "table") table = $(i + 1) }'
        ' n[dev " " table " " via]++ } END { for (way in n) print way, n[way] }\''
    )


def read_counts(answers: Mapping[IpVersion, Answer]) -> dict[tuple[str, str, str], str]:
    """See `LinuxState.many_routes`."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for version, answer in answers.items():
        for line in answer.stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[3].isdecimal():
                dev, table, via, count = words
                found.setdefault((dev, str(version), table), []).append(f"{count} via {via}")
    return {key: ", ".join(sorted(texts)) for key, texts in found.items()}


def others_command(version: IpVersion) -> str:
    """As `ip -j route show table all` without routes that have the mark: of a million, the answer would be a
    hundred megabytes. What is cut out leaves the JSON ragged: see `mended`."""
    show = f"ip -j -{version} route show table all"
    return (
        f"if ip -{version} route show table all proto {PROTOCOL} 2> /dev/null | grep -q .; then {show}"
        f" | tr '{{' '\\n' | grep -v '\"protocol\":\"{PROTOCOL}\"' | tr '\\n' '{{'; else {show}; fi"
    )


def mended(text: str) -> str:
    """JSON again: without the rest of what was cut out at its end."""
    bare = text.rstrip("{, \n")
    return f"{bare}]" if bare and not bare.endswith("]") else bare or "[]"


def read_memory(answer: Answer) -> int | None:
    """Octets that the kernel could still give; None if it does not say."""
    words = answer.stdout.split()
    return int(words[1]) << 10 if len(words) == 3 and words[1].isdecimal() else None
