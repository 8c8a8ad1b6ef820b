// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: what the loops count. Each tally is written by one worker during a trial, and read by others only
// after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/frame_fault.hpp"
#include "frame/layout.hpp"
#include "frame/seen_flow.hpp"
#include "frame/translation_fault.hpp"
#include "pace/clock.hpp"
#include "tally/flow_tally.hpp"
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
    std::uint64_t left_out_frames = 0;  // of them, where delays are asked for: left overdue or right behind what did,
                                        // or read late, and have no part in delays
    std::uint8_t first_hop_limit =
        0;  // of the first received frame; 0: none arrived. For several receivers, the highest
    std::uint64_t duplicated_frames = 0;
    std::uint64_t reordered_frames = 0;    // below the largest number seen of their stream
    std::uint64_t late_frames = 0;         // after the residual wait
    std::uint64_t late_by_gap_frames = 0;  // late frames that had arrived in time, but the receiver had not looked
    std::uint64_t corrupted_frames = 0;    // tag right, but a checksum or a header is wrong: see corrupted_by
    std::array<std::uint64_t, frame::damages> corrupted_by{};  // corrupted_frames by frame::FrameFault, up to `number`
    // Sound, but not what was sent.
    std::uint64_t wrong_address_frames = 0;
    std::uint64_t wrong_port_frames = 0;
    std::uint64_t wrong_payload_frames = 0;
    std::uint64_t remarked_frames = 0;  // received frames with another traffic class or flow label
    /// Frames that are sound but were translated wrongly, by frame::TranslationFault.
    std::array<std::uint64_t, frame::translation_faults> mistranslated_frames{};
    frame::SeenFlow first_mistranslated;  // the first frame with a wrong address or port
    std::uint64_t wrong_length_frames = 0;
    std::uint64_t foreign_frames = 0;     // neither test frames nor neighbour traffic, or test frames on the wrong side
    std::uint64_t returned_frames = 0;    // foreign frames of this trial, on the port that had sent them
    std::uint64_t stale_frames = 0;       // of another trial
    std::uint64_t strayed_frames = 0;     // sent by another tester
    std::uint64_t unrecorded_frames = 0;  // due, but the map had no room for them yet
    std::uint64_t wrong_time_frames =
        0;                       // of this trial by their number, but before its start or in the future by their time
    Ticks max_ahead = 0;         // how far the latest of these times was in the future
    Ticks max_before_start = 0;  // how far the earliest of these times was before the start
    std::uint64_t neighbor_frames = 0;  // ARP and ND
    Ticks max_poll_gap = 0;
    /// The total time whose frames, at the intended load, the receive ring may not have held: for all frames in this
    /// queue, for a smaller share of them, and so on (gap_shares.hpp).
    std::array<Ticks, gap_shares.size()> gap_excess{};
    /// For each stream: the largest number seen + 1, or that of another queue if StreamOrder has settled it.
    std::array<std::uint64_t, frame::most_streams> next_in_order{};
    std::array<std::uint64_t, most_frame_classes> received_of_class{};  // of a mix
    std::vector<FlowTally> flows;  // of each class, where classes are flows; otherwise empty
    LatencyHistogram latency;
    SliceDelays delay_by_slice;

    void add(const ReceiverTally& other) noexcept;

    /// Received frames of this class so far. For another thread than the receiver's.
    [[nodiscard]] std::uint64_t received_so_far(std::size_t frame_class) const noexcept {
        return __atomic_load_n(&received_of_class[frame_class], __ATOMIC_RELAXED);
    }

    /// Counts a frame of this number that is sound, but was translated wrongly.
    void note(frame::TranslationFault fault, const std::byte* octets, frame::IpVersion version,
              std::uint64_t sequence) noexcept {
        const std::uint64_t before = mistranslated_frames[static_cast<std::size_t>(fault)]++;
        if (fault == frame::TranslationFault::address_or_port && before == 0)
            first_mistranslated = frame::flow_of(octets, version, sequence);
    }

    /// Counts a frame of this trial that is not the one that was sent.
    void note(frame::FrameFault fault) noexcept {
        switch (fault) {
            case frame::FrameFault::address: ++wrong_address_frames; return;
            case frame::FrameFault::port: ++wrong_port_frames; return;
            case frame::FrameFault::payload: ++wrong_payload_frames; return;
            default: ++corrupted_frames; ++corrupted_by[static_cast<std::size_t>(fault)];
        }
    }

    /// Takes back received frames that were copies of frames which another thread received, as this one could not know;
    /// at most all it received. Their delays and reordered frames stay counted. Returns how many were taken back.
    std::uint64_t take_back(std::uint64_t copies) noexcept {
        copies = std::min(copies, received_frames);
        received_frames -= copies;
        duplicated_frames += copies;
        return copies;
    }
};

}  // namespace evenhand::tally
