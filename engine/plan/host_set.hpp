// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the hosts of one side as numbers 0, 1, 2, ... and back: whose address is this?
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// Every host address of one side. Host i is host `i % hosts per network` of network `i / hosts per network`. Modes do not matter
/// here: a host that a comparison run never draws is a host all the same. No table: 16 million hosts cost nothing.
class HostSet {
   public:
    explicit HostSet(const HostRange& range, std::uint32_t network_offset = 0, std::uint32_t networks = 1);

    /// At least 1, at most 2^24.
    [[nodiscard]] std::uint32_t size() const noexcept { return networks_ * hosts_; }

    /// Address of host i < size().
    [[nodiscard]] IpAddress address(std::uint32_t i) const noexcept;

    /// The host that has this address; nothing if none has. Hot: answers for neighbours are decided here.
    [[nodiscard]] std::optional<std::uint32_t> find(const IpAddress& address) const noexcept;

    /// The same for an address of this set's IP version that stands in a frame, in network order.
    [[nodiscard]] std::optional<std::uint32_t> find(const std::byte* octets) const noexcept;

   private:
    /// Where the number of the network stands.
    enum class Split : std::uint8_t {
        none,    // there is one network
        octets,  // in the octet before that of the host: one 16-bit number holds both (IPv4)
        words,   // in a 16-bit number of its own (IPv6)
    };

    IpAddress base_;  // with all numbers zero
    std::size_t host_at_;
    std::size_t network_at_;
    std::uint32_t first_host_;
    std::uint32_t hosts_;
    std::uint32_t first_network_;
    std::uint32_t networks_;
    Split split_;
};

}  // namespace evenhand::plan
