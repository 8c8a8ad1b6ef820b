# SPDX-License-Identifier: Apache-2.0
"""What systems and drivers print, as people have shown it in public reports, mailing lists and parsers' test
data: read as it is. Each taught something, or is of a driver or a version that no other test has. Addresses
and counts are those of the reports; long tables are cut to a few rows."""

from __future__ import annotations

import re
import subprocess

import pytest

from evenhand.dut import OPERATING_SYSTEMS, OperatingSystem, describe_setup
from evenhand.dut.dialogs import DIALOGS
from evenhand.dut.facts_interface import read_fields, read_limits
from evenhand.dut.readings_queues import FILTER, read_kernel_queues, read_queues
from evenhand.dut.script import Check
from evenhand.plan import make_plan
from evenhand.predict.ethtool import read_ethtool, read_table
from tests.errors import raises

QUEUES: dict[str, tuple[str, dict[int, dict[str, int]], dict[str, int]]] = {
    "be2net": (
        """\
NIC statistics:
    rxq0: rx_pkts: 5000000
    rxq0: rx_drops_no_frags: 5000
    rxq1: rx_pkts: 5000000
    rxq1: rx_drops_no_frags: 5000
""",
        {0: {"received_packets": 5000000, "drops": 5000}, 1: {"received_packets": 5000000, "drops": 5000}},
        {},
    ),
    "idpf": (
        """\
NIC statistics:
     tx_q-0_pkts: 1002
     tx_q-1_pkts: 2679
     rx_q-0_pkts: 1143
     rx_q-1_pkts: 3172
""",
        {
            0: {"sent_packets": 1002, "received_packets": 1143},
            1: {"sent_packets": 2679, "received_packets": 3172},
        },
        {},
    ),
    "ionic": (
        """\
     rx_csum_error: 0
     tx_0_pkts: 3
     tx_0_bytes: 294
     tx_0_dma_map_err: 0
     rx_0_pkts: 2
     rx_0_bytes: 120
     rx_0_alloc_err: 0
     rx_0_dropped: 0
     rx_0_vlan_stripped: 0
     hw_tx_dropped: 0
     hw_rx_dropped: 17
     hw_rx_over_errors: 0
""",
        {0: {"sent_packets": 3, "received_packets": 2, "drops": 0}},
        {"hw_rx_dropped": 17, "hw_rx_over_errors": 0},
    ),
    "stmmac": (
        """\
     mtl_est_btrlm: 0
     q0_tx_pkt_n: 512
     q0_tx_irq_n: 26
     q1_tx_pkt_n: 15
     q1_tx_irq_n: 0
     q0_rx_pkt_n: 33212
     q0_rx_irq_n: 33004
     q1_rx_pkt_n: 0
     q1_rx_irq_n: 0
""",
        {0: {"sent_packets": 512, "received_packets": 33212}, 1: {"sent_packets": 15, "received_packets": 0}},
        {},
    ),
    "enetc": (
        """\
     Rx ring 14 discarded frames: 0
     Rx ring  0 discarded frames: 6
     Tx ring  0 frames: 0
     Tx ring  2 frames: 1
     Rx ring  0 frames: 124
     Rx ring  0 alloc errors: 0
     MAC rx valid frames: 124
""",
        {
            0: {"drops": 6, "sent_packets": 0, "received_packets": 124},
            2: {"sent_packets": 1},
            14: {"drops": 0},
        },
        {},
    ),
    "virtio_net of a cloud": (
        """\
NIC statistics:
     rx0_packets: 582951
     rx0_bytes: 155307077
     rx0_drops: 0
     rx0_xdp_packets: 0
     rx0_xdp_drops: 0
     rx0_kicks: 17007
     rx0_hw_packets: 2179409
     rx0_hw_drops: 12964
     rx0_hw_drop_overruns: 0
     rx0_hw_ratelimit_packets: 0
     tx0_packets: 15361
     tx0_xdp_tx_drops: 0
     tx0_timeouts: 0
""",
        {0: {"received_packets": 582951, "drops": 12964, "sent_packets": 15361}},
        {},
    ),
    "igb": (
        """\
     rx_fifo_errors: 4300
     tx_fifo_errors: 0
     tx_queue_0_packets: 194901
     tx_queue_0_restart: 0
     rx_queue_0_packets: 795975
     rx_queue_0_bytes: 175919597
     rx_queue_0_drops: 4300
     rx_queue_0_csum_err: 0
     rx_queue_0_alloc_failed: 0
""",
        {0: {"sent_packets": 194901, "received_packets": 795975, "drops": 4300}},
        {"rx_fifo_errors": 4300, "tx_fifo_errors": 0},
    ),
    "iavf": (
        """\
NIC statistics:
     rx_bytes: 12130
     rx_unicast: 134
     rx_discards: 0
     rx_unknown_protocol: 0
     tx_discards: 0
     tx-0.packets: 134
     tx-0.bytes: 10988
     rx-0.packets: 0
     rx-0.bytes: 0
     rx-2.packets: 142
""",
        {0: {"sent_packets": 134, "received_packets": 0}, 2: {"received_packets": 142}},
        {"rx_discards": 0, "tx_discards": 0},
    ),
    "bnx2x": (
        """\
NIC statistics:
     [0]: rx_bytes: 79656136793
     [0]: rx_ucast_packets: 105342422
     [0]: rx_mcast_packets: 896351
     [0]: rx_bcast_packets: 301258
     [0]: rx_discards: 0
     [0]: rx_phy_ip_err_discards: 0
     [0]: rx_skb_alloc_discard: 0
     [0]: tx_exhaustion_events: 0
     rx_ucast_packets: 2882430
""",
        {0: {"received_packets": 106540031, "drops": 0}},
        {},
    ),
    "ena": (
        """\
NIC statistics:
     tx_timeout: 0
     bw_in_allowance_exceeded: 0
     bw_out_allowance_exceeded: 42
     pps_allowance_exceeded: 0
     conntrack_allowance_exceeded: 7
     linklocal_allowance_exceeded: 0
     queue_0_tx_cnt: 33539
     queue_0_tx_queue_stop: 0
     queue_0_rx_cnt: 183700
     queue_0_rx_xdp_drop: 0
     queue_0_rx_lpc_full: 0
""",
        {0: {"sent_packets": 33539, "received_packets": 183700}},
        {
            "bw_in_allowance_exceeded": 0,
            "bw_out_allowance_exceeded": 42,
            "pps_allowance_exceeded": 0,
            "conntrack_allowance_exceeded": 7,
            "linklocal_allowance_exceeded": 0,
        },
    ),
    "mvpp2": (
        """\
     txq_7_queue_full_drops: 0
     txq_7_packets_bm_drops: 0
    rxq_0_desc_enqueue: 983
    rxq_0_queue_full_drops: 3
    rxq_0_packets_early_drops: 0
    rxq_0_packets_bm_drops: 4
    rxq_1_desc_enqueue: 14
""",
        {0: {"received_packets": 983, "drops": 7}, 1: {"received_packets": 14}},
        {},
    ),
    "mlx5_core, only some of it": (
        """\
     rx0_packets: 68259
     rx0_bytes: 4381139
     rx1_packets: 4255
     rx_packets: 73281
     tx_packets: 50000
""",
        {0: {"received_packets": 68259}, 1: {"received_packets": 4255}},
        {},
    ),
}
"""Output of `ethtool -S`, the counters of its queues, and those of the NIC."""


