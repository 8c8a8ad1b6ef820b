// SPDX-License-Identifier: Apache-2.0
// Station 6: what reasons say: a user acts on their numbers, so these are those that were counted. R2544-06, D5.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "frame/frame_fault.hpp"
#include "results.hpp"
#include "tally/verdict.hpp"

namespace reasons_test {

using namespace evenhand;
using plan::Side;
using tally::TrialResult;
using tally::Verdict;

namespace {

constexpr std::uint64_t frames = 1'000'000;

/// A trial that lost `lost` frames of its forward direction, of whatever else a test makes of it.
TrialResult losing(std::uint64_t lost) {
    auto r = tests::lossless(frames);
    r.directions[0].received_frames -= lost;
    return r;
}

/// The text of the first reason with this code; empty if there is none.
std::string text_of(TrialResult r, const char* code) {
    tally::judge(r);
    for (const auto* const list : {&r.reasons, &r.notes})
        for (const auto& reason : *list)
            if (reason.code == code) return reason.text;
    return {};
}

bool says(const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    const bool is_there = text.find(part) != std::string::npos;
    CHECK(is_there);
    return is_there;
}

}  // namespace

TEST_CASE("each kind of damage is told with its own count") {
    constexpr std::array<const char*, frame::damages> words{
        "with another IP header", "with a wrong length",
        "as a fragment",          "with a wrong IPv4 header checksum",
        "with a wrong UDP",       "to another destination MAC",
        "with a hop limit of 0",  "with a number that was not sent"};
    auto all = losing(100);
    for (std::size_t i = 0; i < words.size(); ++i) {
        auto r = losing(9);
        r.directions[0].corrupted_frames = r.directions[0].corrupted_by[i] = 9;
        const auto alone = text_of(r, "corrupted");
        says(alone, std::string{"forward: 9 of 1000000 frames came damaged: 9 "} + words[i]);
        CHECK(alone.find(", 9 ") == std::string::npos);
        all.directions[0].corrupted_by[i] = i + 1;
        all.directions[0].corrupted_frames += i + 1;
    }
    for (std::size_t i = 0; i < words.size(); ++i)
        says(text_of(all, "corrupted"), (i == 0 ? " " : ", ") + std::to_string(i + 1) + " " + words[i]);
    says(text_of(all, "corrupted"), "36 of 1000000");
}

TEST_CASE("frames of a wrong time are told with how far, and on which side of the trial") {
    auto r = losing(5);
    r.directions[0].wrong_time_frames = 5;
    r.directions[0].ahead_us = 14;
    r.directions[0].before_start_us = 33;
    says(text_of(r, "clock_difference"),
         "5 frames have the number of this trial, but a time of up to 14 us in the receiver's future");
    r.directions[0].ahead_us = 0;
    says(text_of(r, "clock_difference"), "a time of up to 33 us before it began");
}

TEST_CASE("absences of several CPUs of the DUT are added up, and the longest is told wherever it stands") {
    auto r = losing(5);
    tests::take_dut_cpu(r);
    r.directions[0].away_frames = 7;
    says(text_of(r, "host_took_cpu"), "(once, up to 100.0 ms); 7 frames arrived");
    auto& cpus = r.host.dut->cpus;
    cpus.push_back({.cpu = 1, .absences = 1, .longest_us = 2e4});
    says(text_of(r, "host_took_cpu"), "(2 times, up to 100.0 ms)");
    std::swap(cpus[0], cpus[1]);
    cpus.push_back({.cpu = 2, .absences = 3, .longest_us = 1e4});
    says(text_of(r, "host_took_cpu"), "(5 times, up to 100.0 ms)");
}

TEST_CASE("changes of a link during the trial are told, and not those before it") {
    auto r = losing(0);
    r.ports[Side::right].before.link_changes = 5;
    r.ports[Side::right].after.link_changes = 7;
    says(text_of(r, "link"), "right: the link went down or up 2 times");
}

TEST_CASE("links that the tester took down and up on request are a note, on the side that they are of") {
    auto r = losing(0);
    r.ports[Side::right].link_switches = {{.at_s = 1.5}, {.at_s = 2.25, .is_up = true}};
    tally::judge(r);
    REQUIRE(r.notes.size() == 1);
    CHECK(r.notes.front().code == "link_switched");
    says(r.notes.front().text, "right: the tester took its own link down at 1.500 s, up at 2.250 s");
}

TEST_CASE("clocks are apart if they are by what is known of both, and beyond the limit") {
    const auto verdict = [](double offset_us, double own_uncertainty_us, double other_uncertainty_us) {
        auto r = losing(0);
        r.clock_offsets = {{.cpu = 1, .uncertainty_us = own_uncertainty_us},
                           {.cpu = 3, .offset_us = offset_us, .uncertainty_us = other_uncertainty_us}};
        tally::judge(r);
        return r.verdict;
    };
    // At the least by 10 us, which is the limit, and by a tenth more; either of the two may be ahead.
    for (const double sign : {1.0, -1.0}) {
        CAPTURE(sign);
        CHECK(verdict(sign * 10, 0, 0) == Verdict::pass);
        CHECK(verdict(sign * 10.1, 0, 0) == Verdict::invalid);
        CHECK(verdict(sign * 30, 20, 0) == Verdict::pass);
        CHECK(verdict(sign * 30.1, 20, 0) == Verdict::invalid);
        CHECK(verdict(sign * 30, 0, 20) == Verdict::pass);
        CHECK(verdict(sign * 30.1, 0, 20) == Verdict::invalid);
        CHECK(verdict(sign * 30, 10, 10) == Verdict::pass);
        CHECK(verdict(sign * 30.1, 10, 10) == Verdict::invalid);
    }
}

TEST_CASE("a copy too many makes the sending port a mirror, and one fewer does not, whatever else was lost") {
    const auto codes = [](std::uint64_t lost, std::uint64_t returned) {
        auto r = losing(lost);
        r.directions[1].returned_frames = returned;
        tally::judge(r);
        return tests::codes_of(r);
    };
    // 1 percent of a million may come again: 10,000.
    CHECK(codes(500, 10'500) == tests::Codes{"loss", "returned"});
    CHECK(codes(500, 10'501) == tests::Codes{"mirrored"});
}

TEST_CASE("as many frames may be remarked as the limit says, and no more") {
    const auto codes = [](std::uint64_t remarked) {
        auto r = losing(0);
        r.limits.remarked_tolerance = 0.01;
        r.directions[0].remarked_frames = remarked;
        tally::judge(r);
        return tests::codes_of(r);
    };
    CHECK(codes(10'000).empty());
    CHECK(codes(10'001) == tests::Codes{"remarked"});
}

}  // namespace reasons_test
