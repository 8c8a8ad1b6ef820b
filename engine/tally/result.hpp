// SPDX-License-Identifier: Apache-2.0
// Station 7, trial result, as the engine knows it. contract/ writes it as JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/frame_fault.hpp"
#include "frame/seen_flow.hpp"
#include "frame/translation_fault.hpp"
#include "plan/per_direction.hpp"
#include "plan/plan.hpp"
#include "tally/clean_time.hpp"
#include "tally/delay_buckets.hpp"
#include "tally/flow_tally.hpp"
#include "tally/frame_capture.hpp"
#include "tally/latency_histogram.hpp"
#include "tally/queue_filling.hpp"
#include "tally/slice_delays.hpp"
#include "units.hpp"

namespace evenhand::tally {

/// The limits by which a trial is judged. The defaults are those of the contract.
struct Limits {
    double loss_ratio = 0;            // largest trial loss ratio that passes
    double offered_tolerance = 1e-4;  // of the rate or of the sending time (R2544-39)
    double overdue_after_us = 100;    // a frame that leaves later is overdue; see usual_overdue_after_us()
    double overdue_tolerance = 0.01;  // share of overdue frames beyond which the load was not constant
    double longest_overdue_us = 1e5;  // no frame may leave later than this
    double clock_ppm = 100;
    double duplicate_tolerance = 0.01;  // largest share of duplicated frames in a valid trial
    double remarked_tolerance = 1;      // largest share of frames with another traffic class or flow label that passes

    friend bool operator==(const Limits&, const Limits&) = default;
};

/// The lateness from which on a frame is overdue, if the client does not set it: 100 us, but at most 1,500 frames,
/// since a usual ring of 2,048 still holds a burst of that size. At 148.8 Mfps 100 us would be 14,880 frames.
[[nodiscard]] constexpr double usual_overdue_after_us(double rate_fps) {
    constexpr double most_us = 100;
    constexpr double most_frames = 1500;
    return most_frames / rate_fps * us_per_second < most_us ? most_frames / rate_fps * us_per_second : most_us;
}

constexpr double clock_skew_us = 10;  // how far the counters of two CPUs may be apart

struct NamedCount {
    std::string name;
    std::uint64_t frames = 0;
};

struct PortCounters {
    std::uint64_t received_frames = 0;
    std::uint64_t transmitted_frames = 0;
    std::uint64_t missed_frames = 0;  // imissed: the receive ring was full
    std::uint64_t receive_errors = 0;
    std::uint64_t transmit_errors = 0;
    std::uint64_t no_buffer_frames = 0;  // rx_nombuf: no buffer was free
    std::uint64_t link_changes = 0;      // times the link went up or down
    std::uint64_t pause_frames = 0;      // Ethernet flow control frames, sent and received
    bool counts_pause = false;           // false: the port does not count them
    std::vector<NamedCount>
        hidden_drops;  // received frames that were dropped, by the names of the driver's extended statistics
    /// All frames that the receivers took from the port; nothing if the port's own count is not exact enough to be
    /// compared with it.
    std::optional<std::uint64_t> seen_frames;
    std::uint64_t dropped_answers = 0;  // to neighbours: no buffer, or no room in the ring
    bool link_up = true;
    bool is_removed = false;  // the device was taken away from the host, or is about to be
    bool is_read = true;      // false: the driver did not return the counters, and the counts are meaningless
};

/// The tester took the link of its own port down or up, as it was asked to, while the trial ran.
struct LinkSwitch {
    double at_s = 0;  // time of the sending phase
    bool is_up = false;
};

/// ICMP errors of one kind that came to a port and quoted test frames.
struct IcmpErrorCount {
    plan::IpVersion version = plan::IpVersion::v4;
    std::uint8_t type = 0;
    std::uint8_t code = 0;
    std::uint64_t frames = 0;
    std::uint32_t mtu = 0;                     // the smallest that was reported; 0: none was
    std::optional<std::uint64_t> first_frame;  // number of the first one that was quoted with its tag
};

/// Delays of the frames of one direction from `first_frame` on, where the request asks for them.
struct DelayResult {
    std::uint64_t first_frame = 0;
    std::uint64_t offered_frames = 0;
    std::uint64_t lost_frames = 0;
    std::uint64_t left_out_frames = 0;  // came, but had left overdue or right behind what did, or was read late: not in
                                        // the histogram, nor in a difference
    std::uint64_t left_out_tags = 0;    // how many of these were tagged
    struct Tagged {
        std::uint64_t sequence;
        std::optional<std::uint64_t> delay;  // ticks; nothing: lost
    };
    DelayBuckets delays;         // ticks, of all receivers; sorted
    bool has_tags = false;       // tagged frames were asked for; one of several testers may have sent none of them
    std::vector<Tagged> tagged;  // without those that were left out
    struct Variation {
        DelayBuckets differences;  // ticks; sorted
        std::uint64_t pairs =
            0;  // of frames that both arrived; a frame that was overtaken by very many has no difference
    };
    std::optional<Variation> variation;
};

/// Frames that are judged in a trial that is judged by its clean time, and how many of them did not arrive.
struct CleanCounts {
    std::uint64_t frames = 0;
    std::uint64_t lost_frames = 0;

