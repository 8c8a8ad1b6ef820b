# SPDX-License-Identifier: Apache-2.0
"""DUT: packets of each queue as the kernel itself reports them, since Linux 6.9, by netlink (family netdev,
qstats-get).

Drivers move their counters there: those of virtio_net are no longer among what `ethtool -S` shows since Linux
6.10. No tool of Debian 13 asks for them, so a few lines of Perl do, which every Debian has (perl-base is
essential), and many others.
"""

from __future__ import annotations

from evenhand.rig.dut.readings_queues import Queues

NO_PERL = "no perl"

# Numbers: socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC). A message is nlmsghdr (length, type, flags,
# sequence, port), genlmsghdr (command, version, 16 bits unused), then attributes, each with its length and
# type, padded to 4 octets. An answer of type 2 is an error, 3 ends a dump. 16, 3, 2: nlctrl,
# CTRL_CMD_GETFAMILY by CTRL_ATTR_FAMILY_NAME; 1 in its answer is the family's number. 12:
# NETDEV_CMD_QSTATS_GET, a dump (0x301) for IFINDEX (1) in SCOPE (4) queue (1). In its answer: QUEUE_TYPE 2 (0
# receives), QUEUE_ID 3, RX_PACKETS 8, TX_PACKETS 10.
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
    my $packets = $queue->{$queue->{2} ? 10 : 8};
    print $queue->{2} ? "sent" : "received", " $queue->{3} $packets\n" if defined $packets;
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
    """Counters by the number of the queue: `received_packets`, `sent_packets`."""
    queues: Queues = {}
    for line in text.splitlines():
        words = line.split()
        if (
            len(words) == 3
            and words[0] in ("received", "sent")
            and words[1].isdecimal()
            and words[2].isdecimal()
        ):
            queues.setdefault(int(words[1]), {})[f"{words[0]}_packets"] = int(words[2])
    return queues
