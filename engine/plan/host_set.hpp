// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the hosts of one side as numbers 0, 1, 2, ..., and the host that has a given address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// Which hosts of a list are numbered. Behind a gateway one of each entry is enough to show that its route is right.
enum class Numbered : std::uint8_t { every_host, one_of_each_entry };

/// What is numbered of this side's hosts when they are reached.
[[nodiscard]] inline Numbered numbered_of(const PlanSide& side) {
    return side.gateway ? Numbered::one_of_each_entry : Numbered::every_host;
}

/// All host addresses of one side. Host i is host `i % hosts per network` of network `i / hosts per network`. Modes do
/// not matter here: a host that a comparison run never draws is a host as well. There is no table, so that 16 million
/// hosts take no memory.
///
/// Hosts of a list are numbered as their addresses ascend. With one_of_each_entry host i is the first address of an
/// entry; of more than most_reached entries, as many are taken, evenly spread.
class HostSet {
   public:
    static constexpr std::uint32_t most_reached = 65536;

    explicit HostSet(const HostRange& range, Numbered numbered = Numbered::every_host);

    /// At least 1, at most 2^24; of a list behind a gateway, whose hosts nobody numbers, also more.
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

    /// Address of host i < size().
    [[nodiscard]] IpAddress address(std::uint32_t i) const {
        if (list_) return listed_address(i);
        return range_.address(range_.value({.network = i / range_.host.count, .host = i % range_.host.count}));
    }

    [[nodiscard]] IpVersion version() const noexcept { return address(0).version; }

    /// The host that has this address; nothing if none has. A hot path: neighbour answers depend on it. In a list
    /// whose hosts are not all numbered, the number says only that there is one.
    [[nodiscard]] std::optional<std::uint32_t> find(const IpAddress& address) const noexcept;

    /// The same for an address of this set's IP version in a frame, in network order.
    [[nodiscard]] std::optional<std::uint32_t> find(const std::byte* octets) const noexcept;

   private:
    [[nodiscard]] IpAddress listed_address(std::uint32_t i) const;
    [[nodiscard]] std::optional<std::uint32_t> find_listed(const std::byte* octets) const noexcept;

    HostRange range_;  // without any host, if there is a list
    std::uint32_t first_network_;
    std::shared_ptr<const AddressList> list_;
    Numbered numbered_;
    std::uint32_t size_;
};

}  // namespace evenhand::plan
