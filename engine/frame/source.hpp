// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: writes the frames of a stream. Hot: no allocation, and nothing is decided for each frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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
    [[nodiscard]] constexpr std::uint64_t count(std::uint64_t frames) const noexcept { return frames <= first ? 0 : (frames - first - 1) / stride + 1; }
};

/// Frames of one stream of the plan, written in order i = 0, 1, 2, ... into buffers that hold the pattern of write_pattern().
template <IpVersion V>
class TestFrameSource {
   public:
    TestFrameSource(const FrameTemplate& frame_template, const plan::FlowDraw& draw, StreamShare share) noexcept : template_{frame_template}, draw_{draw}, share_{share} {}

    [[nodiscard]] std::size_t frame_octets() const noexcept { return template_.octets; }

    /// Write the next frame at each of `frames`, frame_octets() long; `now_ticks` goes into their tags.
    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        // Decided when the template was made; IPv4 networks share the octets of the host number.
        if constexpr (V == IpVersion::v6) {
            if (template_.has_network_octets) return write_frames<true>(frames, now_ticks);
        }
        write_frames<false>(frames, now_ticks);
    }

   private:
    /// Network order, as they stand in the frame.
    struct Varying {
        std::uint16_t source;
        std::uint16_t destination;
        std::uint32_t ports;
        std::uint64_t sequence_and_time;    // tag octets 6-13
        std::uint32_t time_low;             // tag octets 14-17
        std::uint16_t source_network;       // of networks with octets of their own; else not used
        std::uint16_t destination_network;  // the same
    };

    template <bool network_octets>
    void write_frames(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        // Local copies: a store through std::byte* may change any object, so members would be read again for each frame.
        const FrameTemplate t = template_;
        const std::uint64_t time = now_ticks & time_mask;
        std::uint64_t sequence = share_.sequence(next_);
        std::size_t in_block = next_ % plan::FlowBlock::size;
        for (std::byte* const frame : frames) {
            if (in_block == 0) draw_.draw_block(sequence, share_.stride, block_);
            Varying v{.source = big(static_cast<std::uint16_t>(block_.source(in_block))),
                      .destination = big(static_cast<std::uint16_t>(block_.destination(in_block))),
                      .ports = big(static_cast<std::uint32_t>(block_.source_port(in_block) << 16U | block_.destination_port(in_block))),
                      .sequence_and_time = big(sequence << 16U | time >> 32U),
                      .time_low = big(static_cast<std::uint32_t>(time)),
                      .source_network = 0,
                      .destination_network = 0};
            if constexpr (network_octets) {
                v.source_network = big(static_cast<std::uint16_t>(block_.source(in_block) >> 16U));
                v.destination_network = big(static_cast<std::uint16_t>(block_.destination(in_block) >> 16U));
            }
            write<network_octets>(frame, t, v);
            sequence += share_.stride;
            in_block = (in_block + 1) % plan::FlowBlock::size;
        }
        next_ += frames.size();
    }

    template <bool network_octets>
    static void write(std::byte* frame, const FrameTemplate& t, const Varying& v) noexcept {
        using L = Layout<V>;
        std::uint64_t addresses = std::uint64_t{v.source} + v.destination;
        if constexpr (network_octets) addresses += std::uint64_t{v.source_network} + v.destination_network;
        const std::uint16_t udp = udp_checksum(t.udp_sum + addresses + v.ports + (v.sequence_and_time & 0xFFFFFFFFU) + (v.sequence_and_time >> 32U) + v.time_low);
        std::memcpy(frame, t.head.data(), L::tag + tag_sequence);
        if constexpr (V == IpVersion::v4) store(frame + L::ipv4_checksum, ip_checksum(t.ip_sum + addresses));
        store(frame + t.source_at, v.source);
        store(frame + t.destination_at, v.destination);
        if constexpr (network_octets) {
            store(frame + t.source_network_at, v.source_network);
            store(frame + t.destination_network_at, v.destination_network);
        }
        store(frame + L::udp, v.ports);
        store(frame + L::udp_checksum, udp);
        store(frame + L::tag + tag_sequence, v.sequence_and_time);
        store(frame + L::tag + tag_time + 2, v.time_low);
    }

    FrameTemplate template_;
    plan::FlowDraw draw_;
    StreamShare share_;
    std::uint64_t next_ = 0;
    plan::FlowBlock block_{};
};

}  // namespace evenhand::frame
