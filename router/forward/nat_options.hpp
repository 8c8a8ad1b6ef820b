// SPDX-License-Identifier: Apache-2.0
// Forward: options and counters of the translator by connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plan/address.hpp"

namespace evenhand::router {

/// The addresses that inside hosts have outside: `base`, with the 16-bit number at octet `offset` from `first` to
/// `first` + `count` - 1.
struct NatPool {
    plan::IpAddress base;
    std::size_t offset = 2;
    std::uint32_t first = 0;
    std::uint32_t count = 1;

    [[nodiscard]] std::uint16_t number_in(const plan::IpAddress& address) const noexcept {
        return static_cast<std::uint16_t>(address.octets[offset] << 8U | address.octets[offset + 1]);
    }
    /// The number need not be in the pool.
    [[nodiscard]] plan::IpAddress address(std::uint16_t number) const noexcept {
        plan::IpAddress address = base;
        address.octets[offset] = static_cast<std::uint8_t>(number >> 8U);
        address.octets[offset + 1] = static_cast<std::uint8_t>(number);
        return address;
    }
    [[nodiscard]] bool contains(const plan::IpAddress& wanted) const noexcept {
        if (wanted.version != base.version) return false;
        const std::uint16_t number = number_in(wanted);
        return number >= first && number - first < count && address(number) == wanted;
    }
};

enum class WhenFull : std::uint8_t {
    refuse,  // a new connection is dropped
    replace  // it replaces the oldest connection
};

/// NAT44 and NAT66, according to the IP version of the pool; NAT64 with a prefix.
struct NatOptions {
    static constexpr std::size_t default_connections = std::size_t{1} << 20U;
    static constexpr std::size_t most_connections = std::size_t{1} << 27U;

    unsigned inside = 0;  // interface whose hosts are hidden behind the pool
    NatPool pool;
    plan::IpAddress prefix;
    unsigned prefix_length = 0;  // 0: the inside hosts have the IP version of the pool
    std::uint16_t first_port = 1024;
    std::uint16_t last_port = 65535;
    std::size_t capacity = default_connections;
    WhenFull when_full = WhenFull::refuse;
    double timeout_s = 0;     // without a frame; 0: no connection ends by itself
    double entry_cost = 1;    // of a frame that makes a connection, as a multiple of any other frame's cost
    bool reuse_ports = true;  // a port of a pool address serves connections to several destinations
    double flush_us_per_entry = 0;
    /// Every how many new connections one is treated wrongly; 0: none.
    std::uint64_t same_tuple_every = 0;
    std::uint64_t lost_entry_every = 0;
    std::uint64_t other_address_every = 0;
    std::uint64_t wrong_checksum_every = 0;

    [[nodiscard]] bool is_nat64() const noexcept { return prefix_length != 0; }
    [[nodiscard]] plan::IpVersion inside_version() const noexcept {
        return is_nat64() ? plan::IpVersion::v6 : pool.base.version;
    }
};

struct NatCounters {
    std::size_t entries = 0;
    std::size_t most_entries = 0;
    std::uint64_t created = 0;   // new connections, including those whose entry was lost on purpose
    std::uint64_t replaced = 0;  // entries
    std::uint64_t expired = 0;
    std::uint64_t flushed = 0;
    std::uint64_t translated_frames = 0;
    std::uint64_t refused_full = 0;  // frames that were dropped; the same for the next three
    std::uint64_t exhausted_ports = 0;
    std::uint64_t unknown_frames = 0;  // to an address of the pool, but without a connection
    std::uint64_t refused_frames = 0;  // not a whole UDP packet
    std::uint64_t same_tuple_frames = 0;
    std::uint64_t lost_entry_frames = 0;
    std::uint64_t other_address_frames = 0;
    std::uint64_t wrong_checksum_frames = 0;
};

}  // namespace evenhand::router
