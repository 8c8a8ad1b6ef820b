// SPDX-License-Identifier: Apache-2.0
// Contract: the requests that take a long time: a trial, learning, watching CPUs.
#include <limits>

#include "contract/request_parts.hpp"
#include "frame/layout.hpp"

namespace evenhand::contract {

std::vector<plan::Direction> read_directions(ObjectReader& r, const char* list_key) {
    std::vector<plan::Direction> found;
    const Json& list = r.array(list_key);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string key = fmt::format("{}[{}]", list_key, i);
        const Json holder{{key, list[i]}};
        ObjectReader reader{holder, ""};
        const auto direction = reader.choice(key, directions);
        for (const auto other : found) {
            if (other == direction) r.refuse(list_key, "a direction is given twice", "Name each once.");
        }
        found.push_back(direction);
    }
    if (found.empty()) r.refuse(list_key, "there is no direction", "Use forward, reverse or both.");
    return found;
}

namespace {

tally::Burst read_burst(ObjectReader r, double rate_fps) {
    constexpr std::uint64_t most_frames = std::uint64_t{1} << 35U;
    constexpr double longest_s = 86400;
    constexpr double rounding = 1e-9;
    const tally::Burst burst{.frames = r.whole("frames", 1, most_frames),
                             .interval_s = r.number("interval_s", 0, longest_s, true),
                             .rate_fps = rate_fps};
    const double lasts_s = static_cast<double>(burst.frames) / rate_fps;
    if (burst.interval_s < lasts_s * (1 - rounding)) {
        r.refuse("interval_s",
                 fmt::format("a burst every {} s, but {} frames at {} fps last {} s", burst.interval_s, burst.frames,
                             rate_fps, lasts_s),
                 "Lengthen the interval, or shorten the burst.");
    }
    r.finish();
    return burst;
}

}  // namespace

run::LearnRequest read_learn(ObjectReader& r) {
    run::LearnRequest learn;
    constexpr std::uint64_t most_rounds = 1000;
    constexpr double longest_wait_s = 3600;
    if (r.has("rate_fps")) learn.rate_fps = r.number("rate_fps", 0, any_number, true);
    if (r.has("rounds")) learn.rounds = static_cast<unsigned>(r.whole("rounds", 1, most_rounds));
    if (r.has("wait_s")) learn.wait_s = r.number("wait_s", 0, longest_wait_s);
    if (r.has("directions")) learn.directions = read_directions(r);
    return learn;
}

run::WatchRequest read_watch(ObjectReader& r) {
    run::WatchRequest watch;
    constexpr double longest_s = 3600;
    if (r.has("seconds")) watch.seconds = r.number("seconds", 0, longest_s, true);
    for (const auto cpu : read_wholes(r, "cpus", 0, largest_cpu)) watch.cpus.push_back(static_cast<unsigned>(cpu));
    if (watch.cpus.empty()) r.refuse("cpus", "there is no CPU", "Name at least one.");
    return watch;
}

namespace {

run::ConnectionRequest read_connections(ObjectReader r) {
    using Use = run::ConnectionRequest::Use;
    constexpr std::array<std::pair<const char*, Use>, 3> uses{
        {{"establish", Use::establish}, {"each_once", Use::each_once}, {"established", Use::established}}};
    constexpr std::array<std::pair<const char*, plan::TupleOrder>, 3> orders{
        {{"pseudorandom", plan::TupleOrder::pseudorandom},
         {"increasing", plan::TupleOrder::increasing},
         {"decreasing", plan::TupleOrder::decreasing}}};
    run::ConnectionRequest connections{.use = r.choice("use", uses)};
    // Connections that are already established have both.
    if (connections.use == Use::establish) {
        connections.count = r.whole("count", 1, plan::most_connections);
        if (r.has("order")) connections.order = r.choice("order", orders);
    }
    r.finish();
    return connections;
}

void read_relative_rates(ObjectReader& r, run::TrialRequest& trial) {
    for (const char* other : {"burst", "connections"}) {
        if (r.has(other))
            r.refuse("relative_rates", fmt::format("rates by direction in a trial with {}", other),
                     "Want one or the other.");
    }
    auto rates = r.object("relative_rates");
    for (const auto direction : trial.directions)
        trial.rate_parts[direction] = rates.number(name_of(direction), 0, any_number, true);
    rates.finish();
    trial.has_rate_parts = true;
}

}  // namespace

