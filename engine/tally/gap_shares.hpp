// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: how many losses a receiver's poll gaps explain where a port spreads its frames over several queues.
//
// While a trial runs it is not known which share of the frames comes to a queue: all of them if there is one address
// pair, a k-th if the port's hash spreads many pairs over k queues. So a receiver counts for several shares at once,
// and the right one is chosen afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace evenhand::tally {

/// Shares of all frames of a direction, in 65536ths; each is the one before divided by the square root of 2.
constexpr std::array<std::uint32_t, 13> gap_shares{65536, 46341, 32768, 23170, 16384, 11585, 8192,
                                                   5793,  4096,  2896,  2048,  1448,  1024};
constexpr unsigned gap_share_bits = 16;

struct QueueGaps {
    std::uint64_t received_frames = 0;
    /// Frames that may have overrun the queue's ring, for each share of the frames that may come to it.
    std::array<std::uint64_t, gap_shares.size()> excess_frames{};
};

/// How many of the `lost` among `offered` frames all queues together may have lost in gaps, at most. The share of a
/// queue follows from what it received and what it lost, which is no more than its gaps explain at that share.
[[nodiscard]] std::uint64_t frames_lost_in_gaps(std::span<const QueueGaps> queues, std::uint64_t offered,
                                                std::uint64_t lost);

}  // namespace evenhand::tally