    friend bool operator==(const CleanCounts&, const CleanCounts&) = default;
};

/// Frames of one class of a mix, in one direction.
struct ClassCount {
    plan::IpVersion version = plan::IpVersion::v4;
    std::size_t frame_size = 0;  // with FCS, as sent
    std::uint64_t offered_frames = 0;
    std::uint64_t received_frames = 0;
    std::string name;  // of a flow; all below is of flows alone
    std::optional<double> loss_at_most = std::nullopt;
    FlowTally flow{};
    std::optional<CleanCounts> clean = std::nullopt;

    [[nodiscard]] std::uint64_t lost_frames() const {
        return offered_frames > received_frames ? offered_frames - received_frames : 0;
    }
};

/// Frames at a rate, then silence, repeatedly.
struct Burst {
    std::uint64_t frames = 0;
    double interval_s = 0;  // from the beginning of one burst to the beginning of the next
    double rate_fps = 0;    // within a burst

    friend bool operator==(const Burst&, const Burst&) = default;
};

/// A second load that follows the first without a pause.
struct LoadChange {
    double rate_fps = 0;
    double duration_s = 0;
    double before_fps = 0;  // the first load
};

/// A load that the receiving line cannot carry: an overload on purpose, where ports are of unlike speed.
struct LineOverload {
    double needed_bps = 0;  // by the frames as they arrive, with preamble and gap
    double line_bps = 0;
};

struct LostFrame {
    std::uint64_t sequence = 0;
    double due_s = 0;  // since frame 0 was due
};

struct DirectionResult {
    plan::Direction direction = plan::Direction::forward;
    std::optional<double> intended_fps;  // where each direction has a load of its own; nothing: that of the trial
    std::uint64_t intended_frames = 0;
    std::uint64_t offered_frames = 0;
    double offered_fps = 0;
    std::uint64_t received_frames = 0;
    std::uint64_t duplicated_frames = 0;
    std::uint64_t reordered_frames = 0;
    std::uint64_t late_frames = 0;
    std::uint64_t late_by_gap_frames = 0;  // late frames that had arrived in time, but the receiver had not looked
    std::uint64_t corrupted_frames = 0;
    std::array<std::uint64_t, frame::damages> corrupted_by{};  // corrupted_frames by frame::FrameFault, up to `number`
    std::uint64_t wrong_address_frames = 0;                    // sound, but not what was sent
    std::uint64_t wrong_port_frames = 0;                       // the same
    std::uint64_t wrong_payload_frames = 0;                    // the same
    std::uint64_t remarked_frames = 0;  // received frames with another traffic class or flow label
    /// Frames that are sound but were translated wrongly, by frame::TranslationFault; nothing where the DUT does not
    /// translate.
    std::optional<std::array<std::uint64_t, frame::translation_faults>> mistranslated_frames;
    /// A frame with a wrong address or port: of the first ones that each receiver saw, the one that was sent first.
    std::optional<frame::SeenFlow> first_mistranslated;
    std::uint64_t wrong_length_frames = 0;
    std::uint64_t foreign_frames = 0;
    std::uint64_t returned_frames = 0;  // foreign frames of the other direction, on the port that had sent them
    std::uint64_t stale_frames = 0;
    std::uint64_t strayed_frames = 0;     // sent by another tester of the same trial, which counts them as lost
    std::uint64_t unrecorded_frames = 0;  // arrived, but the tester's record of a long trial had no room for them yet
    std::uint64_t wrong_time_frames = 0;  // with the number of this trial, but a time before its start or in the future
    double ahead_us = 0;                  // how far the latest of these times was in the receiver's future
    double before_start_us = 0;           // how far the earliest of these times was before the trial
    std::uint64_t neighbor_frames = 0;
    // sender
    std::uint64_t overdue_frames = 0;
    double max_overdue_us = 0;
    std::uint64_t refusals = 0;
    std::uint64_t largest_burst = 0;
    std::optional<LineOverload> overload;  // of an even load
    // receiver
    double max_poll_gap_us = 0;
    std::vector<std::uint64_t> received_by_queue;  // as received_frames
    std::uint64_t gap_frames = 0;                  // frames that may have overrun the ring in long poll gaps
    std::uint64_t ring_frames = 0;
    LatencyHistogram latency;  // ticks
    SliceDelays delay_by_slice;
    std::optional<QueueFilling> queue_filling;  // set by judge()
    std::shared_ptr<const DelayResult> delays;
    std::uint64_t away_frames = 0;  // that came to the DUT while the host kept its CPU away for longer than its ring
                                    // lasts, at once or in a series
    bool hop_limit_was_lowered = true;  // in the first frame that arrived; true if none did
    std::vector<std::uint64_t> lost_by_tenth;
    std::vector<std::uint64_t> first_lost;
    std::vector<ClassCount> classes;  // one for each class of a mix; empty if all frames are alike
    std::optional<CleanCounts> clean;
    /// In a trial that establishes connections (RFC 9693).
    struct Connections {
        std::uint64_t opened = 0;         // how many the initiator was to open
        std::uint64_t learnt = 0;         // opened ones whose translation the responder knows
        std::uint64_t shared_tuples = 0;  // learnt ones that were translated to the four tuple of another one
    };
    std::optional<Connections> connections;
    std::optional<LostFrame> last_lost;  // where the load changes