run::TrialRequest read_trial(ObjectReader& r) {
    run::TrialRequest trial;
    constexpr double longest_s = 86400;
    constexpr double longest_wait_s = 3600;
    constexpr double longest_overdue_us = 1e12;
    trial.trial = static_cast<std::uint16_t>(r.whole("trial", 1, 65535));
    trial.rate_fps = r.number("rate_fps", 0, any_number, true);
    trial.duration_s = r.number("duration_s", 0, longest_s, true);
    if (r.has("burst")) trial.burst = read_burst(r.object("burst"), trial.rate_fps);
    if (r.has("then")) {
        if (trial.burst) r.refuse("then", "bursts and a second load in one trial", "Ask for one of them.");
        auto then = r.object("then");
        trial.then = tally::LoadChange{.rate_fps = then.number("rate_fps", 0, any_number, true),
                                       .duration_s = then.number("duration_s", 0, longest_s, true),
                                       .before_fps = trial.rate_fps};
        then.finish();
    }
    if (r.has("directions")) trial.directions = read_directions(r);
    if (r.has("relative_rates")) read_relative_rates(r, trial);
    if (r.has("waits")) {
        auto waits = r.object("waits");
        const auto wait = [&](const char* key, double& value) {
            if (waits.has(key)) value = waits.number(key, 0, longest_wait_s);
        };
        wait("after_routing_s", trial.waits.after_routing_s);
        wait("after_learning_s", trial.waits.after_learning_s);
        wait("residual_s", trial.waits.residual_s);
        wait("restabilize_s", trial.waits.restabilize_s);
        waits.finish();
    }
    if (r.has("limits")) {
        auto limits = r.object("limits");
        if (limits.has("loss_ratio")) trial.limits.loss_ratio = limits.number("loss_ratio", 0, 0.999999);
        if (limits.has("offered_tolerance"))
            trial.limits.offered_tolerance = limits.number("offered_tolerance", 0, 0.1, true);
        trial.has_overdue_after = limits.has("overdue_after_us");
        if (trial.has_overdue_after)
            trial.limits.overdue_after_us = limits.number("overdue_after_us", 0, longest_overdue_us, true);
        if (limits.has("overdue_tolerance"))
            trial.limits.overdue_tolerance = limits.number("overdue_tolerance", 0, 1, true);
        if (limits.has("longest_overdue_us"))
            trial.limits.longest_overdue_us = limits.number("longest_overdue_us", 0, longest_overdue_us, true);
        if (limits.has("clock_ppm")) trial.limits.clock_ppm = limits.number("clock_ppm", 0, any_number, true);
        if (limits.has("duplicate_tolerance"))
            trial.limits.duplicate_tolerance = limits.number("duplicate_tolerance", 0, any_number);
        if (limits.has("remarked_tolerance"))
            trial.limits.remarked_tolerance = limits.number("remarked_tolerance", 0, any_number);
        limits.finish();
    }
    if (r.has("kept_frames")) trial.kept_frames = r.whole("kept_frames", 0, tally::most_kept_frames);
    if (r.has("kept_received")) trial.kept_received = r.whole("kept_received", 0, tally::most_kept_received);
    if (r.has("stop_when_failed")) trial.stops_when_failed = r.boolean("stop_when_failed");
    if (trial.stops_when_failed && (trial.burst || trial.then))
        r.refuse("stop_when_failed", "bursts, or a second load, in a trial that may stop early",
                 "Want one or the other.");
    if (r.has("clean")) {
        // These options have rules of their own for lapses, or need each of their frames.
        for (const char* other : {"burst", "then", "delays", "connections", "share"}) {
            if (r.has(other))
                r.refuse("clean", fmt::format("clean time in a trial with {}", other), "Want one or the other.");
        }
        auto clean = r.object("clean");
        trial.clean = run::TrialRequest::Clean{.wanted_s = trial.duration_s};
        trial.duration_s = clean.number("at_most_s", 0, 2 * longest_s, true);
        if (trial.duration_s < trial.clean->wanted_s)
            clean.refuse(
                "at_most_s",
                fmt::format("{} s are less than the {} s that are wanted", trial.duration_s, trial.clean->wanted_s),
                "Let it be duration_s or more.");
        clean.finish();
    }
    if (r.has("share")) {
        auto share = r.object("share");
        trial.share = run::ShareRequest{};
        trial.share->stride = share.whole("stride", 1, frame::most_streams);
        trial.share->first = share.whole("first", 0, trial.share->stride - 1);
        share.finish();
    }
    if (r.has("start_at_unix_ns"))
        trial.start_at_unix_ns =
            static_cast<std::int64_t>(r.whole("start_at_unix_ns", 0, std::numeric_limits<std::int64_t>::max()));
    if (r.has("client_timeout_s")) trial.client_timeout_s = r.number("client_timeout_s", 0, longest_wait_s, true);
    if (r.has("connections")) trial.connections = read_connections(r.object("connections"));
    if (r.has("delays")) {
        constexpr std::uint64_t most_tagged = 1'000'000;
        auto delays = r.object("delays");
        trial.delays.emplace();
        if (delays.has("from_s")) trial.delays->from_s = delays.number("from_s", 0, longest_s);
        if (delays.has("tagged_frames")) trial.delays->tagged_frames = delays.whole("tagged_frames", 0, most_tagged);
        if (delays.has("variation")) trial.delays->has_variation = delays.boolean("variation");
        delays.finish();
    }
    return trial;
}

}  // namespace evenhand::contract
