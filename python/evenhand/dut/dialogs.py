# SPDX-License-Identifier: Apache-2.0
"""How devices without a shell take a change of their configuration: what is said at which prompt, and what
their refusals look like.

Where a system can, a change is tried first: it takes it back by itself unless it is kept within
`TRIAL_MINUTES`, so that a tester that is lost leaves nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from evenhand.dut.configuration import (
    Line,
    PutBack,
    put_back_entries,
    put_back_indented,
    put_back_tree,
    read_flat,
    read_indented,
)

TRIAL_MINUTES = 5


@dataclass(frozen=True, slots=True)
class Say:
    """One command. `{session}` in it is a name that this set-up has for itself."""

    command: str
    is_change: bool = True
    """Whether it is said where the configuration is changed, and not at the first prompt."""
    question: str | None = None
    """An expression for a question that it is answered with, and that is answered with yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """How one system is spoken with."""

    platform: str
    """What scrapli calls it."""
    prompt: str
    """scrapli's name for the mode in which it is asked."""
    change: str
    """The same for the one in which it is changed."""
    configuration: str
    """Shows all of it."""
    read: Callable[[str], tuple[Line, ...]]
    put_back: PutBack
    show_interface: str
    """Shows the interface `{name}`, without the number of a sub-interface."""
    refusal: re.Pattern[str]
    """What an answer to a command has if it was not taken."""
    no_interface: re.Pattern[str]
    """What an answer to `show_interface` has if there is none."""
    first: tuple[Say, ...] = ()
    """Before the first line of a change."""
    drop: tuple[Say, ...] = ()
    """Throws away a change that was not committed."""
    commit: tuple[Say, ...] = ()
    """Empty: each line is in force at once."""
    trial: tuple[Say, ...] = ()
    keep: tuple[Say, ...] = ()
    reject: tuple[Say, ...] = ()
    """Ends a trial at once, whatever becomes of the change. Empty: the next commit does."""
    may_refuse: frozenset[str] = field(default_factory=frozenset)
    """Lines that some devices of the system do not know, and do not need."""
    user_options: str = ""
    """Words that its server takes behind the name of the user."""
    opening: tuple[str, ...] = ()
    """Said first, so that nothing waits for a key."""
    unsaved: Say | None = None
    """Shows lines with + and - if the device would lose changes of others with a trial that is not kept."""
    uncommitted: Say | None = None
    """Shows them if a commit would take changes of somebody else along."""


_IOS_REFUSAL = re.compile(
    # Not a warning, nor a message of its log.
    r"^\s*(?:%(?!\s*warning|[a-z0-9_]+-\d-)|command rejected|error)",
    re.IGNORECASE | re.MULTILINE,
)
_JUNOS_REFUSAL = re.compile(
    r"syntax error|unknown command|missing argument|is ambiguous|^\s*error:|invalid "
    r"|configuration check-out failed|commit failed",
    re.IGNORECASE | re.MULTILINE,
)
_VYOS_REFUSAL = re.compile(
    r"set failed|delete failed|commit failed|is not valid|invalid|ambiguous|incomplete|need to specify"
    r"|^\s*error|\]\] failed|another confirm is pending|failed to generate",
    re.IGNORECASE | re.MULTILINE,
)
_SRLINUX_REFUSAL = re.compile(r"^\s*(?:\w+ )?error\b", re.IGNORECASE | re.MULTILINE)
_ANYTHING = re.compile(r"\S")

