// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the flows that frames must have, for a receiver that looks at one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "frame/reader.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// The flows of frames that are looked at again: those of the blocks that came last. Frames of a block mostly come one
/// after the other. `Draw` is a plan::FlowDraw or what draws like it.
template <class Draw>
class KeptFlows {
   public:
    struct Place {
        const plan::FlowBlock* block;
        std::size_t at;
    };

    /// `streams`: of the direction.
    KeptFlows(Draw draw, std::uint64_t streams) noexcept : draw_{std::move(draw)}, streams_{streams} {}

    /// Where the flow of this frame is; nothing if no stream sends such a number.
    [[nodiscard]] std::optional<Place> of(const TagNumbers& tag) noexcept {
        // Frame i of stream s is frame s + i * streams of the direction, and blocks begin at multiples of their size.
        if (tag.stream >= streams_) return std::nullopt;
        const std::uint64_t i = streams_ == 1 ? tag.sequence : tag.sequence / streams_;
        if (i * streams_ + tag.stream != tag.sequence) return std::nullopt;
        const std::size_t at = i % plan::FlowBlock::size;
        const std::uint64_t first = tag.sequence - at * streams_;
        // Streams side by side have blocks of their own.
        Kept& kept = kept_[(i / plan::FlowBlock::size + std::size_t{5} * tag.stream) % kept_.size()];
        if (kept.first != first) {
            draw_.draw_block(first, streams_, kept.flows);
            kept.first = first;
        }
        return Place{.block = &kept.flows, .at = at};
    }

   private:
    struct Kept {
        std::uint64_t first = UINT64_MAX;  // number of its first frame
        plan::FlowBlock flows{};
    };
    static constexpr std::size_t blocks = 16;

    Draw draw_;
    std::uint64_t streams_;
    std::array<Kept, blocks> kept_{};
};

}  // namespace evenhand::frame
