// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: keeps the flows that frames must have, for a receiver that checks frames one by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "frame/reader.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// The flows of the blocks that were drawn last: the frames of a block mostly arrive one after the other. `Draw` is a
/// plan::FlowDraw or a type with the same interface.
template <class Draw>
class KeptFlows {
   public:
    struct Place {
        const plan::FlowBlock* block;
        std::size_t at;
    };

    /// `streams`: how many the direction has.
    KeptFlows(Draw draw, std::uint64_t streams) noexcept : draw_{std::move(draw)}, streams_{streams} {}

    [[nodiscard]] const Draw& draw() const noexcept { return draw_; }
    [[nodiscard]] std::uint64_t streams() const noexcept { return streams_; }

    /// The place of this frame's flow; nothing if no stream sends a frame with this number.
    [[nodiscard]] std::optional<Place> of(const TagNumbers& tag) noexcept {
        // Frame i of stream s is frame s + i * streams of the direction, and blocks begin at multiples of their size.
        if (tag.stream >= streams_) return std::nullopt;
        const std::uint64_t i = streams_ == 1 ? tag.sequence : tag.sequence / streams_;
        if (i * streams_ + tag.stream != tag.sequence) return std::nullopt;
        const std::size_t at = i % plan::FlowBlock::size;
        const std::uint64_t first = tag.sequence - at * streams_;
        // Streams that are sent at the same time use different entries.
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
