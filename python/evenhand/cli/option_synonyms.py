# SPDX-License-Identifier: Apache-2.0
"""Options by the names that they have elsewhere, and what they are called here: the one table of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

_ANY: Final = ""
"""Matches a verb whatever options it has."""


def _called(*options: str) -> tuple[tuple[str, str], ...]:
    return tuple((option.partition(" ")[0], f"Did you mean {option}?") for option in options)


def _exported(form: str) -> tuple[tuple[str, str], ...]:
    return ((_ANY, (f"To write a run to such a file: evenhand export FILE --format {form} --output FILE")),)


_OUTPUT = (
    *_called("--run", "--html", "--output", "--picture"),
    (_ANY, "Results go to stdout: add `> FILE` at the end of the command."),
)
_SIZE, _REPEATED, _DIRECTION = (
    _called("--frame-size"),
    _called("--repetitions", "--count", "--rounds"),
    _called("--direction"),
)
_MAXIMUM = (
    ("--after", "Name a run with the throughput (--after RUN): this verb has no highest load of its own."),
    *_called("--rate", "--throughput"),
)
_NO_RUN = (
    (
        _ANY,
        ("Learning is not a measurement and is not stored. With --json its document is written to stdout."),
    ),
)
_IPV6 = (
    ("--plan", "Name an IPv6 plan: --plan gateway-v6."),
    ("PLAN", "Name an IPv6 plan, such as gateway-v6."),
)
_IPV4 = (
    ("--plan", "Name an IPv4 plan: --plan gateway-v4."),
    ("PLAN", "Name an IPv4 plan, such as gateway-v4."),
)
OTHER_NAMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "export --csv": _called("--format csv"),
    "export --parquet": _called("--format parquet"),
    "export --uti": _called("--format uti"),
    "plan frames --csv": _called("--format csv"),
    "plan frames --pcap": _called("--format pcap"),
    "import --testbed": _called("--output"),
    "report --page": _called("--output"),
    "report --report": _called("--output"),
    "plan prove --count": _called("--frames"),
    "learn --waits": (
        ("--wait", "There are no trials here, so there is only one wait: --wait TIME, after each round."),
    ),
    "learn --run": _NO_RUN,
    "learn --no-run": _NO_RUN,
    "--testbed": _called("--dut"),
    "--run": (("FILE", "Write FILE without an option, after the name of the command."),),
    "--csv": _exported("csv"),
    "--parquet": _exported("parquet"),
    "--uti": _exported("uti"),
    "--format": (*_called("--json"), *_exported("csv")),
    "--output": _OUTPUT,
    "--out": _OUTPUT,
    "-o": _OUTPUT,
    "--save": _OUTPUT,
    "--report": _called("--html"),
    "--page": _called("--html"),
    "--rate": _called("--throughput", "--maximum-rate"),
    "--load": _called("--rate", "--throughput", "--maximum-rate"),
    "--max-rate": _called("--maximum-rate", "--rate", "--throughput"),
    "--maximum-rate": _MAXIMUM,
    "--size": _SIZE,
    "--packet-size": _SIZE,
    "--mtu": _called("--largest-frame"),
    "--time": _called("--duration"),
    "--length": _called("--duration"),
    "--loss": _called("--loss-ratio"),
    "--resolution": _called("--precision"),
    "--repeat": _REPEATED,
    "--iterations": _REPEATED,
    "--runs": _REPEATED,
    "--one-way": _DIRECTION,
    "--bidirectional": _DIRECTION,
    "--unidirectional": _DIRECTION,
    "--queues": _called("--elements", "--channels"),
    "--cores": _called("--elements"),
    "--rss": _called("--hash"),
    "--ports": _called("--source-ports"),
    "--ipv6": _IPV6,
    "-6": _IPV6,
    "--ipv4": _IPV4,
    "-4": _IPV4,
    "--version": ((_ANY, "Run `evenhand --version`."),),
}
"""By name, or by verb and name: what is said after an option or an argument that the verb must have.
The first that fits is."""


def called_here(verb: str, name: str, known: Collection[str], arguments: Collection[str]) -> str | None:
    """What to do where a verb has no option of this name; None if nothing is known of it.

    Args:
        verb: Such as `plan frames`.
        known: The verb's options.
        arguments: Its arguments, as they are written in its usage.
    """
    bare = name.lstrip("-").replace("-", "_").upper()
    if bare in arguments:
        return f"Write {bare} without an option, after the name of the command."
    there = (*OTHER_NAMES.get(f"{verb} {name}", ()), *OTHER_NAMES.get(name, ()))
    return next((text for needed, text in there if needed in (_ANY, *known, *arguments)), None)
