// SPDX-License-Identifier: Apache-2.0
// Station 6: R2544-06, R2544-07, R2544-39, SEED-07, D5.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "results.hpp"
#include "tally/verdict.hpp"

namespace verdict_test {

using namespace evenhand;
using plan::Side;
using tally::TrialResult;
using tally::Verdict;
using tests::Codes;
using tests::codes_of;

namespace {

constexpr std::uint64_t frames = 1'000'000;

/// A trial in both directions that loses nothing.
TrialResult clean() { return tests::lossless(frames); }

auto& forward(TrialResult& r) { return r.directions[0]; }
auto& reverse(TrialResult& r) { return r.directions[1]; }
auto& left(TrialResult& r) { return r.ports[Side::left]; }
auto& right(TrialResult& r) { return r.ports[Side::right]; }

/// Dropped by the right port, as only an extended statistic says.
void hide_drops(TrialResult& r, std::uint64_t drops) {
    right(r).before.hidden_drops = {{.name = "rx_discards_phy", .frames = 0}};
    right(r).after.hidden_drops = {{.name = "rx_discards_phy", .frames = drops}};
}

/// What the receivers took from the right port, which counted `frames`.
void see(TrialResult& r, std::uint64_t seen) {
    right(r).before.seen_frames = 5;
    right(r).after.seen_frames = 5 + seen;
}

void lose(tally::DirectionResult& d, std::uint64_t lost) { d.received_frames = d.offered_frames - lost; }

/// `offered` of the intended frames were accepted, and all of them came.
void offer(tally::DirectionResult& d, std::uint64_t offered) {
    d.offered_frames = d.received_frames = offered;
    d.offered_fps = 1e5 * static_cast<double>(offered) / static_cast<double>(frames);
}

/// A burst of a thousandth of the frames, in 10 ms; its last frame leaves so late that it takes this much longer.
void make_burst(TrialResult& r, double longer_us) {
    r.burst = {.frames = frames / 1000, .interval_s = 0.01};
    r.intended_duration_s = 0.01;
    for (auto& d : r.directions) {
        d.intended_frames = d.offered_frames = d.received_frames = frames / 1000;
        d.offered_fps = static_cast<double>(d.offered_frames) / (0.01 + longer_us * 1e-6);
    }
}

/// This much of the 10 s is clean, and that many frames of the forward direction were lost in it.
void judge_clean(TrialResult& r, double clean_s, std::uint64_t lost) {
    r.clean.emplace();
    r.clean->wanted_s = r.clean->sent_s = 10;
    r.clean->most_s = 20;
    r.clean->clean_s = clean_s;
    r.clean->left_out = {{.from_s = 1, .until_s = 1.01, .kinds = {true}}};
    for (auto& d : r.directions) d.clean = {.frames = frames - 1000, .lost_frames = 0};
    forward(r).clean->lost_frames = lost;
}

struct Case {
    const char* name;
    std::function<void(TrialResult&)> change;
    Verdict verdict;
    Codes codes;
};

// A table, a trial a line.
// clang-format off
const std::vector<Case> cases{
    {"nothing is lost", [](auto&) {}, Verdict::pass, {}},
    {"one frame of two million is lost", [](auto& r) { lose(forward(r), 1); }, Verdict::fail, {"loss"}},
    {"each direction loses, and each says so",
     [](auto& r) { lose(forward(r), 1); lose(reverse(r), 7); }, Verdict::fail, {"loss", "loss"}},
    {"everything is lost",
     [](auto& r) { lose(forward(r), frames); lose(reverse(r), frames); }, Verdict::fail, {"loss", "loss"}},
    {"loss up to the ratio passes",
     [](auto& r) { r.limits.loss_ratio = 0.005; lose(forward(r), 10'000); }, Verdict::pass, {}},
    {"one frame more than the ratio fails",
     [](auto& r) { r.limits.loss_ratio = 0.005; lose(forward(r), 10'001); }, Verdict::fail, {"loss"}},
    // R2544-07
    {"one loss and one duplicate are no zero loss",
     [](auto& r) { lose(forward(r), 1); forward(r).duplicated_frames = 1; }, Verdict::fail, {"loss"}},
    {"a surplus in one direction hides no loss in the other",
     [](auto& r) { lose(forward(r), 1); reverse(r).received_frames = frames + 1; }, Verdict::fail, {"loss"}},
    {"late and damaged frames do not count as received",
     [](auto& r) {
         lose(reverse(r), 2); reverse(r).late_frames = reverse(r).corrupted_frames = reverse(r).corrupted_by[5] = 1;
     },
      Verdict::fail, {"loss", "corrupted"}},
    {"frames that are not what was sent are lost, and each way is named",
     [](auto& r) {
         lose(forward(r), 10);
         forward(r).wrong_address_frames = 1; forward(r).wrong_port_frames = 2;
         forward(r).wrong_payload_frames = 3; forward(r).wrong_length_frames = 4;
     },
      Verdict::fail, {"loss", "wrong_address", "wrong_port", "wrong_payload", "wrong_length"}},
    {"a router may set traffic class and flow label",
     [](auto& r) { forward(r).remarked_frames = frames; }, Verdict::pass, {}},
    {"a user may forbid it",
     [](auto& r) { r.limits.remarked_tolerance = 0; forward(r).remarked_frames = 1; }, Verdict::fail, {"remarked"}},
    {"frames that come back to the port that sent them instead of to the other one are lost",
     [](auto& r) { lose(forward(r), frames); reverse(r).returned_frames = frames; },
      Verdict::fail, {"loss", "returned"}},
    {"copies that come to the port that sent them are copies",
     [](auto& r) { reverse(r).returned_frames = 10'001; }, Verdict::invalid, {"mirrored"}},
    {"a few of them are none too many", [](auto& r) { reverse(r).returned_frames = 10'000; }, Verdict::pass, {}},
    {"a load that the receiving line does not carry says why frames were lost",
     [](auto& r) { forward(r).overload = {.needed_bps = 2e9, .line_bps = 1e9}; lose(forward(r), frames / 2); },
      Verdict::fail, {"loss", "line_overload"}},
    {"duplicates and disorder alone are no loss",
     [](auto& r) { forward(r).duplicated_frames = forward(r).reordered_frames = 99; }, Verdict::pass, {}},
    // R2544-39
    {"0.005 percent slower is within the tolerance",
     [](auto& r) { forward(r).offered_fps = 99'995; }, Verdict::pass, {}},
    {"0.02 percent slower is not the load asked for",
     [](auto& r) { forward(r).offered_fps = 99'980; }, Verdict::invalid, {"offered_load"}},
    {"a burst may end as late as a frame that is not overdue", [](auto& r) { make_burst(r, 90); }, Verdict::pass, {}},
    {"a burst that ends later was not sent at its rate",
     [](auto& r) { make_burst(r, 110); }, Verdict::invalid, {"offered_load", "offered_load"}},
    {"a burst of which a frame never left",
     [](auto& r) { make_burst(r, 0); forward(r).offered_frames = forward(r).received_frames = frames / 1000 - 1;
      }, Verdict::invalid, {"offered_load"}},
    {"0.02 percent faster is not either",
     [](auto& r) { reverse(r).offered_fps = 100'020; }, Verdict::invalid, {"offered_load"}},
    {"the tolerance is the user's",
     [](auto& r) { r.limits.offered_tolerance = 0.001; forward(r).offered_fps = 99'920; }, Verdict::pass, {}},
    {"one frame was never offered", [](auto& r) { offer(forward(r), frames - 1); }, Verdict::invalid, {"offered_load"}},
    {"a port that pushes back is named",
     [](auto& r) { offer(reverse(r), frames / 2); reverse(r).refusals = 12; },
      Verdict::invalid, {"offered_load", "port_refused"}},
    {"refusals that the sender caught up with are none of our business",
     [](auto& r) { forward(r).refusals = 12; }, Verdict::pass, {}},
    {"an unoffered load is no failure of the device",
     [](auto& r) { offer(forward(r), frames - 1); lose(forward(r), 5); }, Verdict::invalid, {"offered_load"}},
    {"nothing was offered at all", [](auto& r) { offer(forward(r), 0); }, Verdict::invalid, {"offered_load"}},
    // spacing
    {"1 percent overdue passes",
     [](auto& r) { forward(r).overdue_frames = 10'000; forward(r).max_overdue_us = 900; }, Verdict::pass, {}},
    {"more than 1 percent overdue is no constant load",
     [](auto& r) { forward(r).overdue_frames = 10'001; }, Verdict::invalid, {"sender_overdue"}},
    {"one frame too long overdue",
     [](auto& r) { reverse(r).overdue_frames = 1; reverse(r).max_overdue_us = 100'001; },
      Verdict::invalid, {"sender_overdue"}},
    {"as long overdue as may be",
     [](auto& r) { reverse(r).overdue_frames = 1; reverse(r).max_overdue_us = 100'000; }, Verdict::pass, {}},
    {"overdue frames that explain the loss",
     [](auto& r) { forward(r).overdue_frames = 5; lose(forward(r), 5); },
      Verdict::invalid, {"overdue_may_explain_loss", "loss"}},
    {"overdue frames that do not explain the loss",
     [](auto& r) { forward(r).overdue_frames = 5; lose(forward(r), 6); }, Verdict::fail, {"loss"}},
    {"overdue frames that explain it down to the allowed ratio",
     [](auto& r) { r.limits.loss_ratio = 0.005; forward(r).overdue_frames = 5; lose(forward(r), 10'005); },
      Verdict::invalid, {"overdue_may_explain_loss", "loss"}},
    {"frames that the record had no room for explain the loss",
     [](auto& r) { forward(r).unrecorded_frames = 5; lose(forward(r), 5); },
      Verdict::invalid, {"record_overrun", "loss"}},
    {"frames that the record had no room for do not explain the loss",
     [](auto& r) { forward(r).unrecorded_frames = 5; lose(forward(r), 6); }, Verdict::fail, {"loss"}},
    {"overdue frames of one direction explain nothing in the other",
     [](auto& r) { reverse(r).overdue_frames = 5; lose(forward(r), 5); }, Verdict::fail, {"loss"}},
    // ports
    {"the transmit ring was not drained",
     [](auto& r) { left(r).after.transmitted_frames = frames - 3; }, Verdict::invalid, {"transmit_not_drained"}},
    {"frames of before the trial are not counted as sent by it",
     [](auto& r) { right(r).before.transmitted_frames = 1; }, Verdict::invalid, {"transmit_not_drained"}},
    {"missed frames explain the loss",
     [](auto& r) { right(r).after.missed_frames = 4; lose(forward(r), 4); },
      Verdict::invalid, {"receive_missed", "loss"}},
    {"missed frames do not explain the loss",
     [](auto& r) { right(r).after.missed_frames = 4; lose(forward(r), 5); }, Verdict::fail, {"loss"}},
    {"a port that took none of what reached it has stopped, whatever was lost the other way",
     [](auto& r) { right(r).after.missed_frames = frames; right(r).after.received_frames = 0; lose(forward(r), frames);
         lose(reverse(r), frames - 29); }, Verdict::invalid, {"port_stopped"}},
    {"a port that nothing reached may be that of a DUT that forwards nothing",
     [](auto& r) { right(r).after.received_frames = 0; lose(forward(r), frames); }, Verdict::fail, {"loss"}},
    {"a port that took a single frame has not stopped",
     [](auto& r) { right(r).after.missed_frames = 4; right(r).after.received_frames = 1; lose(forward(r), frames); },
      Verdict::fail, {"loss"}},
    {"missing buffers explain it as well",
     [](auto& r) { left(r).after.no_buffer_frames = 4; lose(reverse(r), 4); },
      Verdict::invalid, {"receive_missed", "loss"}},
    {"frames that came damaged are lost, and told apart",
     [](auto& r) { left(r).after.receive_errors = 4; lose(reverse(r), 4); }, Verdict::fail, {"loss", "damaged"}},
    {"damaged frames within the allowed loss",
     [](auto& r) { r.limits.loss_ratio = 0.005; left(r).after.receive_errors = 4; lose(reverse(r), 4); },
      Verdict::pass, {}},
    {"counters that could not be read excuse nothing and accuse nobody",
     [](auto& r) { right(r).after = {.is_read = false}; lose(forward(r), 4); }, Verdict::invalid, {"counters"}},
    {"missed frames and missing buffers may be the same frames",
     [](auto& r) { right(r).after.missed_frames = right(r).after.no_buffer_frames = 4; lose(forward(r), 8); },
      Verdict::fail, {"loss"}},
    {"missed frames and missing buffers explain as many as the larger says",
     [](auto& r) { right(r).after.missed_frames = 3; right(r).after.no_buffer_frames = 4; lose(forward(r), 4);
      }, Verdict::invalid, {"receive_missed", "loss"}},
    {"drops that only an extended statistic shows",
     [](auto& r) { hide_drops(r, 4); lose(forward(r), 4); }, Verdict::invalid, {"receive_missed", "loss"}},
    {"drops of an extended statistic that do not explain the loss",
     [](auto& r) { hide_drops(r, 4); lose(forward(r), 5); }, Verdict::fail, {"loss"}},
    {"the port counted what no receiver saw",
     [](auto& r) { see(r, frames - 1000); lose(forward(r), 1000); }, Verdict::invalid, {"receive_unseen", "loss"}},
    {"the port counted what no receiver saw, and more was lost",
     [](auto& r) { see(r, frames - 1000); lose(forward(r), 1001); }, Verdict::fail, {"loss"}},
    {"the port counted what no receiver saw, and nothing was lost",
     [](auto& r) { see(r, frames - 1000); }, Verdict::pass, {}},
    {"unseen frames that the port says it missed are not counted twice",
     [](auto& r) { see(r, frames - 4); right(r).after.missed_frames = 4; lose(forward(r), 5); },
      Verdict::fail, {"loss"}},
    {"a port whose count is not exact accuses nobody",
     [](auto& r) { right(r).before.seen_frames = right(r).after.seen_frames = std::nullopt; lose(forward(r), 1000);
      }, Verdict::fail, {"loss"}},
    {"PAUSE and damaged frames that the port counted reach no receiver",
     [](auto& r) { see(r, frames - 4); right(r).after.receive_errors = 4; lose(forward(r), 4); },
      Verdict::fail, {"loss", "damaged"}},
    {"receivers that saw more than the port counted prove nothing",
     [](auto& r) { see(r, frames + 9); lose(forward(r), 4); }, Verdict::fail, {"loss"}},
    {"a counter that goes backwards is not read",
     [](auto& r) { right(r).before.missed_frames = 7; right(r).after.missed_frames = 3; lose(forward(r), 4); },
      Verdict::invalid, {"counters"}},
    {"a counter that wraps is not read",
     [](auto& r) { right(r).before.received_frames = 0xFFFF'FF00; lose(forward(r), 4); },
      Verdict::invalid, {"counters"}},
    {"a counter that reads all ones is not read",
     [](auto& r) { right(r).after.missed_frames = ~0ULL; lose(forward(r), 4); }, Verdict::invalid, {"counters"}},
    {"a counter of 32 bits that reads all ones is not read",
     [](auto& r) { left(r).after.no_buffer_frames = 0xFFFF'FFFF; }, Verdict::invalid, {"counters"}},
    {"an extended statistic that goes backwards explains nothing",
     [](auto& r) { hide_drops(r, 4); right(r).before.hidden_drops[0].frames = 5; lose(forward(r), 4); },
      Verdict::fail, {"loss"}},
    {"PAUSE frames on the sending port of a constant load",
     [](auto& r) { left(r).after.pause_frames = 9; }, Verdict::pass, {}},
    {"PAUSE frames on the sending port of a burst",
     [](auto& r) { make_burst(r, 0); left(r).after.pause_frames = 9; }, Verdict::invalid, {"flow_control"}},
    // clocks
    {"frames of this trial from the receiver's future",
     [](auto& r) { lose(forward(r), frames); forward(r).wrong_time_frames = frames; forward(r).ahead_us = 14; },
      Verdict::invalid, {"clock_difference", "loss"}},
    {"frames of the wrong time that do not explain the loss",
     [](auto& r) { lose(forward(r), 9); forward(r).wrong_time_frames = 8; forward(r).before_start_us = 14; },
      Verdict::fail, {"loss"}},
    {"clocks of two workers that are apart",
     [](auto& r) { r.clock_offsets = {{.cpu = 1}, {.cpu = 3, .offset_us = -25, .uncertainty_us = 1}}; },
      Verdict::invalid, {"clock_difference"}},
    {"clocks of two workers, each within the limit of the first, are apart",
     [](auto& r) { r.clock_offsets = {{.cpu = 1}, {.cpu = 2, .offset_us = 6}, {.cpu = 3, .offset_us = -6}}; },
      Verdict::invalid, {"clock_difference"}},
    {"clocks that may be apart by less than is known",
     [](auto& r) { r.clock_offsets = {{.cpu = 1}, {.cpu = 3, .offset_us = 25, .uncertainty_us = 20}}; },
      Verdict::pass, {}},
    {"clocks that are surely apart, beside one that is further ahead but less surely",
     [](auto& r) { r.clock_offsets = {{.cpu = 1}, {.cpu = 2, .offset_us = 20, .uncertainty_us = 15},
                                      {.cpu = 3, .offset_us = 12}}; },
      Verdict::invalid, {"clock_difference"}},
    {"clocks that are surely apart, beside one that is further behind but less surely",
     [](auto& r) { r.clock_offsets = {{.cpu = 1}, {.cpu = 2, .offset_us = -20, .uncertainty_us = 15},
                                      {.cpu = 3, .offset_us = -12}}; },
      Verdict::invalid, {"clock_difference"}},
    {"counters that could not be read before",
     [](auto& r) { left(r).before.is_read = false; }, Verdict::invalid, {"counters"}},
    {"answers that were dropped may explain any loss of that side",
     [](auto& r) { right(r).after.dropped_answers = 1; lose(forward(r), 5000); },
      Verdict::invalid, {"answers_dropped", "loss"}},
    {"answers that were dropped explain nothing on the other side",
     [](auto& r) { left(r).after.dropped_answers = 1; lose(forward(r), 5000); }, Verdict::fail, {"loss"}},
    {"answers that were dropped without a loss",
     [](auto& r) { right(r).after.dropped_answers = 1; }, Verdict::pass, {}},
    {"PAUSE frames on the receiving port may explain any loss",
     [](auto& r) { right(r).after.pause_frames = 9; lose(forward(r), 5000); },
      Verdict::invalid, {"flow_control", "loss"}},
    {"PAUSE frames of before the trial explain nothing",
     [](auto& r) { right(r).before.pause_frames = right(r).after.pause_frames = 9; lose(forward(r), 1); },
      Verdict::fail, {"loss"}},
    {"frames that were read too late by our fault",
     [](auto& r) { forward(r).late_frames = forward(r).late_by_gap_frames = 979; lose(forward(r), 979); },
      Verdict::invalid, {"receiver_gap", "loss"}},
    {"frames that were late by themselves",
     [](auto& r) { forward(r).late_frames = 979; forward(r).late_by_gap_frames = 3; lose(forward(r), 979); },
      Verdict::fail, {"loss"}},
    {"1 percent of duplicates passes", [](auto& r) { forward(r).duplicated_frames = 10'000; }, Verdict::pass, {}},
    {"more duplicates are no forwarding",
     [](auto& r) { forward(r).duplicated_frames = 10'001; }, Verdict::invalid, {"duplicates"}},
    {"the limit of duplicates is the user's",
     [](auto& r) { r.limits.duplicate_tolerance = 50; forward(r).duplicated_frames = 40 * frames; }, Verdict::pass, {}},
    {"missed frames of before the trial explain nothing",
     [](auto& r) { right(r).before.missed_frames = right(r).after.missed_frames = 4; lose(forward(r), 4); },
      Verdict::fail, {"loss"}},
    {"missed frames of the other side explain nothing",
     [](auto& r) { left(r).after.missed_frames = 4; lose(forward(r), 4); }, Verdict::fail, {"loss"}},
    {"missed frames without a loss were not ours",
     [](auto& r) { right(r).after.missed_frames = 4; }, Verdict::pass, {}},
    {"a poll gap explains the loss",
     [](auto& r) { forward(r).gap_frames = 100; lose(forward(r), 99); }, Verdict::invalid, {"receiver_gap", "loss"}},
    {"a poll gap does not explain the loss",
     [](auto& r) { forward(r).gap_frames = 100; lose(forward(r), 101); }, Verdict::fail, {"loss"}},
    {"a poll gap without a loss", [](auto& r) { forward(r).gap_frames = 100; }, Verdict::pass, {}},
    // clean time
    {"what was lost outside of clean time is not judged",
     [](auto& r) { judge_clean(r, 10, 0); lose(forward(r), 5000); }, Verdict::pass, {}},
    {"what was lost in clean time is",
     [](auto& r) { judge_clean(r, 10, 3); lose(forward(r), 5000); }, Verdict::fail, {"loss"}},
    {"frames that left late are left out of clean time",
     [](auto& r) { judge_clean(r, 10, 0); forward(r).overdue_frames = frames; forward(r).max_overdue_us = 1e7;
         forward(r).offered_fps *= 0.98; }, Verdict::pass, {}},
    {"late frames, gaps and absences explain nothing in clean time",
     [](auto& r) { judge_clean(r, 10, 3); lose(forward(r), 500); tests::take_dut_cpu(r); forward(r).away_frames = 500;
         forward(r).gap_frames = 500; forward(r).overdue_frames = 500; }, Verdict::fail, {"loss"}},
    {"frames that a port missed were lost outside of clean time, if as many were",
     [](auto& r) { judge_clean(r, 10, 3); lose(forward(r), 500); right(r).after.missed_frames = 497; },
      Verdict::fail, {"loss"}},
    {"frames that a port missed beyond these may be those of clean time",
     [](auto& r) { judge_clean(r, 10, 3); lose(forward(r), 500); right(r).after.missed_frames = 500; },
      Verdict::invalid, {"receive_missed", "loss"}},
    {"too little clean time: the whole trial is judged as ever",
     [](auto& r) { judge_clean(r, 8, 0); lose(forward(r), 5000); forward(r).overdue_frames = 5000; },
      Verdict::invalid, {"overdue_may_explain_loss", "clean_time", "loss"}},
    {"too little clean time, and nothing spoiled it",
     [](auto& r) { judge_clean(r, 8, 0); lose(forward(r), 5000); }, Verdict::fail, {"loss"}},
    {"a link that was down is no lapse",
     [](auto& r) { judge_clean(r, 10, 0); left(r).after.link_up = false; }, Verdict::invalid, {"link"}},
    // the host that DUT and tester share
    {"the machine took the DUT's CPU and that explains the loss",
     [](auto& r) { tests::take_dut_cpu(r); forward(r).away_frames = 5; lose(forward(r), 5); },
      Verdict::invalid, {"host_took_cpu", "loss"}},
    {"the machine took the DUT's CPU and that does not explain the loss",
     [](auto& r) { tests::take_dut_cpu(r); forward(r).away_frames = 5; lose(forward(r), 6); }, Verdict::fail, {"loss"}},
    {"the machine took the DUT's CPU and nothing was lost",
     [](auto& r) { tests::take_dut_cpu(r); forward(r).away_frames = 500'000; }, Verdict::pass, {}},
    {"the machine took the DUT's CPU, but all is lost",
     [](auto& r) { tests::take_dut_cpu(r); forward(r).away_frames = 500'000; lose(forward(r), frames); }, Verdict::fail, {"loss"}},
    {"the machine took the DUT's CPU for less than its ring lasts",
     [](auto& r) { tests::take_dut_cpu(r); lose(forward(r), 1); }, Verdict::fail, {"loss"}},
    {"lapses are added up",
     [](auto& r) {
         right(r).after.missed_frames = 1;
         forward(r).gap_frames = 2;
         forward(r).overdue_frames = 3;
         lose(forward(r), 6);
     },
     Verdict::invalid, {"receive_missed", "receiver_gap", "overdue_may_explain_loss", "loss"}},
    // host
    {"the clock ran 101 ppm fast", [](auto& r) { r.clock_error_ppm = 101; }, Verdict::invalid, {"clock"}},
    {"the clock ran 101 ppm slow", [](auto& r) { r.clock_error_ppm = -101; }, Verdict::invalid, {"clock"}},
    {"the clock ran 99 ppm slow", [](auto& r) { r.clock_error_ppm = -99; }, Verdict::pass, {}},
    {"a link was down at the end",
     [](auto& r) { right(r).after.link_up = false; lose(forward(r), frames); }, Verdict::invalid, {"link"}},
    {"a link was down at the start", [](auto& r) { left(r).before.link_up = false; }, Verdict::invalid, {"link"}},
    {"a link went down and up again",
     [](auto& r) { right(r).before.link_changes = 5; right(r).after.link_changes = 7; lose(forward(r), 5000); },
      Verdict::invalid, {"link"}},
    {"a link that the tester took down on request and up again, and what was lost meanwhile",
     [](auto& r) { right(r).link_switches = {{.at_s = 1}, {.at_s = 2, .is_up = true}}; lose(forward(r), 5000); },
      Verdict::fail, {"loss"}},
    {"a link that the tester took down on request and left so",
     [](auto& r) { right(r).link_switches = {{.at_s = 1}}; right(r).after.link_up = false; lose(forward(r), 1); },
      Verdict::fail, {"loss"}},
    {"a link that the tester took down and up, but that did not come up",
     [](auto& r) {
         right(r).link_switches = {{.at_s = 1}, {.at_s = 2, .is_up = true}};
         right(r).after.link_up = false;
         lose(forward(r), 1);
     },
     Verdict::invalid, {"link"}},
    {"a link that changed besides being taken down on request",
     [](auto& r) {
         right(r).link_switches = {{.at_s = 1}};
         right(r).after.link_changes = 1, right(r).after.link_up = false;
     },
     Verdict::invalid, {"link"}},
    {"a port was taken away, with its link and its counters",
     [](auto& r) {
         right(r).after = {.link_up = false, .is_removed = true, .is_read = false};
         offer(forward(r), 10);
         offer(reverse(r), 10);
     },
     Verdict::invalid, {"port_removed", "offered_load", "offered_load"}},
    {"a link that changed before the trial",
     [](auto& r) { right(r).before.link_changes = right(r).after.link_changes = 5; }, Verdict::pass, {}},
    {"the clock that NTP steers is right, ours 101 ppm fast",
     [](auto& r) { r.steered_clock_error_ppm = 101; }, Verdict::invalid, {"clock"}},
    {"the clock that NTP steers agrees with ours", [](auto& r) { r.steered_clock_error_ppm = -40; }, Verdict::pass, {}},
    {"the client stopped it",
     [](auto& r) { r.stopped = true; offer(forward(r), 10); offer(reverse(r), 10); },
      Verdict::invalid, {"stopped", "offered_load", "offered_load"}},
};
// clang-format on

}  // namespace

TEST_CASE("trials are judged by their counts") {
    for (const auto& c : cases) {
        SUBCASE(c.name) {
            auto r = clean();
            c.change(r);
            tally::judge(r);
            CHECK(r.verdict == c.verdict);
            CHECK(codes_of(r) == c.codes);
            for (const auto& reason : r.reasons) CHECK_FALSE(reason.text.empty());
        }
    }
}

TEST_CASE("frames that come back with the hop limit of their sending are a note, on the side where they do") {
    auto r = clean();
    judge(r);
    CHECK(r.notes.empty());
    reverse(r).hop_limit_was_lowered = false;
    judge(r);
    CHECK(r.verdict == Verdict::pass);
    REQUIRE(r.notes.size() == 1);
    CHECK(std::string{r.notes[0].code} == "hop_limit");
    CHECK(r.notes[0].text.starts_with("reverse: frames came back with the hop limit that they were sent with"));
}

TEST_CASE("a late departure spoils only the delays that it touched, unless these are more than a tenth") {
    const auto judged = [](std::uint64_t left_out_tags, std::uint64_t tags, std::uint64_t left_out_frames,
                           std::uint64_t refusals = 0) {
        auto r = clean();
        auto delays = std::make_shared<tally::DelayResult>();
        delays->offered_frames = frames;
        delays->left_out_tags = left_out_tags;
        delays->left_out_frames = left_out_frames;
        delays->has_tags = tags != 0;
        for (std::uint64_t n = left_out_tags; n < tags; ++n) delays->tagged.push_back({n, 1});
        forward(r).delays = delays;
        forward(r).overdue_frames = frames / 2;
        forward(r).max_overdue_us = 1e6;
        forward(r).refusals = refusals;
        judge(r);
        return r;
    };
    CHECK(judged(0, 500, 0).verdict == Verdict::pass);
    CHECK(judged(0, 500, 0).notes.empty());
    const auto some = judged(50, 500, frames / 5);
    CHECK(some.verdict == Verdict::pass);
    REQUIRE(some.notes.size() == 1);
    CHECK(some.notes[0].text.starts_with("forward: 50 of 500 tagged frames have no part in the delays"));
    CHECK(codes_of(judged(51, 500, 51)) == Codes{"sender_overdue"});
    CHECK(judged(0, 0, frames / 10).verdict == Verdict::pass);  // every frame counts
    CHECK(codes_of(judged(0, 0, frames / 10 + 1)) == Codes{"sender_overdue"});
    CHECK(codes_of(judged(1, 1, 1)) == Codes{"sender_overdue"});  // RFC 2544: the only one
    CHECK(codes_of(judged(0, 500, 0, 1)) ==
          Codes{"sender_overdue"});  // the port refused frames: their stamps are older than their departures
}

TEST_CASE("PAUSE on the sending port is a note where it changes no verdict, and says on which side") {
    auto r = clean();
    left(r).after.pause_frames = 9;
    tally::judge(r);
    CHECK(r.verdict == Verdict::pass);
    REQUIRE(r.notes.size() == 1);
    CHECK(std::string{r.notes[0].code} == "flow_control");
    CHECK(r.notes[0].text.starts_with("forward: 9 PAUSE frames on the tester's sending port"));
}

TEST_CASE("a reason says which of a port's counters spoke, and why they are not added") {
    auto r = clean();
    right(r).after.missed_frames = 3;
    right(r).after.no_buffer_frames = 4;
    lose(forward(r), 4);
    tally::judge(r);
    CHECK(r.reasons[0].text.find("missed 4 frames (imissed 3, rx_nombuf 4; these may count the same frames") !=
          std::string::npos);
}

// The one thing that is known of a DUT is what the host did to its CPUs, where it lives on this machine. It is
// recorded; frames that may have been lost by it are counted before, in away_frames.
TEST_CASE("what is known of the DUT changes no verdict and no reason (SEED-07)") {
    using Dut = tally::HostRecord::Dut;
    const std::vector<std::optional<Dut>> known{
        std::nullopt,
        Dut{.ring_frames = 0, .cpus = {}},
        Dut{.ring_frames = 1, .cpus = {{.cpu = 0}}},
        Dut{.ring_frames = 4096,
            .cpus = {{.cpu = 3, .stolen_us = 1e7, .waited_us = 1e7, .absences = 1'000'000, .longest_us = 1e7},
                     {.cpu = 4, .waited_us = 1}}},
    };
    for (const auto& c : cases) {
        CAPTURE(c.name);
        auto expected = clean();
        c.change(expected);
        if (forward(expected).away_frames != 0) continue;
        tally::judge(expected);
        for (const auto& dut : known) {
            auto r = clean();
            c.change(r);
            r.host.dut = dut;
            tally::judge(r);
            CHECK(r.verdict == c.verdict);
            CHECK(codes_of(r) == c.codes);
            CHECK(std::ranges::equal(r.reasons, expected.reasons, {}, &tally::Reason::text, &tally::Reason::text));
        }
    }
}

TEST_CASE("frames are overdue after 100 us, or 1,500 frames if they take less") {
    CHECK(tally::usual_overdue_after_us(1) == 100);
    CHECK(tally::usual_overdue_after_us(14'880'952) == 100);
    CHECK(tally::usual_overdue_after_us(148'809'523) == doctest::Approx(10.08));
    CHECK(tally::usual_overdue_after_us(37'202'380) == doctest::Approx(40.32));
}

TEST_CASE("judging twice gives the same verdict and no reason twice") {
    auto r = clean();
    lose(forward(r), 1);
    tally::judge(r);
    tally::judge(r);
    CHECK(codes_of(r) == Codes{"loss"});
}

TEST_CASE("a loss of a mix names the kinds of frames that lost, and no other") {
    auto r = clean();
    lose(forward(r), 5);
    forward(r).classes = {
        {.version = plan::IpVersion::v4, .frame_size = 64, .offered_frames = 900'000, .received_frames = 900'000},
        {.version = plan::IpVersion::v6, .frame_size = 1518, .offered_frames = 100'000, .received_frames = 99'995}};
    tally::judge(r);
    REQUIRE(codes_of(r) == Codes{"loss"});
    CHECK(r.reasons.front().text.ends_with("%): 5 of 100000 IPv6 frames of 1518 octets"));
}

TEST_CASE("the loss ratio is over all directions, and a surplus makes it no smaller") {
    auto r = clean();
    lose(forward(r), 500);
    CHECK(r.loss_ratio() == doctest::Approx(500.0 / (2.0 * frames)));
    reverse(r).received_frames = frames + 500;
    CHECK(r.loss_ratio() == doctest::Approx(500.0 / (2.0 * frames)));
    CHECK(TrialResult{}.loss_ratio() == 1.0);
}

TEST_CASE("more loss never makes a better verdict") {
    const bool right_order = rc::check("fail stays fail", [] {
        auto r = clean();
        const auto count = rc::gen::inRange<std::uint64_t>(0, 1000);
        const auto fewer = *count;
        const auto more = fewer + *count;
        r.limits.loss_ratio = *rc::gen::inRange(0, 500) * 1e-6;
        forward(r).overdue_frames = *count;
        forward(r).gap_frames = *count;
        right(r).after.missed_frames = *count;
        const auto verdict_with = [&](std::uint64_t lost) {
            auto trial = r;
            lose(forward(trial), lost);
            tally::judge(trial);
            return trial.verdict;
        };
        const auto rank = [](Verdict v) { return v == Verdict::pass ? 0 : v == Verdict::invalid ? 1 : 2; };
        RC_ASSERT(rank(verdict_with(fewer)) <= rank(verdict_with(more)));
    });
    CHECK(right_order);
}

TEST_CASE("a trial that was stopped early has failed, by the loss that the whole trial may have (R2544-21)") {
    auto r = clean();
    r.limits.loss_ratio = 0.01;
    r.stopped_early_s = 1;
    for (auto& d : r.directions) {
        d.intended_frames = d.offered_frames = d.received_frames = frames / 10;
    }
    for (auto& port : r.ports) port.after.transmitted_frames = port.after.received_frames = frames / 10;
    // Ten times as many frames would have come: 20,000 of them may be lost.
    SUBCASE("more is lost") {
        lose(forward(r), 20'001);
        tally::judge(r);
        CHECK(r.verdict == Verdict::fail);
        CHECK(codes_of(r) == Codes{"loss", "stopped_early"});
    }
    SUBCASE("more is lost, but not by the device alone") {
        lose(forward(r), 20'001);
        forward(r).gap_frames = 1;
        tally::judge(r);
        CHECK(r.verdict == Verdict::invalid);
        CHECK(codes_of(r) == Codes{"receiver_gap", "loss"});
    }
    SUBCASE("what was missing came after all: that is no PASS, since the rest was not sent") {
        lose(forward(r), 20'000);
        tally::judge(r);
        CHECK(r.verdict == Verdict::invalid);
        CHECK(codes_of(r) == Codes{"stopped_early"});
    }
    SUBCASE("it did not keep its load until then") {
        lose(forward(r), 50'000);
        reverse(r).offered_frames -= 1000;
        tally::judge(r);
        CHECK(r.verdict == Verdict::invalid);
        CHECK(codes_of(r) == Codes{"offered_load"});
    }
}

TEST_CASE("an overload of the receiving line is a note unless the trial failed, with the rates of both") {
    auto r = clean();
    forward(r).overload = {.needed_bps = 2.5e9, .line_bps = 1e9};
    r.limits.loss_ratio = 0.5;
    lose(forward(r), frames * 6 / 10);
    tally::judge(r);
    CHECK(r.verdict == Verdict::pass);
    REQUIRE(r.notes.size() == 1);
    CHECK(r.notes[0].code == "line_overload");
    CHECK(r.notes[0].text ==
          "forward: 2.5 Gbit/s were offered to a link of 1 Gbit/s, that of the tester's right port, so in the long run "
          "at "
          "least 60 % of the frames are lost, however fast the DUT is");
    r.limits.loss_ratio = 0;
    tally::judge(r);
    CHECK(r.verdict == Verdict::fail);
    CHECK(r.notes.empty());
    // More arrived than the line carries: what is stated of it is wrong.
    lose(forward(r), 1);
    tally::judge(r);
    CHECK(r.reasons.back().text.find("its line rate is not as stated") != std::string::npos);
}

}  // namespace verdict_test
