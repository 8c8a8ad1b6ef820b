// SPDX-License-Identifier: Apache-2.0
#include "proof/contrast.hpp"

namespace evenhand::proof {
namespace {

constexpr std::size_t first_port_lane = 2;  // the addresses come first

void put(const Field& field, std::size_t j, std::uint32_t drawn, plan::FlowBlock& block) noexcept {
    const std::uint32_t value = field.range.first + (field.is_drawn() ? drawn % field.range.count : 0);
    block.lanes.field[field.lane][j] |= value << field.shift;
}

}  // namespace

std::uint32_t FifteenBitDraw::next() noexcept {
    state_ = 214013U * state_ + 2531011U;
    return state_ >> 16U & 0x7FFFU;
}

void FifteenBitDraw::draw_block(std::uint64_t /*first*/, std::uint64_t /*stride*/, plan::FlowBlock& block) noexcept {
    block.lanes.field = {};
    for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
        for (const auto& field : fields_) {
            std::uint32_t drawn = next();
            if (field.lane < first_port_lane) drawn = (drawn << 16U) + next();
            put(field, j, drawn, block);
        }
    }
}

void ModuloDraw::draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) const noexcept {
    constexpr unsigned bits = 16;
    block.lanes.field = {};
    for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
        const std::uint64_t k = first + j * stride;
        const auto words = plan::philox4x32(
            {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), direction_, 0}, key_);
        for (const auto& field : fields_) {
            const std::uint32_t word = words[field.lane];
            // A network uses the other half of its host's word.
            put(field, j, field.shift == 0 ? word >> bits : word & ((1U << bits) - 1), block);
        }
    }
}

}  // namespace evenhand::proof
