// SPDX-License-Identifier: Apache-2.0
#include "plan/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

namespace evenhand::plan {

std::optional<IpAddress> parse_address(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) return std::nullopt;  // inet_pton would stop there
    const std::string terminated{text};
    IpAddress address;
    if (inet_pton(AF_INET, terminated.c_str(), address.octets.data()) == 1) {
        address.version = IpVersion::v4;
        return address;
    }
    address.octets = {};
    if (inet_pton(AF_INET6, terminated.c_str(), address.octets.data()) == 1) {
        address.version = IpVersion::v6;
        return address;
    }
    return std::nullopt;
}

std::string to_string(const IpAddress& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(address.version == IpVersion::v4 ? AF_INET : AF_INET6, address.octets.data(), text.data(), text.size());
    return text.data();
}

std::optional<MacAddress> parse_mac(std::string_view text) {
    constexpr std::size_t mac_text_length = 17;  // aa:bb:cc:dd:ee:ff
    if (text.size() != mac_text_length) return std::nullopt;
    const auto nibble = [](char c) -> int {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        if (c >= 'A' && c <= 'F') return c - 'A' + 10;
        return -1;
    };
    MacAddress mac{};
    for (std::size_t i = 0; i < mac.size(); ++i) {
        const int high = nibble(text[3 * i]);
        const int low = nibble(text[3 * i + 1]);
        if (high < 0 || low < 0 || (i + 1 < mac.size() && text[3 * i + 2] != ':')) return std::nullopt;
        mac[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return mac;
}

std::string to_string(const MacAddress& mac) {
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

IpAddress link_local_address(const MacAddress& mac) {
    IpAddress address{.version = IpVersion::v6};
    address.octets = {0xfe,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(mac[0] ^ 2U),
                      mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    return address;
}

}  // namespace evenhand::plan
