// SPDX-License-Identifier: Apache-2.0
#include "tally/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tally/port_change.hpp"

namespace evenhand::tally {
namespace {

constexpr double us_per_ms = 1e3;
constexpr double us_per_second = 1e6;
constexpr double most_left_out_share =
    0.1;  // of the frames whose delays are wanted: with more of them gone it is another sample

/// Of one tester among several: "forward of b".
std::string name_of(const TrialResult& result, const char* name) {
    return result.tester.empty() ? name : fmt::format("{} of {}", name, result.tester);
}
std::string name_of(const TrialResult& result, plan::Direction direction) {
    return name_of(result, direction == plan::Direction::forward ? "forward" : "reverse");
}
std::string name_of(const TrialResult& result, plan::Side side) {
    return name_of(result, side == plan::Side::left ? "left" : "right");
}
/// Before what is neither of a direction nor of a side.
std::string who(const TrialResult& result) { return result.tester.empty() ? "" : result.tester + ": "; }

template <class... Args>
void note(std::vector<Reason>& reasons, const char* code, fmt::format_string<Args...> text, Args&&... args) {
    reasons.push_back({.code = code, .text = fmt::format(text, std::forward<Args>(args)...)});
}

/// Frames without a part in the delays, and of how many: of the tagged ones, or of all where every frame counts.
std::pair<std::uint64_t, std::uint64_t> left_out_of(const DelayResult& delays) {
    if (delays.has_tags) return {delays.left_out_tags, delays.tagged.size() + delays.left_out_tags};
    return {delays.left_out_frames, delays.offered_frames};
}

bool is_too_much(const DelayResult& delays) {
    const auto [left_out, all] = left_out_of(delays);
    return static_cast<double>(left_out) > most_left_out_share * static_cast<double>(all);
}

/// Of all testers together: each has sent a part of the frames that are the sample.
void judge_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (!d.delays || !is_too_much(*d.delays)) return;
    const auto [left_out, all] = left_out_of(*d.delays);
    note(reasons, "sender_overdue",
         "{}: {} of {} {}frames left more than {:.0f} us after they were due, the worst {:.0f} us, or right behind "
         "such frames (limit: {:g} % of them)",
         name_of(result, d.direction), left_out, all, d.delays->has_tags ? "tagged " : "",
         result.limits.overdue_after_us, d.max_overdue_us, 100 * most_left_out_share);
}

void note_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (!d.delays || d.delays->left_out_frames == 0 || is_too_much(*d.delays)) return;
    const auto [left_out, all] = left_out_of(*d.delays);
    note(notes, "left_out",
         "{}: {} of {} {}frames have no part in the delays: they left more than {:.0f} us late, or right behind frames "
         "that did",
         name_of(result, d.direction), left_out, all, d.delays->has_tags ? "tagged " : "",
         result.limits.overdue_after_us);
}

void judge_sender(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const Limits& limits = result.limits;
    // Against the whole number of frames that rate and duration make: a short trial cannot offer half a frame.
    const double error = d.offered_fps * result.sending_s() / static_cast<double>(d.intended_frames) - 1;
    // A share of a burst of some milliseconds is less than a turn of the sender's loop: there it is enough that the
    // last frame was not overdue.
    const double late_us = (static_cast<double>(d.offered_frames) / d.offered_fps - result.sending_s()) * us_per_second;
    const bool is_late =
        std::abs(error) > limits.offered_tolerance && (!result.burst || late_us > limits.overdue_after_us);
    const bool load_missed = is_late || d.offered_frames != d.intended_frames;
    if (load_missed) {
        note(reasons, "offered_load",
             "{}: offered {} frames at {:.1f} fps, intended {} at {:.1f} fps ({:+.4f} %, limit {:.4f} %)",
             name_of(result, d.direction), d.offered_frames, d.offered_fps, d.intended_frames,
             result.own_part() * result.intended_fps, 100 * error, 100 * limits.offered_tolerance);
        if (d.refusals != 0)
            note(reasons, "port_refused", "{}: the port refused frames {} times: the other side pushes back",
                 name_of(result, d.direction), d.refusals);
    }
    // A delay is from a frame's own stamp: there only the frames count that a late departure touched, see
    // judge_left_out(). A port that refuses frames makes others late.
    if ((!d.delays || d.refusals != 0) &&
        (static_cast<double>(d.overdue_frames) > limits.overdue_tolerance * static_cast<double>(d.intended_frames) ||
         d.max_overdue_us > limits.longest_overdue_us)) {
        note(reasons, "sender_overdue",
             "{}: {} of {} frames left more than {:.0f} us after they were due, the worst {:.0f} us (limits: {:g} % of "
             "the frames, {:.0f} us)",
             name_of(result, d.direction), d.overdue_frames, d.intended_frames, limits.overdue_after_us,
             d.max_overdue_us, 100 * limits.overdue_tolerance, limits.longest_overdue_us);
    }
    const auto& port = result.ports[static_cast<std::size_t>(plan::sending_side(d.direction))];
    const auto change = change_of(port.before, port.after);
    if (!change.problem && change.transmitted_frames < d.offered_frames) {
        note(reasons, "transmit_not_drained", "{}: the port took {} frames but has sent {}",
             name_of(result, d.direction), d.offered_frames, change.transmitted_frames);
    }
    // A DUT that is full stops the tester with PAUSE, and up to a ring of frames waits here: a burst is no burst then.
    if (result.burst && change.pause_frames != 0) {
        note(reasons, "flow_control",
             "{}: {} PAUSE frames on the tester's sending port; with flow control the device stops the tester, so that "
             "a burst lasts longer than it was to",
             name_of(result, d.direction), change.pause_frames);
    }
}

