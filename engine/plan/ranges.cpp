// SPDX-License-Identifier: Apache-2.0
#include "plan/ranges.hpp"

#include <utility>

#include "plan/address_list.hpp"

namespace evenhand::plan {
namespace {

std::uint32_t read_word(const IpAddress& address, std::uint32_t offset) {
    return address.octets[offset] * 256U + address.octets[offset + 1];
}

void write_word(IpAddress& address, std::uint32_t offset, std::uint32_t word) {
    address.octets[offset] = static_cast<std::uint8_t>(word >> 8U);
    address.octets[offset + 1] = static_cast<std::uint8_t>(word);
}

}  // namespace

HostRange HostRange::of(std::shared_ptr<const AddressList> list, Mode mode) {
    return {.base = list->address(0), .host = {.first = 0, .count = 1, .mode = mode}, .list = std::move(list)};
}

std::uint32_t HostRange::first_network() const {
    if (!network) return 0;
    return shares_octets() ? base.octets[offset] : read_word(base, network->offset);
}

std::uint32_t HostRange::value(HostIndex i) const {
    const std::uint32_t network_number = first_network() + i.network;
    const std::uint32_t host_number = host.first + i.host;
    if (!network) return host_number;
    return shares_octets() ? network_number << 8U | host_number : network_number << 16U | host_number;
}

HostIndex HostRange::index(std::uint32_t value) const {
    if (shares_octets()) return {.network = (value >> 8U) - first_network(), .host = (value & 0xFFU) - host.first};
    return {.network = (value >> 16U) - first_network(), .host = (value & 0xFFFFU) - host.first};
}

IpAddress HostRange::address(std::uint32_t value) const {
    IpAddress result = base;
    result.octets[offset] = static_cast<std::uint8_t>(value >> 8U);
    result.octets[low_offset()] = static_cast<std::uint8_t>(value);
    if (has_network_octets()) write_word(result, network->offset, value >> 16U);
    return result;
}

bool HostRange::contains(const IpAddress& wanted) const {
    if (list) return list->contains(wanted);
    const std::uint32_t value = (wanted.octets[offset] * 256U + wanted.octets[low_offset()]) |
                                (has_network_octets() ? read_word(wanted, network->offset) << 16U : 0);
    // Numbers below the first wrap around and are too large.
    const HostIndex i = index(value);
    return address(value) == wanted && i.network < networks() && i.host < host.count;
}

}  // namespace evenhand::plan
