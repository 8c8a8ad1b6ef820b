# SPDX-License-Identifier: Apache-2.0
"""A made-up plan of a stateless translator: IPv6 on the left, IPv4 on the right, and frames that are 20
octets longer on the left. It is nothing but a topology."""

from __future__ import annotations

from evenhand.plan import PeerAddresses, SideAddresses, Topology

translated = Topology(
    name="translated",
    figure="made up",
    left=SideAddresses(
        dut="2001:2:0:1000::1/64",
        gateway="2001:2:0:1000::2/64",
        host_network="2001:2::/64",
        peers=PeerAddresses(base="64:ff9b::c613:0", offset=14),
        added_octets=20,
    ),
    right=SideAddresses(
        dut="10.0.1.1/24",
        gateway="10.0.1.2/24",
        host_network="198.19.0.0/16",
        peers=PeerAddresses(base="198.18.0.0", offset=2),
    ),
    first_host=1,
    most_hosts=65534,
    interface_id=2,
)
translated_direct = Topology(
    name="translated_direct",
    figure="made up",
    left=SideAddresses(
        dut="2001:2::1/64", host_network="2001:2::/64", peers=translated.left.peers, added_octets=20
    ),
    right=SideAddresses(dut="198.19.0.1/16", host_network="198.19.0.0/16", peers=translated.right.peers),
    first_host=2,
    most_hosts=65533,
    interface_id=2,
)