/// Losses of one direction that the tester itself, or the host that it shares with the DUT, may have caused.
std::uint64_t own_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[static_cast<std::size_t>(plan::receiving_side(d.direction))];
    const auto change = change_of(port.before, port.after);
    const std::uint64_t missed = std::max(change.missed_frames, change.unseen_frames);
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
             "{}: {} frames came before the tester had made room for them in its record of the trial; this host kept "
             "its main thread from a CPU for long",
             name_of(result, d.direction), d.unrecorded_frames);
    }
    if (d.gap_frames != 0) {
        note(reasons, "receiver_gap",
             "{}: the receiver did not look for up to {:.0f} us; {} frames may have overrun its ring of {}",
             name_of(result, d.direction), d.max_poll_gap_us, d.gap_frames, d.ring_frames);
    }
    if (d.late_by_gap_frames != 0) {
        note(reasons, "receiver_gap",
             "{}: the receiver did not look when the residual wait ended; {} frames that had come before were read too "
             "late",
             name_of(result, d.direction), d.late_by_gap_frames);
    }
    if (d.overdue_frames != 0) {
        note(reasons, "overdue_may_explain_loss",
             "{}: {} frames left overdue (the worst {:.0f} us) and came to the device as bursts",
             name_of(result, d.direction), d.overdue_frames, d.max_overdue_us);
    }
    if (d.away_frames != 0) {
        double longest_us = 0;
        std::uint64_t absences = 0;
        for (const auto& cpu : result.host.dut->cpus) {
            longest_us = std::max(longest_us, cpu.longest_us);
            absences += cpu.absences;
        }
        note(reasons, "host_took_cpu",
             "{}: this host took the DUT's CPU away ({}, up to {:.1f} ms); {} frames arrived at the DUT in such "
             "moments and may have overrun its ring of {}",
             name_of(result, d.direction), absences == 1 ? "once" : fmt::format("{} times", absences),
             longest_us / us_per_ms, d.away_frames, result.host.dut->ring_frames);
    }
    return std::min(d.lost_frames(), missed + d.wrong_time_frames + d.unrecorded_frames + d.gap_frames +
                                         d.late_by_gap_frames + d.overdue_frames + d.away_frames);
}

