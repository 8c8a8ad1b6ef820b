// SPDX-License-Identifier: Apache-2.0
// Station 6: what explains a loss of which tester, where several make one trial. R2544-07, R2544-39, D5.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/request.hpp"
#include "fault.hpp"
#include "results.hpp"
#include "slow.hpp"
#include "tally/together.hpp"
#include "tally/verdict.hpp"

namespace together_reasons_test {

using namespace evenhand;
using plan::Side;
using tally::TrialResult;
using tally::Verdict;
using tests::has;
using tests::take_dut_cpu;

namespace {

constexpr std::uint64_t frames_each = 500'000;
constexpr std::uint64_t many = 1000;  // frames

std::vector<TrialResult> parts(std::uint64_t testers) {
    std::vector<TrialResult> all;
    all.reserve(testers);
    for (std::uint64_t n = 0; n < testers; ++n) all.push_back(tests::lossless_part(frames_each, n, testers));
    return all;
}

tally::TogetherRequest request_of(const std::vector<TrialResult>& all) {
    tally::TogetherRequest request;
    for (const auto& of : all) request.parts.push_back({.result = of, .before = {}, .after = {}});
    return request;
}

TrialResult judged(const std::vector<TrialResult>& all) { return tally::judge_together(request_of(all)).whole; }

/// What the counts of all testers are if one tester alone had counted them.
TrialResult alone(const std::vector<TrialResult>& all) {
    TrialResult sum = judged(all);
    sum.tester.clear();
    tally::judge(sum);
    return sum;
}

/// What may explain so many lost frames of the forward direction.
struct Lapse {
    const char* code;
    bool is_of_all;  // else of the losses of the tester that has it
    std::function<void(TrialResult&, std::uint64_t)> happen;
};

const std::vector<Lapse> lapses{
    {"receive_missed", false, [](auto& r, auto n) { r.ports[Side::right].after.missed_frames += n; }},
    {"receive_unseen", false,
     [](auto& r, auto n) {
         r.ports[Side::right].before.seen_frames = 0;
         r.ports[Side::right].after.seen_frames = r.ports[Side::right].after.received_frames - n;
     }},
    {"clock_difference", false, [](auto& r, auto n) { r.directions[0].wrong_time_frames += n; }},
    {"record_overrun", false, [](auto& r, auto n) { r.directions[0].unrecorded_frames += n; }},
    {"receiver_gap", false, [](auto& r, auto n) { r.directions[0].gap_frames += n; }},
    {"receiver_gap", false, [](auto& r, auto n) { r.directions[0].late_by_gap_frames += n; }},
    {"answers_dropped", false, [](auto& r, auto n) { r.ports[Side::right].after.dropped_answers += n; }},
    {"flow_control", false,
     [](auto& r, auto n) {
         r.ports[Side::right].before.counts_pause = r.ports[Side::right].after.counts_pause = true;
         r.ports[Side::right].after.pause_frames += n != 0 ? 1 : 0;  // any is enough
     }},
    {"overdue_may_explain_loss", true, [](auto& r, auto n) { r.directions[0].overdue_frames += n; }},
    {"host_took_cpu", true,
     [](auto& r, auto n) {
         take_dut_cpu(r);
         r.directions[0].away_frames += n;
     }},
};

}  // namespace

TEST_CASE("an absence of the DUT's CPU explains the losses of all testers, whichever of them watches it") {
    for (const std::size_t watcher : {0U, 1U}) {
        auto all = parts(2);
        for (auto& of : all) of.directions[0].received_frames -= many;
        take_dut_cpu(all[watcher], 3, 2);
        all[watcher].directions[0].away_frames = 2 * many;
        const auto both = judged(all);
        CHECK(both.verdict == Verdict::invalid);
        REQUIRE(both.reasons.size() == 2);
        CHECK(both.reasons[0].code == "host_took_cpu");
        CHECK(both.reasons[0].text ==
              "forward: this machine took the DUT's CPU away (2 times, up to 100.0 ms); 2000 frames arrived at the DUT "
              "in such moments and may have overrun its ring of 256");
        CHECK(both.reasons[1].text ==
              "2000 of 2000000 frames were lost; up to 2000 of them may not be the DUT's fault");
        CHECK(alone(all).verdict == Verdict::invalid);
        all[watcher].directions[0].away_frames = 2 * many - 1;  // one frame more was lost than came meanwhile
        CHECK(judged(all).verdict == Verdict::fail);
        CHECK(alone(all).verdict == Verdict::fail);
    }
}

TEST_CASE("two testers that watch the same CPU of the DUT see one absence, not two") {
    auto all = parts(2);
    for (auto& of : all) {
        take_dut_cpu(of, 3, 2);
        of.directions[0].away_frames = many;
        of.directions[0].received_frames -= many;
    }
    const auto both = judged(all);
    CHECK(both.verdict == Verdict::fail);  // 2,000 were lost, and 1,000 came meanwhile
    CHECK(both.directions[0].away_frames == many);
    REQUIRE(both.host.dut);
    REQUIRE(both.host.dut->cpus.size() == 1);
    CHECK(both.host.dut->cpus[0].absences == 2);
    // The longer of what they saw of it counts, and the smaller of the rings that they were told.
    all[0].host.dut = {.ring_frames = 512, .cpus = {{.cpu = 3, .stolen_us = 7, .waited_us = 2, .longest_us = 6}}};
    all[1].host.dut = {.ring_frames = 128, .cpus = {{.cpu = 3, .stolen_us = 1, .waited_us = 9, .longest_us = 8}}};
    const auto seen = judged(all).host.dut;
    REQUIRE(seen);
    CHECK(seen->ring_frames == 128);
    CHECK(seen->cpus[0].stolen_us == 7);
    CHECK(seen->cpus[0].waited_us == 9);
    CHECK(seen->cpus[0].longest_us == 8);
    all[1].host.dut->cpus[0] = {.cpu = 4, .absences = 1, .longest_us = 7};
    CHECK(judged(all).host.dut->cpus.size() == 2);
}

TEST_CASE("each reason explains the losses of the tester that it is of, or of all: alone and in each pair") {
    for (std::size_t i = 0; i < lapses.size(); ++i) {
        for (std::size_t j = i; j < lapses.size(); j += tests::is_slow ? 4 : 1) {
            // Bit 0: which tester has the first lapse, bit 1: the second one; the others: who lost how much.
            for (unsigned which = 0; which < 4; ++which) {
                for (const auto& lost :
                     std::array<std::array<std::uint64_t, 2>, 4>{{{many, 0}, {0, many}, {many, many}, {2 * many, 1}}}) {
                    const std::array<std::size_t, 2> owner{which & 1U, which >> 1U};
                    CAPTURE(lapses[i].code);
                    CAPTURE(lapses[j].code);
                    CAPTURE(owner);
                    CAPTURE(lost);
                    auto all = parts(2);
                    for (std::size_t t = 0; t < 2; ++t) {
                        all[t].directions[0].received_frames -= lost[t];
                        all[t].ports[Side::right].after.received_frames -= lost[t];
                    }
                    // As the rule says it.
                    std::array<std::uint64_t, 2> own{};
                    std::uint64_t of_all = 0;
                    std::uint64_t away = 0;
                    const auto happen = [&](const Lapse& lapse, std::size_t whose) {
                        lapse.happen(all[whose], many);
                        const std::string code = lapse.code;
                        if (code == "answers_dropped" || code == "flow_control") {
                            own[whose] = lost[whose];
                        } else if (code == "host_took_cpu") {
                            away = std::max(away, all[whose].directions[0].away_frames);
                        } else if (lapse.is_of_all) {
                            of_all += many;
                        } else {
                            own[whose] += many;
                        }
                    };
                    happen(lapses[i], owner[0]);
                    if (j != i || owner[0] != owner[1]) happen(lapses[j], owner[1]);
                    // Two counts of one port may count the same frames.
                    const auto is_port = [](const Lapse& l) {
                        return std::string{l.code} == "receive_missed" || std::string{l.code} == "receive_unseen";
                    };
                    if (owner[0] == owner[1] && i != j && is_port(lapses[i]) && is_port(lapses[j]))
                        own[owner[0]] -= many;
                    std::uint64_t explained = of_all + away;
                    for (std::size_t t = 0; t < 2; ++t) explained += std::min(own[t], lost[t]);
                    const bool is_explained = explained >= lost[0] + lost[1];
                    const auto r = judged(all);
                    CHECK(r.verdict == (is_explained ? Verdict::invalid : Verdict::fail));
                    if (is_explained) {
                        CHECK(has(r, lapses[i].code));
                        CHECK(has(r, lapses[j].code));
                    }
                    // None of them is a fault where nothing was lost.
                    for (std::size_t t = 0; t < 2; ++t) all[t].directions[0].received_frames += lost[t];
                    CHECK(judged(all).verdict == Verdict::pass);
                }
            }
        }
    }
}

TEST_CASE("one tester alone is judged as the same counts of several are, where a reason is of all") {
    for (const auto& lapse : lapses) {
        if (!lapse.is_of_all) continue;
        for (const std::uint64_t testers : {1U, 2U, 5U}) {
            for (const std::uint64_t missing : {many - 1, many, many + 1}) {
                CAPTURE(lapse.code);
                CAPTURE(testers);
                CAPTURE(missing);
                auto all = parts(testers);
                lapse.happen(all[0], many);
                for (std::uint64_t t = 0; t < testers; ++t)
                    all[t].directions[0].received_frames -= missing / testers + (t < missing % testers ? 1U : 0U);
                const auto expected = missing <= many ? Verdict::invalid : Verdict::fail;
                CHECK(judged(all).verdict == expected);
                CHECK(alone(all).verdict == expected);
            }
        }
    }
}

TEST_CASE("of frames with wrong addresses that several testers saw, the one that was sent first is shown") {
    for (const std::size_t earlier : {0U, 1U}) {
        auto all = parts(2);
        for (std::size_t t = 0; t < 2; ++t) {
            auto& d = all[t].directions[0];
            d.mistranslated_frames.emplace();
            d.mistranslated_frames->back() = 1;
            d.first_mistranslated.emplace();
            d.first_mistranslated->sequence = t == earlier ? 10 : 500;
            --d.received_frames;
        }
        const auto both = judged(all);
        REQUIRE(both.directions[0].first_mistranslated);
        CHECK(both.directions[0].first_mistranslated->sequence == 10);
        CHECK(both.directions[0].mistranslated_frames->back() == 2);
    }
}

TEST_CASE("one of two testers looks for a filling queue among its own frames up to the first that was lost") {
    // Delays grow by 1 ms a slice until three fifths of the trial have passed; then the queue overflows.
    auto all = parts(2);
    auto& d = all[0].directions[0];
    const auto ms = static_cast<std::uint64_t>(all[0].ticks_per_second / 1000);
    constexpr std::uint64_t slices = tally::SliceDelays::slices;
    for (std::uint64_t slice = 0; slice < slices; ++slice) {
        const bool is_full = slice >= slices * 3 / 5;
        const std::uint64_t delay = ms * (is_full ? 1 + 60 * (slice % 2) : slice + 1);
        d.delay_by_slice.add(slice, {.frames = 10, .sum = Wide{delay} * 10, .min = delay, .max = delay});
    }
    d.received_frames -= 5;
    d.first_lost = {2 * frames_each * 3 / 5};  // of the whole direction's frames
    tally::judge(all[0]);
    CHECK(all[0].verdict == Verdict::fail);
    REQUIRE(all[0].directions[0].queue_filling);
    const double slice_s = all[0].intended_duration_s / static_cast<double>(slices);
    CHECK(all[0].directions[0].queue_filling->slope == doctest::Approx(1e-3 / slice_s));
}

TEST_CASE("a hop limit that was not lowered on the way to one of the testers was not lowered") {
    for (const std::size_t which : {0U, 1U}) {
        auto all = parts(2);
        CHECK(judged(all).directions[0].hop_limit_was_lowered);
        all[which].directions[0].hop_limit_was_lowered = false;
        const auto both = judged(all);
        CHECK_FALSE(both.directions[0].hop_limit_was_lowered);
        CHECK(both.directions[1].hop_limit_was_lowered);
        CHECK(both.notes.size() == 1);
    }
}

TEST_CASE("frames that came while nobody watched the DUT's CPU are refused, and explain nothing") {
    auto all = parts(2);
    for (auto& of : all) of.directions[0].received_frames -= many;
    all[0].directions[0].away_frames = 2 * many;
    CHECK(judged(all).verdict == Verdict::fail);

    const auto fault = [&]() -> std::optional<Fault> {
        try {
            (void)contract::read_request(tests::judge_line(request_of(all)).dump());
            return std::nullopt;
        } catch (const Fault& found) {
            return found;
        }
    }();
    REQUIRE(fault);
    CHECK(fault->what_text == "away_frames is 2000, but dut is null: nobody watched the DUT's CPUs");
}

}  // namespace together_reasons_test
