// SPDX-License-Identifier: Apache-2.0
#include "tally/notes.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "tally/port_change.hpp"
#include "tally/queue_filling.hpp"
#include "tally/reason.hpp"

namespace evenhand::tally {
namespace {

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

}  // namespace

void note_flow_control(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    const auto& port = result.ports[static_cast<std::size_t>(plan::sending_side(d.direction))];
    const auto pauses = change_of(port.before, port.after).pause_frames;
    if (pauses == 0) return;
    note(notes, "flow_control",
         "{}: {} PAUSE frames on the tester's sending port; a device that stops the tester hides up to a ring of "
         "frames in it",
         name_of(result, d.direction), pauses);
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
            note(notes, "mistranslated", "{}: {} frames came {}; they count as lost", name_of(result, d.direction),
                 frames, faults.at(i));
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
