// SPDX-License-Identifier: Apache-2.0
#include "tally/gap_shares.hpp"

#include <algorithm>

namespace evenhand::tally {
namespace {

/// The index of the smallest share in the list that is not smaller than this one.
std::size_t index_of(double share) {
    constexpr double whole = 1U << gap_share_bits;
    std::size_t index = 0;
    while (index + 1 < gap_shares.size() && static_cast<double>(gap_shares[index + 1]) >= share * whole) ++index;
    return index;
}

std::uint64_t lost_in_gaps(const QueueGaps& queue, std::uint64_t offered, std::uint64_t lost) {
    // Decreases from round to round: the more frames the gaps explain, the larger the share may have been, and vice
    // versa. The result is the largest loss that is consistent with its own share.
    std::uint64_t here = lost;
    while (true) {
        const double share = static_cast<double>(queue.received_frames + here) / static_cast<double>(offered);
        const std::uint64_t excess = queue.excess_frames[index_of(share)];
        const std::uint64_t explained = std::min(lost, excess);
        if (explained >= here) return excess;
        here = explained;
    }
}

}  // namespace

std::uint64_t frames_lost_in_gaps(std::span<const QueueGaps> queues, std::uint64_t offered, std::uint64_t lost) {
    if (offered == 0) return 0;
    std::uint64_t sum = 0;
    for (const auto& queue : queues)
        sum += queues.size() == 1 ? queue.excess_frames[0] : lost_in_gaps(queue, offered, lost);
    return sum;
}

}  // namespace evenhand::tally
