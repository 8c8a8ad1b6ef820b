// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which values frame k has. A pure function of (plan, seed, direction, k): no state, no tables (D3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/philox.hpp"
#include "plan/plan.hpp"

namespace evenhand::plan {

/// The varying values of one frame, as host-order numbers below 2^16.
struct Flow {
    std::uint32_t source = 0;            // the 16-bit number in the source address
    std::uint32_t destination = 0;       // the same for the destination
    std::uint32_t source_port = 0;       // UDP
    std::uint32_t destination_port = 0;  // UDP

    friend bool operator==(const Flow&, const Flow&) = default;
};

/// Flows of several frames.
struct FlowBlock {
    static constexpr std::size_t size = DrawLanes::size;
    DrawLanes lanes;

    [[nodiscard]] std::uint64_t source(std::size_t j) const noexcept { return lanes.field[0][j]; }
    [[nodiscard]] std::uint64_t destination(std::size_t j) const noexcept { return lanes.field[1][j]; }
    [[nodiscard]] std::uint64_t source_port(std::size_t j) const noexcept { return lanes.field[2][j]; }
    [[nodiscard]] std::uint64_t destination_port(std::size_t j) const noexcept { return lanes.field[3][j]; }
};

/// Draws the flows of one direction. Every field is drawn independently and exactly uniformly, with replacement
/// (SEED-40, SEED-41, SEED-43, R4814-01, R4814-04). Copyable; allocates nothing.
class FlowDraw {
   public:
    FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed);

    /// Flow of frame k.
    [[nodiscard]] Flow draw(std::uint64_t k) const noexcept;

    /// Flows of the frames first, first + stride, first + 2 * stride, ... Equal to draw() of each.
    void draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;

   private:
    [[nodiscard]] std::uint32_t draw_field(std::size_t field, std::uint64_t k) const noexcept;

    DrawBounds bounds_;
    std::array<Mode, drawn_fields> modes_{};
    bool all_pseudorandom_ = true;
    PhiloxKey key_;
    std::uint32_t direction_;
};

}  // namespace evenhand::plan
