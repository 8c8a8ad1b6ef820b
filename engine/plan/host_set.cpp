// SPDX-License-Identifier: Apache-2.0
#include "plan/host_set.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plan/address_list.hpp"

namespace evenhand::plan {
namespace {

constexpr std::uint32_t octet_values = 256;

std::uint32_t read_word(const std::byte* at) noexcept {
    return static_cast<std::uint32_t>(at[0]) * octet_values + static_cast<std::uint32_t>(at[1]);
}

}  // namespace

HostSet::HostSet(const HostRange& range, Numbered numbered)
    : range_{range},
      first_network_{range.first_network()},
      list_{range.list},
      numbered_{numbered},
      size_{range.addresses()} {
    if (!list_) return;
    range_.host.count = 0;  // so that find() asks for a list only where it has not found a host
    constexpr Wide most = std::numeric_limits<std::uint32_t>::max();
    size_ = numbered == Numbered::one_of_each_entry
                ? static_cast<std::uint32_t>(std::min<std::size_t>(list_->size(), most_reached))
                : static_cast<std::uint32_t>(list_->last_number() < most ? list_->last_number() + 1 : most);
}

IpAddress HostSet::listed_address(std::uint32_t i) const {
    if (numbered_ == Numbered::every_host) return list_->address(i);
    return address_of(list_->version(), list_->first(std::size_t{i} * list_->size() / size_));
}

std::optional<std::uint32_t> HostSet::find_listed(const std::byte* octets) const noexcept {
    const auto number = list_->number(octets);
    return number ? std::optional{static_cast<std::uint32_t>(*number)} : std::nullopt;
}

std::optional<std::uint32_t> HostSet::find(const std::byte* octets) const noexcept {
    const auto& [base, host_at, hosts, networks, gap, list] = range_;
    const std::uint32_t low_at = range_.low_offset();
    const std::uint32_t word =
        static_cast<std::uint32_t>(octets[host_at]) * octet_values + static_cast<std::uint32_t>(octets[low_at]);
    // Numbers below the first wrap around and are too large.
    const std::uint32_t host = (range_.shares_octets() ? word % octet_values : word) - hosts.first;
    std::uint32_t network = 0;
    if (range_.shares_octets()) network = word / octet_values - first_network_;
    if (range_.has_network_octets()) network = read_word(octets + networks->offset) - first_network_;
    if (host >= hosts.count || network >= range_.networks()) return list_ ? find_listed(octets) : std::nullopt;
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
