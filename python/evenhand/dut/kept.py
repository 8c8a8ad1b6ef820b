# SPDX-License-Identifier: Apache-2.0
"""What scripts for a shell keep on the DUT: what was there before the first set-up, and what each set-up
uses, so that they are undone in any order and nothing of anybody else's is taken away.

The files are in a folder that the system empties when it starts, as the settings are gone then.

    before.addresses, before.routes4 ...    what was there before the first set-up
    link.NAME                               the interface before
    PLAN.SIDE.uses-addresses ...            what a set-up uses, a line for each
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

KEPT = "$evenhand"
"""The folder, as the shell knows it after the first commands."""
_FOLDER = "/run/evenhand-dut-$(readlink /proc/self/ns/net | tr -dc 0-9)"
KEPT_HERE = f"export evenhand={_FOLDER}"
"""The folder of a Linux network namespace."""

_FUNCTIONS = (
    'used() { grep -lsxF -- "$2" $evenhand/*.uses-$1 | grep -qvFx "$3.uses-$1"; }',
    'was() { grep -qsxF -- "$2" $evenhand/before.$1; }',
    "keep() { test -e $evenhand/before.$1 || $1 > $evenhand/before.$1; }",
    # What this plan used before and does not any more, as after a set-up on other interfaces.
    "gone() { test ! -e $2.uses-$1 || grep -vxF -f $2.new $2.uses-$1 | while read -r line; do used $1"
    ' "$line" $2'
    ' || was $1 "$line" || echo "$line"; done; mv $2.new $2.uses-$1; }',
    "same() { $1 > $evenhand/now; ! grep -vxF -f $evenhand/now $2.uses-$1 > $evenhand/not; }",
    "intended() { tries=$waits; until same $1 $2; do tries=$((tries - 1)); if [ $tries -lt 1 ]; then sed"
    ' "s/^/NOT as'
    ' intended, $1: /" $evenhand/not >&2; wrong=yes; break; fi; sleep 1; done; rm -f $evenhand/now'
    " $evenhand/not; }",
)
_WAIT = (
    # A script goes on after the command that sent it was killed: what it has not done yet would come after
    # the undo, and stay.
    "runs() { test -e $evenhand/pid && ! grep -qx $$ $evenhand/pid"
    " && kill -0 $(cat $evenhand/pid) 2> /dev/null; }",
    "tries=10; while runs && test $tries -gt 0; do sleep 1; tries=$((tries - 1)); done",
    "echo $$ > $evenhand/pid",
)
"""Commands that wait for the script before, for at most 10 s."""
END = (
    "rm -f $evenhand/pid",
    "ls $evenhand/*.uses-* > /dev/null 2>&1 || rm -f $evenhand/before.*",
    "rmdir $evenhand 2> /dev/null || true",
    'test -z "$wrong"',
)
"""Commands after all others. The script fails if what was set is not so."""


def kept_in(folder: str, *functions: str, waits: int = 1) -> tuple[str, ...]:
    """Commands before all others: they make that folder, and the functions of the shell that others call.

    Args:
        functions: Functions of the system's own: `addresses`, `routes4`, `routes6` print what is there.
        waits: How often it is looked whether all is as intended, a second apart: some systems only note a
            command, and carry it out later.
    """
    return (
        f"export evenhand={folder}",
        "mkdir -p $evenhand",
        *_WAIT,
        f"wrong= waits={waits}",
        *_FUNCTIONS,
        *functions,
    )


def begin_here(*functions: str, waits: int = 1) -> tuple[str, ...]:
    """The same in the folder of this Linux network namespace."""
    return kept_in(_FOLDER, *functions, waits=waits)


def others_use(what: str, used: str, own: str) -> str:
    """A test of the shell: whether another set-up uses this too."""
    return f"used {what} '{used}' {own}"


def leave(what: str, used: str, own: str) -> str:
    """A test of the shell: whether another set-up uses this too, or it was there before the first."""
    return f"{others_use(what, used, own)} || was {what} '{used}'"


def note_uses(what: str, used: Iterable[str], own: str) -> str:
    """Write down what this set-up uses, for the others' `others_use`."""
    return f"printf '%s\\n' {' '.join(map(shlex.quote, used))} > {own}.uses-{what}"


def note_new_uses(what: str, used: Iterable[str], own: str, *, take_away: str) -> tuple[str, ...]:
    """The same, and take away what the same plan used before.

    Args:
        take_away: Commands that do so for the line in `$line`, and for its words in `$1` and on.
    """
    return (
        f"printf '%s\\n' {' '.join(map(shlex.quote, used))} > {own}.new",
        f"gone {what} {own} | while read -r line; do set -- $line; {{ {take_away}; }} || true; done",
    )


def intended(what: str, own: str) -> str:
    """Look whether all that this set-up uses is there."""
    return f"intended {what} {own}"


def forget_uses(what: str, own: str) -> str:
    return f"rm -f {own}.uses-{what}"


def keep_settings(names: Iterable[str], own: str, *, read: str) -> tuple[str, ...]:
    """Keep what they were before the first set-up, and that this one uses them; and show it.

    Args:
        read: A command that prints `name=value`, or the same with blanks, of the name behind it.
    """
    names = list(names)
    return (
        *(f"grep -qs '^{name} *=' {KEPT}/sysctls || {read} {name} >> {KEPT}/sysctls" for name in names),
        note_uses("sysctls", names, own),
        f"cat {KEPT}/sysctls",
    )


def restore_settings(names: Iterable[str], own: str) -> tuple[str, ...]:
    """Restore those that no other set-up uses."""
    return (
        *(
            f"{others_use('sysctls', name, own)}"
            f" || sysctl \"$(grep '^{name} *=' {KEPT}/sysctls | sed 's/ *= */=/')\""
            for name in names
        ),
        forget_uses("sysctls", own),
        f"ls {KEPT}/*.uses-sysctls > /dev/null 2>&1 || rm -f {KEPT}/sysctls",
    )


def read_back(setting: str, wanted: str, *, read: str = "sysctl -n") -> str:
    """A command that says so if the setting has another value: `sysctl` succeeds when it is refused."""
    return (
        f'test "$({read} {setting})" = {wanted}'
        f" || {{ echo 'NOT as intended, {setting}: it should be {wanted}' >&2; wrong=yes; }}"
    )
