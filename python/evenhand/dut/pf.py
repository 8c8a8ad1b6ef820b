# SPDX-License-Identifier: Apache-2.0
"""The NAT of pf on the BSDs: rules in anchors of our own, which the main rules have to call. No rule of
anybody else's is replaced: where the main rules call no such anchor, the script says what to add, and ends.

Host k of the inside has address k of the pool and keeps its port (`bitmask`, `static-port`).
"""

from __future__ import annotations

from dataclasses import replace

from evenhand.dut.description import DutSetup
from evenhand.dut.nat import TIMEOUT_S
from evenhand.dut.script import Step
from evenhand.dut.shell_parts import KEPT, forget_uses, kept_of, note_uses, others_use
from evenhand.plan import plan_file_name
from evenhand.plan.translation import Nat

_FAMILY = {4: "inet", 6: "inet6"}
_TIMEOUTS = ("udp.first", "udp.single", "udp.multiple")
_IS_ON = "pfctl -s info 2> /dev/null | grep -q '^Status: Enabled'"
_NOTE = (
    "pf is the NAT, and stays on. At its limit of states (pfctl -s memory; set limit states in pf.conf"
    " raises it)"
    " it drops what would open another connection. To empty the table of connections before each experiment:"
    " pfctl -F states, which ends those of SSH as well."
)


def _ends(reason: str) -> str:
    return f"{{ echo '{reason}' >&2; exit 1; }}"


def _not_called(anchor: str) -> str:
    return _ends(f'The main rules do not call the anchor "{anchor}/*".')


_CALLED = "The NAT is pf's: the main rules have to call anchors of this set-up."
_MUST_BE_ON = f"{_IS_ON} || {_ends('pf is off: pfctl -e')}"


def _to(nat: Nat) -> str:
    return str(nat.pool[0]) if nat.is_own_address else f"{nat.pool} bitmask static-port"


def _first(setup: DutSetup, purpose: str, note: str, *do: str) -> list[Step]:
    """Ends before anything is changed."""
    if setup.plan.nat is None:
        return []
    return [Step(part="nat", purpose=purpose, notes=(note,), do=do)]


def openbsd_first(setup: DutSetup) -> list[Step]:
    return _first(
        setup,
        _CALLED,
        'The script ends here if they do not: add the line anchor "evenhand/*" at the end of /etc/pf.conf,'
        " and run pfctl -f /etc/pf.conf.",
        _MUST_BE_ON,
        "pfctl -s rules 2> /dev/null | grep -qF 'anchor \"evenhand/*\"' || " + _not_called("evenhand"),
    )


def openbsd_nat(setup: DutSetup) -> list[Step]:
    """For a NAT64 all hosts have the pool's first address: af-to takes no bitmask from one IP version to the
    other."""
    nat, (left, right) = setup.plan.nat, setup.links
    if nat is None:
        return []
    anchor, family = f"evenhand/{plan_file_name(setup.plan.name)}", _FAMILY[nat.inside.version]
    state = f"keep state ({', '.join(f'{name} {TIMEOUT_S}' for name in _TIMEOUTS)})"
    begin = f"pass in quick on {left.interface} {family} from {nat.inside} to"
    if nat.prefix is None:
        rules = [
            f"{begin} any {state}",
            f"pass out quick on {right.interface} {family} from {nat.inside} to any nat-to {_to(nat)}"
            f" {state}",
        ]
    else:
        own = nat.pool[0] if nat.is_own_address else nat.pool[1]
        rules = [f"{begin} {nat.prefix} af-to inet from {own} {state}"]
    more = () if nat.prefix is None else ("All hosts have one address: the first of the pool.",)
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: pf's, and how long a connection is remembered.",
            notes=(_NOTE, *more),
            do=(
                "\n".join((f"pfctl -a {anchor} -f /dev/stdin <<'END'", *rules, "END")),
                _read_back(anchor, "rules", "nat-to" if nat.prefix is None else "af-to"),
            ),
            undo=(f"pfctl -a {anchor} -F rules",),
        )
    ]


