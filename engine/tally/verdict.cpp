// SPDX-License-Identifier: Apache-2.0
#include "tally/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "tally/altered.hpp"
#include "tally/left_out.hpp"
#include "tally/notes.hpp"
#include "tally/own_losses.hpp"
#include "tally/port_change.hpp"
#include "tally/reason.hpp"
#include "units.hpp"

namespace evenhand::tally {
namespace {

/// How many frames the sending port of this direction took: where both sides are on one port, those of both directions.
std::uint64_t frames_into_port(const TrialResult& result, const DirectionResult& d) {
    if (!result.is_one_armed) return d.offered_frames;
    std::uint64_t frames = 0;
    for (const auto& each : result.directions) frames += each.offered_frames;
    return frames;
}

void judge_sender(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const Limits& limits = result.limits;
    // Compared with the integer number of frames that rate and duration make: a short trial cannot offer half a frame.
    const double error = d.offered_fps * result.sending_s() / static_cast<double>(d.intended_frames) - 1;
    // One tester's share of a burst of some milliseconds takes less than a turn of the sender's loop: then it is enough
    // that the last frame was not overdue.
    const double late_us = (static_cast<double>(d.offered_frames) / d.offered_fps - result.sending_s()) * us_per_second;
    const bool is_late =
        std::abs(error) > limits.offered_tolerance && (!result.burst || late_us > limits.overdue_after_us);
    const bool load_missed = is_late || d.offered_frames != d.intended_frames;
    const bool is_clean = result.is_judged_by_clean_time();  // then late frames are left out
    if (load_missed && !is_clean) {
        note(reasons, "offered_load",
             "{}: offered {} frames at {:.1f} fps, intended {} at {:.1f} fps ({:+.4f} %, limit {:.4f} %)",
             name_of(result, d.direction), d.offered_frames, d.offered_fps, d.intended_frames,
             result.own_part() * d.intended_fps.value_or(result.intended_fps), 100 * error,
             100 * limits.offered_tolerance);
        if (d.refusals != 0)
            note(reasons, "port_refused", "{}: the port refused frames {} times: the other side pushes back",
                 name_of(result, d.direction), d.refusals);
    }
    // A delay is measured from the frame's own stamp, so that only the frames matter that a late departure affected:
    // see judge_left_out(). A port that refuses frames delays others.
    if (!is_clean && (!d.delays || d.refusals != 0) &&
        (static_cast<double>(d.overdue_frames) > limits.overdue_tolerance * static_cast<double>(d.intended_frames) ||
         d.max_overdue_us > limits.longest_overdue_us)) {
        note(reasons, "sender_overdue",
             "{}: {} of {} frames left more than {:.0f} us after they were due, the worst {:.0f} us (limits: {:g} % of "
             "the frames, {:.0f} us)",
             name_of(result, d.direction), d.overdue_frames, d.intended_frames, limits.overdue_after_us,
             d.max_overdue_us, 100 * limits.overdue_tolerance, limits.longest_overdue_us);
    }
    const auto& port = result.ports[plan::sending_side(d.direction)];
    const auto change = change_of(port.before, port.after);
    const std::uint64_t taken = frames_into_port(result, d);
    if (!change.problem && change.transmitted_frames < taken) {
        note(reasons, "transmit_not_drained", "{}: the port took {} frames but has sent {}",
             name_of(result, d.direction), taken, change.transmitted_frames);
    }
    // A DUT that is full stops the tester with PAUSE, and up to a ring of frames waits in the tester, so that a burst
    // is no longer one.
    if (result.burst && change.pause_frames != 0) {
        note(reasons, "flow_control",
             "{}: {} PAUSE frames on the tester's sending port; with flow control the device stops the tester, so that "
             "a burst lasts longer than it was to",
             name_of(result, d.direction), change.pause_frames);
    }
}

void judge_port(const TrialResult& result, plan::Side side, std::vector<Reason>& reasons) {
    const auto& port = result.ports[side];
    if (port.after.is_removed) {
        note(reasons, "port_removed",
             "{}: the port was removed from the tester's host: unplugged, deleted, or asked back by the kernel",
             name_of(result, side));
        return;  // its link and its counters are gone with it
    }
    const bool is_taken_down = !port.link_switches.empty() && !port.link_switches.back().is_up;
    if (!port.before.link_up || (!port.after.link_up && !is_taken_down)) {
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

/// The times of frames mean nothing if the counters of two workers differ by more than a receiver allows for.
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

/// Which classes of a mix lost frames that are judged, and how many; empty if all frames are alike. Sizes and IP
/// versions are counted over the whole trial alone.
std::string lost_of_classes(const TrialResult& result, const DirectionResult& d) {
    std::string text;
    for (const auto& c : d.classes) {
        if (result.is_judged_by_clean_time() && !c.clean) continue;
        const auto judged = result.judged(c);
        if (judged.lost_frames == 0) continue;
        if (!c.name.empty()) {
            text +=
                fmt::format("{}{} of {} of {}", text.empty() ? ": " : ", ", judged.lost_frames, judged.frames, c.name);
            if (c.loss_at_most) text += fmt::format(" (at most {:g} %)", 100 * *c.loss_at_most);
            continue;
        }
        text += fmt::format("{}{} of {} IPv{} frames of {} octets", text.empty() ? ": " : ", ", judged.lost_frames,
                            judged.frames, static_cast<int>(c.version), c.frame_size);
    }
    return text;
}

/// A defect of the device, whatever was lost: it translated each of these connections to the same four tuple as
/// another.
void judge_connections(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (!d.connections || d.connections->shared_tuples == 0) return;
    note(reasons, "shared_tuples",
         "{}: {} of {} connections were translated to the four tuple of another one, so their answers cannot be "
         "distinguished",
         name_of(result, d.direction), d.connections->shared_tuples, d.connections->learnt);
}

/// Checks ports and clocks, and whether the trial was completed.
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

/// Notes how much a direction that failed has lost.
void note_losses(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (d.lost_frames() == 0) return;
    if (result.is_judged_by_clean_time()) {
        const auto clean = result.judged(d);
        if (clean.lost_frames == 0) return;
        note(reasons, "loss",
             "{}: {} of {} frames were lost ({:.6f} %) in clean time{}; {} of {} others are not judged",
             name_of(result, d.direction), clean.lost_frames, clean.frames,
             100 * static_cast<double>(clean.lost_frames) / static_cast<double>(clean.frames),
             lost_of_classes(result, d), d.lost_frames() - std::min(d.lost_frames(), clean.lost_frames),
             d.offered_frames - std::min(d.offered_frames, clean.frames));
    } else {
        note(reasons, "loss", "{}: {} of {} frames were lost ({:.6f} %){}", name_of(result, d.direction),
             d.lost_frames(), d.offered_frames, 100 * d.loss_ratio(), lost_of_classes(result, d));
    }
    const auto& port = result.ports[plan::receiving_side(d.direction)];
    const std::uint64_t damaged = change_of(port.before, port.after).receive_errors;
    if (damaged != 0)
        note(reasons, "damaged",
             "{}: {} frames came damaged to the tester's port (wrong FCS, or too short); check cable, transceivers "
             "and the DUT's port",
             name_of(result, d.direction), damaged);
}

/// A port that takes none of the frames that reach it does not work, so that what it sent is doubtful as well. No DUT
/// can cause this at any load; a port of net_af_xdp that had lost its buffers did.
void judge_receiving_port(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const auto& port = result.ports[plan::receiving_side(d.direction)];
    const auto change = change_of(port.before, port.after);
    if (d.received_frames != 0 || change.received_frames != 0 || change.missed_frames == 0) return;
    note(reasons, "port_stopped",
         "{}: the tester's receiving port took none of the {} frames that reached it ({}): it has stopped",
         name_of(result, d.direction), change.missed_frames, change.missed_by);
}

struct ExplainedLosses {
    std::uint64_t offered = 0;  // frames that are judged
    std::uint64_t lost = 0;
    std::uint64_t explained = 0;  // lost ones that may not be the DUT's
};

/// For direction `i` of all testers together. What a tester lost itself explains its own losses only; what happened at
/// the DUT explains those of all testers, once.
ExplainedLosses explain_losses(const TrialResult& whole, std::span<const TrialResult> parts, std::size_t i,
                               std::vector<Reason>& lapses) {
    ExplainedLosses all;
    if (whole.is_judged_by_clean_time()) {
        // Late bursts, gaps and a DUT's absences are lapses, and are left out with all that they may have affected. It
        // is unknown when a port missed a frame: it is assumed to be among the frames that are left out, as far as
        // possible.
        const auto& d = whole.directions[i];
        const auto clean = whole.judged(d);
        all.offered = clean.frames;
        all.lost = clean.lost_frames;
        const std::uint64_t left_out = d.lost_frames() - std::min(d.lost_frames(), clean.lost_frames);
        const std::uint64_t own = untimed_losses(whole, d, lapses);
        all.explained =
            is_anybodys_loss(whole, d, lapses) ? all.lost : std::min(all.lost, own - std::min(own, left_out));
        return all;
    }
    for (const auto& part : parts) {
        const auto& d = part.directions[i];
        all.offered += d.offered_frames;
        all.lost += d.lost_frames();
        const std::uint64_t own = own_losses(part, d, lapses);
        all.explained += late_bursts(part, d, lapses);
        all.explained += is_anybodys_loss(part, d, lapses) ? d.lost_frames() : own;
    }
    all.explained = std::min(all.lost, all.explained + away_losses(whole, whole.directions[i], lapses));
    return all;
}

/// How many more frames were lost than may be: of all frames together, or where flows have limits of their own, of each
/// of these and of all others together. `of_whole`: by what a limit's frames are multiplied.
double lost_beyond_limits(const TrialResult& whole, std::uint64_t offered, std::uint64_t lost, double of_whole) {
    struct Judged {
        double limit = 0;
        std::uint64_t offered = 0;
        std::uint64_t lost = 0;
    };
    std::map<std::string, Judged> flows;
    for (const auto& d : whole.directions) {
        for (const auto& c : d.classes) {
            if (!c.loss_at_most) continue;
            auto& flow = flows[c.name];
            flow.limit = *c.loss_at_most;
            flow.offered += whole.judged(c).frames;
            flow.lost += whole.judged(c).lost_frames;
        }
    }
    const auto beyond = [=](double limit, std::uint64_t of, std::uint64_t lost_of) {
        return std::max(0.0, static_cast<double>(lost_of) - limit * static_cast<double>(of) * of_whole);
    };
    double too_many = 0;
    for (const auto& [name, flow] : flows) {
        too_many += beyond(flow.limit, flow.offered, flow.lost);
        offered -= std::min(offered, flow.offered);
        lost -= std::min(lost, flow.lost);
    }
    return too_many + beyond(whole.limits.loss_ratio, offered, lost);
}

}  // namespace

double TrialResult::loss_ratio() const {
    std::uint64_t offered = 0;
    std::uint64_t lost = 0;
    for (const auto& d : directions) {
        offered += judged(d).frames;
        lost += judged(d).lost_frames;
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
        if (!part.burst) note_flow_control(part, d, whole.notes);  // with bursts it is a reason
    });
    each([&](const auto& part, const auto& d) { note_hop_limit(part, d, whole.notes); });
    each([&](const auto& part, const auto& d) { note_overload(part, d, whole.notes); });
    for (const auto& d : whole.directions) note_left_out(whole, d, whole.notes);
    each([&](const auto& part, const auto& d) { note_strayed(part, d, whole.notes); });
    for (const auto& part : parts) {
        note_link_switches(part, whole.notes);
        note_icmp_errors(part, whole.notes);
    }
    note_clean_time(whole, whole.notes);
    each([&](const auto& part, const auto& d) { note_remarked(part, d, whole.notes); });
    for (const auto& part : parts) judge_tester(part, reasons);
    each([&](const auto& part, const auto& d) { judge_sender(part, d, reasons); });
    for (std::size_t d = 0; d < whole.directions.size(); ++d) {
        if (std::ranges::any_of(parts, [&](const auto& part) { return part.directions[d].refusals == 0; }))
            judge_left_out(whole, whole.directions[d], reasons);
    }
    each([&](const auto& part, const auto& d) { judge_copies(part, d, reasons); });
    each([&](const auto& part, const auto& d) { judge_receiving_port(part, d, reasons); });
    if (!reasons.empty()) {
        whole.verdict = Verdict::invalid;
        judge_clean_time(whole, reasons);
        return;
    }

    std::uint64_t offered = 0;
    std::uint64_t lost = 0;
    std::uint64_t explained = 0;
    std::vector<Reason> lapses;
    for (std::size_t i = 0; i < whole.directions.size(); ++i) {
        const auto of = explain_losses(whole, parts, i, lapses);
        offered += of.offered;
        lost += of.lost;
        explained += of.explained;
    }
    // The allowance is that of the whole trial: a trial that was stopped early has already lost more than that.
    const double judged_s = whole.is_judged_by_clean_time() ? whole.clean->clean_s : whole.sending_s();
    const double of_whole = whole.stopped_early_s ? whole.intended_duration_s / judged_s : 1;
    const double too_many = lost_beyond_limits(whole, offered, lost, of_whole);
    each([&](const auto& part, const auto& d) { judge_connections(part, d, reasons); });
    each([&](const auto& part, const auto& d) { judge_remarked(part, d, reasons); });
    if (too_many <= 0 && !reasons.empty()) {
        whole.verdict = Verdict::fail;
        return;
    }
    if (too_many <= 0) {
        whole.verdict = Verdict::pass;
        each([&](const auto& part, const auto& d) { note_altered(part, d, whole.notes); });
        if (whole.stopped_early_s) {
            whole.verdict = Verdict::invalid;
            note(reasons, "stopped_early",
                 "sending ended after {:.2f} s of {:g} s, but frames that were missing then came later",
                 *whole.stopped_early_s, whole.intended_duration_s);
        }
        note_queue_fillings(whole);
        return;
    }
    if (too_many <= static_cast<double>(explained) && reasons.empty()) {
        whole.verdict = Verdict::invalid;
        each([&](const auto& part, const auto& d) { note_altered(part, d, whole.notes); });
        reasons = std::move(lapses);
        judge_clean_time(whole, reasons);
        note(reasons, "loss", "{} of {} frames were lost; up to {} of them may not be the DUT's fault", lost, offered,
             explained);
        return;
    }
    whole.verdict = Verdict::fail;
    note_queue_fillings(whole);
    each([&](const auto& part, const auto& d) { note_losses(part, d, reasons); });
    std::erase_if(whole.notes,
                  [](const Reason& note) { return note.code == "icmp_error" || note.code == "line_overload"; });
    each([&](const auto& part, const auto& d) { note_overload(part, d, reasons); });  // these say why
    for (const auto& part : parts) note_icmp_errors(part, reasons);
    each([&](const auto& part, const auto& d) { note_altered(part, d, reasons); });
    if (whole.stopped_early_s) {
        note(reasons, "stopped_early",
             "sending ended after {:.2f} s of {:g} s: more frames than may be lost were overdue by then, and later "
             "ones had overtaken them",
             *whole.stopped_early_s, whole.intended_duration_s);
    }
}

void judge(TrialResult& result) {
    result.reasons.clear();
    // The judgement reads the counts and writes verdict, reasons and notes: never the same fields.
    judge(result, std::span<const TrialResult>{&result, 1});
}

}  // namespace evenhand::tally
