// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: writes frame i of a stream. Hot: no allocation, no branch on anything but the block's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "frame/template.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// The share of one stream: its frame i is frame `first + i * stride` of the direction. With n streams, stream s has first s and
/// stride n, so the frames of a direction are the same for any number of streams, and each is sent by exactly one of them.
struct StreamShare {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;

    [[nodiscard]] constexpr std::uint64_t sequence(std::uint64_t i) const noexcept { return first + i * stride; }
    /// How many of the direction's first `frames` frames are this stream's.
    [[nodiscard]] constexpr std::uint64_t count(std::uint64_t frames) const noexcept {
        return frames <= first ? 0 : (frames - first - 1) / stride + 1;
    }
};

/// Frames of one stream of the plan, written in order i = 0, 1, 2, ... into buffers that hold the pattern of write_pattern().
template <IpVersion V>
class TestFrameSource {
   public:
    TestFrameSource(const FrameTemplate& frame_template, const plan::FlowDraw& draw, StreamShare share) noexcept
        : template_{frame_template}, draw_{draw}, share_{share} {}

    [[nodiscard]] std::size_t frame_octets() const noexcept { return template_.octets; }

    /// Write the next frame; `now_ticks` goes into its tag. The frame is octets frame_octets() long.
    void write_next(std::byte* frame, std::uint64_t now_ticks) noexcept {
        const std::size_t in_block = next_ % plan::FlowBlock::size;
        if (in_block == 0) draw_.draw_block(share_.sequence(next_), share_.stride, block_);
        const std::uint64_t sequence = share_.sequence(next_);
        ++next_;

        using L = Layout<V>;
        std::memcpy(frame, template_.head.data(), L::tag_end);

        const std::uint16_t source = big(static_cast<std::uint16_t>(block_.source[in_block]));
        const std::uint16_t destination = big(static_cast<std::uint16_t>(block_.destination[in_block]));
        const std::uint32_t ports = big((block_.source_port[in_block] << 16U) | block_.destination_port[in_block]);
        const std::uint64_t sequence_and_time = big((sequence << 16U) | ((now_ticks >> 32U) & 0xFFFFU));
        const std::uint32_t time_low = big(static_cast<std::uint32_t>(now_ticks));

        store(frame + template_.source_at, source);
        store(frame + template_.destination_at, destination);
        store(frame + L::udp, ports);
        store(frame + L::tag + tag_sequence, sequence_and_time);
        store(frame + L::tag + tag_time + 2, time_low);

        const std::uint64_t addresses = std::uint64_t{source} + destination;
        if constexpr (V == IpVersion::v4) store(frame + L::ipv4_checksum, ip_checksum(template_.ip_sum + addresses));
        const std::uint64_t sum = template_.udp_sum + addresses + ports + (sequence_and_time & 0xFFFFFFFFU) + (sequence_and_time >> 32U) + time_low;
        store(frame + L::udp_checksum, udp_checksum(sum));
    }

   private:
    FrameTemplate template_;
    plan::FlowDraw draw_;
    StreamShare share_;
    std::uint64_t next_ = 0;
    plan::FlowBlock block_{};
};

}  // namespace evenhand::frame