    [[nodiscard]] std::uint64_t lost_frames() const {
        return offered_frames > received_frames ? offered_frames - received_frames : 0;
    }
    [[nodiscard]] double loss_ratio() const {
        return offered_frames == 0 ? 1.0 : static_cast<double>(lost_frames()) / static_cast<double>(offered_frames);
    }
};

struct Phase {
    std::string name;
    double start_s = 0;
    double seconds = 0;
};

struct Deviation {
    std::string requirement;
    std::string text;
};

enum class Verdict : std::uint8_t { pass, fail, invalid };

struct Reason {
    std::string code;
    std::string text;
};

/// What the host did to one CPU while frames were sent.
struct HostCpu {
    unsigned cpu = 0;
    double stolen_us = 0;  // by the hypervisor
    double waited_us = 0;  // its threads were ready to run, but others ran
    /// For a CPU of the DUT, where each absence is observed.
    std::uint64_t absences = 0;
    double longest_us = 0;
};

/// Recorded in every trial; `dut` only if the DUT runs on this machine.
struct HostRecord {
    std::vector<HostCpu> tester;
    struct Dut {
        unsigned ring_frames = 0;
        std::vector<HostCpu> cpus;
    };
    std::optional<Dut> dut;
};

/// How far the tick counter of one worker's CPU is ahead of the first worker's.
struct ClockOffset {
    unsigned cpu = 0;
    double offset_us = 0;
    double uncertainty_us = 0;
};

/// Which frames of a trial were sent by this one of several testers: see frame::TesterShare.
struct Share {
    std::uint64_t first = 0;
    std::uint64_t streams = 1;
    std::uint64_t stride = 1;
};

/// When frame 0 of a trial was due, in nanoseconds of the tester's CLOCK_REALTIME.
struct StartTime {
    std::int64_t intended_unix_ns = 0;
    std::int64_t actual_unix_ns = 0;  // by the clock as it was read when the trial began
};

struct TrialResult {
    std::string tester;  // the name of this one of several testers; empty: the tester is alone
    std::uint16_t trial = 0;
    Verdict verdict = Verdict::invalid;
    std::vector<Reason> reasons;
    std::vector<Reason> notes;  // what a reader should know, without effect on the verdict
    std::string started_at;
    std::size_t frame_size = 0;  // for a mix the mean, rounded
    struct Mix {
        std::size_t period_frames = 0;
        double mean_frame_size = 0;
    };
    std::optional<Mix> mix;
    double intended_fps = 0;         // of one direction, over the whole sending phase, of all testers together
    double intended_duration_s = 0;  // of that phase
    std::optional<Burst> burst;
    std::optional<LoadChange> then;
    /// For a trial that may be judged by its clean time (tally/clean_time.hpp).
    struct Clean {
        double wanted_s = 0;
        double most_s = 0;   // the longest that frames may be sent
        double sent_s = 0;   // how long frames were sent, including what is left out
        double clean_s = 0;  // how much of sent_s is clean
        std::size_t pieces = 0;
        std::array<std::size_t, lapse_names.size()> lapses{};
        std::vector<LeftOut> left_out;
        bool loses_steadily = false;  // frames are lost all the time: less of it is enough

