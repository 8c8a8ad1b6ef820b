// SPDX-License-Identifier: Apache-2.0
#include "tally/frame_capture.hpp"

#include <algorithm>

namespace evenhand::tally {

static_assert(static_cast<std::size_t>(Kept::received) + 1 == kept_kinds);

void FrameCapture::begin(std::size_t frames, std::size_t received) {
    end();
    for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
    frames_ = std::min(frames, most_kept_frames);
    received_ = std::min(received, most_kept_received);
    slots_.assign((kept_kinds - 1) * frames_ + received_, KeptFrame{});
    octets_.resize(slots_.size() * most_kept_octets);
    is_on_.store(!slots_.empty(), std::memory_order_release);
}

void FrameCapture::keep(const KeptFrame& frame) noexcept {
    const auto kind = static_cast<std::size_t>(frame.kind);
    const std::size_t count = counts_[kind].load(std::memory_order_relaxed);
    if (count >= room_of(kind)) return;
    const std::size_t slot = kind * frames_ + count;
    const std::span room = std::span{octets_}.subspan(slot * most_kept_octets, most_kept_octets);
    const auto taken = frame.octets.first(std::min(frame.octets.size(), room.size()));
    std::ranges::copy(taken, room.begin());
    slots_[slot] = frame;
    slots_[slot].octets = room.first(taken.size());
    counts_[kind].store(count + 1, std::memory_order_release);
}

std::vector<KeptFrame> FrameCapture::kept() const {
    std::vector<KeptFrame> found;
    for (std::size_t kind = 0; kind < kept_kinds; ++kind) {
        const std::size_t count = counts_[kind].load(std::memory_order_acquire);
        const auto of_kind = std::span{slots_}.subspan(kind * frames_, count);
        found.insert(found.end(), of_kind.begin(), of_kind.end());
    }
    return found;
}

}  // namespace evenhand::tally
