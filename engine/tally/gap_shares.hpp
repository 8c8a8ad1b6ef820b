// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what a gap explains where a port spreads its frames over several queues.
//
// While a trial runs nobody knows which share of the frames comes to a queue: all of them where a single pair is sent,
// a k-th where the port's hash spreads many over k queues. So a receiver keeps its books for a row of shares at once,
// and the share is known afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace evenhand::tally {

/// Of all frames of a direction, in 65536ths; each is the one before over the square root of 2.
constexpr std::array<std::uint32_t, 13> gap_shares{65536, 46341, 32768, 23170, 16384, 11585, 8192,
                                                   5793,  4096,  2896,  2048,  1448,  1024};
constexpr unsigned gap_share_bits = 16;

struct QueueGaps {
    std::uint64_t received_frames = 0;
    /// That may have overrun the queue's ring, by the share of the frames that comes to it.
    std::array<std::uint64_t, gap_shares.size()> excess_frames{};
};

/// The most that gaps may have cost all queues together, of `lost` among `offered` frames: a queue got what it
/// received, and of the lost ones no more than its gaps explain at the share that this makes.
[[nodiscard]] std::uint64_t frames_lost_in_gaps(std::span<const QueueGaps> queues, std::uint64_t offered,
                                                std::uint64_t lost);

}  // namespace evenhand::tally
