# SPDX-License-Identifier: Apache-2.0
"""Linux as a DUT: what the printed commands keep of how it was, so that set-ups can be undone in any order.

In a folder for each network namespace, since routers in several namespaces of a host share /run. Each value
is kept as it was before the first set-up, with the set-ups that use it; the last of them to be undone
restores it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

KEPT = "$evenhand"
"""The folder of what was there before, as the shell knows it after `BEGIN`."""
KEPT_HERE = "export evenhand=/run/evenhand-dut-$(readlink /proc/self/ns/net | tr -dc 0-9)"
BEGIN = (
    KEPT_HERE,
    "mkdir -p $evenhand",
    'used() { grep -lsxF -- "$2" $evenhand/*.uses-$1 | grep -qvFx "$3.uses-$1"; }',
)
END = ("rmdir $evenhand 2> /dev/null || true",)


def pattern_of(name: str) -> str:
    """An interface's name for grep."""
    return name.replace(".", "[.]")


def others_use(what: str, used: str, own: str) -> str:
    """A test of the shell: whether another set-up uses this too."""
    return f"used {what} '{used}' {own}"


def note_uses(what: str, used: Iterable[str], own: str) -> str:
    """Write down what this set-up uses, for the others' `others_use`."""
    return f"printf '%s\\n' {' '.join(map(shlex.quote, used))} > {own}.uses-{what}"


def forget_uses(what: str, own: str) -> str:
    return f"rm -f {own}.uses-{what}"


def keep_sysctls(names: Iterable[str], kept: str, part: str) -> tuple[str, ...]:
    """Keep what they were before the first set-up, and that this one uses them; and show it."""
    names = list(names)
    return (
        *(f"grep -qs '^{name} = ' {KEPT}/sysctls || sysctl {name} >> {KEPT}/sysctls" for name in names),
        note_uses("sysctls", names, f"{kept}.{part}"),
        f"cat {KEPT}/sysctls",
    )


def restore_sysctls(names: Iterable[str], kept: str, part: str) -> tuple[str, ...]:
    """Restore those that no other set-up uses."""
    own = f"{kept}.{part}"
    return (
        *(
            f"{others_use('sysctls', name, own)} || grep '^{name} = ' {KEPT}/sysctls | sysctl -p /dev/stdin"
            for name in names
        ),
        forget_uses("sysctls", own),
        f"ls {KEPT}/*.uses-sysctls > /dev/null 2>&1 || rm -f {KEPT}/sysctls",
    )