@pytest.mark.parametrize("driver", QUEUES)
def test_the_counters_of_a_driver(driver: str) -> None:
    text, queues, of_nic = QUEUES[driver]
    assert read_queues(text) == (queues, of_nic)
    wanted = [line for line in text.splitlines() if re.match(FILTER, line)]
    filtered = subprocess.run(
        ["grep", "-E", FILTER], input=text, capture_output=True, text=True, check=True
    ).stdout
    assert filtered.splitlines() == wanted  # the DUT's grep leaves out the same


def test_what_a_device_dropped_before_its_driver_saw_it_is_a_loss_of_its_queue() -> None:
    """virtio_net since Linux 6.10 hides it from ethtool: `rx-hw-drops` of the kernel's queue statistics."""
    assert read_kernel_queues("received 0 598929\ndrops 0 12964\nsent 0 15515\ndrops 0 0\n") == {
        0: {"received_packets": 598929, "drops": 12964, "sent_packets": 15515}
    }


FUNCTION = "RSS hash function:\n    toeplitz: on\n    xor: off\n    crc32: off\n"
ROWS = "    0:      0     1     0     1\n"
KEY = "RSS hash key:\n6d:5a:56:da:25:5b:0e:c2\n"


def test_a_context_without_a_transformation_of_its_own_has_none() -> None:
    """Kernels up to 6.16 show all bits of "no change"."""
    text = (
        f"RX flow hash indirection table for eth0 with 2 RX ring(s):\n{ROWS}{KEY}{FUNCTION}"
        "RSS input transformation:\n    symmetric-xor: on\n    symmetric-or-xor: on\n"
        "    Unknown bits in RSS input transformation: 0xfc\n"
    )
    found = read_ethtool(text, where="--table")
    assert not found.is_symmetric
    assert found.switches["symmetric-or-xor"] == "off"
    with raises("predict.hash-input-transformed"):
        read_ethtool(text.replace("    Unknown bits in RSS input transformation: 0xfc\n", ""), where="")


