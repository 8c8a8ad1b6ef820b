// SPDX-License-Identifier: Apache-2.0
#include "tables/interface.hpp"

#include <algorithm>
#include <cstring>

namespace evenhand::router {

using plan::IpAddress;
using plan::IpVersion;

bool is_in_prefix(const IpAddress& address, const IpAddress& network, unsigned prefix_length) noexcept {
    if (address.version != network.version) return false;
    const std::size_t whole = prefix_length / 8;
    if (std::memcmp(address.octets.data(), network.octets.data(), whole) != 0) return false;
    const unsigned rest = prefix_length % 8;
    return rest == 0 || ((address.octets[whole] ^ network.octets[whole]) >> (8 - rest)) == 0;
}

IpAddress network_of(const IpAddress& address, unsigned prefix_length) noexcept {
    IpAddress network = address;
    for (std::size_t i = 0; i < network.octets.size(); ++i) {
        const std::size_t kept_bits = prefix_length > 8 * i ? std::min<std::size_t>(prefix_length - 8 * i, 8) : 0;
        network.octets[i] = static_cast<std::uint8_t>(network.octets[i] & (0xFF00U >> kept_bits));
    }
    return network;
}

bool is_broadcast(const IpAddress& address, unsigned prefix_length) noexcept {
    constexpr unsigned longest_with_broadcast = 30;
    if (address.version != IpVersion::v4 || prefix_length > longest_with_broadcast) return false;
    IpAddress inverted = address;
    for (std::size_t i = 0; i < plan::address_octets(IpVersion::v4); ++i)
        inverted.octets[i] = static_cast<std::uint8_t>(~inverted.octets[i]);
    return address == network_of(address, prefix_length) || inverted == network_of(inverted, prefix_length);
}

bool is_unicast(const IpAddress& address) noexcept {
    const auto is = [&](std::uint8_t value) {
        return std::ranges::all_of(address.bytes(), [value](std::uint8_t octet) { return octet == value; });
    };
    if (is(0)) return false;
    if (address.version == IpVersion::v6) return address.octets[0] != 0xff;
    constexpr std::uint8_t multicast = 0xE0;
    return (address.octets[0] & 0xF0U) != multicast && !is(0xFF);
}

IpAddress solicited_node_group(const IpAddress& address) noexcept {
    const auto& a = address.octets;
    return {.version = IpVersion::v6, .octets = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a[13], a[14], a[15]}};
}

bool Interface::owns(const IpAddress& address) const noexcept {
    return address == link_local ||
           std::ranges::any_of(addresses, [&](const InterfaceAddress& own) { return own.address == address; });
}

bool Interface::is_on_link(const IpAddress& address) const noexcept {
    return plan::is_link_local(address) || std::ranges::any_of(addresses, [&](const InterfaceAddress& own) {
               return is_in_prefix(address, own.address, own.prefix_length) &&
                      !is_broadcast(address, own.prefix_length);
           });
}

const IpAddress* Interface::source_for(const IpAddress& target) const noexcept {
    const InterfaceAddress* best = nullptr;
    const IpAddress* other = target.version == IpVersion::v6 ? &link_local : nullptr;
    for (const auto& own : addresses) {
        if (is_in_prefix(target, own.address, own.prefix_length) &&
            (best == nullptr || own.prefix_length > best->prefix_length))
            best = &own;
        if (other == nullptr && own.address.version == target.version) other = &own.address;
    }
    return best != nullptr ? &best->address : other;
}

}  // namespace evenhand::router
