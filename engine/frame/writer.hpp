// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: puts the varying fields into the frames of a burst. A hot path: it allocates nothing, and decides
// nothing for each frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// Templates of one layout, that is of frames of one plan and stream: they differ in octets that do not vary, such as
/// the DSCP, and in length.
struct ClassShapes {
    ClassShapes() = default;
    explicit ClassShapes(const std::vector<FrameTemplate>& templates);

    struct alignas(64) Shape {
        std::array<std::byte, FrameTemplate::room> head{};
        std::uint32_t ip = 0;  // sums of the template, folded, in host order
        std::uint32_t udp = 0;
    };
    std::vector<FrameShape> first;  // that of the first class, as all have its layout; empty if there are none
    std::vector<Shape> shapes;      // by class
};

/// A FrameWriter for frames of several classes: `classes` has that of each frame.
using ClassWriter = void (*)(const ClassShapes&, const std::uint8_t* classes, const plan::FlowBlock& block,
                             std::size_t at, std::span<std::byte* const> frames, const Stamp&) noexcept;

/// Writes the same octets as the writers of each class's template; null if this CPU has no AVX2.
[[nodiscard]] ClassWriter class_writer(const FrameTemplate& t) noexcept;

/// The faster one.
[[nodiscard]] FrameWriter fastest_frame_writer(const FrameTemplate& t) noexcept;

}  // namespace evenhand::frame
