// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: puts the varying fields into the frames of a burst. A hot path: it allocates nothing, and decides
// nothing for each frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "frame/class_fields.hpp"
#include "frame/frame_words.hpp"
#include "frame/template.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// What the tags of a burst contain: the first frame's sequence number (48 bits), the step to the next one's, and the
/// time (48 bits).
struct Stamp {
    std::uint64_t sequence = 0;
    std::uint64_t stride = 1;
    std::uint64_t time = 0;
};

/// A template, and where its varying octets come from when frames are put together in registers. Made before the start.
struct FrameShape {
    explicit FrameShape(const FrameTemplate& t) noexcept;

    static constexpr std::size_t part_octets = 32;

    FrameTemplate frame_template;
    /// The octets in front of the last 16 octets of the tag are put together in two parts, which may overlap. For each
    /// octet of the parts: which octet of the frame's words (frame_words.hpp) it is, or `of_template`.
    alignas(part_octets) std::array<std::array<std::uint8_t, part_octets>, 2> from;
    CountedOctets counted;
};

/// Writes the flows `at`, `at` + 1, ... of a block, one into each of `frames`, into buffers that hold the pattern of
/// write_pattern(). Writes no octet behind the tag.
using FrameWriter = void (*)(const FrameShape&, const plan::FlowBlock& block, std::size_t at,
                             std::span<std::byte* const> frames, const Stamp&) noexcept;

/// The writers "plain" and "avx2" for frames of this template. They write the same octets; null if this CPU cannot.
[[nodiscard]] FrameWriter frame_writer(const char* name, const FrameTemplate& t) noexcept;

/// What the ports of a class's frames are.
struct ClassPorts {
    PortChoice source;
    PortChoice destination;
};

/// Templates of one layout, that is of frames of one plan and stream: they differ in octets that do not vary, such as
/// the DSCP, in ports that all frames of a class have, and in length. Made before the start.
struct ClassShapes {
    ClassShapes() = default;
    /// `templates`: by class. `ports`: by class; empty if all are drawn. `cycle`: the classes of the frames, with
    /// FlowBlock::size places after the last one from which a block begins; it is not kept.
    ClassShapes(const std::vector<FrameTemplate>& templates, const std::vector<ClassPorts>& ports,
                std::span<const std::uint8_t> cycle);

    struct alignas(64) Head {
        std::array<std::byte, FrameTemplate::room> octets{};
    };
    /// What differs, frame by frame, side by side as the writer reads it.
    struct Places {
        std::vector<std::uint32_t> ip_sums;  // of the templates, folded, in host order
        std::vector<std::uint32_t> udp_sums;
        std::vector<std::uint32_t> drawn_sources;  // see PortChoice
        std::vector<std::uint32_t> fixed_sources;
        std::vector<std::uint32_t> drawn_destinations;
        std::vector<std::uint32_t> fixed_destinations;
    };

    std::vector<FrameShape> first;  // that of the first class, as all have its layout; empty if there are none
    std::vector<Head> heads;        // by class
    Places places;
};

/// The classes of a block's frames.
using BlockClasses = std::span<const std::uint8_t, plan::FlowBlock::size>;

/// A FrameWriter for frames of several classes. `place`: that of the block's first frame in the cycle.
using ClassWriter = void (*)(const ClassShapes&, std::size_t place, BlockClasses classes, const plan::FlowBlock& block,
                             std::size_t at, std::span<std::byte* const> frames, const Stamp&) noexcept;

/// Writes the same octets as the writers of each class's template, with the ports of its class; null if this CPU has no
/// AVX2.
[[nodiscard]] ClassWriter class_writer(const FrameTemplate& t) noexcept;

/// The faster one.
[[nodiscard]] FrameWriter fastest_frame_writer(const FrameTemplate& t) noexcept;

}  // namespace evenhand::frame
