// SPDX-License-Identifier: Apache-2.0
#include "plan/draw.hpp"

#include <algorithm>

// One body, compiled for the vector widths at hand; the loader picks. Sanitizers do not go with the resolver that this needs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(EVENHAND_NO_CLONES)
#define EVENHAND_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EVENHAND_CLONES
#endif

namespace evenhand::plan {
namespace {

constexpr std::uint32_t multiplier_0 = 0xD2511F53;
constexpr std::uint32_t multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9;
constexpr std::uint32_t weyl_1 = 0xBB67AE85;
constexpr int rounds = 10;

struct Lanes {
    alignas(64) std::array<std::array<std::uint32_t, FlowBlock::size>, 4> word;
};

// The counters of a block differ in k only: words 0 and 1 hold k, word 2 the direction, word 3 the attempt (0 here).
EVENHAND_CLONES void philox_lanes(Lanes& lanes, std::uint32_t key_0, std::uint32_t key_1) {
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t j = 0; j < FlowBlock::size; ++j) {
            const std::uint64_t product_0 = std::uint64_t{multiplier_0} * lanes.word[0][j];
            const std::uint64_t product_1 = std::uint64_t{multiplier_1} * lanes.word[2][j];
            const auto high_0 = static_cast<std::uint32_t>(product_0 >> 32U);
            const auto high_1 = static_cast<std::uint32_t>(product_1 >> 32U);
            lanes.word[0][j] = high_1 ^ lanes.word[1][j] ^ key_0;
            lanes.word[2][j] = high_0 ^ lanes.word[3][j] ^ key_1;
            lanes.word[1][j] = static_cast<std::uint32_t>(product_1);
            lanes.word[3][j] = static_cast<std::uint32_t>(product_0);
        }
        key_0 += weyl_0;
        key_1 += weyl_1;
    }
}

// Lemire's multiplication method: the high half of x * count is uniform but for the draws whose low half is below
// 2^32 mod count; those are drawn again, so the result is exactly uniform. Returns whether any has to be.
EVENHAND_CLONES bool bound_lanes(const std::array<std::uint32_t, FlowBlock::size>& drawn, std::uint32_t first, std::uint32_t count, std::uint32_t threshold,
                                 std::array<std::uint32_t, FlowBlock::size>& out) {
    std::uint32_t biased = 0;
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        const std::uint64_t product = std::uint64_t{drawn[j]} * count;
        out[j] = first + static_cast<std::uint32_t>(product >> 32U);
        biased |= static_cast<std::uint32_t>(static_cast<std::uint32_t>(product) < threshold);
    }
    return biased != 0;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t product_0 = std::uint64_t{multiplier_0} * c[0];
        const std::uint64_t product_1 = std::uint64_t{multiplier_1} * c[2];
        c = {static_cast<std::uint32_t>(product_1 >> 32U) ^ c[1] ^ key[0], static_cast<std::uint32_t>(product_1),
             static_cast<std::uint32_t>(product_0 >> 32U) ^ c[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
        key[0] += weyl_0;
        key[1] += weyl_1;
    }
    return c;
}

FlowDraw::FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}, direction_{static_cast<std::uint32_t>(direction)} {
    const std::array<FieldRange, 4> ranges{plan.side(sending_side(direction)).hosts.host, plan.side(receiving_side(direction)).hosts.host, plan.source_ports,
                                           plan.destination_ports};
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        const std::uint32_t count = ranges[i].mode == Mode::fixed ? 1 : ranges[i].count;
        fields_[i] = {.range = ranges[i], .threshold = (0U - count) % count};
        fields_[i].range.count = count;
    }
}

std::uint32_t FlowDraw::draw_field(std::size_t field, std::uint64_t k, std::uint32_t attempt) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), direction_, attempt}, key_)[field];
}

std::uint32_t FlowDraw::redraw(std::size_t field, std::uint64_t k) const noexcept {
    const auto& [range, threshold] = fields_[field];
    switch (range.mode) {
        case Mode::fixed: return range.first;
        case Mode::increment: return range.first + static_cast<std::uint32_t>(k % range.count);
        case Mode::decrement: return range.first + range.count - 1 - static_cast<std::uint32_t>(k % range.count);
        case Mode::pseudorandom: break;
    }
    for (std::uint32_t attempt = 0;; ++attempt) {
        const std::uint64_t product = std::uint64_t{draw_field(field, k, attempt)} * range.count;
        if (static_cast<std::uint32_t>(product) >= threshold) return range.first + static_cast<std::uint32_t>(product >> 32U);
    }
}

Flow FlowDraw::draw(std::uint64_t k) const noexcept { return {redraw(0, k), redraw(1, k), redraw(2, k), redraw(3, k)}; }

void FlowDraw::draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    Lanes lanes;
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        const std::uint64_t k = first + j * stride;
        lanes.word[0][j] = static_cast<std::uint32_t>(k);
        lanes.word[1][j] = static_cast<std::uint32_t>(k >> 32U);
        lanes.word[2][j] = direction_;
        lanes.word[3][j] = 0;
    }
    philox_lanes(lanes, key_[0], key_[1]);
    const std::array<std::array<std::uint32_t, FlowBlock::size>*, 4> outs{&block.source, &block.destination, &block.source_port, &block.destination_port};
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        const auto& [range, threshold] = fields_[i];
        const bool biased = bound_lanes(lanes.word[i], range.first, range.count, threshold, *outs[i]);
        if (biased || range.mode != Mode::pseudorandom) {
            for (std::size_t j = 0; j < FlowBlock::size; ++j) (*outs[i])[j] = redraw(i, first + j * stride);
        }
    }
}

}  // namespace evenhand::plan
