// SPDX-License-Identifier: Apache-2.0
// Results of trials for tests: what was counted where nothing was lost, and what a verdict says of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/reply.hpp"
#include "tally/together.hpp"
#include "tally/verdict.hpp"

namespace evenhand::tests {

using Codes = std::vector<std::string>;

inline Codes codes_of(const tally::TrialResult& r) {
    Codes codes;
    for (const auto& reason : r.reasons) codes.push_back(reason.code);
    return codes;
}

inline bool has(const tally::TrialResult& r, std::string_view code) {
    return std::ranges::any_of(r.reasons, [&](const auto& reason) { return reason.code == code; });
}

/// A trial in both directions, 100,000 fps each, that lost nothing.
inline tally::TrialResult lossless(std::uint64_t frames) {
    constexpr double fps = 1e5;
    tally::TrialResult r;
    r.trial = 1;
    r.intended_fps = fps;
    r.intended_duration_s = static_cast<double>(frames) / fps;
    for (const auto direction : {plan::Direction::forward, plan::Direction::reverse}) {
        r.directions.push_back({.direction = direction,
                                .intended_frames = frames,
                                .offered_frames = frames,
                                .offered_fps = fps,
                                .received_frames = frames,
                                .ring_frames = 2048});
    }
    for (auto& port : r.ports) port.after.transmitted_frames = port.after.received_frames = frames;
    return r;
}

/// What tester `number` of `testers` counted of such a trial, `frames` being its own.
inline tally::TrialResult lossless_part(std::uint64_t frames, std::uint64_t number, std::uint64_t testers) {
    constexpr std::int64_t start_ns = 1'000'000'000'000'000'000;
    auto r = lossless(frames);
    r.tester = std::string(1, static_cast<char>('a' + number));
    r.trial = 7;
    r.started_at = "2026-11-25T12:00:00Z";
    r.frame_size = 64;
    r.intended_fps *= static_cast<double>(testers);
    r.ticks_per_second = 2e9;
    r.share = tally::Share{.first = number, .streams = 1, .stride = testers};
    r.start = tally::StartTime{.intended_unix_ns = start_ns, .actual_unix_ns = start_ns};
    return r;
}

/// The DUT's CPU was away; how many frames came meanwhile is for the test to say.
inline void take_dut_cpu(tally::TrialResult& r, unsigned cpu = 0, std::uint64_t absences = 1) {
    r.host.dut = {.ring_frames = 256,
                  .cpus = {{.cpu = cpu, .stolen_us = 1e5, .absences = absences, .longest_us = 1e5}}};
}

/// As a client does: each tester's reply, as it came, in one request.
inline nlohmann::json judge_line(const tally::TogetherRequest& r) {
    using Json = nlohmann::json;
    const auto clock = [](const tally::ComparedClock& c) {
        return Json{{"offset_us", c.offset_us}, {"uncertainty_us", c.uncertainty_us}};
    };
    Json line{{"id", 1}, {"request", "judge"}, {"results", Json::array()}};
    for (const auto& p : r.parts) {
        auto judged = p.result;
        tally::judge(judged);
        line["results"].push_back({{"engine", p.result.tester},
                                   {"result", Json::parse(contract::write_trial(9, judged))},
                                   {"clock", {{"before", clock(p.before)}, {"after", clock(p.after)}}}});
    }
    for (const auto& lost : r.lost) line["results"].push_back({{"engine", lost.tester}, {"lost", lost.what}});
    return line;
}

}  // namespace evenhand::tests
