// SPDX-License-Identifier: Apache-2.0
#include "tally/altered.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "tally/reason.hpp"

namespace evenhand::tally {
namespace {

/// Frames of this direction that came back to the port that had sent them.
std::uint64_t returned_of(const TrialResult& result, const DirectionResult& d) {
    const auto other =
        std::ranges::find_if(result.directions, [&](const auto& o) { return o.direction != d.direction; });
    return other == result.directions.end() ? 0 : other->returned_frames;
}

/// By check: "12 with a wrong UDP checksum, 3 with ...".
std::string damage_of(const DirectionResult& d) {
    static constexpr std::array<const char*, frame::damages> ways{
        "with another IP header (version, options, protocol, identification or flags)",
        "with a wrong length in the IP or UDP header",
        "as a fragment",
        "with a wrong IPv4 header checksum",
        "with a wrong UDP checksum",
        "to another destination MAC than that of the tester's port",
        "with a hop limit of 0, or above that of sending",
        "with a number that was not sent"};
    std::string text;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (const auto frames = d.corrupted_by.at(i))
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", frames, ways.at(i));
    }
    return text;
}

std::uint64_t allowed(const DirectionResult& d, double tolerance) {
    return static_cast<std::uint64_t>(tolerance * static_cast<double>(d.offered_frames));
}

}  // namespace

void note_altered(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    struct Way {
        std::uint64_t DirectionResult::* frames;
        const char* code;
        const char* text;
    };
    static constexpr std::array ways{
        Way{&DirectionResult::wrong_address_frames, "wrong_address",
            "a source or destination address that is not that of the frame with their number"},
        Way{&DirectionResult::wrong_port_frames, "wrong_port",
            "a UDP port that is not that of the frame with their number"},
        Way{&DirectionResult::wrong_payload_frames, "wrong_payload", "a payload that is not the one that was sent"},
        Way{&DirectionResult::wrong_length_frames, "wrong_length", "another length than they must have"}};
    for (const auto& way : ways) {
        if (const auto frames = d.*way.frames)
            note(reasons, way.code, "{}: {} of {} frames came with {}; they count as lost",
                 name_of(result, d.direction), frames, d.offered_frames, way.text);
    }
    if (d.corrupted_frames != 0)
        note(reasons, "corrupted", "{}: {} of {} frames came damaged: {}; they count as lost",
             name_of(result, d.direction), d.corrupted_frames, d.offered_frames, damage_of(d));
    if (const auto returned = returned_of(result, d))
        note(reasons, "returned", "{}: {} of {} frames came back to the port that had sent them",
             name_of(result, d.direction), returned, d.offered_frames);
}

void note_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& notes) {
    if (d.remarked_frames == 0) return;
    note(notes, "remarked",
         "{}: {} of {} received frames came with another DSCP, ECN or flow label than they were sent with (0)",
         name_of(result, d.direction), d.remarked_frames, d.received_frames);
}

void judge_remarked(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    if (d.remarked_frames <= allowed(d, result.limits.remarked_tolerance)) return;
    note(reasons, "remarked",
         "{}: {} of {} frames came with another DSCP, ECN or flow label than they were sent with (limit {:g} %)",
         name_of(result, d.direction), d.remarked_frames, d.offered_frames, 100 * result.limits.remarked_tolerance);
}

void judge_copies(const TrialResult& result, const DirectionResult& d, std::vector<Reason>& reasons) {
    const std::uint64_t most = allowed(d, result.limits.duplicate_tolerance);
    if (d.duplicated_frames > most)
        note(reasons, "duplicates",
             "{}: {} frames came again, of {} offered (limit {:g} %): the DUT duplicates frames, or there is a loop, a "
             "mirrored port or a capture that is played back",
             name_of(result, d.direction), d.duplicated_frames, d.offered_frames,
             100 * result.limits.duplicate_tolerance);
    // Received and returned frames together are more than were sent: at least the difference came twice.
    const std::uint64_t returned = returned_of(result, d);
    if (returned != 0 && d.received_frames + returned > d.offered_frames + most)
        note(
            reasons, "mirrored",
            "{}: {} of {} frames came to the right port, and {} to the port that had sent them (limit {:g} %): the DUT "
            "sends copies back, or a port is mirrored",
            name_of(result, d.direction), d.received_frames, d.offered_frames, returned,
            100 * result.limits.duplicate_tolerance);
}

}  // namespace evenhand::tally
