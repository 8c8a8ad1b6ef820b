// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what the loops count. Each is written by one worker during a trial and read by others only after
// it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/frame_fault.hpp"
#include "frame/layout.hpp"
#include "frame/seen_flow.hpp"
#include "frame/translation_fault.hpp"
#include "pace/clock.hpp"
#include "tally/gap_shares.hpp"
#include "tally/latency_histogram.hpp"
#include "tally/slice_delays.hpp"

namespace evenhand::tally {

using pace::Ticks;

constexpr std::size_t most_frame_classes = 64;  // of a mix (frame/mix.hpp)

struct alignas(64) SenderTally {
    std::uint64_t offered_frames = 0;  // accepted by the port
    std::uint64_t overdue_frames = 0;  // left later than the limit after they were due
    std::uint64_t refusals = 0;        // times the port took fewer frames than it was given
    std::uint64_t largest_burst = 0;   // frames given to the port at once
    Ticks max_overdue = 0;             // of the first frame of a burst
    Ticks last_send = 0;               // when the last frame was accepted
};

struct alignas(64) ReceiverTally {
    std::uint64_t received_frames = 0;  // unique, intact, right length, in time
    std::uint64_t left_out_frames =
        0;  // of them, where delays are asked for: left overdue or right behind what did, and have no part in delays
    std::uint8_t first_hop_limit = 0;  // of the first of them; 0: none came. Of several receivers the highest
    std::uint64_t duplicated_frames = 0;
    std::uint64_t reordered_frames = 0;    // below the largest number seen of their stream
    std::uint64_t late_frames = 0;         // after the residual wait
    std::uint64_t late_by_gap_frames = 0;  // of these: had come in time, but nobody looked
    std::uint64_t corrupted_frames = 0;    // tag right, but a checksum or a header is wrong: see corrupted_by
    std::array<std::uint64_t, frame::damages> corrupted_by{};  // of these: up to frame::FrameFault::number
    // Sound, but not what was sent.
    std::uint64_t wrong_address_frames = 0;
    std::uint64_t wrong_port_frames = 0;
    std::uint64_t wrong_payload_frames = 0;
    std::uint64_t remarked_frames = 0;  // of the received: with another traffic class or flow label
    /// Sound, but translated wrongly; by frame::TranslationFault.
    std::array<std::uint64_t, frame::translation_faults> mistranslated_frames{};
    frame::SeenFlow first_mistranslated;  // if there is one with an address or port that is not its own
    std::uint64_t wrong_length_frames = 0;
    std::uint64_t foreign_frames = 0;     // no test frame and no neighbour traffic, or a test frame on the wrong side
    std::uint64_t returned_frames = 0;    // of these: this trial's, on the port that had sent them
    std::uint64_t stale_frames = 0;       // of another trial
    std::uint64_t strayed_frames = 0;     // that another tester has sent
    std::uint64_t unrecorded_frames = 0;  // due, but the map had no room for them yet
    std::uint64_t wrong_time_frames =
        0;                       // of this trial by their number, but before its start or in the future by their time
    Ticks max_ahead = 0;         // of these: how far in the future
    Ticks max_before_start = 0;  // of these: how long before the start
    std::uint64_t neighbor_frames = 0;  // ARP and ND
    Ticks max_poll_gap = 0;
    /// Time at the intended load whose frames the receive ring may not have held, summed: if all frames come to this
    /// queue, if a smaller share of them does, and so on (gap_shares.hpp).
    std::array<Ticks, gap_shares.size()> gap_excess{};
    /// Of each stream: largest number seen + 1; that of another queue where StreamOrder has settled it.
    std::array<std::uint64_t, frame::most_streams> next_in_order{};
    std::array<std::uint64_t, most_frame_classes> received_of_class{};  // of a mix
    LatencyHistogram latency;
    SliceDelays delay_by_slice;

    void add(const ReceiverTally& other) noexcept;

    /// A frame of this number that is sound, but was translated wrongly.
    void note(frame::TranslationFault fault, const std::byte* octets, frame::IpVersion version,
              std::uint64_t sequence) noexcept {
        const std::uint64_t before = mistranslated_frames[static_cast<std::size_t>(fault)]++;
        if (fault == frame::TranslationFault::address_or_port && before == 0)
            first_mistranslated = frame::flow_of(octets, version, sequence);
    }

    /// A frame of this trial that is not the one that was sent.
    void note(frame::FrameFault fault) noexcept {
        switch (fault) {
            case frame::FrameFault::address: ++wrong_address_frames; return;
            case frame::FrameFault::port: ++wrong_port_frames; return;
            case frame::FrameFault::payload: ++wrong_payload_frames; return;
            default: ++corrupted_frames; ++corrupted_by[static_cast<std::size_t>(fault)];
        }
    }

    /// Up to so many of the received frames were copies of frames that another thread received, which this one could
    /// not know. Their delays stay among the others, and so does what was reordered. Returns how many were taken back.
    std::uint64_t take_back(std::uint64_t copies) noexcept {
        copies = std::min(copies, received_frames);
        received_frames -= copies;
        duplicated_frames += copies;
        return copies;
    }
};

}  // namespace evenhand::tally
