# SPDX-License-Identifier: Apache-2.0
"""DUT: what `ethtool -S` reports of each queue, by the names that drivers give their counters, and what a NIC
itself says that it lost.

Every driver has words of its own. Those that are known here were taken from the drivers' sources in the
kernel; a name that is not known is left out, so that a queue is never counted by something else.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from evenhand.base.errors import HostError
from evenhand.dut.shell import Answer, Shell
from evenhand.dut.shell_parts import KEPT_HERE

OF_NIC = (
    r"(port\.)?[rt]x_(missed_errors|no_dma_resources|no_buffer_count|out_of_buffer|discards_phy|dropped"
    r"|discards|fifo_errors|over_errors|steer_missed_packets)(\.nic)?"
    # DPAA2
    r"|\[hw\] (rx nobuffer discards|[rt]x (discarded|rejected) frames)|\[mac\] rx frame discards"
    # ena, r8169, bnxt_en
    r"|[rt]x_drops|rx_overruns|rx_missed|rx_stat_discard"
    # sfc
    r"|(port_)?rx_nodesc_drops|port_rx_nodesc_drop_cnt|rx_noskb_drops"
    # mvpp2
    r"|rx_fifo_or_parser_overrun_drops|rx_classifier_drops"
    # nfp, qede, bnx2x, atlantic
    r"|dev_rx_discards|no_buff_discards|brb_discards|rx_brb_discard|InDroppedDma"
    # ionic, be2net
    r"|hw_rx_(dropped|over_errors|missed_errors)|rx(pp|_input)_fifo_overflow_drop|rx_drops_no_(pbuf|txpb)"
    # ena: what its cloud held back, or dropped, above the rate of the instance
    r"|[a-z_]+_allowance_exceeded"
)
"""Counters of the whole NIC that count what it did not hand on."""
KEPT = (
    # igb, igc, ixgbe, ice, hv_netvsc, veth, virtio_net (packets up to Linux 6.9: see readings_kernel.py)
    r"[rt]x_queue_[0-9]+_(packets|xdp_packets|drops)"
    # mlx4, mlx5, mana: rx0_packets; i40e: rx-0.packets; sfc: rx-0.rx_packets; ionic: rx_0_pkts;
    # idpf: rx_q-0_pkts; virtio_net of some vendors: rx0_hw_drops
    r"|[rt]x[-_]?(q-)?[0-9]+[._]([rt]x_)?(packets|pkts|drops|dropped|hw_drops)"
    # bnxt_en, bnx2x
    r"|\[[0-9]+\]: [rt]x_[umb]cast_packets|\[[0-9]+\]: [rt]x_discards"
    # ena, gve, nfp, atlantic
    r"|queue_[0-9]+_[rt]x_cnt|[rt]x_packets\[[0-9]+\]|rvec_[0-9]+_[rt]x_pkts|Queue\[[0-9]+\] (In|Out)Packets"
    # stmmac, macb; enetc; be2net
    r"|q[0-9]+_[rt]x_(pkt_n|packets|dropped)|[RT]x ring +[0-9]+ (discarded )?frames"
    r"|[rt]xq[0-9]+: [rt]x_(pkts|drops_no_frags)"
    # mvpp2: a received frame is one descriptor
    r"|rxq_[0-9]+_(desc_enqueue|queue_full_drops|packets_(early|bm)_drops)"
    # vmxnet3 names the queue once, above its counters
    r"|[RT]x Queue#|[umb]cast pkts [rt]x"
)
"""Written so that POSIX reads it as an extended regular expression too: the DUT itself leaves the rest of
some thousand lines out."""
FILTER = rf"^ *({KEPT}|{OF_NIC}):"

_LINE = re.compile(r"^ *(.+?): +(-?[0-9]+) *$")
_QUEUE = (
    re.compile(r"(?P<way>[rt]x)_queue_(?P<queue>\d+)_(?P<what>\w+)"),
    re.compile(r"(?P<way>[rt]x)[-_]?(?:q-)?(?P<queue>\d+)[._](?:[rt]x_)?(?P<what>\w+)"),
    re.compile(r"\[(?P<queue>\d+)\]: (?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"queue_(?P<queue>\d+)_(?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"(?P<way>[rt]x)_(?P<what>packets)\[(?P<queue>\d+)\]"),
    re.compile(r"rvec_(?P<queue>\d+)_(?P<way>[rt]x)_(?P<what>pkts)"),
    re.compile(r"Queue\[(?P<queue>\d+)\] (?P<way>In|Out)(?P<what>Packets)"),
    re.compile(r"q(?P<queue>\d+)_(?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"(?P<way>[RT]x) ring +(?P<queue>\d+) (?P<what>.+)"),
    re.compile(r"[rt]xq(?P<queue>\d+): (?P<way>[rt]x)_(?P<what>\w+)"),
    re.compile(r"(?P<way>rx)q_(?P<queue>\d+)_(?P<what>\w+)"),
)
_WAYS = {"rx": "received", "tx": "sent", "in": "received", "out": "sent"}
_PACKETS = frozenset(
    (
        *("packets", "pkts", "pkt_n", "frames", "cnt", "desc_enqueue"),
        *("ucast_packets", "mcast_packets", "bcast_packets"),
    )
)
_ONLY_COUNT = "xdp_packets"
"""Counter of veth: all that its queue took, with a program or without. Other drivers count with it what a
program took, in addition to `packets`."""
_DROPS = frozenset(
    (
        *("drops", "dropped", "discards", "hw_drops", "discarded frames", "drops_no_frags"),
        *("queue_full_drops", "packets_early_drops", "packets_bm_drops"),
    )
)


Queues = dict[int, dict[str, int]]
"""Counters by the number of the queue: `received_packets`, `sent_packets`, `drops`; only what the driver
reports."""


def read_queues(text: str) -> tuple[Queues, dict[str, int]]:
    """Counters of each queue, and by their own names those of the NIC that count losses. Both empty if the
    driver reports nothing known."""
    queues: Queues = {}
    of_nic: dict[str, int] = {}
    for name, value in _known_lines(text):
        if re.fullmatch(OF_NIC, name):
            of_nic[name] = value
            continue
        found = next((match for pattern in _QUEUE if (match := pattern.fullmatch(name))), None)
        if found is None:
            continue
        key = _key_of(found["way"].lower(), found["what"].lower())
        if key is not None:
            counters = queues.setdefault(int(found["queue"]), {})
            counters[key] = counters.get(key, 0) + value
    for counters in queues.values():
        for way in ("received", "sent"):
            only = counters.pop(f"{way}_{_ONLY_COUNT}", None)
            if only is not None:
                counters.setdefault(f"{way}_packets", only)
    return dict(sorted((number, counters) for number, counters in queues.items() if counters)), of_nic


def _known_lines(text: str) -> Iterator[tuple[str, int]]:
    """Those that the DUT should have sent, and no others; vmxnet3's under names that have the queue in
    them."""
    queue = 0
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None or not re.match(FILTER, line):
            continue
        name, value = found[1], int(found[2])
        if name.endswith("Queue#"):
            queue = value
        elif " pkts " in name:
            kind, _, way = name.split()
            yield f"[{queue}]: {way}_{kind}_packets", value
        else:
            yield name, value


def _key_of(way: str, what: str) -> str | None:
    if what in _PACKETS:
        return f"{_WAYS[way]}_packets"
    if what == _ONLY_COUNT:
        return f"{_WAYS[way]}_{_ONLY_COUNT}"
    return "drops" if what in _DROPS else None


MOST_OCTETS = 1 << 26
"""Most octets of one command's answer; a table of 65,536 neighbours takes a fifth of it."""