DIALOGS: dict[str, Dialog] = {
    "cisco-ios": Dialog(
        platform="cisco_iosxe",
        prompt="privileged_exec",
        change="configuration",
        configuration="show running-config",
        read=read_indented,
        put_back=put_back_indented,
        show_interface="show interfaces {name}",
        refusal=_IOS_REFUSAL,
        no_interface=_IOS_REFUSAL,
        may_refuse=frozenset({"no switchport"}),
    ),
    "arista-eos": Dialog(
        platform="arista_eos",
        prompt="privileged_exec",
        change="configuration",
        configuration="show running-config",
        read=read_indented,
        put_back=put_back_indented,
        show_interface="show interfaces {name}",
        refusal=_IOS_REFUSAL,
        no_interface=_IOS_REFUSAL,
        first=(Say("configure session {session}", is_change=False),),
        drop=(Say("abort"),),
        commit=(Say("commit"),),
        trial=(Say(f"commit timer 00:{TRIAL_MINUTES:02}:00"),),
        keep=(Say("configure session {session} commit", is_change=False),),
        reject=(Say("configure session {session} abort", is_change=False),),
    ),
    "junos": Dialog(
        platform="juniper_junos",
        prompt="exec",
        # Nobody else changes it meanwhile, and what is not committed goes with the connection.
        change="configuration_exclusive",
        configuration="show configuration | display set | no-more",
        read=read_flat,
        put_back=put_back_tree(
            "set ",
            ("interfaces", "unit", "family", "address", "route", "rib", "next-hop", "arp", "ndp", "mac"),
        ),
        show_interface="show interfaces {name} terse",
        refusal=_JUNOS_REFUSAL,
        no_interface=re.compile(r"not found|error", re.IGNORECASE),
        drop=(Say("rollback 0"),),
        commit=(Say("commit"),),
        trial=(Say(f"commit confirmed {TRIAL_MINUTES}"),),
        keep=(Say("commit"),),
    ),
    "vyos": Dialog(
        platform="vyos_vyos",
        prompt="privileged_exec",
        change="configuration",
        configuration="show configuration commands",
        read=read_flat,
        put_back=put_back_tree(
            "set ",
            (
                "ethernet",
                "bonding",
                "bridge",
                "wireless",
                "vif",
                "address",
                "route",
                "route6",
                "next-hop",
                "interface",
                "rule",
            ),
        ),
        show_interface="show interfaces | match '{name} '",
        refusal=_VYOS_REFUSAL,
        no_interface=re.compile(r"\A\s*\Z|invalid", re.IGNORECASE),
        drop=(Say("discard"),),
        # A trial that is not ended restarts the router.
        commit=(Say("commit"), Say("confirm")),
        trial=(Say(f"commit-confirm {TRIAL_MINUTES}", question=r"[Pp]roceed ?\?.*$"),),
        keep=(Say("confirm"),),
        reject=(Say("confirm"),),
        opening=("set terminal length 0",),
        unsaved=Say("compare saved"),
    ),
    "routeros": Dialog(
        platform="mikrotik_routeros",
        prompt="cli",
        change="cli",
        configuration="/export terse",
        read=read_flat,
        put_back=put_back_entries,
        show_interface=':put [:len [/interface find name="{name}"]]',
        refusal=_ANYTHING,
        no_interface=re.compile(r"\A(?!\s*1\s*\Z)"),
        user_options="+ct511w4098h",
    ),
    "srlinux": Dialog(
        platform="nokia_srlinux",
        prompt="exec",
        change="configuration",
        configuration="info flat",
        read=read_flat,
        put_back=put_back_tree(
            "set / ",
            (
                "interface",
                "subinterface",
                "address",
                "network-instance",
                "group",
                "nexthop",
                "route",
                "neighbor",
            ),
        ),
        show_interface="show interface {name} brief",
        refusal=_SRLINUX_REFUSAL,
        no_interface=re.compile(r"error|\A\s*\Z", re.IGNORECASE),
        drop=(Say("discard stay"),),
        # The user's candidate stays from session to session.
        uncommitted=Say("diff"),
        commit=(Say("commit stay"),),
        trial=(Say(f"commit confirmed timeout {TRIAL_MINUTES * 60}"),),
        keep=(Say("tools system configuration confirmed-accept", is_change=False),),
        reject=(Say("tools system configuration confirmed-reject", is_change=False),),
    ),
}
"""Systems without a shell that are set up over SSH."""
