// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the hosts of one side as numbers 0, 1, 2, ..., and the host that has a given address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// All host addresses of one side. Host i is host `i % hosts per network` of network `i / hosts per network`. Modes do
/// not matter here: a host that a comparison run never draws is a host as well. There is no table, so that 16 million
/// hosts take no memory.
class HostSet {
   public:
    explicit HostSet(const HostRange& range) : range_{range}, first_network_{range.first_network()} {}

    /// At least 1, at most 2^24.
    [[nodiscard]] std::uint32_t size() const noexcept { return range_.addresses(); }

    /// Address of host i < size().
    [[nodiscard]] IpAddress address(std::uint32_t i) const {
        return range_.address(range_.value({.network = i / range_.host.count, .host = i % range_.host.count}));
    }

    [[nodiscard]] IpVersion version() const noexcept { return address(0).version; }

    /// The host that has this address; nothing if none has. A hot path: neighbour answers depend on it.
    [[nodiscard]] std::optional<std::uint32_t> find(const IpAddress& address) const noexcept;

    /// The same for an address of this set's IP version in a frame, in network order.
    [[nodiscard]] std::optional<std::uint32_t> find(const std::byte* octets) const noexcept;

   private:
    HostRange range_;
    std::uint32_t first_network_;
};

}  // namespace evenhand::plan