@contextmanager
def understood(what: str, *, where: str) -> Iterator[None]:
    """Around what reads the DUT's answers, which may be of any shape: HostError if it stumbles over one."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise HostError(
            f"the DUT's answer about {what} cannot be understood: {str(error)[:200] or type(error).__name__}",
            code="rig.dut-answer-not-understood",
            where=where,
            next_step="Log in there, and check whether its ip and ethtool are those of its distribution, and"
            " what they print.",
        ) from error


def read_all(shell: Shell, commands: Mapping[str, str], *, timeout_s: float = 120.0) -> dict[str, Answer]:
    """What each of them answered, by name; stderr is in stdout. Errors as `Shell.run`."""
    names = list(commands)
    answers = run_each(shell, [commands[name] for name in names], timeout_s=timeout_s)
    return dict(zip(names, answers, strict=True))


def run_each(
    shell: Shell, commands: Sequence[str], *, begin: str = "", timeout_s: float = 120.0
) -> list[Answer]:
    """Runs them one after the other, whether or not one fails.

    Args:
        begin: Lines before the first; if they end the script, the answers are fewer than the commands, and
            the last is theirs.
    """
    mark = f"evenhand-{secrets.token_hex(8)}"
    # A function is read to its end before any of it runs.
    lines = ["newline='", "'", "main() {", KEPT_HERE, *([begin] if begin else [])]
    for command in commands:
        # What is cut off has no exit code at its end, and so counts as failed. A program that never ends ends
        # with its pipe.
        lines += [
            f"answer=$( {{ ( {command}\n) 2>&1; printf '\\n%s' $?; }} | head -c {MOST_OCTETS} )",
            'code=${answer##*"$newline"}; case $code in ""|*[!0-9]*|????*) code=141;; *)'
            ' answer=${answer%"$newline"*};; esac',
            f"printf '%s %s\\n%s\\n' {mark} $code \"$answer\"",
        ]
    text = "\n".join([*lines, "}", "main", "exit $?", ""])
    whole = shell.run("exec sh -s", input_text=text, timeout_s=timeout_s)
    parts = re.split(rf"^{mark} (\d+)\n", whole.stdout, flags=re.MULTILINE)[1:]
    answers = [
        Answer(exit_code=int(code), stdout=output.rstrip("\n"), stderr="")
        for code, output in zip(parts[::2], parts[1::2], strict=True)
    ]
    return answers if len(answers) == len(commands) else [*answers, whole]


def quote(*words: str) -> str:
    """For a line of `sh`."""
    return " ".join(shlex.quote(word) for word in words)


NO_PERL = "no perl"

# Numbers: socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC). A message is nlmsghdr (length, type, flags,
# sequence, port), genlmsghdr (command, version, 16 bits unused), then attributes, each with its length and
# type, padded to 4 octets. An answer of type 2 is an error, 3 ends a dump. 16, 3, 2: nlctrl,
# CTRL_CMD_GETFAMILY by CTRL_ATTR_FAMILY_NAME; 1 in its answer is the family's number. 12:
# NETDEV_CMD_QSTATS_GET, a dump (0x301) for IFINDEX (1) in SCOPE (4) queue (1). In its answer: QUEUE_TYPE 2 (0
# receives), QUEUE_ID 3, RX_PACKETS 8, TX_PACKETS 10, RX_HW_DROPS 13, TX_HW_DROPS 24.
_PROGRAM = r"""
alarm 5;
socket(my $kernel, 16, 3, 16) or exit;
sub attribute {
    my ($type, $value) = @_;
    pack("SS", 4 + length $value, $type) . $value . "\0" x (-length($value) & 3)
}
sub ask {
    my ($type, $flags, $command, $attributes) = @_;
    send $kernel,
        pack("LSSLLCCS", 20 + length $attributes, $type, $flags, 1, 0, $command, 1, 0) . $attributes, 0;
}
sub answers {
    my @found;
    while (defined recv $kernel, my $data, 1 << 20, 0) {
        my $is_dump;
        while (length $data >= 16) {
            my ($length, $type, $flags) = unpack "LSS", $data;
            exit if $type == 2;
            return @found if $type == 3;
            $is_dump = $flags & 2;
            my ($at, %of) = 20;
            while ($at + 4 <= $length) {
                my ($octets, $key) = unpack "SS", substr $data, $at, 4;
                last if $octets < 4;
                $of{$key & 16383} = unpack $octets == 12 ? "Q" : $octets == 6 ? "S" : "L",
                    substr $data, $at + 4, $octets - 4;
                $at += $octets + 3 & ~3;
            }
            push @found, \%of;
            $data = substr $data, $length + 3 & ~3;
        }
        return @found unless $is_dump;
    }
}
ask(16, 1, 3, attribute(2, "netdev\0"));
my ($family) = answers();
ask($family->{1}, 0x301, 12, attribute(1, pack "L", shift) . attribute(4, pack "L", 1));
for my $queue (answers()) {
    my ($packets, $drops) = @{$queue}{$queue->{2} ? (10, 24) : (8, 13)};
    print $queue->{2} ? "sent" : "received", " $queue->{3} $packets\n" if defined $packets;
    print "drops $queue->{3} $drops\n" if defined $drops;
}
"""


def kernel_queues_command(name: str) -> str:
    """Lines of `sh` that print what `read_kernel_queues` reads; nothing from a kernel or a driver that has no
    such counters.

    Args:
        name: Name of the interface, quoted for the shell.
    """
    return "\n".join(
        [
            f"index=$(cat /sys/class/net/{name}/ifindex 2>/dev/null)",
            f"if command -v perl >/dev/null; then perl -e '{_PROGRAM}' \"$index\" 2>/dev/null; else echo"
            f" {NO_PERL}; fi",
        ]
    )


def read_kernel_queues(text: str) -> Queues:
    """Counters by the number of the queue: `received_packets`, `sent_packets`, `drops`."""
    queues: Queues = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(received|sent|drops) ([0-9]+) ([0-9]+)", line)
        if found is None:
            continue
        counters = queues.setdefault(int(found[2]), {})
        if found[1] == "drops":  # of both ways
            counters["drops"] = counters.get("drops", 0) + int(found[3])
        else:
            counters[f"{found[1]}_packets"] = int(found[3])
    return queues
