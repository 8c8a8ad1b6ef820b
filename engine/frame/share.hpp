// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: which frames of a direction belong to one stream, or to one tester among several.
#pragma once

#include <cstdint>
#include <limits>

#include "wide.hpp"

namespace evenhand::frame {

/// The share of one stream: its frame i is frame `first + i * stride` of the direction. With n streams, stream s has
/// first s and stride n, so the frames of a direction are the same for any number of streams, and each is sent by
/// exactly one of them.
struct StreamShare {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;

    [[nodiscard]] constexpr std::uint64_t sequence(std::uint64_t i) const noexcept { return first + i * stride; }
    /// How many of the direction's first `frames` frames belong to this stream.
    [[nodiscard]] constexpr std::uint64_t count(std::uint64_t frames) const noexcept {
        return frames <= first ? 0 : (frames - first - 1) / stride + 1;
    }
};

/// The share of one tester: the streams first, first + 1, ..., first + streams - 1 of the `stride` streams that all
/// testers have together. Its frames are those of its streams, so that all testers together send what one alone would
/// send. A tester counts its own frames by their place among these: frame k of the direction is its own frame place(k).
class TesterShare {
   public:
    /// The share of a tester that is alone: all frames.
    constexpr TesterShare() = default;
    /// `streams` >= 1, first + streams <= stride <= most_streams.
    constexpr TesterShare(std::uint64_t first, std::uint64_t streams, std::uint64_t stride) noexcept
        : first_{first},
          streams_{streams},
          stride_{stride},
          inverse_{streams == stride ? 0 : std::numeric_limits<std::uint64_t>::max() / stride + 1} {}

    [[nodiscard]] constexpr std::uint64_t first() const noexcept { return first_; }
    [[nodiscard]] constexpr std::uint64_t streams() const noexcept { return streams_; }
    /// The number of streams of all testers together.
    [[nodiscard]] constexpr std::uint64_t stride() const noexcept { return stride_; }
    [[nodiscard]] constexpr bool is_whole() const noexcept { return inverse_ == 0; }
    /// The part of the load that this tester sends.
    [[nodiscard]] constexpr double part() const noexcept {
        return static_cast<double>(streams_) / static_cast<double>(stride_);
    }

    /// The share of the direction's frames that this tester's stream s has.
    [[nodiscard]] constexpr StreamShare stream(std::uint64_t s) const noexcept {
        return {.first = first_ + s, .stride = stride_};
    }
    /// The same stream's share of this tester's own frames.
    [[nodiscard]] constexpr StreamShare own_stream(const StreamShare& of_direction) const noexcept {
        return {.first = of_direction.first - first_, .stride = streams_};
    }

    /// Whether frame k of the direction belongs to this tester; k < 2^48.
    [[nodiscard]] constexpr bool has(std::uint64_t k) const noexcept {
        return is_whole() || k - round_of(k) * stride_ - first_ < streams_;
    }
    /// The place of frame k, which belongs to this tester.
    [[nodiscard]] constexpr std::uint64_t place(std::uint64_t k) const noexcept {
        if (is_whole()) [[likely]]
            return k;
        const std::uint64_t round = round_of(k);
        return round * streams_ + (k - round * stride_ - first_);
    }
    /// The number in the direction of this tester's own frame `place`.
    [[nodiscard]] constexpr std::uint64_t sequence(std::uint64_t place) const noexcept {
        if (is_whole()) return place;
        if (streams_ == 1) return place * stride_ + first_;  // no division for each frame of a connection
        return place / streams_ * stride_ + first_ + place % streams_;
    }
    /// How many of the direction's first `frames` frames belong to this tester.
    [[nodiscard]] constexpr std::uint64_t count(std::uint64_t frames) const noexcept {
        if (is_whole()) return frames;
        const std::uint64_t rest = frames % stride_;
        const std::uint64_t begun = rest <= first_ ? 0 : rest - first_;
        return frames / stride_ * streams_ + (begun < streams_ ? begun : streams_);
    }

    friend constexpr bool operator==(const TesterShare&, const TesterShare&) = default;

   private:
    /// k / stride without a division, which each received frame would need. Exact for k < 2^48 and all possible
    /// strides.
    [[nodiscard]] constexpr std::uint64_t round_of(std::uint64_t k) const noexcept {
        return static_cast<std::uint64_t>(static_cast<Wide>(k) * inverse_ >> 64U);
    }

    std::uint64_t first_ = 0;
    std::uint64_t streams_ = 1;
    std::uint64_t stride_ = 1;
    std::uint64_t inverse_ = 0;  // 2^64 / stride, rounded up; 0: all frames belong to it
};

}  // namespace evenhand::frame
