// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the frames of a stream, drawn and written in their order. A hot path: it allocates nothing, and
// decides nothing for each frame.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "frame/layout.hpp"
#include "frame/share.hpp"
#include "frame/template.hpp"
#include "frame/writer.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

class TestFrameExpectation;

/// Frames of one stream, written in order i = 0, 1, 2, ... into buffers that hold the pattern of write_pattern().
/// `Draw` says which flow each has: a plan::FlowDraw, or a type with the same interface.
template <class Draw, class Expected>
class DrawnFrameSource {
   public:
    using Expectation = Expected;

    DrawnFrameSource(const FrameTemplate& frame_template, Draw draw, StreamShare share) noexcept
        : shape_{frame_template}, write_{fastest_frame_writer(frame_template)}, draw_{std::move(draw)}, share_{share} {}

    /// All frames have the same length; see the concept FrameSource.
    [[nodiscard]] std::size_t frame_octets(std::size_t /*ahead*/) const noexcept {
        return shape_.frame_template.octets;
    }

    /// Writes the next frames, one into each of `frames`; `now_ticks` goes into their tags.
    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        while (!frames.empty()) {
            const std::size_t at = next_ % plan::FlowBlock::size;
            const std::size_t n = std::min(frames.size(), plan::FlowBlock::size - at);
            const Stamp stamp{
                .sequence = share_.sequence(next_), .stride = share_.stride, .time = now_ticks & time_mask};
            if (at == 0) draw(stamp.sequence);
            write_(shape_, blocks_[current_], at, frames.first(n), stamp);
            if constexpr (requires { draw_.fetch_rest(); }) {
                if (at == 0) draw_.fetch_rest();
            }
            if constexpr (requires { draw_.has_ahead(); }) {
                if (at == 0 && draw_.has_ahead()) [[unlikely]]
                    draw_.fetch_rest(blocks_[current_ ^ 1U]);
            }
            next_ += n;
            frames = frames.subspan(n);
        }
    }

   private:
    /// Draws the block of the next frames, and begins the one behind it where that is faster.
    void draw(std::uint64_t first) noexcept {
        if constexpr (requires { draw_.has_ahead(); }) {
            if (draw_.has_ahead()) [[unlikely]] {
                if (next_ == 0) draw_.begin_block(first, share_.stride, blocks_[1]);
                current_ ^= 1U;
                draw_.draw_ahead(first, share_.stride, blocks_[current_], blocks_[current_ ^ 1U]);
                return;
            }
        }
        draw_.draw_block(first, share_.stride, blocks_[current_]);
    }

    FrameShape shape_;
    FrameWriter write_;  // chosen before the start
    Draw draw_;
    StreamShare share_;
    std::uint64_t next_ = 0;
    std::array<plan::FlowBlock, 2> blocks_{};  // the second for what is begun ahead
    std::size_t current_ = 0;
};

/// Frames of the plan, with one draw for each frame's flow.
using TestFrameSource = DrawnFrameSource<plan::FlowDraw, TestFrameExpectation>;

}  // namespace evenhand::frame
