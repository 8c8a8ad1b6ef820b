// SPDX-License-Identifier: Apache-2.0
// Proof: generators with known faults, as testers have had them. They draw no frames of trials: they show that the
// proof can fail.
#pragma once

#include <cstdint>
#include <vector>

#include "proof/counts.hpp"

namespace evenhand::proof {

/// The linear congruential generator of TRex's field engine: 15 bits a draw, one series for all fields. An address is
/// made of two draws, so its bit 15 is never set; a port is one draw, so it has at most 32,768 values.
class FifteenBitDraw {
   public:
    FifteenBitDraw(std::vector<Field> fields, std::uint64_t seed)
        : fields_{std::move(fields)}, state_{static_cast<std::uint32_t>(seed)} {}

    /// The next flows in the order of the calls: such a generator cannot draw a frame by its number.
    void draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) noexcept;

   private:
    [[nodiscard]] std::uint32_t next() noexcept;

    std::vector<Field> fields_;
    std::uint32_t state_;
};

/// Sixteen good bits, taken modulo the number of values: the first 2^16 mod n values occur twice as often as the
/// others.
class ModuloDraw {
   public:
    ModuloDraw(std::vector<Field> fields, plan::Direction direction, std::uint64_t seed)
        : fields_{std::move(fields)},
          key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
          direction_{static_cast<std::uint32_t>(direction)} {}

    void draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) const noexcept;

   private:
    std::vector<Field> fields_;
    plan::PhiloxKey key_;
    std::uint32_t direction_;
};

}  // namespace evenhand::proof
