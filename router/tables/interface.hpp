// SPDX-License-Identifier: Apache-2.0
// Tables: one interface of the router and its addresses.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/address.hpp"

namespace evenhand::router {

/// Two consecutive ones, left and right, are a pair.
inline constexpr std::size_t most_interfaces = 8;

/// An address of the router, and the length of its link's prefix: 1..32 bits in IPv4, 1..128 in IPv6.
struct InterfaceAddress {
    plan::IpAddress address;
    unsigned prefix_length = 0;
};

/// Whether the first `prefix_length` bits are the same; addresses of different families never match.
[[nodiscard]] bool is_in_prefix(const plan::IpAddress& address, const plan::IpAddress& network,
                                unsigned prefix_length) noexcept;

/// The address with all bits after the first `prefix_length` cleared.
[[nodiscard]] plan::IpAddress network_of(const plan::IpAddress& address, unsigned prefix_length) noexcept;

/// Whether all host bits are one or all are zero in IPv4, if the prefix has such addresses (RFC 1122, 3.2.1.3; a /31
/// has none, RFC 3021).
[[nodiscard]] bool is_broadcast(const plan::IpAddress& address, unsigned prefix_length) noexcept;

/// An address that one host can have: not all zero, not multicast (224.0.0.0/4, ff00::/8), not 255.255.255.255.
[[nodiscard]] bool is_unicast(const plan::IpAddress& address) noexcept;

/// ff02::1:ffXX:XXXX (RFC 4291, 2.7.1).
[[nodiscard]] plan::IpAddress solicited_node_group(const plan::IpAddress& address) noexcept;

/// Filled from the configuration, then only read.
struct Interface {
    unsigned number = 0;  // index of the interface in its pair: left, right
    plan::MacAddress mac{};
    std::vector<InterfaceAddress> addresses;  // of both families; empty is allowed
    plan::IpAddress link_local;               // plan::link_local_address(mac)

    /// One of `addresses`, or the link-local address.
    [[nodiscard]] bool owns(const plan::IpAddress& address) const noexcept;
    /// Whether the address is in the prefix of one of `addresses` and not its broadcast address, or is link-local.
    [[nodiscard]] bool is_on_link(const plan::IpAddress& address) const noexcept;
    /// The address from which to ask about `target`: the own address with the longest prefix that contains it;
    /// otherwise the link-local address (IPv6) or the first of the family (IPv4); nullptr if there is none.
    [[nodiscard]] const plan::IpAddress* source_for(const plan::IpAddress& target) const noexcept;
};

}  // namespace evenhand::router
