// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: one IP address of either family.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace evenhand::plan {

enum class IpVersion : std::uint8_t { v4 = 4, v6 = 6 };

constexpr unsigned octet_bits = 8;

[[nodiscard]] constexpr std::size_t address_octets(IpVersion version) { return version == IpVersion::v4 ? 4 : 16; }

/// An address in network order. Only the first `address_octets(version)` octets count; the rest is zero.
struct IpAddress {
    IpVersion version = IpVersion::v4;
    std::array<std::uint8_t, 16> octets{};

    [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {octets.data(), address_octets(version)}; }
    friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// Parses any legal text form (RFC 4291 for IPv6); nothing if the text is not an address.
[[nodiscard]] std::optional<IpAddress> parse_address(std::string_view text);

/// Text by RFC 5952 (R5180-18).
[[nodiscard]] std::string to_string(const IpAddress& address);

using MacAddress = std::array<std::uint8_t, 6>;

[[nodiscard]] std::optional<MacAddress> parse_mac(std::string_view text);
[[nodiscard]] std::string to_string(const MacAddress& mac);

/// fe80::/10, by the first two octets of an IPv6 address. Such addresses are never routed (RFC 4291, 2.5.6).
[[nodiscard]] constexpr bool is_link_local(std::uint8_t first, std::uint8_t second) noexcept {
    return first == 0xfe && (second & 0xC0U) == 0x80;
}
[[nodiscard]] constexpr bool is_link_local(const IpAddress& address) noexcept {
    return address.version == IpVersion::v6 && is_link_local(address.octets[0], address.octets[1]);
}

/// fe80::/64 with the interface identifier made from the MAC (RFC 4291, appendix A).
[[nodiscard]] IpAddress link_local_address(const MacAddress& mac);

}  // namespace evenhand::plan