def test_a_driver_with_neither_table_nor_key() -> None:
    """virtio_net without VIRTIO_NET_F_RSS."""
    text = (
        "RX flow hash indirection table for eth0 with 1 RX ring(s):\nOperation not supported\n"
        f"RSS hash key:\nOperation not supported\n{FUNCTION}"
    )
    found = read_table(text)
    assert (found.words, found.key, found.rings) == ([], None, 1)
    with raises("predict.no-table", match="not supported"):
        read_ethtool(text, where="--table")


def test_fields_that_somebody_has_indented() -> None:
    head = "\n\tUDP over IPV4 flows use these fields for computing Hash flow key:\n"
    assert read_fields(f"{head}\tIP SA\n\tIP DA\n") == "sd"
    assert read_fields(f"For RSS context 1:{head}IP DA\n") == "d"


def test_limits_that_a_driver_does_not_have() -> None:
    text = (
        "Ring parameters for ens3:\nPre-set maximums:\nRX:\t\t16384\nRX Mini:\tn/a\nRX Jumbo:\tn/a\n"
        "TX:\t\t1024\nCurrent hardware settings:\nRX:\t\t1024\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t1024\n"
    )
    assert read_limits(text) == {"rx_max": 16384, "tx_max": 1024, "rx": 1024, "tx": 1024}
    old = text.replace("n/a", "0")
    assert read_limits(old)["rx_mini"] == 0


