// SPDX-License-Identifier: Apache-2.0
// Contract: turns one line of JSON into one checked request. Throws Fault{bad_json, bad_request, bad_plan}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "frame/envelope.hpp"
#include "frame/mix.hpp"
#include "proof/proof.hpp"
#include "run/request.hpp"
#include "tally/together.hpp"

namespace evenhand::contract {

struct AboutRequest {};
struct StopRequest {};
/// For the trial that is running, which is one of several testers' and can no longer pass: the time after its first
/// frame at which it sends its last one.
struct EndSendingRequest {
    double after_s = 0;
};
struct CountersRequest {};
struct CloseRequest {};
/// Asks for the tester's time of day.
struct ClockRequest {};
/// Takes the link of one side down or up, and asks for the state of both.
struct LinkRequest {
    struct Change {
        plan::Side side = plan::Side::left;
        bool is_up = true;
    };
    std::optional<Change> change;
};
struct ResolveRequest {
    double timeout_s = 5;
    std::vector<plan::Direction> try_directions;  // directions in which a few test frames are sent afterwards
};
/// Preview of a direction's frames (D3).
struct FramesRequest {
    plan::AddressPlan plan;
    std::size_t frame_size = 64;
    frame::Envelope envelope;              // of the sending side
    std::optional<frame::MixedPlans> mix;  // instead of frame_size
    std::uint64_t seed = 0;
    plan::Direction direction = plan::Direction::forward;
    std::uint64_t first = 0;
    std::uint64_t count = 1;
    std::uint16_t trial = 0;
    unsigned streams = 1;
    run::HostMacMode host_macs = run::HostMacMode::port;  // pseudorandom: instead of source_mac
    plan::MacAddress source_mac{};                        // both are those inside the envelope
    plan::MacAddress destination_mac{};
};

using AnyRequest =
    std::variant<AboutRequest, StopRequest, CountersRequest, CloseRequest, ResolveRequest, FramesRequest,
                 proof::ProofRequest, run::OpenRequest, run::TrialRequest, run::LearnRequest, run::WatchRequest,
                 tally::TogetherRequest, ClockRequest, EndSendingRequest, LinkRequest>;

struct Request {
    std::int64_t id = 0;
    AnyRequest body;
};

/// The id of a line, whatever else is wrong with it, so that its fault can be told from another line's.
[[nodiscard]] std::optional<std::int64_t> read_id(std::string_view line);

[[nodiscard]] Request read_request(std::string_view line);

}  // namespace evenhand::contract
