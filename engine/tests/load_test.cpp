// SPDX-License-Identifier: Apache-2.0
// Station 3: R2544-17, R2544-29, R2544-34, R2544-39, R9004-03.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "run/deviations.hpp"
#include "run/load.hpp"

namespace load_test {

using namespace evenhand;

namespace {

run::TrialRequest even(double rate_fps, double duration_s) {
    run::TrialRequest request;
    request.rate_fps = rate_fps;
    request.duration_s = duration_s;
    return request;
}

bool has(const std::vector<tally::Deviation>& deviations, const char* requirement) {
    for (const auto& deviation : deviations) {
        if (deviation.requirement == requirement) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a burst has the frames that are asked for, whatever rate and duration make of them as numbers") {
    CHECK(rc::check([] {
        const auto frames = *rc::gen::inRange<std::uint64_t>(1, 5'000'000'000);
        const double rate = *rc::gen::inRange(1, 2'000'000'000) / 7.0;
        const double lasts_s = static_cast<double>(frames) / rate;
        auto request = even(rate, lasts_s);
        request.burst = {.frames = frames, .interval_s = lasts_s};
        RC_ASSERT(run::frames_of(request) == frames);
        RC_ASSERT(run::bursts_of(request) == 1U);
    }));
}

TEST_CASE("as many bursts are sent as begin and end within the duration") {
    const auto bursts = [](double duration_s, double interval_s) {
        auto request = even(1e6, duration_s);
        request.burst = {.frames = 16, .interval_s = interval_s};
        return run::bursts_of(request);
    };
    CHECK(bursts(0.3, 0.1) == 3);  // 0.3 / 0.1 is 2.9999999999999996
    CHECK(bursts(0.35, 0.1) == 3);
    CHECK(bursts(0.05, 0.1) == 1);
    CHECK(bursts(60, 0.0025) == 24'000);
}

TEST_CASE("frames are counted up to a time as they are due") {
    const auto check = [](const run::TrialRequest& request) {
        const auto all = run::frames_of(request);
        for (std::uint64_t k = 0; k < all; ++k) {
            CAPTURE(k);
            const double due = run::due_s(request, k);
            REQUIRE(run::frames_before(request, due - 1e-9) == k);
            REQUIRE(run::frames_before(request, due + 1e-9) == k + 1);
        }
        CHECK(run::frames_before(request, run::sending_s(request) + 10) == all);
        // The sender's schedule says the same.
        const auto schedule = run::schedule_of(request, 0, 1e9);
        for (std::uint64_t k = 0; k < all; ++k)
            REQUIRE(std::abs(static_cast<double>(schedule.due(k)) - 1e9 * run::due_s(request, k)) <= 2);
    };
    check(even(1000, 0.5));
    auto bursts = even(10'000, 0.5);
    bursts.burst = {.frames = 16, .interval_s = 0.03};
    check(bursts);
    auto changing = even(2000, 0.25);
    changing.then = {.rate_fps = 700, .duration_s = 0.25};
    check(changing);
    CHECK(run::frames_of(changing) == 500 + 175);
    CHECK(run::peak_fps(changing) == 2000);
    CHECK(run::mean_fps(changing) == 1350);
    CHECK(run::mean_fps(bursts) == 16 * 16 / 0.5);
    CHECK(run::sending_s(changing) == 0.5);
    CHECK(run::frames_before(even(1000, 60), 16.1) == 16'100);
}

TEST_CASE("a limit that departs is told in words that are right beside every verdict (R2544-39)") {
    auto request = even(1000, 60);
    request.limits = {
        .offered_tolerance = 0.01, .overdue_tolerance = 0.05, .longest_overdue_us = 5e5, .clock_ppm = 200};
    unsigned limits = 0;
    for (const auto& [requirement, text] : run::deviations_of(request, run::Hosts::behind_gateways)) {
        limits += requirement == "R2544-39" && text.starts_with("a valid trial may have ");
        CHECK(text.find("was valid") == std::string::npos);
    }
    CHECK(limits == 4);
}

TEST_CASE("the deviation about learning frames says what was sent (R2544-34)") {
    const auto text = [](run::Hosts hosts) {
        std::string found;
        for (const auto& deviation : run::deviations_of(even(1000, 60), hosts)) {
            if (deviation.requirement == "R2544-34") found = deviation.text;
        }
        return found;
    };
    CHECK(text(run::Hosts::behind_gateways).empty());
    CHECK(text(run::Hosts::on_the_link).find("no learning frames were sent") == 0);
    CHECK(text(run::Hosts::learnt_before).find("were sent once for all trials") != std::string::npos);
}

TEST_CASE("a single burst is no shortened trial, and bursts of less than a minute are") {
    auto request = even(1000, 1);
    CHECK(has(run::deviations_of(request, run::Hosts::behind_gateways), "R2544-20"));
    request.burst = {.frames = 1000, .interval_s = 1};
    CHECK_FALSE(has(run::deviations_of(request, run::Hosts::behind_gateways), "R2544-20"));
    request.burst = {.frames = 16, .interval_s = 0.1};
    CHECK(has(run::deviations_of(request, run::Hosts::behind_gateways), "R2544-20"));
}

}  // namespace load_test
