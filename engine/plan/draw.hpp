// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which values frame k has. A pure function of (plan, seed, direction, k): no state, no tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// Philox4x32 with 10 rounds: 128 pseudorandom bits for each (counter, key). Salmon et al., "Parallel random numbers: as easy as
/// 1, 2, 3", SC 2011; it passes BigCrush, and the authors' known answers are in tests/draw_test.cpp. Chosen because it needs no state
/// (so any core can draw any frame) and its multiplications fit the vector units of all CPUs we meet.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Flows of `size` frames, as arrays so that the compiler draws them side by side. Values are host-order numbers.
struct FlowBlock {
    static constexpr std::size_t size = 32;
    alignas(64) std::array<std::uint32_t, size> source;            // the 16-bit number in the source address
    alignas(64) std::array<std::uint32_t, size> destination;       // the same for the destination
    alignas(64) std::array<std::uint32_t, size> source_port;       // UDP
    alignas(64) std::array<std::uint32_t, size> destination_port;  // UDP
};

/// The varying values of one frame.
struct Flow {
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint32_t source_port = 0;
    std::uint32_t destination_port = 0;

    friend bool operator==(const Flow&, const Flow&) = default;
};

/// Draws the flows of one direction. Every field is drawn independently and exactly uniformly, with replacement
/// (SEED-40, SEED-41, SEED-43, R4814-01, R4814-04). Copyable; allocates nothing after construction.
class FlowDraw {
   public:
    FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed);

    /// Flow of frame k.
    [[nodiscard]] Flow draw(std::uint64_t k) const noexcept;

    /// Flows of the frames first, first + stride, first + 2 * stride, ... Equal to draw() of each.
    void draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;

   private:
    struct Field {
        FieldRange range;
        std::uint32_t threshold = 0;  // draws whose low product is below it would be biased: 2^32 mod count
    };
    [[nodiscard]] std::uint32_t draw_field(std::size_t field, std::uint64_t k, std::uint32_t attempt) const noexcept;
    [[nodiscard]] std::uint32_t redraw(std::size_t field, std::uint64_t k) const noexcept;

    std::array<Field, 4> fields_;  // source, destination, source port, destination port
    std::array<std::uint32_t, 2> key_;
    std::uint32_t direction_;
};

}  // namespace evenhand::plan