/// Losses of which nobody can say whose they are: a host that the DUT could not reach for want of our answer loses all
/// its frames.
bool is_anybodys_loss(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[static_cast<std::size_t>(plan::receiving_side(d.direction))];
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

void judge_port(const TrialResult& result, plan::Side side, std::vector<Reason>& reasons) {
    const auto& port = result.ports[static_cast<std::size_t>(side)];
    if (port.after.is_removed) {
        note(reasons, "port_removed",
             "{}: the port was removed from the tester's host: unplugged, deleted, or asked back by the kernel",
             name_of(result, side));
        return;  // its link and its counters went with it
    }
    if (!port.before.link_up || !port.after.link_up) {
        note(reasons, "link", "{}: the link was down", name_of(result, side));
    } else if (port.after.link_changes != port.before.link_changes) {
        note(reasons, "link", "{}: the link went down or up {} times during the trial", name_of(result, side),
             port.after.link_changes - port.before.link_changes);
    }
    if (const auto problem = change_of(port.before, port.after).problem) {
        note(reasons, "counters", "{}: the port's counters could not be read, so its own losses are not known: {}",
             name_of(result, side), *problem);
    }
}

/// What a PASS may hide, though it changes nothing about the verdict.
void note_flow_control(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    const auto& port = result.ports[static_cast<std::size_t>(plan::sending_side(d.direction))];
    const auto pauses = change_of(port.before, port.after).pause_frames;
    if (pauses == 0) return;
    note(notes, "flow_control",
         "{}: {} PAUSE frames on the tester's sending port; a device that stops the tester hides up to a ring of "
         "frames in it",
         name_of(result, d.direction), pauses);
}

/// What forwards without lowering it is no router (RFC 1812, 5.3.1; RFC 8200, 3), though its frames arrive.
void note_hop_limit(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (d.hop_limit_was_lowered) return;
    note(notes, "hop_limit",
         "{}: frames came back with the hop limit that they were sent with: a cable or a bridge joins the ports, or a "
         "router that does not lower it",
         name_of(result, d.direction));
}

void note_queue_filling(const TrialResult& result, DirectionResult& d, std::vector<Reason>& notes) {
    const double own_fps = result.own_part() * result.intended_fps;
    const auto frames = static_cast<std::uint64_t>(std::llround(own_fps * result.intended_duration_s));
    // Of one tester among several the slices have its own frames, and the number is one of the whole direction's.
    const auto first_lost =
        d.first_lost.empty()
            ? std::nullopt
            : std::optional{static_cast<std::uint64_t>(result.own_part() * static_cast<double>(d.first_lost.front()))};
    d.queue_filling = find_queue_filling(d.delay_by_slice, result.intended_duration_s / SliceDelays::slices, own_fps,
                                         frames, first_lost, result.ticks_per_second);
    if (!d.queue_filling) return;
    constexpr double ms_per_second = 1e3;
    note(notes, "queue_filling",
         "{}: delays grew by {:.1f} ms a second, so a queue of the DUT was filling; it sustains about {:.0f} fps, and "
         "{}",
         name_of(result, d.direction), d.queue_filling->slope * ms_per_second, d.queue_filling->sustainable_fps,
         d.lost_frames() == 0 ? "a longer trial at this load would lose frames" : "the queue overflowed");
}

/// Only of an even load: what bursts do to a queue is another matter. A tester that spoiled the trial may have made the
/// delays itself.
void note_queue_fillings(TrialResult& result) {
    for (auto& d : result.directions) d.queue_filling.reset();
    if (result.verdict == Verdict::invalid || result.burst || result.then) return;
    for (auto& d : result.directions) note_queue_filling(result, d, result.notes);
}

/// Two workers whose counters differ by more than what a receiver allows for: times of frames mean nothing.
void judge_clocks(const TrialResult& result, std::vector<Reason>& reasons) {
    if (result.clock_offsets.empty()) return;
    const auto ahead = std::ranges::max_element(result.clock_offsets, {},
                                                [](const auto& c) { return c.offset_us - c.uncertainty_us; });
    const auto behind = std::ranges::min_element(result.clock_offsets, {},
                                                 [](const auto& c) { return c.offset_us + c.uncertainty_us; });
    const double at_least_us =
        (ahead->offset_us - ahead->uncertainty_us) - (behind->offset_us + behind->uncertainty_us);
    if (at_least_us <= clock_skew_us) return;
    note(reasons, "clock_difference",
         "{}the clock of CPU {} is {:.1f} us ahead of that of CPU {}, by {:.1f} us at the least (limit {:.0f} us); "
         "times "
         "of frames mean nothing",
         who(result), ahead->cpu, ahead->offset_us - behind->offset_us, behind->cpu, at_least_us, clock_skew_us);
}

/// Of a mix: which kinds of frames lost some, and how many; empty if all frames are alike.
std::string lost_of_classes(const DirectionResult& d) {
    std::string text;
    for (const auto& c : d.classes) {
        if (c.received_frames >= c.offered_frames) continue;
        text += fmt::format("{}{} of {} IPv{} frames of {} octets", text.empty() ? ": " : ", ",
                            c.offered_frames - c.received_frames, c.offered_frames, static_cast<int>(c.version),
                            c.frame_size);
    }
    return text;
}

/// A translator that is wrong is not one that is slow.
void note_mistranslated(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (!d.mistranslated_frames) return;
    static constexpr std::array<const char*, frame::translation_faults> faults{
        "without a UDP checksum, which IPv6 demands", "with another traffic class than they were sent with",
        "with an address or port that is not theirs"};
    for (std::size_t i = 0; i < faults.size(); ++i) {
        if (const auto frames = d.mistranslated_frames->at(i))
            note(notes, "mistranslated", "{}: {} frames came {}; they count as lost", name_of(result, d.direction),
                 frames, faults.at(i));
    }
}

/// The device's doing, whoever lost frames besides: each of these was translated so.
void judge_connections(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (!d.connections || d.connections->shared_tuples == 0) return;
    note(reasons, "shared_tuples",
         "{}: {} of {} connections were translated to the four tuple of another one, so their answers cannot be told "
         "apart",
         name_of(result, d.direction), d.connections->shared_tuples, d.connections->learnt);
}

/// Of several testers each has its own part of the device.
void note_strayed(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (d.strayed_frames == 0) return;
    note(notes, "strayed",
         "{}: {} frames that another engine had sent came to this one; they count as lost: the DUT must forward "
         "between the two ports of an engine alone",
         name_of(result, d.direction), d.strayed_frames);
}

/// Ports and clocks, and whether it came to its end.
void judge_tester(const TrialResult& result, std::vector<Reason>& reasons) {
    if (result.stopped) note(reasons, "stopped", "{}the trial was stopped before its end", who(result));
    for (const auto side : {plan::Side::left, plan::Side::right}) judge_port(result, side, reasons);
    if (std::abs(result.clock_error_ppm) > result.limits.clock_ppm) {
        note(reasons, "clock", "{}the tick rate was off by {:+.1f} ppm (limit {:.1f})", who(result),
             result.clock_error_ppm, result.limits.clock_ppm);
    }
    if (result.steered_clock_error_ppm && std::abs(*result.steered_clock_error_ppm) > result.limits.clock_ppm) {
        note(reasons, "clock",
             "{}the tick rate was off by {:+.1f} ppm since the ports were opened, by the clock that NTP steers (limit "
             "{:.1f})",
             who(result), *result.steered_clock_error_ppm, result.limits.clock_ppm);
    }
    judge_clocks(result, reasons);
}

/// Of a direction that failed.
void tell_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (d.lost_frames() == 0) return;
    note(reasons, "loss", "{}: {} of {} frames were lost ({:.6f} %){}", name_of(result, d.direction), d.lost_frames(),
         d.offered_frames, 100 * d.loss_ratio(), lost_of_classes(d));
    const auto& port = result.ports[static_cast<std::size_t>(plan::receiving_side(d.direction))];
    const std::uint64_t damaged = change_of(port.before, port.after).receive_errors;
    if (damaged != 0)
        note(reasons, "damaged",
             "{}: {} frames came damaged to the tester's port (wrong FCS, or too short); check cable, transceivers "
             "and the DUT's port",
             name_of(result, d.direction), damaged);
}

