// SPDX-License-Identifier: Apache-2.0
#include "proof/listed_flows.hpp"

#include <algorithm>
#include <limits>

#include "plan/address_list.hpp"
#include "plan/sent_flows.hpp"
#include "split_mix.hpp"

namespace evenhand::proof {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// In which of `parts` equal parts of the numbers 0 .. last this one is. A double has more digits than anybody could
/// count.
std::uint32_t part_of(Wide number, Wide last, std::uint32_t parts, double share) noexcept {
    const double all = static_cast<double>(last) + 1;
    return std::min(parts - 1, static_cast<std::uint32_t>((static_cast<double>(number) + share) / all * parts));
}

/// From 0 to below 1.
double share_of(std::uint64_t word) noexcept {
    constexpr unsigned unused_bits = 11;
    return static_cast<double>(word >> unused_bits) * 0x1p-53;
}

}  // namespace

ListedFlows::ListedFlows(const plan::AddressPlan& plan, plan::Direction direction, std::uint64_t seed)
    : draw_{plan, direction, seed},
      hosts_{plan::ranges_of(plan, direction).source, plan::ranges_of(plan, direction).destination},
      sets_{plan::HostSet{hosts_[0]}, plan::HostSet{hosts_[1]}} {}

std::uint32_t ListedFlows::counted(const plan::HostRange& hosts, const plan::HostSet& set, const std::byte* octets,
                                   double share) noexcept {
    if (!hosts.list) {
        const auto host = set.find(octets);
        return host ? hosts.value({.network = *host / hosts.host.count, .host = *host % hosts.host.count}) : none;
    }
    const auto place = hosts.list->place(octets);
    if (!place) return none;
    if (hosts.host.mode != plan::Mode::pseudorandom) return 0;
    if (hosts.list->choice() == plan::Choice::host)
        return part_of(*hosts.list->number(octets), hosts.list->last_number(), parts_of_list, share);
    const Wide last = hosts.list->last(place->entry) - hosts.list->first(place->entry);
    return static_cast<std::uint32_t>(place->entry) << bits_of_part |
           part_of(place->offset, last, parts_of_entry, share);
}

void ListedFlows::draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) const noexcept {
    draw_.draw_block(first, stride, block);
    const bool is_v4 = hosts_[0].base.version == plan::IpVersion::v4;
    for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
        std::uint64_t random = split_mix(first + j * stride);
        for (std::size_t end = 0; end < hosts_.size(); ++end) {
            auto& field = block.lanes.field[end][j];
            const auto address = plan::address_of(plan::IpVersion::v4, field);
            const std::byte* const octets =
                is_v4 ? std::as_bytes(address.bytes()).data() : block.addresses[j].data() + end * sizeof(Wide);
            field = counted(hosts_[end], sets_[end], octets, share_of(next_split_mix(random)));
        }
    }
}

}  // namespace evenhand::proof
