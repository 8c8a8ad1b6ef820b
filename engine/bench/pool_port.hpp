// SPDX-License-Identifier: Apache-2.0
// Bench: a port whose frames have already arrived.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace evenhand::bench {

constexpr std::uint64_t seed = 1;
constexpr std::uint16_t trial_number = 1;
/// Rounds that do not count.
constexpr std::uint64_t rounds_before = 20;

/// Frames are as far apart as mbufs, so that they use the caches and the TLB in the same way.
class PoolPort {
   public:
    struct alignas(64) Frame {
        std::size_t length = 0;
        std::array<std::byte, 120 + 128> header{};  // of an mbuf, and its headroom
        std::array<std::byte, 2048> octets{};
    };

    explicit PoolPort(unsigned frames) : frames_(frames) {}

    unsigned receive(unsigned /*queue*/, Frame** frames, unsigned n) noexcept {
        const auto got = static_cast<unsigned>(std::min<std::size_t>(n, frames_.size() - next_));
        for (unsigned i = 0; i < got; ++i) frames[i] = &frames_[next_ + i];
        next_ += got;
        return got;
    }
    static std::byte* octets(Frame* frame) noexcept { return frame->octets.data(); }
    static std::size_t length(Frame* frame) noexcept { return frame->length; }
    static std::size_t room(Frame* frame) noexcept { return frame->octets.size(); }
    static void set_length(Frame* frame, std::size_t octets) noexcept { frame->length = octets; }
    void release(Frame** /*frames*/, unsigned /*n*/) noexcept {}
    void post_answer(Frame* /*frame*/) noexcept {}

    /// Makes all frames arrive again.
    void rewind() noexcept { next_ = 0; }
    [[nodiscard]] std::span<Frame> all() noexcept { return frames_; }

   private:
    std::vector<Frame> frames_;
    std::size_t next_ = 0;
};

struct NoAnswers {
    static std::size_t answer(std::span<std::byte> /*frame*/, std::size_t /*octets*/) noexcept { return 0; }
};

}  // namespace evenhand::bench
