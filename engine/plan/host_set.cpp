// SPDX-License-Identifier: Apache-2.0
#include "plan/host_set.hpp"

#include <cstring>

namespace evenhand::plan {
namespace {

constexpr std::uint32_t octet_values = 256;

std::uint32_t read_word(const std::byte* at) noexcept {
    return static_cast<std::uint32_t>(at[0]) * octet_values + static_cast<std::uint32_t>(at[1]);
}

}  // namespace

std::optional<std::uint32_t> HostSet::find(const std::byte* octets) const noexcept {
    const auto& [base, host_at, hosts, networks, gap] = range_;
    const std::uint32_t low_at = range_.low_offset();
    const std::uint32_t word =
        static_cast<std::uint32_t>(octets[host_at]) * octet_values + static_cast<std::uint32_t>(octets[low_at]);
    // Numbers below the first wrap around and are too large.
    const std::uint32_t host = (range_.shares_octets() ? word % octet_values : word) - hosts.first;
    std::uint32_t network = 0;
    if (range_.shares_octets()) network = word / octet_values - first_network_;
    if (range_.has_network_octets()) network = read_word(octets + networks->offset) - first_network_;
    if (host >= hosts.count || network >= range_.networks()) return std::nullopt;
    // All other octets must be as in the base.
    std::array<std::uint8_t, 16> rest{};
    std::memcpy(rest.data(), octets, address_octets(base.version));
    rest[host_at] = base.octets[host_at];
    rest[low_at] = base.octets[low_at];
    if (range_.has_network_octets()) std::memcpy(&rest[networks->offset], &base.octets[networks->offset], 2);
    if (rest != base.octets) return std::nullopt;
    return network * hosts.count + host;
}

std::optional<std::uint32_t> HostSet::find(const IpAddress& address) const noexcept {
    return address.version == range_.base.version ? find(std::as_bytes(address.bytes()).data()) : std::nullopt;
}

}  // namespace evenhand::plan
