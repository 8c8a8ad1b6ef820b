// SPDX-License-Identifier: Apache-2.0
#include "tally/notes.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "tally/icmp_errors.hpp"
#include "tally/port_change.hpp"
#include "tally/queue_filling.hpp"
#include "tally/reason.hpp"
#include "units.hpp"

namespace evenhand::tally {
namespace {

void note_queue_filling(const TrialResult& result, DirectionResult& d, std::vector<Reason>& notes) {
    const double own_fps = result.own_part() * d.intended_fps.value_or(result.intended_fps);
    const auto frames = static_cast<std::uint64_t>(std::llround(own_fps * result.slices_s()));
    // For one tester among several the slices count its own frames, but this number counts those of the whole
    // direction.
    const auto first_lost =
        d.first_lost.empty()
            ? std::nullopt
            : std::optional{static_cast<std::uint64_t>(result.own_part() * static_cast<double>(d.first_lost.front()))};
    d.queue_filling = find_queue_filling(d.delay_by_slice, result.slices_s() / SliceDelays::slices, own_fps, frames,
                                         first_lost, result.ticks_per_second);
    if (!d.queue_filling) return;
    note(notes, "queue_filling",
         "{}: delays grew by {:.1f} ms a second, so a queue of the DUT was filling; it sustains about {:.0f} fps, and "
         "{}",
         name_of(result, d.direction), d.queue_filling->slope * ms_per_second, d.queue_filling->sustainable_fps,
         d.lost_frames() == 0 ? "a longer trial at this load would lose frames" : "the queue overflowed");
}

/// The address and port of the first frame that had a wrong one.
std::string example_of(const DirectionResult& d) {
    if (!d.first_mistranslated) return "";
    const auto& seen = *d.first_mistranslated;
    return fmt::format(" (frame {} came from {} port {} to {} port {})", seen.sequence, to_string(seen.source),
                       seen.source_port, to_string(seen.destination), seen.destination_port);
}

/// "2.5 Gbit/s"
std::string bit_rate(double rate_bps) {
    constexpr double giga = 1e9;
    constexpr double mega = 1e6;
    return rate_bps < giga ? fmt::format("{:.4g} Mbit/s", rate_bps / mega)
                           : fmt::format("{:.4g} Gbit/s", rate_bps / giga);
}

/// "the sender was overdue 3 times, the DUT's CPU was away once"
std::string lapses_of(const TrialResult::Clean& clean) {
    static constexpr std::array<const char*, lapse_names.size()> what{"the sender was overdue", "a receiver was away",
                                                                      "the DUT's CPU was away"};
    std::string text;
    for (std::size_t kind = 0; kind < what.size(); ++kind) {
        const auto count = clean.lapses.at(kind);
        if (count == 0) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what.at(kind),
                            count == 1 ? "once" : fmt::format("{} times", count));
    }
    return text;
}

}  // namespace

void note_clean_time(const TrialResult& result, std::vector<Reason>& notes) {
    if (!result.is_judged_by_clean_time() || result.clean->left_out.empty()) return;
    const auto& clean = *result.clean;
    note(notes, "clean_time", "judged by {:.3f} s in {} piece{} of {:.3f} s{}; {:.3f} s left out: {}", clean.clean_s,
         clean.pieces, clean.pieces == 1 ? "" : "s", clean.sent_s,
         clean.loses_steadily ? ", in which frames were lost all the time" : "", clean.sent_s - clean.clean_s,
         lapses_of(clean));
}

void judge_clean_time(const TrialResult& result, std::vector<Reason>& reasons) {
    if (!result.clean || result.clean->is_enough() || result.stopped) return;
    const auto& clean = *result.clean;
    note(reasons, "clean_time", "only {:.3f} s of {:.3f} s were clean, and {:g} s are wanted: {}", clean.clean_s,
         clean.sent_s, clean.wanted_s, lapses_of(clean));
}

void note_flow_control(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    const auto& port = result.ports[plan::sending_side(d.direction)];
    const auto pauses = change_of(port.before, port.after).pause_frames;
    if (pauses == 0) return;
    note(notes, "flow_control",
         "{}: {} PAUSE frames on the tester's sending port; a device that stops the tester hides up to a ring of "
         "frames in it",
         name_of(result, d.direction), pauses);
}

void note_overload(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (!d.overload) return;
    const auto [needed_bps, line_bps] = *d.overload;
    constexpr double tolerance = 1.01;
    const bool came_anyway = (1 - d.loss_ratio()) * needed_bps > line_bps * tolerance;
    note(notes, "line_overload", "{}: {} were offered to a link of {}, that of the tester's {} port, {}",
         name_of(result, d.direction), bit_rate(needed_bps), bit_rate(line_bps),
         name_of(plan::receiving_side(d.direction)),
         came_anyway
             ? std::string{"and more than that arrived: its line rate is not as stated, or a queue held the rest "
                           "until the sender had ended"}
             : fmt::format("so in the long run at least {:.3g} % of the frames are lost, however fast the DUT is",
                           100 * (1 - line_bps / needed_bps)));
}

void note_hop_limit(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (d.hop_limit_was_lowered) return;
    note(notes, "hop_limit",
         "{}: frames came back with the hop limit that they were sent with: a cable or a bridge joins the ports, or a "
         "router that does not lower it",
         name_of(result, d.direction));
}

void note_queue_fillings(TrialResult& result) {
    for (auto& d : result.directions) d.queue_filling.reset();
    if (result.verdict == Verdict::invalid || result.burst || result.then) return;
    for (auto& d : result.directions) note_queue_filling(result, d, result.notes);
}

void note_mistranslated(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (!d.mistranslated_frames) return;
    static constexpr std::array<const char*, frame::translation_faults> faults{
        "without a UDP checksum, which IPv6 demands", "with another traffic class than they were sent with",
        "with an address or port that is not theirs"};
    for (std::size_t i = 0; i < faults.size(); ++i) {
        if (const auto frames = d.mistranslated_frames->at(i))
            note(notes, "mistranslated", "{}: {} frames came {}{}; they count as lost", name_of(result, d.direction),
                 frames, faults.at(i), i == faults.size() - 1 ? example_of(d) : "");
    }
}

void note_icmp_errors(const TrialResult& result, std::vector<Reason>& notes) {
    for (const auto side : {plan::Side::left, plan::Side::right}) {
        for (const auto& error : result.ports[side].icmp_errors) {
            const auto meaning = meaning_of(error);
            note(notes, "icmp_error", "{}: {} ICMP error{} \"{}\" quote{} test frames{}: {}", name_of(result, side),
                 error.frames, error.frames == 1 ? "" : "s", meaning.what, error.frames == 1 ? "s" : "",
                 error.first_frame ? fmt::format(", the first of them number {}", *error.first_frame) : "",
                 meaning.next);
        }
    }
}

void note_link_switches(const TrialResult& result, std::vector<Reason>& notes) {
    for (const auto side : {plan::Side::left, plan::Side::right}) {
        std::string text;
        for (const auto& each : result.ports[side].link_switches)
            text += fmt::format("{}{} at {:.3f} s", text.empty() ? "" : ", ", each.is_up ? "up" : "down", each.at_s);
        if (!text.empty())
            note(notes, "link_switched", "{}: the tester took its own link {}, as it was asked to",
                 name_of(result, side), text);
    }
}

void note_strayed(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (d.strayed_frames == 0) return;
    note(notes, "strayed",
         "{}: {} frames that another engine had sent came to this one; they count as lost: the DUT must forward "
         "between the two ports of an engine alone",
         name_of(result, d.direction), d.strayed_frames);
}

}  // namespace evenhand::tally
