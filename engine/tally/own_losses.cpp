// SPDX-License-Identifier: Apache-2.0
#include "tally/own_losses.hpp"

#include <algorithm>

#include "tally/port_change.hpp"
#include "tally/reason.hpp"
#include "units.hpp"

namespace evenhand::tally {
std::uint64_t untimed_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[plan::receiving_side(d.direction)];
    const auto change = change_of(port.before, port.after);
    std::uint64_t missed = std::max(change.missed_frames, change.unseen_frames);
    if (result.is_one_armed) {
        // What the one port missed explains the losses of both directions together, once.
        for (const auto& before : result.directions) {
            if (before.direction == d.direction) break;
            missed -= std::min(missed, before.lost_frames());
        }
    }
    if (change.missed_frames != 0) {
        note(reasons, "receive_missed", "{}: the tester's receiving port missed {} frames ({}{})",
             name_of(result, d.direction), change.missed_frames, change.missed_by,
             change.missed_by.find(',') == std::string::npos
                 ? ""
                 : "; these may count the same frames, so only the largest is charged");
    }
    if (change.unseen_frames != 0) {
        note(reasons, "receive_unseen",
             "{}: the tester's receiving port counted {} frames, and its receivers saw {}; {} were lost inside the "
             "tester",
             name_of(result, d.direction), change.received_frames, change.seen_frames, change.unseen_frames);
    }
    if (d.wrong_time_frames != 0) {
        note(reasons, "clock_difference",
             "{}: {} frames have the number of this trial, but a time {}; the clocks of sender and receiver may differ "
             "by as much",
             name_of(result, d.direction), d.wrong_time_frames,
             d.ahead_us > 0 ? fmt::format("of up to {:.0f} us in the receiver's future", d.ahead_us)
                            : fmt::format("of up to {:.0f} us before it began", d.before_start_us));
    }
    if (d.unrecorded_frames != 0) {
        note(reasons, "record_overrun",
             "{}: {} frames came before the tester had made room for them in its record of the trial; this machine "
             "kept its main thread from a CPU for long",
             name_of(result, d.direction), d.unrecorded_frames);
    }
    if (d.late_by_gap_frames != 0) {
        note(reasons, "receiver_gap",
             "{}: the receiver did not look when the residual wait ended; {} frames that had come before were read too "
             "late",
             name_of(result, d.direction), d.late_by_gap_frames);
    }
    return missed + d.wrong_time_frames + d.unrecorded_frames + d.late_by_gap_frames;
}

std::uint64_t own_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const std::uint64_t untimed = untimed_losses(result, d, reasons);
    if (d.gap_frames != 0) {
        note(reasons, "receiver_gap",
             "{}: the receiver did not look for up to {:.0f} us; {} frames may have overrun its ring of {}",
             name_of(result, d.direction), d.max_poll_gap_us, d.gap_frames, d.ring_frames);
    }
    return std::min(d.lost_frames(), untimed + d.gap_frames);
}

std::uint64_t late_bursts(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (d.overdue_frames != 0) {
        note(reasons, "overdue_may_explain_loss",
             "{}: {} frames left overdue (the worst {:.0f} us) and came to the device as bursts",
             name_of(result, d.direction), d.overdue_frames, d.max_overdue_us);
    }
    return d.overdue_frames;
}

std::uint64_t away_losses(const TrialResult& whole, const DirectionResult& d, std::vector<Reason>& reasons) {
    // Without a record of its CPUs the DUT was not watched, and nothing is known.
    if (d.away_frames == 0 || !whole.host.dut) return 0;
    double longest_us = 0;
    std::uint64_t absences = 0;
    for (const auto& cpu : whole.host.dut->cpus) {
        longest_us = std::max(longest_us, cpu.longest_us);
        absences += cpu.absences;
    }
    note(reasons, "host_took_cpu",
         "{}: this machine took the DUT's CPU away ({}, up to {:.1f} ms); {} frames arrived at the DUT in such moments "
         "and may have overrun its ring of {}",
         name_of(whole, d.direction), absences == 1 ? "once" : fmt::format("{} times", absences),
         longest_us / us_per_ms, d.away_frames, whole.host.dut->ring_frames);
    return d.away_frames;
}

bool is_anybodys_loss(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[plan::receiving_side(d.direction)];
    const auto change = change_of(port.before, port.after);
    const std::uint64_t dropped = change.dropped_answers;
    if (dropped != 0)
        note(reasons, "answers_dropped",
             "{}: {} answers to the DUT's questions were dropped for want of buffers; it may not have reached these "
             "hosts",
             name_of(result, d.direction), dropped);
    const std::uint64_t pauses = change.pause_frames;
    if (pauses != 0)
        note(reasons, "flow_control",
             "{}: {} PAUSE frames on the tester's receiving port; with flow control a full ring of the tester stops "
             "the DUT",
             name_of(result, d.direction), pauses);
    return dropped != 0 || pauses != 0;
}

}  // namespace evenhand::tally
