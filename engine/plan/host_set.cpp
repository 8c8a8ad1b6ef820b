// SPDX-License-Identifier: Apache-2.0
#include "plan/host_set.hpp"

#include <cstring>

namespace evenhand::plan {
namespace {

constexpr std::uint32_t octet_values = 256;

template <class Octet>
std::uint32_t read_word(const Octet* at) noexcept {
    return static_cast<std::uint32_t>(at[0]) * octet_values + static_cast<std::uint32_t>(at[1]);
}

void write_word(std::uint8_t* at, std::uint32_t value) noexcept {
    at[0] = static_cast<std::uint8_t>(value / octet_values);
    at[1] = static_cast<std::uint8_t>(value);
}

}  // namespace

HostSet::HostSet(const HostRange& range, std::uint32_t network_offset, std::uint32_t networks)
    : base_{range.base},
      host_at_{range.offset},
      network_at_{network_offset},
      first_host_{range.host.first},
      hosts_{range.host.count},
      first_network_{0},
      networks_{networks},
      split_{networks == 1                    ? Split::none
             : network_offset == range.offset ? Split::octets
                                              : Split::words} {
    if (split_ == Split::octets) first_network_ = base_.octets[host_at_];
    if (split_ == Split::words) {
        first_network_ = read_word(&base_.octets[network_at_]);
        write_word(&base_.octets[network_at_], 0);
    }
    write_word(&base_.octets[host_at_], 0);
}

IpAddress HostSet::address(std::uint32_t i) const noexcept {
    const std::uint32_t network = first_network_ + i / hosts_;
    const std::uint32_t host = first_host_ + i % hosts_;
    IpAddress result = base_;
    write_word(&result.octets[host_at_], split_ == Split::octets ? network * octet_values + host : host);
    if (split_ == Split::words) write_word(&result.octets[network_at_], network);
    return result;
}

std::optional<std::uint32_t> HostSet::find(const std::byte* octets) const noexcept {
    const std::uint32_t word = read_word(octets + host_at_);
    const std::uint32_t in_network = split_ == Split::octets ? word % octet_values : word;
    // Numbers below the first wrap around and are too large.
    const std::uint32_t host = in_network - first_host_;
    const std::uint32_t network = split_ == Split::octets ? word / octet_values - first_network_ : split_ == Split::words ? read_word(octets + network_at_) - first_network_ : 0;
    if (host >= hosts_ || network >= networks_) return std::nullopt;
    std::array<std::uint8_t, 16> rest{};
    const std::size_t length = address_octets(base_.version);
    std::memcpy(rest.data(), octets, length);
    write_word(&rest[host_at_], 0);
    if (split_ == Split::words) write_word(&rest[network_at_], 0);
    if (rest != base_.octets) return std::nullopt;
    return network * hosts_ + host;
}

std::optional<std::uint32_t> HostSet::find(const IpAddress& address) const noexcept {
    return address.version == base_.version ? find(std::as_bytes(address.bytes()).data()) : std::nullopt;
}

}  // namespace evenhand::plan