/// A port that takes none of the frames that reach it does not work, and what it was to send is as doubtful: a
/// port of net_af_xdp came to that when it had lost its buffers. No DUT can bring it about, at any load.
void judge_receiving_port(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[static_cast<std::size_t>(plan::receiving_side(d.direction))];
    const auto change = change_of(port.before, port.after);
    if (d.received_frames != 0 || change.received_frames != 0 || change.missed_frames == 0) return;
    note(reasons, "port_stopped",
         "{}: the tester's receiving port took none of the {} frames that reached it ({}): it has stopped",
         name_of(result, d.direction), change.missed_frames, change.missed_by);
}

/// Something else than forwarding is going on: a loop, a mirrored port, a capture that is played back.
void judge_duplicates(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (static_cast<double>(d.duplicated_frames) <=
        result.limits.duplicate_tolerance * static_cast<double>(d.offered_frames))
        return;
    note(reasons, "duplicates",
         "{}: {} frames came again, of {} offered (limit {:g} %): is there a loop or a mirrored port?",
         name_of(result, d.direction), d.duplicated_frames, d.offered_frames, 100 * result.limits.duplicate_tolerance);
}

}  // namespace

double TrialResult::loss_ratio() const {
    std::uint64_t offered = 0;
    std::uint64_t lost = 0;
    for (const auto& d : directions) {
        offered += d.offered_frames;
        lost += d.lost_frames();
    }
    return offered == 0 ? 1.0 : static_cast<double>(lost) / static_cast<double>(offered);
}

