// SPDX-License-Identifier: Apache-2.0
#include "config/networks.hpp"

#include <fmt/format.h>

#include <charconv>

namespace evenhand::router {

using contract::ObjectReader;

std::optional<std::pair<plan::IpAddress, unsigned>> parse_prefix(std::string_view text) {
    const auto slash = text.find('/');
    const auto address = plan::parse_address(text.substr(0, slash));
    if (!address || slash == std::string_view::npos) return std::nullopt;
    unsigned length = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, length);
    if (error != std::errc{} || stop != end || length > 8 * plan::address_octets(address->version)) return std::nullopt;
    return std::pair{*address, length};
}

std::pair<plan::IpAddress, unsigned> read_prefix(ObjectReader& r, std::string_view key, const std::string& text) {
    const auto prefix = parse_prefix(text);
    if (!prefix)
        r.refuse(key, fmt::format("\"{}\" is not an address with a prefix length", text),
                 "Write it like 10.0.0.1/24 or 2001:2::1/64.");
    return *prefix;
}

std::pair<plan::IpAddress, unsigned> read_network(ObjectReader& r, std::string_view key, plan::IpVersion version) {
    const std::string text = r.text(key);
    const auto [address, length] = read_prefix(r, key, text);
    if (address.version != version)
        r.refuse(key, fmt::format("\"{}\" is not an IPv{} network", text, static_cast<int>(version)),
                 "Give a network of that IP version.");
    for (unsigned bit = length; bit < 8 * plan::address_octets(version); ++bit) {
        if ((address.octets[bit / 8] >> (7 - bit % 8) & 1U) != 0)
            r.refuse(key, fmt::format("\"{}\" has bits behind its prefix", text), "Write them as zeros.");
    }
    return {address, length};
}

}  // namespace evenhand::router