def freebsd_first(setup: DutSetup) -> list[Step]:
    return _first(
        setup,
        _CALLED,
        "Where there are no NAT rules they get this line, and pf is turned on if it has no rules; the undo"
        ' takes both back. Otherwise the script ends here: add the line nat-anchor "evenhand/*" before the'
        " NAT rules of /etc/pf.conf, run pfctl -f /etc/pf.conf, and pfctl -e.",
        # Its module is not there before somebody uses pf.
        "kldload -n pf",
        f'{_IS_ON} || test -z "$(pfctl -s rules 2> /dev/null)" || '
        + _ends("pf is off and has rules: pfctl -e"),
        f'{_calls("evenhand")} || test -z "$(pfctl -s nat 2> /dev/null)" || ' + _not_called("evenhand"),
    )


def freebsd_nat(setup: DutSetup) -> list[Step]:
    last = others_use("pf", "nat", f"{kept_of(setup)}.nat")
    called, off = f"{KEPT}/pf.called", f"{KEPT}/pf.off"
    return [
        replace(
            step,
            do=(
                f"{_calls('evenhand')} || {{ echo 'nat-anchor \"evenhand/*\"' | pfctl -N -f /dev/stdin;"
                f" : > {called}; }}",
                *step.do,
                f"{_IS_ON} || {{ pfctl -e; : > {off}; }}",
            ),
            undo=(
                f"{last} || test ! -e {off} || pfctl -d",
                # Nobody's rules but the line of this set-up.
                f'{last} || test ! -e {called} || test "$(pfctl -s nat 2> /dev/null)" !='
                " 'nat-anchor \"evenhand/*\" all' || pfctl -F nat",
                f"{last} || rm -f {off} {called}",
                *step.undo,
            ),
        )
        for step in _translates(setup, "evenhand/")
    ]


def pfsense_first(setup: DutSetup) -> list[Step]:
    """pfSense's own main rules call what is in natrules."""
    return _first(
        setup,
        'The NAT is pf\'s, in an anchor below "natrules", which the main rules of pfSense call.',
        "The script ends here if they do not. What the web interface applies later resets the timeouts: run"
        " this part again (--only nat).",
        _MUST_BE_ON,
        f"{_calls('natrules')} || {_not_called('natrules')}",
    )


def pfsense_nat(setup: DutSetup) -> list[Step]:
    return _translates(setup, "natrules/evenhand_")


def _calls(anchor: str) -> str:
    return f"pfctl -s nat 2> /dev/null | grep -qF 'nat-anchor \"{anchor}/*\"'"


def _translates(setup: DutSetup, begin: str) -> list[Step]:
    """The rule in its anchor; the timeouts are pf's own, since what passes a frame is a rule of others, or
    none."""
    nat, right = setup.plan.nat, setup.links[1].interface
    if nat is None:
        return []
    own, anchor = f"{kept_of(setup)}.nat", f"{begin}{plan_file_name(setup.plan.name)}"
    family, before = _FAMILY[nat.pool.version], f"{KEPT}/pf.timeouts"
    return [
        Step(
            part="nat",
            purpose=f"{nat.title}: pf's, and how long a connection is remembered.",
            notes=(_NOTE, "The timeouts before are kept. -O and -m change these options, and nothing else."),
            do=(
                note_uses("pf", ["nat"], own),
                f"echo 'nat on {right} {family} from {nat.inside} to any -> {_to(nat)}'"
                f" | pfctl -a {anchor} -N -f /dev/stdin",
                f'test -s {before} || pfctl -s timeouts | awk \'/^udp[.]/ {{ sub("s$", "", $2);'
                f' print "set timeout", $1, $2 }}\' > {before}',
                f"printf 'set timeout %s {TIMEOUT_S}\\n' {' '.join(_TIMEOUTS)} | pfctl -O -m -f /dev/stdin",
                _read_back(anchor, "nat", f"nat on {right} "),
            ),
            undo=(
                f"pfctl -a {anchor} -F nat",
                f"{others_use('pf', 'nat', own)} || test ! -s {before} || pfctl -O -m -f {before}",
                f"{others_use('pf', 'nat', own)} || rm -f {before}",
                forget_uses("pf", own),
            ),
        )
    ]


def _read_back(anchor: str, what: str, wanted: str) -> str:
    return (
        f"pfctl -a {anchor} -s {what} | grep -qF '{wanted}'"
        f" || {{ echo 'NOT as intended, {anchor}: it should have a rule with {wanted}' >&2; wrong=yes; }}"
    )