def _say(system: OperatingSystem, function: str, commands: str) -> list[str]:
    """What this function of a system's script makes of the commands' output."""
    functions = [line for line in system.begin if re.match(r"\w+\(\)", line)]
    ended = subprocess.run(
        ["sh", "-e"],
        input="\n".join([commands, *functions, function, ""]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def _prints(command: str, text: str) -> str:
    return f"{command}() {{ cat <<'END'\n{text}\nEND\n}}"


VPP_FIB = """\
ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto ] locks:[adjacency:1, default-route:1, ]
0.0.0.0/0
  unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:1 buckets:1 uRPF:0 to:[7:552]]
    [0] [@0]: dpo-drop ip4
10.10.1.0/24
  unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:10 buckets:1 uRPF:10 to:[0:0]]
    [0] [@4]: ipv4-glean: [src:10.0.0.0/24] memif1/0: mtu:9000 next:1 flags:[] ffffffffffff0800112233440806
10.10.1.1/32
  unicast-ip4-chain
  [@0]: dpo-load-balance: [index:10 buckets:1 uRPF:9 to:[5:420] via:[1:84]]
    [0] [@5]: ipv4 via 10.10.1.1 host-vpp1out: IP4: 02:fe:48:ec:d5:a7 -> fa:13:55:ac:d9:50
6.0.1.2/32
  unicast-ip4-chain
  [@0]: dpo-load-balance: [index:30 buckets:1 uRPF:29 to:[0:0]]
    [0] [@3]: arp-ipv4: via 6.0.0.1 af_packet0
10.0.0.1/32
  unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:19 buckets:1 uRPF:22 to:[0:0]]
    [0] [@5]: ipv4 via 1.1.1.1 eth0: mtu:9000 next:3 flags:[] 02000000000098039b6b62680800
203.0.113.0/24
  unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:140 buckets:4 uRPF:175 to:[0:0]]
    [0-2] [@6]: ipv4 via 0.0.0.0 pppoe_session_lyprimary: mtu:9000 next:6 flags:[]
    [3] [@6]: ipv4 via 0.0.0.0 pppoe_session_lybackup: mtu:9000 next:6 flags:[]
10.2.0.0/16
  unicast-ip4-chain
  [@0]: dpo-load-balance: [proto:ip4 index:35 buckets:4 uRPF:39 to:[0:0]]
    [0-2] [@14]: dpo-load-balance: [proto:ip4 index:22 buckets:1 uRPF:70 to:[0:0]]
          [0] [@3]: arp-ipv4: via 10.2.221.2 loop221
    [3] [@14]: dpo-load-balance: [proto:ip4 index:50 buckets:1 uRPF:21 to:[0:0]]
          [0] [@3]: arp-ipv4: via 10.2.221.3 loop221"""


def test_the_routes_of_vpp() -> None:
    """A route over several ways that are looked up once more has one bucket below each."""
    assert _say(OPERATING_SYSTEMS["vpp"], "routes4", _prints("vppctl", VPP_FIB)) == [
        "10.10.1.1/32 10.10.1.1 host-vpp1out",
        "6.0.1.2/32 6.0.0.1 af_packet0",
        "10.0.0.1/32 1.1.1.1 eth0",
    ]


@pytest.mark.parametrize("word", ["L3 ", ""])
def test_the_addresses_of_vpp_in_both_of_its_versions_words(word: str) -> None:
    text = (
        f"GigabitEthernet0/9/0 (up):\n  {word}192.168.16.1/24\nlocal0 (dn):\nloop0 (up):\n"
        f"  l2 bridge bd_id 1 bvi shg 0\n  {word}192.168.30.1/24\n  {word}2001:db8::1/64"
    )
    assert _say(OPERATING_SYSTEMS["vpp"], "addresses", _prints("vppctl", text)) == [
        "192.168.16.1/24 GigabitEthernet0/9/0",
        "192.168.30.1/24 loop0",
        "2001:db8::1/64 loop0",
    ]


IFCONFIG = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384
\toptions=600003<RXCSUM,TXCSUM,RXCSUM_IPV6,TXCSUM_IPV6>
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x2
\tinet 127.0.0.1 netmask 0xff000000
\tgroups: lo
\tnd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>
em0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
        ether 08:00:27:2a:78:60
        inet 10.0.10.111 netmask 0xffffff00 broadcast 10.0.10.255
        inet 10.0.10.200 netmask 0xffffff00 broadcast 10.0.10.255
        media: Ethernet autoselect (1000baseT <full-duplex>)
epair6b: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tdescription: jail:jammy:bridge0
\tinet6 fe80::8db:f4ff:fe5b:2fd3%epair6b prefixlen 64 scopeid 0x2
\tinet6 2001:db8:4672:6565:2026:5043:2d42:5344 prefixlen 64
tun0: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1420
\tinet 10.8.0.3 --> 10.8.0.3 netmask 0xffffff00"""


@pytest.mark.parametrize("system", ["freebsd", "openbsd", "opnsense"])
def test_the_addresses_of_a_bsd(system: str) -> None:
    assert _say(OPERATING_SYSTEMS[system], "addresses", _prints("ifconfig", IFCONFIG)) == [
        "::1 lo0",
        "fe80::1 lo0",
        "127.0.0.1 lo0",
        "10.0.10.111 em0",
        "10.0.10.200 em0",
        "fe80::8db:f4ff:fe5b:2fd3 epair6b",
        "2001:db8:4672:6565:2026:5043:2d42:5344 epair6b",
        "10.8.0.3 tun0",
    ]


@pytest.mark.parametrize(
    ("system", "function", "text", "said"),
    [
        (
            "freebsd",
            "table4",
            "Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\n"
            "default            10.0.0.1           UGS      vtnet0\n"
            "10.0.0.0/24        link#1             U        vtnet0\n"
            "10.0.0.5           link#1             UHS         lo0\n"
            "198.18.0.0/16      10.0.0.2           UGS      vtnet0",
            ["10.0.0.0/24 link#1", "198.18.0.0/16 10.0.0.2"],
        ),
        (
            "freebsd",
            "table6",
            "Internet6:\nDestination                       Gateway                     Flags   Netif Expire\n"
            "::/96                             ::1                           URS         lo0\n"
            "::1                               link#2                        UHS         lo0\n"
            "::ffff:0.0.0.0/96                 ::1                           URS         lo0\n"
            "2001:2::/64                       2001:2:0:1000::2              UGS         ix0\n"
            "fe80::/10                         ::1                           URS         lo0",
            ["::/96 ::1", "::ffff:0.0.0.0/96 ::1", "2001:2::/64 2001:2:0:1000::2", "fe80::/10 ::1"],
        ),
        (
            "openbsd",
            "table4",
            "Internet:\nDestination        Gateway            Flags   Refs      Use   Mtu  Prio Iface\n"
            "224/4              127.0.0.1          URS        0       74 32768     8 lo0\n"
            "10.20/16           link#22            UCn        1        0     -     4 em0\n"
            "10.100.1/24        10.20.0.2          UGS        0        0     -     8 em0\n"
            "192.168.10.0/23    10.20.0.3          UGS        0        0     -     8 em0",
            [
                "224.0.0.0/4 127.0.0.1",
                "10.20.0.0/16 link#22",
                "10.100.1.0/24 10.20.0.2",
                "192.168.10.0/23 10.20.0.3",
            ],
        ),
    ],
)
def test_the_routes_of_a_bsd(system: str, function: str, text: str, said: list[str]) -> None:
    assert _say(OPERATING_SYSTEMS[system], function, _prints("netstat", text)) == said


def _route_check(system: str, route: str, next_hop: str) -> Check:
    """The check of routes as the system makes it, for one other route."""
    chosen = OPERATING_SYSTEMS[system]
    setup = describe_setup(make_plan("gateway_v4"), left=chosen.interfaces[0], right=chosen.interfaces[1])
    check = next(
        check
        for step in chosen.steps(setup)
        for check in step.checks
        if step.part == "routes" and "198.18.0.0/16" in check.expected[0]
    )

    def other(text: str) -> str:
        return (
            text.replace("198.18.0.0/16", route)
            .replace("198.18.0.0", route.split("/")[0])
            .replace("10.0.0.2", next_hop)
        )

    return Check(
        command=check.command,
        expected=tuple(map(other, check.expected)),
        other=check.other,
        otherwise=tuple(map(other, check.otherwise)),
    )


IOS_ROUTES = """\
Gateway of last resort is 194.0.0.2 to network 0.0.0.0

     1.0.0.0/32 is subnetted, 1 subnets
S       1.1.1.1 [1/0] via 212.0.0.1
                [1/0] via 192.168.0.1
     3.0.0.0/24 is subnetted, 1 subnets
S       3.3.3.0 [1/0] via 212.0.0.1
     172.16.0.0/26 is subnetted, 1 subnets
i L2    172.16.1.0 [115/10] via 10.0.1.2, Serial0/0
     10.0.0.0/8 is variably subnetted, 5 subnets, 3 masks
C       10.0.1.0/24 is directly connected, Serial0/0
S       10.0.5.0/26 [1/0] via 10.0.1.2
S    195.0.0.0/24 [1/0] via 194.0.0.2
"""
JUNOS_ROUTES = """\
inet.0: 10 destinations, 12 routes (10 active, 0 holddown, 0 hidden)
Limit/Threshold: 32768/32768 destinations
+ = Active Route, - = Last Active, * = Both

A V Destination        P Prf   Metric 1   Metric 2  Next hop        AS path
* ? 10.2.0.0/16        S   5                       >10.0.12.1
  ?                    S   7                       >10.0.41.0
* ? 10.3.0.0/16        S   6                        10.0.41.0
                                                   >10.0.12.1
* ? 10.4.0.0/16        S   5                       >10.0.41.0
  ?                    S   7                       >10.0.12.1
* ? 10.5.0.0/16        S   5                       >10.0.41.0
                                                    10.0.12.1
"""
EOS_ROUTES = """\
VRF name: default
WARNING: Some of the routes are not programmed in
kernel, and they are marked with '%'.
Gateway of last resort:
 O E1   0.0.0.0/0 [110/21] via 172.83.43.48, Vlan55
                           via 172.83.43.50, Vlan65

 S      10.1.26.0/24 [1/0] via 142.54.229.92, Vlan2503
 S        10.2.0.0/24 [1/0]
           via 172.20.20.1, Management0
 S        10.4.0.0/24 [1/0] via 172.20.20.1, Ethernet1
                            via 172.20.20.5, Ethernet2
 C        172.20.20.0/24 is directly connected, Management0
"""
VYOS_ROUTES = """\
       > - selected route, * - FIB route, q - queued, r - rejected, b - backup
       t - trapped, o - offload failure

S>* 0.0.0.0/0 [1/0] via 10.0.42.42, eth2, weight 1, 00:00:13
S>* 10.2.0.0/16 [1/0] via 172.20.20.6, eth1, weight 1, 1d00h17m
S>* 10.3.0.0/16 [1/0] via 172.20.20.6, eth1, weight 1, 00:34:12
  *                   via 172.20.20.7, eth2, weight 1, 00:34:12
"""
ROUTEROS_6_ROUTES = """\
Flags: X - disabled, A - active, D - dynamic, C - connect, S - static, B - blackhole
 #      DST-ADDRESS        PREF-SRC        GATEWAY            DISTANCE
 0 A S  0.0.0.0/0                          23.90.232.243            10
 2  DS  0.0.0.0/0                          pppoe-out1              100
"""
ROUTEROS_ROUTES = """\
Flags: D - DYNAMIC; A - ACTIVE; c - CONNECT, s - STATIC, o - OSPF; + - ECMP
Columns: DST-ADDRESS, GATEWAY, ROUTING-TABLE, DISTANCE
#      DST-ADDRESS       GATEWAY               ROUTING-TABLE  DISTANCE
;;; evenhand-gateway_v4-left
0  As  172.20.20.0/24    172.31.255.29         main                  1
  DAc  172.31.255.28/30  ether1                main                  0
"""


@pytest.mark.parametrize(
    ("system", "text", "route", "next_hop", "is_so"),
    [
        ("cisco-ios", IOS_ROUTES, "3.3.3.0/24", "212.0.0.1", True),  # without its length
        ("cisco-ios", IOS_ROUTES, "10.0.5.0/26", "10.0.1.2", True),
        ("cisco-ios", IOS_ROUTES, "195.0.0.0/24", "194.0.0.2", True),
        ("cisco-ios", IOS_ROUTES, "1.1.1.1/32", "212.0.0.1", False),  # two paths
        ("cisco-ios", IOS_ROUTES, "172.16.1.0/26", "10.0.1.2", False),  # of IS-IS
        ("cisco-ios", IOS_ROUTES, "5.0.0.0/24", "194.0.0.2", False),  # the end of another one
        ("junos", JUNOS_ROUTES, "10.2.0.0/16", "10.0.12.1", True),
        ("junos", JUNOS_ROUTES, "10.4.0.0/16", "10.0.41.0", True),
        ("junos", JUNOS_ROUTES, "10.3.0.0/16", "10.0.12.1", False),  # two paths, of another preference
        ("junos", JUNOS_ROUTES, "10.5.0.0/16", "10.0.41.0", False),  # two paths
        ("arista-eos", EOS_ROUTES, "10.1.26.0/24", "142.54.229.92", True),
        ("arista-eos", EOS_ROUTES, "10.2.0.0/24", "172.20.20.1", True),
        ("arista-eos", EOS_ROUTES, "10.4.0.0/24", "172.20.20.1", False),  # two paths
        ("arista-eos", EOS_ROUTES, "0.0.0.0/0", "172.83.43.48", False),  # of OSPF
        ("vyos", VYOS_ROUTES, "10.2.0.0/16", "172.20.20.6", True),
        ("vyos", VYOS_ROUTES, "0.0.0.0/0", "10.0.42.42", True),
        ("vyos", VYOS_ROUTES, "10.3.0.0/16", "172.20.20.6", False),  # two paths
        ("routeros", ROUTEROS_6_ROUTES, "0.0.0.0/0", "23.90.232.243", True),
        ("routeros", ROUTEROS_ROUTES, "172.20.20.0/24", "172.31.255.29", True),
        ("routeros", ROUTEROS_ROUTES, "172.20.20.0/24", "172.31.255.2", False),
    ],
)
def test_a_device_shows_its_routes(system: str, text: str, route: str, next_hop: str, is_so: bool) -> None:
    check = _route_check(system, route, next_hop)
    assert (check.missing(text) == []) == is_so, check


REFUSALS: dict[str, tuple[str, ...]] = {
    "cisco-ios": (
        "% 10.40.254.0 overlaps with GigabitEthernet0/1\n"
        "GigabitEthernet0/0: incorrect IP address assignment\n",
        "                 ^\n% Invalid input detected at '^' marker.\n",
        "% Incomplete command.\n",
        '% Unrecognized command "no switchpor".\n',
    ),
    "junos": (
        "[edit interfaces xe-0/0/2 unit 0 family]\n  'ethernet-switching'\n    Family ethernet-switching and"
        " rest of the families are mutually exclusive\n"
        "error: commit failed: (statements constraint check failed)\n",
        "error: configuration database modified\n",
        "error: configuration check-out failed\n",
        "                      ^\nsyntax error.\n",
    ),
    "routeros": (
        "failure: already have such address\n",
        "input does not match any value of interface\n",
        "bad command name that (line 1 column 1)\n",
    ),
}
TAKEN: dict[str, tuple[str, ...]] = {
    "cisco-ios": ("", "% Warning: use /31 mask on non point-to-point interface cautiously\n"),
    "junos": ("", "[edit protocols]\n  'bgp'\n    warning: requires 'bgp' license\ncommit complete\n"),
    "routeros": ("",),
}


@pytest.mark.parametrize("system", REFUSALS)
def test_what_a_device_says_when_it_refuses(system: str) -> None:
    refusal = DIALOGS[system].refusal
    assert [text for text in REFUSALS[system] if not refusal.search(text)] == []
    assert [text for text in TAKEN[system] if refusal.search(text)] == []