void judge(TrialResult& whole, std::span<const TrialResult> parts) {
    auto& reasons = whole.reasons;
    whole.notes.clear();
    const auto each = [&](auto look) {
        for (const auto& part : parts) {
            for (const auto& d : part.directions) look(part, d);
        }
    };
    each([&](const auto& part, const auto& d) { note_mistranslated(part, d, whole.notes); });
    each([&](const auto& part, const auto& d) {
        if (!part.burst) note_flow_control(part, d, whole.notes);  // of bursts it is a reason
    });
    each([&](const auto& part, const auto& d) { note_hop_limit(part, d, whole.notes); });
    for (const auto& d : whole.directions) note_left_out(whole, d, whole.notes);
    each([&](const auto& part, const auto& d) { note_strayed(part, d, whole.notes); });
    for (const auto& part : parts) judge_tester(part, reasons);
    each([&](const auto& part, const auto& d) { judge_sender(part, d, reasons); });
    for (std::size_t d = 0; d < whole.directions.size(); ++d) {
        if (std::ranges::any_of(parts, [&](const auto& part) { return part.directions[d].refusals == 0; }))
            judge_left_out(whole, whole.directions[d], reasons);
    }
    each([&](const auto& part, const auto& d) { judge_duplicates(part, d, reasons); });
    each([&](const auto& part, const auto& d) { judge_receiving_port(part, d, reasons); });
    if (!reasons.empty()) {
        whole.verdict = Verdict::invalid;
        return;
    }

    std::uint64_t offered = 0;
    std::uint64_t lost = 0;
    std::uint64_t explained = 0;
    std::vector<Reason> lapses;
    each([&](const auto& part, const auto& d) {
        offered += d.offered_frames;
        lost += d.lost_frames();
        const std::uint64_t own = own_losses(part, d, lapses);
        explained += is_anybodys_loss(part, d, lapses) ? d.lost_frames() : own;
    });
    // Of the whole trial: one that was stopped early has lost more than that.
    const double allowed =
        whole.limits.loss_ratio * static_cast<double>(offered) * (whole.intended_duration_s / whole.sending_s());
    each([&](const auto& part, const auto& d) { judge_connections(part, d, reasons); });
    if (static_cast<double>(lost) <= allowed && !reasons.empty()) {
        whole.verdict = Verdict::fail;
        return;
    }
    if (static_cast<double>(lost) <= allowed) {
        whole.verdict = Verdict::pass;
        if (whole.stopped_early_s) {
            whole.verdict = Verdict::invalid;
            note(reasons, "stopped_early",
                 "sending ended after {:.2f} s of {:g} s, but frames that were missing then came later",
                 *whole.stopped_early_s, whole.intended_duration_s);
        }
        note_queue_fillings(whole);
        return;
    }
    if (static_cast<double>(lost - explained) <= allowed && reasons.empty()) {
        whole.verdict = Verdict::invalid;
        reasons = std::move(lapses);
        note(reasons, "loss", "{} of {} frames were lost; up to {} of them may not be the DUT's fault", lost, offered,
             explained);
        return;
    }
    whole.verdict = Verdict::fail;
    note_queue_fillings(whole);
    each([&](const auto& part, const auto& d) { tell_losses(part, d, reasons); });
    if (whole.stopped_early_s) {
        note(reasons, "stopped_early",
             "sending ended after {:.2f} s of {:g} s: more frames than may be lost were overdue by then, and later "
             "ones had overtaken them",
             *whole.stopped_early_s, whole.intended_duration_s);
    }
}

void judge(TrialResult& result) {
    result.reasons.clear();
    // Counts are read, and what is found is written: never the same fields.
    judge(result, std::span<const TrialResult>{&result, 1});
}

}  // namespace evenhand::tally