        /// Whether the clean time is enough for a verdict. It may be a little too short, since what is left out of the
        /// last moments cannot be sent again.
        [[nodiscard]] bool is_enough() const noexcept {
            constexpr double spare_share = 0.01;
            constexpr double least_spare_s = 0.15;
            // A trial of some seconds can spare what the longest stalls cost: some 0.15 s, twice.
            constexpr double long_spare_share = 0.06;
            constexpr double most_spare_s = 0.3;
            const double spare_s = std::clamp(long_spare_share * wanted_s, least_spare_s, most_spare_s);
            return loses_steadily ||
                   clean_s >= std::max(wanted_s / 2, wanted_s - std::max(spare_share * wanted_s, spare_s));
        }
    };
    std::optional<Clean> clean;
    std::optional<double>
        stopped_early_s;  // how long frames were sent, if sending ended early because the trial could no longer pass
    Limits limits;
    bool stopped = false;
    std::vector<Deviation> deviations;
    std::vector<Phase> phases;
    std::vector<DirectionResult> directions;
    struct BeforeAfter {
        PortCounters before;
        PortCounters after;
        std::vector<LinkSwitch> link_switches;    // between the two, in order
        std::vector<IcmpErrorCount> icmp_errors;  // received between the two
        std::vector<KeptFrame> kept_frames;       // of those received between the two; their octets are the tester's
    };
    plan::PerSide<BeforeAfter> ports;
    bool is_one_armed = false;       // both sides are on one port, whose counters both of `ports` then have
    std::optional<Share> share;      // where the tester is one of several
    bool keeps_frames = false;       // see KeptFrame
    pace::ClockSample ended;         // when the counts were read
    std::optional<StartTime> start;  // where the request gives a time of start
    HostRecord host;
    double ticks_per_second = 0;
    std::vector<ClockOffset> clock_offsets;  // as measured when the ports were opened; empty with one worker
    double clock_error_ppm = 0;              // over the trial, against CLOCK_MONOTONIC_RAW
    /// Since the ports were opened, against CLOCK_MONOTONIC; nothing unless NTP reports that it is right.
    std::optional<double> steered_clock_error_ppm;

    /// For how long frames were to be sent in the end.
    [[nodiscard]] double sending_s() const {
        return stopped_early_s.value_or(clean ? clean->sent_s : intended_duration_s);
    }
    /// The time that all slices of the delays cover together.
    [[nodiscard]] double slices_s() const { return clean ? clean->most_s : intended_duration_s; }
    /// The part of the load that this tester sends.
    [[nodiscard]] double own_part() const {
        return share ? static_cast<double>(share->streams) / static_cast<double>(share->stride) : 1;
    }
    /// Whether the verdict is about the clean time only.
    [[nodiscard]] bool is_judged_by_clean_time() const noexcept { return clean && clean->is_enough(); }
    /// The frames of a direction that the verdict is about.
    [[nodiscard]] CleanCounts judged(const DirectionResult& d) const {
        if (is_judged_by_clean_time()) return d.clean.value();
        return {.frames = d.offered_frames, .lost_frames = d.lost_frames()};
    }
    /// The same of a flow.
    [[nodiscard]] CleanCounts judged(const ClassCount& c) const {
        if (is_judged_by_clean_time() && c.clean) return *c.clean;
        return {.frames = c.offered_frames, .lost_frames = c.lost_frames()};
    }
    /// 1 - received / offered over all directions (RFC 9971), for the frames that are judged.
    [[nodiscard]] double loss_ratio() const;
};

}  // namespace evenhand::tally
