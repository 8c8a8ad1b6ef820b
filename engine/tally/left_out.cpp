// SPDX-License-Identifier: Apache-2.0
#include "tally/left_out.hpp"

#include <cstdint>
#include <utility>

#include "tally/reason.hpp"

namespace evenhand::tally {
namespace {

/// If a larger share of the frames whose delays are wanted is missing, it is another sample.
constexpr double most_left_out_share = 0.1;

/// Frames whose delays do not count, and among how many: the tagged frames, or all frames if each one counts.
std::pair<std::uint64_t, std::uint64_t> left_out_of(const DelayResult& delays) {
    if (delays.has_tags) return {delays.left_out_tags, delays.tagged.size() + delays.left_out_tags};
    return {delays.left_out_frames, delays.offered_frames};
}

bool is_too_much(const DelayResult& delays) {
    const auto [left_out, all] = left_out_of(delays);
    return static_cast<double>(left_out) > most_left_out_share * static_cast<double>(all);
}

}  // namespace

void judge_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (!d.delays || !is_too_much(*d.delays)) return;
    const auto [left_out, all] = left_out_of(*d.delays);
    note(reasons, d.overdue_frames != 0 ? "sender_overdue" : "receiver_gap",
         "{}: {} of {} {}frames left more than {:.0f} us after they were due, the worst {:.0f} us, or right behind "
         "such frames, or may have waited that long for the receiver, which did not poll for up to {:.0f} us (limit: "
         "{:g} % of them)",
         name_of(result, d.direction), left_out, all, d.delays->has_tags ? "tagged " : "",
         result.limits.overdue_after_us, d.max_overdue_us, d.max_poll_gap_us, 100 * most_left_out_share);
}

void note_left_out(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (!d.delays || d.delays->left_out_frames == 0 || is_too_much(*d.delays)) return;
    const auto [left_out, all] = left_out_of(*d.delays);
    note(notes, "left_out",
         "{}: {} of {} {}frames have no part in the delays: they left more than {:.0f} us late, or right behind frames "
         "that did, or may have waited that long for the receiver",
         name_of(result, d.direction), left_out, all, d.delays->has_tags ? "tagged " : "",
         result.limits.overdue_after_us);
}

}  // namespace evenhand::tally
