// SPDX-License-Identifier: Apache-2.0
// Station 6: one trial that several testers made together is judged as if one had made it. R2544-07, R2544-39, D5.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "contract/reply.hpp"
#include "contract/request.hpp"
#include "fault.hpp"
#include "results.hpp"
#include "tally/together.hpp"
#include "tally/verdict.hpp"

namespace together_test {

using namespace evenhand;
using plan::Direction;
using plan::Side;
using tally::TogetherRequest;
using tally::TrialPart;
using tally::Verdict;
using Json = nlohmann::json;
using tests::Codes;
using tests::codes_of;

namespace {

constexpr std::uint64_t frames_each = 500'000;

/// What tester `number` of `testers` counted in a trial that lost nothing.
TrialPart part(std::uint64_t number, std::uint64_t testers = 2) {
    TrialPart p{.result = tests::lossless_part(frames_each, number, testers), .before = {}, .after = {}};
    auto& r = p.result;
    r.host.tester.push_back({.cpu = static_cast<unsigned>(number)});
    r.phases.push_back({.name = "sending", .start_s = 1, .seconds = 5});
    for (auto& d : r.directions) {
        for (std::uint64_t i = 1; i <= 100; ++i) d.latency.record(2000 * i);
        for (std::size_t s = 0; s < tally::SliceDelays::slices; ++s)
            d.delay_by_slice.add(s,
                                 {.frames = frames_each / 50, .sum = 2000 * frames_each / 50, .min = 10, .max = 9000});
        d.lost_by_tenth.assign(50, 0);
    }
    return p;
}

TogetherRequest request(std::uint64_t testers = 2) {
    TogetherRequest r;
    for (std::uint64_t n = 0; n < testers; ++n) r.parts.push_back(part(n, testers));
    return r;
}

void lose(tally::DirectionResult& d, std::uint64_t lost, std::uint64_t first) {
    d.received_frames -= lost;
    d.first_lost = {first};
    d.lost_by_tenth[3] += lost;
}

std::optional<Fault> fault_of(TogetherRequest r) {
    try {
        (void)tally::judge_together(std::move(r));
        return std::nullopt;
    } catch (const Fault& fault) {
        return fault;
    }
}

/// What the engine answers to a client that sends it each tester's reply, as it came.
Json over_the_contract(const TogetherRequest& r) {
    const auto read = contract::read_request(tests::judge_line(r).dump());
    return Json::parse(contract::write_judge(2, tally::judge_together(std::get<TogetherRequest>(read.body))));
}

}  // namespace

TEST_CASE("counts of all testers are added up, and nothing lost is a PASS") {
    const auto r = tally::judge_together(request(3));
    CHECK(r.whole.verdict == Verdict::pass);
    CHECK(r.whole.reasons.empty());
    for (const auto& d : r.whole.directions) {
        CHECK(d.intended_frames == 3 * frames_each);
        CHECK(d.offered_frames == 3 * frames_each);
        CHECK(d.received_frames == 3 * frames_each);
        CHECK(d.offered_fps == doctest::Approx(3e5));
        CHECK(d.latency.count() == 300);
        CHECK(d.delay_by_slice.all()[7].frames == 3 * frames_each / 50);
    }
    CHECK(r.whole.intended_fps == 3e5);
    CHECK(r.whole.ports[Side::left].after.transmitted_frames == 3 * frames_each);
    CHECK(r.whole.host.tester.size() == 3);
}

TEST_CASE("a loss of one tester is the trial's, with the tester's name; the limit is of all frames") {
    auto r = request();
    lose(r.parts[1].result.directions[0], 10, 31);
    auto strict = tally::judge_together(r);
    CHECK(strict.whole.verdict == Verdict::fail);
    CHECK(codes_of(strict.whole) == Codes{"loss"});
    CHECK(strict.whole.reasons[0].text == "forward of b: 10 of 500000 frames were lost (0.002000 %)");
    CHECK(strict.whole.directions[0].first_lost == std::vector<std::uint64_t>{31});
    CHECK(strict.whole.directions[0].lost_by_tenth[3] == 10);
    CHECK(strict.whole.loss_ratio() == doctest::Approx(10 / 2e6));
    for (auto& p : r.parts) p.result.limits.loss_ratio = 5e-6;
    CHECK(tally::judge_together(r).whole.verdict == Verdict::pass);
    for (auto& p : r.parts) p.result.limits.loss_ratio = 4.9e-6;
    CHECK(tally::judge_together(r).whole.verdict == Verdict::fail);
}

TEST_CASE("the tester's own fault makes the whole INVALID, and its reason names it") {
    using Spoil = std::function<void(tally::TrialResult&)>;
    const std::vector<std::pair<std::string, Spoil>> spoils{
        {"offered_load", [](auto& r) { r.directions[0].offered_frames = r.directions[0].received_frames -= 7; }},
        {"sender_overdue", [](auto& r) { r.directions[1].overdue_frames = 10'000; }},
        {"link", [](auto& r) { r.ports[Side::right].after.link_up = false; }},
        {"port_removed", [](auto& r) { r.ports[Side::left].after.is_removed = true; }},
        {"clock", [](auto& r) { r.clock_error_ppm = -300; }},
        {"duplicates", [](auto& r) { r.directions[0].duplicated_frames = 9'000; }},
        {"stopped", [](auto& r) { r.stopped = true; }}};
    for (const auto& [code, spoil] : spoils) {
        CAPTURE(code);
        auto r = request();
        spoil(r.parts[1].result);
        const auto judged = tally::judge_together(r);
        CHECK(judged.whole.verdict == Verdict::invalid);
        CHECK(codes_of(judged.whole) == Codes{code});
        const auto& text = judged.whole.reasons[0].text;
        CHECK((text.starts_with("b: ") || text.find(" of b: ") != std::string::npos));
    }
}

TEST_CASE("what one tester's lapse explains, it explains of its own losses only") {
    auto r = request();
    lose(r.parts[0].result.directions[0], 10, 30);
    r.parts[1].result.ports[Side::right].after.missed_frames = 10;  // of the other one, which lost nothing
    CHECK(tally::judge_together(r).whole.verdict == Verdict::fail);
    r.parts[0].result.ports[Side::right].after.missed_frames = 10;
    const auto judged = tally::judge_together(r);
    CHECK(judged.whole.verdict == Verdict::invalid);
    CHECK(codes_of(judged.whole) == Codes{"receive_missed", "receive_missed", "loss"});
}

TEST_CASE("one port of each tester, two sides: what it missed explains losses of its own, of both directions once") {
    for (const std::uint64_t missed : {15U, 16U}) {
        auto r = request();
        for (auto& p : r.parts) {
            p.result.is_one_armed = true;
            for (auto& port : p.result.ports)
                port.after.transmitted_frames = port.after.received_frames = 2 * frames_each;
        }
        CHECK(over_the_contract(r)["verdict"] == "PASS");
        for (auto& port : r.parts[0].result.ports) port.after.missed_frames = 100;
        auto& lossy = r.parts[1].result;
        for (auto& d : lossy.directions) lose(d, 8, 31);
        for (auto& port : lossy.ports) port.after.missed_frames = missed;
        const auto judged = over_the_contract(r);
        CHECK(judged["verdict"] == (missed == 16 ? "INVALID" : "FAIL"));
        CHECK(judged["one_armed"] == true);
    }
}

TEST_CASE("testers that start too far apart, or may have, make it INVALID") {
    auto r = request();
    r.parts[1].result.start->actual_unix_ns += 900'000;
    auto judged = tally::judge_together(r);
    CHECK(judged.whole.verdict == Verdict::pass);
    CHECK(judged.start_difference_us == doctest::Approx(900));
    SUBCASE("by their clocks") { r.parts[1].result.start->actual_unix_ns += 101'000; }
    SUBCASE("by what the clocks are off") { r.parts[1].before.offset_us = r.parts[1].after.offset_us = -101; }
    SUBCASE("by what is not known of that") { r.parts[0].before.uncertainty_us = 101; }
    judged = tally::judge_together(r);
    CHECK(judged.whole.verdict == Verdict::invalid);
    CHECK(codes_of(judged.whole) == Codes{"start_difference"});
    CHECK(judged.whole.reasons[0].text.starts_with("b started "));
}

TEST_CASE("a clock that moves during the trial makes it INVALID") {
    auto r = request();
    r.parts[0].before = {.offset_us = 100, .uncertainty_us = 50};
    r.parts[0].after = {.offset_us = 1190, .uncertainty_us = 50};
    CHECK(tally::judge_together(r).whole.verdict == Verdict::pass);
    r.parts[0].after.offset_us = 1201;
    const auto judged = tally::judge_together(r);
    CHECK(codes_of(judged.whole) == Codes{"clock_difference"});
    CHECK(judged.whole.reasons[0].text.starts_with("a: its clock moved by 1101 us"));
}

TEST_CASE("a lost tester makes it INVALID with its name, whatever the others counted") {
    auto r = request();
    r.parts.pop_back();
    r.parts[0].result.stopped = true;
    r.lost.push_back({.tester = "b", .what = "the engine ended by SIGKILL"});
    const auto judged = tally::judge_together(r);
    CHECK(judged.whole.verdict == Verdict::invalid);
    CHECK(codes_of(judged.whole) == Codes{"engine_lost"});
    CHECK(judged.whole.reasons[0].text == "b: the engine ended by SIGKILL");
    CHECK(judged.whole.directions[0].offered_frames == frames_each);
}

TEST_CASE("shares that overlap or are missing, and parts of different trials, are refused by name") {
    auto r = request();
    SUBCASE("missing at the end") {
        r.parts.pop_back();
        CHECK(fault_of(r)->what_text == "no engine has streams 1 to 1");
    }
    SUBCASE("missing at the begin") {
        r.parts.erase(r.parts.begin());
        CHECK(fault_of(r)->what_text == "no engine has streams 0 to 0");
    }
    SUBCASE("twice") {
        r.parts[1].result.share->first = 0;
        CHECK(fault_of(r)->what_text.find("another tester's") != std::string::npos);
    }
    SUBCASE("none") {
        r.parts[1].result.share.reset();
        CHECK(fault_of(r)->what_text == "b has no share: it was a tester alone");
    }
    SUBCASE("of other wholes") {
        r.parts[1].result.share->stride = 3;
        CHECK(fault_of(r)->what_text == "b has a share of 3 streams, a one of 2");
    }
    SUBCASE("another trial") {
        r.parts[1].result.trial = 8;
        CHECK(fault_of(r)->what_text == "b has another number than a");
    }
    SUBCASE("another load") {
        r.parts[1].result.intended_fps *= 2;
        CHECK(fault_of(r)->what_text == "b has another load than a");
    }
    SUBCASE("other limits") {
        r.parts[1].result.limits.loss_ratio = 0.5;
        CHECK(fault_of(r)->what_text == "b has another limits than a");
    }
    SUBCASE("both sides on one port") {
        r.parts[1].result.is_one_armed = true;
        CHECK(fault_of(r)->what_text == "b has another number of ports than a");
    }
    SUBCASE("other directions") {
        r.parts[1].result.directions.pop_back();
        CHECK(fault_of(r)->what_text == "b has another directions than a");
    }
    SUBCASE("nothing at all") { CHECK(fault_of({})->what_text == "no tester has a result"); }
}

TEST_CASE("judging replies, as a client sends them back, is judging what was counted") {
    auto r = request(3);
    lose(r.parts[2].result.directions[1], 12, 77);
    r.parts[1].result.directions[0].overdue_frames = 40;
    r.parts[1].result.directions[0].hop_limit_was_lowered = false;
    r.parts[0].result.directions[0].strayed_frames = 5;
    r.parts[2].before = {.offset_us = -20, .uncertainty_us = 60};
    r.parts[2].after = {.offset_us = -21, .uncertainty_us = 61};
    for (auto& p : r.parts) {
        p.result.ports[Side::left].before.seen_frames = 3;
        p.result.ports[Side::left].after.seen_frames = 3 + frames_each;
        p.result.ports[Side::left].before.hidden_drops =
            p.result.ports[Side::left].after.hidden_drops = {{.name = "rx_x", .frames = 2}};
    }
    // The rest of what such a trial has says nothing about its counts.
    for (auto& p : r.parts) {
        for (auto& d : p.result.directions) d.latency = {};
        for (auto& d : p.result.directions) d.latency.add(tally::LatencyHistogram{});
    }
    const auto direct = tally::judge_together(r);
    const auto judged = over_the_contract(r);
    CHECK(judged["response"] == "judge");
    CHECK(judged["verdict"] == "FAIL");
    REQUIRE(judged["reasons"].size() == direct.whole.reasons.size());
    for (std::size_t i = 0; i < direct.whole.reasons.size(); ++i)
        CHECK(judged["reasons"][i]["text"] == direct.whole.reasons[i].text);
    REQUIRE(judged["notes"].size() == direct.whole.notes.size());
    for (std::size_t i = 0; i < direct.whole.notes.size(); ++i)
        CHECK(judged["notes"][i]["text"] == direct.whole.notes[i].text);
    for (const auto& d : direct.whole.directions) {
        const auto& as_json = judged["directions"][d.direction == Direction::forward ? "forward" : "reverse"];
        CHECK(as_json["offered_frames"] == d.offered_frames);
        CHECK(as_json["received_frames"] == d.received_frames);
        CHECK(as_json["first_lost"] == Json(d.first_lost));
        CHECK(as_json["lost_by_tenth"] == Json(d.lost_by_tenth));
    }
    CHECK(judged["engines"].size() == 3);
    CHECK(judged["engines"][1]["engine"] == "b");
    CHECK(judged["starts"]["difference_us"].get<double>() == doctest::Approx(direct.start_difference_us));
    CHECK(judged["ports"]["left"]["after"]["seen_frames"] == 3 * (3 + frames_each));
    CHECK(judged["ports"]["left"]["after"]["hidden_drops"]["rx_x"] == 6);
}

TEST_CASE("connections that testers opened are added up, and who had a tuple twice is named") {
    auto r = request();
    for (auto& p : r.parts) {
        p.result.directions.pop_back();  // the initiator's alone
        p.result.directions[0].connections = {.opened = frames_each, .learnt = frames_each - 2, .shared_tuples = 0};
    }
    r.parts[1].result.directions[0].connections->learnt = frames_each;
    CHECK(tally::judge_together(r).whole.verdict == Verdict::pass);
    r.parts[1].result.directions[0].connections->shared_tuples = 3;
    const auto judged = over_the_contract(r);
    CHECK(judged["directions"]["forward"]["connections"] ==
          Json{{"opened", 2 * frames_each}, {"learnt", 2 * frames_each - 2}, {"shared_tuples", 3}});
    CHECK(judged["engines"][1]["directions"]["forward"]["connections"]["shared_tuples"] == 3);
    CHECK(judged["verdict"] == "FAIL");
    REQUIRE(judged["reasons"].size() == 1);
    CHECK(judged["reasons"][0]["code"] == "shared_tuples");
    CHECK(judged["reasons"][0]["text"] ==
          "forward of b: 3 of 500000 connections were translated to the four tuple of another one, so their answers "
          "cannot be distinguished");
    r.parts[0].result.directions[0].connections.reset();
    const auto fault = fault_of(r);
    REQUIRE(fault);
    CHECK(fault->what_text == "b has another use of connections than a");
}

TEST_CASE("delays are added up in nanoseconds, to the width of a reply's group") {
    auto r = request();
    const auto judged = over_the_contract(r);
    const auto& latency = judged["directions"]["forward"]["latency"];
    CHECK(latency["count"] == 200);
    CHECK(latency["min_ns"] == 1'000);    // 2,000 ticks of 2 GHz
    CHECK(latency["max_ns"] == 100'000);  // 200,000
    CHECK(latency["p50_ns"].get<double>() == doctest::Approx(50'000).epsilon(0.01));
    CHECK(latency["p99_ns"].get<double>() == doctest::Approx(99'000).epsilon(0.01));
    CHECK(latency["mean_ns"].get<double>() == doctest::Approx(50'500).epsilon(1e-4));
    CHECK(judged["directions"]["forward"]["delay_by_slice"][0] == Json::array({20'000, 1000.0, 5.0, 4500.0}));
    CHECK(judged["clock"]["ticks_per_second"] == 1e9);
}

namespace {

/// Frames of a tester whose delay counts, and a tag of every tenth of them.
void time_frames(tally::TrialResult& r, std::uint64_t first_ns, std::uint64_t lost = 0) {
    for (auto& d : r.directions) {
        d.latency = {};
        auto delays = std::make_shared<tally::DelayResult>();
        delays->first_frame = 1000;
        delays->offered_frames = 100;
        delays->lost_frames = lost;
        delays->has_tags = true;
        delays->variation.emplace(tally::DelayResult::Variation{}).pairs = 99 - 2 * lost;
        const auto ticks_per_ns = static_cast<std::uint64_t>(r.ticks_per_second / 1e9);
        for (std::uint64_t i = 0; i < 100 - lost; ++i) {
            const auto ticks = ticks_per_ns * (first_ns + i);
            d.latency.record(ticks);
            delays->delays.add({static_cast<std::int64_t>(ticks), static_cast<std::int64_t>(ticks), 1});
        }
        for (std::uint64_t n = 0; n < 10; ++n)
            delays->tagged.push_back({1000 + r.share->first + 10 * r.share->stride * n,
                                      n == 0 && lost != 0 ? std::nullopt : std::optional{ticks_per_ns * first_ns}});
        delays->variation->differences.add({-static_cast<std::int64_t>(ticks_per_ns * first_ns),
                                            static_cast<std::int64_t>(ticks_per_ns), delays->variation->pairs});
        delays->variation->differences.sort();
        delays->delays.sort();
        d.delays = delays;
    }
}

}  // namespace

TEST_CASE("delays of all testers are one sample, each by its own clock (R8219-07, R8219-12, R8219-15)") {
    auto r = request();
    r.parts[1].result.ticks_per_second = 3e9;
    time_frames(r.parts[0].result, 5'000);
    time_frames(r.parts[1].result, 8'000);
    const auto judged = over_the_contract(r);
    for (const char* direction : {"forward", "reverse"}) {
        const auto& d = judged["directions"][direction]["delays"];
        CHECK(d["first_frame"] == 1000);
        CHECK(d["offered_frames"] == 200);
        CHECK(d["min_ns"] == 5'000);
        CHECK(d["p50_ns"] == 5'099);
        CHECK(d["p99_ns"] == 8'097);
        CHECK(d["p999_ns"] == 8'099);
        CHECK(d["pdv_ns"] == 3'099);
        CHECK(d["pdv_resolution_ns"] == 1);
        CHECK_FALSE(d.contains("buckets"));
        REQUIRE(d["tagged"].size() == 20);
        CHECK(d["tagged"][0] == Json::array({1000, 5000.0}));
        CHECK(d["tagged"][1] == Json::array({1001, 8000.0}));
        CHECK(d["tagged"][2] == Json::array({1020, 5000.0}));
        CHECK(d["variation"]["pairs"] == 198);
        CHECK(d["variation"]["min_ns"] == -8'000);
        CHECK(d["variation"]["max_ns"] == 1);
    }
    CHECK(judged["verdict"] == "PASS");
}

TEST_CASE("a trial that ended early is judged as one tester's, and must have ended at one frame for all") {
    auto r = request();
    for (auto& p : r.parts) {
        p.result.stopped_early_s = 2.5;
        for (auto& d : p.result.directions) {
            d.intended_frames = d.offered_frames = d.received_frames = frames_each / 2;
            d.lost_by_tenth.resize(25);
        }
    }
    lose(r.parts[1].result.directions[0], 10, 31);
    const auto judged = over_the_contract(r);
    CHECK(judged["verdict"] == "FAIL");
    CHECK(judged["stopped_early_s"] == 2.5);
    CHECK(judged["reasons"][0]["code"] == "loss");
    CHECK(judged["reasons"][1]["text"] ==
          "sending ended after 2.50 s of 5 s: more frames than may be lost were overdue by then, and later ones had "
          "overtaken them");
    SUBCASE("for one of them later") {
        r.parts[0].result.stopped_early_s = 2.6;
        const auto late = tally::judge_together(r);
        CHECK(late.whole.verdict == Verdict::invalid);
        CHECK(late.whole.reasons[0].code == "end_difference");
        CHECK(late.whole.reasons[0].text == "b sent for 2.500 s, but another engine for 2.600 s");
    }
    SUBCASE("for one of them not at all") {
        r.parts[0].result.stopped_early_s.reset();
        CHECK(codes_of(tally::judge_together(r).whole).front() == "end_difference");
    }
    SUBCASE("what was missing came later") {
        for (auto& d : r.parts[1].result.directions) d.received_frames = d.offered_frames;
        const auto passed = tally::judge_together(r);
        CHECK(passed.whole.verdict == Verdict::invalid);
        CHECK(codes_of(passed.whole) == Codes{"stopped_early"});
    }
}

TEST_CASE("a lost frame is infinitely late, whichever tester sent it (R8219-16)") {
    auto r = request();
    time_frames(r.parts[0].result, 5'000);
    time_frames(r.parts[1].result, 8'000, 1);
    for (auto& d : r.parts[1].result.directions) lose(d, 1, 1001);
    const auto d = over_the_contract(r)["directions"]["forward"]["delays"];
    CHECK(d["lost_frames"] == 1);
    CHECK(d["p99_ns"] == 8'097);
    CHECK(d["p999_ns"].is_null());
    CHECK(d["pdv_ns"].is_null());
    CHECK(d["tagged"][1] == Json::array({1001, nullptr}));
    CHECK(d["variation"]["pairs"] == 99 + 97);
}

TEST_CASE("delays that the tester made are held against those of all testers") {
    auto r = request();
    for (auto& p : r.parts) time_frames(p.result, 5'000);
    const auto leave_out = [&](std::uint64_t tags) {
        auto delays = std::make_shared<tally::DelayResult>(*r.parts[1].result.directions[0].delays);
        delays->left_out_tags = tags;
        delays->left_out_frames = tags;
        delays->tagged.resize(10 - tags);
        r.parts[1].result.directions[0].delays = delays;
        r.parts[1].result.directions[0].overdue_frames = 100'000;  // says nothing of delays
        return tally::judge_together(r);
    };
    const auto some = leave_out(2);  // a fifth of its own, and a tenth of all
    CHECK(some.whole.verdict == Verdict::pass);
    REQUIRE(some.whole.notes.size() == 1);
    CHECK(some.whole.notes[0].text.starts_with("forward: 2 of 20 tagged frames have no part in the delays"));
    const auto more = leave_out(3);
    CHECK(more.whole.verdict == Verdict::invalid);
    CHECK(codes_of(more.whole) == Codes{"sender_overdue"});
    CHECK(more.whole.reasons[0].text.starts_with("forward: 3 of 20 tagged frames left more than"));
    r.parts[1].result.directions[0].overdue_frames = 0;
    CHECK(codes_of(tally::judge_together(r).whole) == Codes{"receiver_gap"});
}

TEST_CASE("parts with other delays are of no one trial, and what is no delay is refused") {
    auto r = request();
    time_frames(r.parts[0].result, 5'000);
    const auto fault = fault_of(r);
    REQUIRE(fault);
    CHECK(fault->what_text == "b has another part of the delays than a");
    time_frames(r.parts[1].result, 5'000);
    Json good = Json::parse(contract::write_trial(9, r.parts[0].result));
    const auto fault_with = [&](const char* key, const Json& value) -> std::string {
        Json result = good;
        result["directions"]["forward"]["delays"][key] = value;
        const Json line{{"id", 1},
                        {"request", "judge"},
                        {"results",
                         {{{"engine", "a"},
                           {"result", result},
                           {"clock",
                            {{"before", {{"offset_us", 0}, {"uncertainty_us", 0}}},
                             {"after", {{"offset_us", 0}, {"uncertainty_us", 0}}}}}}}}};
        try {
            (void)contract::read_request(line.dump());
            return "";
        } catch (const Fault& f) {
            return f.what_text;
        }
    };
    const std::string no_bucket = "there is something else in it than delays from one to another, and how many";
    CHECK(fault_with("has_tags", true).empty());
    CHECK(fault_with("buckets", Json::array({Json::array({7, 5, 100})})) == no_bucket);
    CHECK(fault_with("buckets", Json::array({Json::array({5, 7})})) == no_bucket);
    CHECK(fault_with("buckets", Json::array({Json::array({5, 7.5, 100})})) == no_bucket);
    CHECK(fault_with("buckets", Json::array({Json::array({5, 7, 101})})) == no_bucket);
    CHECK(fault_with("buckets", Json::array({Json::array({5, 7, 99})})) == "they have 99 frames instead of 100");
    CHECK(fault_with("tagged", Json::array({Json::array({-5, 7})})) ==
          "there is something else in it than a frame's number and its delay");
}

TEST_CASE("a tester alone and the same as the only one of several are judged alike") {
    auto alone = part(0, 1);
    lose(alone.result.directions[0], 3, 5);
    TogetherRequest r;
    r.parts.push_back(alone);
    const auto together = tally::judge_together(r);
    alone.result.tester.clear();
    tally::judge(alone.result);
    CHECK(together.whole.verdict == alone.result.verdict);
    CHECK(codes_of(together.whole) == codes_of(alone.result));
    CHECK(together.whole.loss_ratio() == alone.result.loss_ratio());
}

}  // namespace together_test
