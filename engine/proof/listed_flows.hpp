// SPDX-License-Identifier: Apache-2.0
// Proof: what is counted of plans with lists of hosts. Their addresses are too many to be counted one by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/draw.hpp"
#include "plan/host_set.hpp"
#include "plan/plan.hpp"

namespace evenhand::proof {

/// Parts of equal size: of an entry, and of all addresses of a list.
constexpr std::uint32_t parts_of_entry = 256;
constexpr unsigned bits_of_part = 8;
constexpr std::uint32_t parts_of_list = 65536;

/// The flows that a FlowDraw draws for such a plan, with numbers in place of addresses: the entry of the list that an
/// address is in, and in the lower bits the part of that entry; of a list whose hosts are equally likely, the part of
/// all addresses; of a range, HostRange::value(). They are read from the addresses, not from what these were made of.
///
/// An address of a small entry is not in one part alone. Which one is counted is then chosen at random among those that
/// it touches, by their shares of it, so that all parts are equally likely.
class ListedFlows {
   public:
    ListedFlows(const plan::AddressPlan& plan, plan::Direction direction, std::uint64_t seed);

    void draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) const noexcept;

   private:
    /// The number that is counted for an address of these hosts; a number that no field has, if it is none of them.
    /// `share`: random, from 0 to below 1.
    [[nodiscard]] static std::uint32_t counted(const plan::HostRange& hosts, const plan::HostSet& set,
                                               const std::byte* octets, double share) noexcept;

    plan::FlowDraw draw_;
    std::array<plan::HostRange, 2> hosts_;  // source and destination
    std::array<plan::HostSet, 2> sets_;     // the same
};

}  // namespace evenhand::proof
