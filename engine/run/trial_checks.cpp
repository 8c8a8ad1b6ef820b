// SPDX-License-Identifier: Apache-2.0
#include "run/trial_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fault.hpp"
#include "pace/clock.hpp"
#include "run/load.hpp"
#include "run/timeline.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Side;

constexpr std::uint64_t most_frames = std::uint64_t{1} << 44U;  // over 24 h at 148.8 Mfps

/// Nothing was sent, and nothing will be sent.
[[noreturn]] void refuse_start(std::int64_t start_at_unix_ns, double ahead_s, const char* what) {
    throw Fault{FaultCode::too_late,
                fmt::format("frame 0 is due at {} ns of this machine's clock, {:.3f} s {}: {}", start_at_unix_ns,
                            std::abs(ahead_s), ahead_s < 0 ? "ago" : "from now", what),
                "start_at_unix_ns",
                "Start later, after the waits of phases (a) and (b); and see that the clocks agree."};
}

/// Checks a request to one of several testers: whether it can send its share, and whether there is any.
void check_share(const Tester& tester, const TrialRequest& request) {
    const auto refuse = [](std::string what, const char* where, std::string next) {
        throw Fault{FaultCode::bad_request, std::move(what), where, std::move(next)};
    };
    const auto& asked = *request.share;
    const unsigned streams = tester.streams(Side::left);
    if (tester.streams(Side::right) != streams) {
        refuse(fmt::format("a share, but the left side has {} streams and the right side {}", streams,
                           tester.streams(Side::right)),
               "share", "Open both sides with as many streams.");
    }
    if (asked.first + streams > asked.stride) {
        refuse(fmt::format("streams {} to {} are not among {}", asked.first, asked.first + streams - 1, asked.stride),
               "share", "Let stride be the number of streams of all testers, and first that of those before this one.");
    }
    for (const auto direction : request.directions) {
        const auto frames = frames_of(of_direction(request, direction));
        if (tester.share(request, direction).count(frames) == 0) {
            throw Fault{FaultCode::bad_rate,
                        fmt::format("{} frames for each direction, none of which is this tester's", frames), "share",
                        fmt::format("Send at least {} frames.", asked.stride)};
        }
    }
}

/// Checks how many frames one direction is to send.
void check_frames(const TrialRequest& load) {
    const auto frames = frames_of(load);
    if (frames != 0 && frames <= most_frames) return;
    throw Fault{
        FaultCode::bad_rate,
        fmt::format("{} fps for {} s are {} frames for each direction", peak_fps(load), sending_s(load), frames),
        "trial", fmt::format("Want 1 to {} frames.", most_frames)};
}

/// Checks which delays of one direction are wanted.
void check_delays(const TrialRequest& load) {
    const auto& delays = *load.delays;
    const auto frames = frames_of(load);
    const auto first = first_delay_frame(load);
    if (first >= frames) {
        throw Fault{
            FaultCode::bad_request,
            fmt::format("delays count from {} s on, but frames are sent for {} s", delays.from_s, load.duration_s),
            "delays.from_s", "Let them count from an earlier time, or send for longer."};
    }
    if (delays.tagged_frames > frames - first) {
        throw Fault{FaultCode::bad_request,
                    fmt::format("{} frames are to be tagged, but {} are sent from {} s on", delays.tagged_frames,
                                frames - first, delays.from_s),
                    "delays.tagged_frames", "Tag fewer, or send more."};
    }
}

void check_start(const TrialRequest& request, std::optional<std::int64_t> steered_start_ns) {
    constexpr double longest_s = 3600;
    if (!steered_start_ns) return;
    const double ahead_s = until_s(*steered_start_ns);
    if (ahead_s < request.waits.after_routing_s + request.waits.after_learning_s + Timeline::lead_s)
        refuse_start(*request.start_at_unix_ns, ahead_s, "too soon for the waits before it");
    if (ahead_s > request.waits.after_routing_s + request.waits.after_learning_s + longest_s)
        refuse_start(*request.start_at_unix_ns, ahead_s, "hours away");
}

}  // namespace

std::optional<std::int64_t> steered_start_ns(const TrialRequest& request) {
    if (!request.start_at_unix_ns) return std::nullopt;
    const auto now = pace::sample_clocks();
    return now.steered_ns + (*request.start_at_unix_ns - now.time_ns);
}

void check_trial(const Tester& tester, const TrialRequest& request, std::optional<std::int64_t> steered_start_ns) {
    for (const auto direction : request.directions) check_frames(of_direction(request, direction));
    if (request.share) check_share(tester, request);
    for (const auto direction : request.directions) {
        const auto load = of_direction(request, direction);
        const auto from = plan::sending_side(direction);
        tester.port(from).check_other_end(tester.traffic(direction).largest_sent() + tester.around(from).octets() -
                                          frame::fcs_octets);
        const double part = tester.share(request, direction).part();
        tester.check_rate(direction, part * load.rate_fps, tester.traffic(direction), "rate_fps", true);
        if (load.then)
            tester.check_rate(direction, part * load.then->rate_fps, tester.traffic(direction), "then.rate_fps", true);
    }
    tester.check_shared_line(request);
    tester.check_ports();
    tester.check_resolved("trial");
    check_start(request, steered_start_ns);
    if (!request.delays) return;
    if (request.stops_when_failed) {
        throw Fault{FaultCode::bad_request, "delays are wanted of a trial that may stop early", "stop_when_failed",
                    "Want one or the other."};
    }
    for (const auto direction : request.directions) check_delays(of_direction(request, direction));
}

double until_s(std::int64_t steered_ns) {
    return static_cast<double>(steered_ns - pace::sample_clocks().steered_ns) / ns_per_second;
}

void check_is_ready(const TrialRequest& request, std::optional<std::int64_t> steered_start_ns) {
    constexpr double least_s = 0.01;
    if (!steered_start_ns) return;
    if (const double ahead_s = until_s(*steered_start_ns); ahead_s < least_s)
        refuse_start(*request.start_at_unix_ns, ahead_s, "the tester was not ready by then");
}

}  // namespace evenhand::run
