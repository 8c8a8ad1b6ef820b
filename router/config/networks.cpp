// SPDX-License-Identifier: Apache-2.0
#include "config/networks.hpp"

#include <fmt/format.h>

#include <charconv>

namespace evenhand::router {

using contract::ObjectReader;

std::pair<plan::IpAddress, unsigned> read_prefix(ObjectReader& r, std::string_view key, const std::string& text) {
    const auto slash = text.find('/');
    const auto address = plan::parse_address(text.substr(0, slash));
    unsigned length = 0;
    bool is_good = address && slash != std::string::npos;
    if (is_good) {
        const char* const begin = text.data() + slash + 1;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(begin, end, length);
        is_good = error == std::errc{} && stop == end && length <= 8 * plan::address_octets(address->version);
    }
    if (!is_good)
        r.refuse(key, fmt::format("\"{}\" is not an address with a prefix length", text),
                 "Write it like 10.0.0.1/24 or 2001:2::1/64.");
    return {*address, length};
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
