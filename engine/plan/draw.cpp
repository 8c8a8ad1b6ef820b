// SPDX-License-Identifier: Apache-2.0
#include "plan/draw.hpp"

namespace evenhand::plan {

FlowDraw::FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}, direction_{static_cast<std::uint32_t>(direction)} {
    const std::array<FieldRange, drawn_fields> ranges{plan.side(sending_side(direction)).hosts.host, plan.side(receiving_side(direction)).hosts.host, plan.source_ports,
                                                      plan.destination_ports};
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        modes_[i] = ranges[i].mode;
        // A pseudorandom draw among one is that one.
        bounds_.set(i, ranges[i].first, ranges[i].mode == Mode::fixed ? 1 : ranges[i].count);
        all_pseudorandom_ = all_pseudorandom_ && (ranges[i].mode == Mode::pseudorandom || ranges[i].mode == Mode::fixed);
    }
}

std::uint32_t FlowDraw::draw_field(std::size_t field, std::uint64_t k) const noexcept {
    const std::uint32_t first = bounds_.first[field];
    const std::uint32_t count = bounds_.count[field];
    if (modes_[field] == Mode::increment) return first + static_cast<std::uint32_t>(k % count);
    if (modes_[field] == Mode::decrement) return first + count - 1 - static_cast<std::uint32_t>(k % count);
    for (std::uint32_t attempt = 0;; ++attempt) {
        const auto drawn = philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), direction_, attempt}, key_);
        const std::uint64_t product = std::uint64_t{drawn[field]} * count;
        if (static_cast<std::uint32_t>(product) >= bounds_.threshold[field]) return first + static_cast<std::uint32_t>(product >> 32U);
    }
}

Flow FlowDraw::draw(std::uint64_t k) const noexcept { return {draw_field(0, k), draw_field(1, k), draw_field(2, k), draw_field(3, k)}; }

void FlowDraw::draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    const bool biased = draw_lanes(first, stride, direction_, key_, bounds_, block.lanes);
    if (!biased && all_pseudorandom_) [[likely]]
        return;
    for (std::size_t i = 0; i < drawn_fields; ++i) {
        for (std::size_t j = 0; j < FlowBlock::size; ++j) block.lanes.field[i][j] = draw_field(i, first + j * stride);
    }
}

}  // namespace evenhand::plan
