// SPDX-License-Identifier: Apache-2.0
#include "tally/together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "fault.hpp"
#include "tally/losses.hpp"
#include "tally/port_change.hpp"
#include "tally/reception_counts.hpp"
#include "tally/verdict.hpp"
#include "units.hpp"

namespace evenhand::tally {
namespace {

[[noreturn]] void refuse(std::string what, std::string next) {
    throw Fault{FaultCode::bad_request, std::move(what), "results", std::move(next)};
}

bool is_same_change(const std::optional<LoadChange>& a, const std::optional<LoadChange>& b) {
    return a.has_value() == b.has_value() && (!a || (a->rate_fps == b->rate_fps && a->duration_s == b->duration_s));
}

bool are_same_delays(const DirectionResult& a, const DirectionResult& b) {
    return (a.delays != nullptr) == (b.delays != nullptr) &&
           (!a.delays || (a.delays->first_frame == b.delays->first_frame && a.delays->has_tags == b.delays->has_tags &&
                          a.delays->variation.has_value() == b.delays->variation.has_value()));
}

/// The first difference between two parts that must be of one trial; null if there is none.
const char* difference_of(const TrialResult& a, const TrialResult& b) {
    if (a.trial != b.trial) return "number";
    if (a.frame_size != b.frame_size) return "frame size";
    if (a.intended_fps != b.intended_fps || a.intended_duration_s != b.intended_duration_s || a.burst != b.burst ||
        !is_same_change(a.then, b.then))
        return "load";
    if (a.limits != b.limits) return "limits";
    if (a.is_one_armed != b.is_one_armed) return "number of ports";
    if (!std::ranges::equal(a.directions, b.directions, {}, &DirectionResult::direction, &DirectionResult::direction))
        return "directions";
    for (std::size_t d = 0; d < a.directions.size(); ++d) {
        if (a.directions[d].intended_fps != b.directions[d].intended_fps) return "load";
        if (a.directions[d].classes.size() != b.directions[d].classes.size()) return "mix";
        if (!are_same_delays(a.directions[d], b.directions[d])) return "part of the delays";
        if (a.directions[d].connections.has_value() != b.directions[d].connections.has_value())
            return "use of connections";
    }
    return nullptr;
}

void check_one_trial(const std::vector<TrialPart>& parts) {
    const auto& first = parts.front().result;
    for (const auto& part : parts) {
        if (const char* what = difference_of(first, part.result)) {
            refuse(fmt::format("{} has another {} than {}", part.result.tester, what, first.tester),
                   "Judge the results of one trial.");
        }
    }
}

/// Sorted by the shares' first stream.
void check_shares(const std::vector<TrialPart>& parts, bool is_complete) {
    std::uint64_t next = 0;
    const auto stride = parts.front().result.share->stride;
    for (const auto& part : parts) {
        const auto& share = *part.result.share;
        const auto& name = part.result.tester;
        if (share.stride != stride)
            refuse(fmt::format("{} has a share of {} streams, {} one of {}", name, share.stride,
                               parts.front().result.tester, stride),
                   "Give all testers the same stride.");
        if (share.first < next)
            refuse(fmt::format("stream {} is {}'s and another tester's", share.first, name),
                   "Give each stream to one tester.");
        if (is_complete && share.first > next)
            refuse(fmt::format("no engine has streams {} to {}", next, share.first - 1), "Judge the results of all.");
        next = share.first + share.streams;
    }
    if (is_complete && next != stride)
        refuse(fmt::format("no engine has streams {} to {}", next, stride - 1), "Judge the results of all.");
}

std::uint64_t sum_of_counters(std::uint64_t a, std::uint64_t b) {
    return is_count(a) && is_count(b) ? a + b : std::max(a, b);  // what is not a count stays so
}

PortCounters sum(const PortCounters& a, const PortCounters& b) {
    PortCounters s;
    for (const auto counter :
         {&PortCounters::received_frames, &PortCounters::transmitted_frames, &PortCounters::missed_frames,
          &PortCounters::receive_errors, &PortCounters::transmit_errors, &PortCounters::no_buffer_frames,
          &PortCounters::link_changes, &PortCounters::pause_frames, &PortCounters::dropped_answers})
        s.*counter = sum_of_counters(a.*counter, b.*counter);
    s.counts_pause = a.counts_pause && b.counts_pause;
    s.link_up = a.link_up && b.link_up;
    s.is_removed = a.is_removed || b.is_removed;
    s.is_read = a.is_read && b.is_read;
    if (a.seen_frames && b.seen_frames) s.seen_frames = *a.seen_frames + *b.seen_frames;
    std::map<std::string, std::uint64_t> drops;
    for (const auto* of : {&a.hidden_drops, &b.hidden_drops}) {
        for (const auto& drop : *of) drops[drop.name] = sum_of_counters(drops[drop.name], drop.frames);
    }
    for (const auto& [name, frames] : drops) s.hidden_drops.push_back({.name = name, .frames = frames});
    return s;
}

/// Each delay was measured by one tester's clock. So was each difference, which is of two frames that this tester sent
/// one after the other.
std::shared_ptr<const DelayResult> sum_of_delays(const std::vector<TrialPart>& parts, std::size_t d) {
    const auto& first = parts.front().result.directions[d].delays;
    if (!first) return nullptr;
    auto sum = std::make_shared<DelayResult>();
    sum->first_frame = first->first_frame;
    sum->has_tags = first->has_tags;
    if (first->variation) sum->variation = DelayResult::Variation{};
    for (const auto& part : parts) {
        const auto& of = *part.result.directions[d].delays;
        for (const auto count : {&DelayResult::offered_frames, &DelayResult::lost_frames, &DelayResult::left_out_frames,
                                 &DelayResult::left_out_tags})
            (*sum).*count += of.*count;
        sum->delays.add(of.delays);
        sum->tagged.insert(sum->tagged.end(), of.tagged.begin(), of.tagged.end());
        if (sum->variation) {
            sum->variation->differences.add(of.variation->differences);
            sum->variation->pairs += of.variation->pairs;
        }
    }
    sum->delays.sort();
    std::ranges::sort(sum->tagged, {}, &DelayResult::Tagged::sequence);
    if (sum->variation) sum->variation->differences.sort();
    return sum;
}

void add(DirectionResult& sum, const DirectionResult& d) {
    for (const auto& count : reception_counts) sum.*count.result += d.*count.result;
    for (const auto count :
         {&DirectionResult::intended_frames, &DirectionResult::offered_frames, &DirectionResult::overdue_frames,
          &DirectionResult::refusals, &DirectionResult::gap_frames, &DirectionResult::ring_frames})
        sum.*count += d.*count;
    // The tester that watches the DUT counts the frames of all testers that came while it was away.
    sum.away_frames = std::max(sum.away_frames, d.away_frames);
    for (const auto most : {&DirectionResult::ahead_us, &DirectionResult::before_start_us,
                            &DirectionResult::max_overdue_us, &DirectionResult::max_poll_gap_us})
        sum.*most = std::max(sum.*most, d.*most);
    sum.largest_burst = std::max(sum.largest_burst, d.largest_burst);
    sum.offered_fps += d.offered_fps;
    sum.latency.add(d.latency);
    sum.delay_by_slice.add(d.delay_by_slice);
    sum.hop_limit_was_lowered = sum.hop_limit_was_lowered && d.hop_limit_was_lowered;
    if (d.connections) {
        if (!sum.connections) sum.connections.emplace(DirectionResult::Connections{});
        sum.connections->opened += d.connections->opened;
        sum.connections->learnt += d.connections->learnt;
        sum.connections->shared_tuples += d.connections->shared_tuples;
    }
    for (std::size_t i = 0; i < d.corrupted_by.size(); ++i) sum.corrupted_by[i] += d.corrupted_by[i];
    if (d.mistranslated_frames) {
        auto& wrong = sum.mistranslated_frames;
        if (!wrong) wrong.emplace();
        for (std::size_t i = 0; i < wrong->size(); ++i) (*wrong)[i] += (*d.mistranslated_frames)[i];
    }
    if (d.first_mistranslated &&
        (!sum.first_mistranslated || d.first_mistranslated->sequence < sum.first_mistranslated->sequence))
        sum.first_mistranslated = d.first_mistranslated;
    sum.lost_by_tenth.resize(std::max(sum.lost_by_tenth.size(), d.lost_by_tenth.size()));
    for (std::size_t i = 0; i < d.lost_by_tenth.size(); ++i) sum.lost_by_tenth[i] += d.lost_by_tenth[i];
    sum.first_lost.insert(sum.first_lost.end(), d.first_lost.begin(), d.first_lost.end());
    std::ranges::sort(sum.first_lost);
    sum.first_lost.resize(std::min(sum.first_lost.size(), Losses::most_listed));
    if (d.last_lost && (!sum.last_lost || sum.last_lost->sequence < d.last_lost->sequence)) sum.last_lost = d.last_lost;
    if (sum.classes.empty()) {
        sum.classes = d.classes;
    } else {
        for (std::size_t c = 0; c < sum.classes.size(); ++c) {
            sum.classes[c].offered_frames += d.classes[c].offered_frames;
            sum.classes[c].received_frames += d.classes[c].received_frames;
            sum.classes[c].flow.add(d.classes[c].flow);
        }
    }
}

/// Testers that watch the same CPUs see the same absences.
void add_dut(std::optional<HostRecord::Dut>& sum, const std::optional<HostRecord::Dut>& seen) {
    if (!seen) return;
    if (!sum) sum.emplace(HostRecord::Dut{.ring_frames = seen->ring_frames, .cpus = {}});
    sum->ring_frames = std::min(sum->ring_frames, seen->ring_frames);
    for (const auto& cpu : seen->cpus) {
        const auto known = std::ranges::find(sum->cpus, cpu.cpu, &HostCpu::cpu);
        if (known == sum->cpus.end()) {
            sum->cpus.push_back(cpu);
            continue;
        }
        known->stolen_us = std::max(known->stolen_us, cpu.stolen_us);
        known->waited_us = std::max(known->waited_us, cpu.waited_us);
        known->absences = std::max(known->absences, cpu.absences);
        known->longest_us = std::max(known->longest_us, cpu.longest_us);
    }
}

double farther(double a, double b) { return std::abs(b) > std::abs(a) ? b : a; }

/// Everything but verdict and reasons.
TrialResult sum_up(const std::vector<TrialPart>& parts) {
    const auto& first = parts.front().result;
    TrialResult whole;
    whole.trial = first.trial;
    whole.started_at = first.started_at;
    whole.frame_size = first.frame_size;
    whole.mix = first.mix;
    whole.intended_fps = first.intended_fps;
    whole.intended_duration_s = first.intended_duration_s;
    whole.burst = first.burst;
    whole.then = first.then;
    whole.limits = first.limits;
    whole.is_one_armed = first.is_one_armed;
    whole.deviations = first.deviations;
    whole.phases = first.phases;
    whole.ticks_per_second = ns_per_second;
    for (std::size_t d = 0; d < first.directions.size(); ++d)
        whole.directions.push_back({.direction = first.directions[d].direction,
                                    .intended_fps = first.directions[d].intended_fps,
                                    .delays = sum_of_delays(parts, d)});
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const auto& part = parts[p].result;
        for (std::size_t d = 0; d < whole.directions.size(); ++d) add(whole.directions[d], part.directions[d]);
        for (const auto side : plan::both_sides) {
            auto& port = whole.ports[side];
            port.before = p == 0 ? part.ports[side].before : sum(port.before, part.ports[side].before);
            port.after = p == 0 ? part.ports[side].after : sum(port.after, part.ports[side].after);
            const auto& switches = part.ports[side].link_switches;
            port.link_switches.insert(port.link_switches.end(), switches.begin(), switches.end());
        }
        whole.stopped = whole.stopped || part.stopped;
        if (part.stopped_early_s)
            whole.stopped_early_s = std::max(whole.stopped_early_s.value_or(0), *part.stopped_early_s);
        whole.host.tester.insert(whole.host.tester.end(), part.host.tester.begin(), part.host.tester.end());
        add_dut(whole.host.dut, part.host.dut);
        whole.clock_error_ppm = farther(whole.clock_error_ppm, part.clock_error_ppm);
        if (part.steered_clock_error_ppm)
            whole.steered_clock_error_ppm =
                farther(whole.steered_clock_error_ppm.value_or(0), *part.steered_clock_error_ppm);
    }
    return whole;
}

/// In microseconds since `since_ns`, by the client's clock.
double start_us(const TrialPart& part, std::int64_t since_ns) {
    return static_cast<double>(part.result.start->actual_unix_ns - since_ns) / ns_per_us - part.before.offset_us;
}

/// Fills in how far the starts are apart, and adds reasons if they are too far apart.
void compare_starts(TogetherResult& result) {
    auto& reasons = result.whole.reasons;
    const TrialPart* earliest = nullptr;
    const TrialPart* latest = nullptr;
    for (const auto& part : result.parts) {
        if (!part.result.start) continue;  // it was stopped before that, for which there is another reason
        const auto since_ns = part.result.start->intended_unix_ns;
        if (earliest == nullptr || start_us(part, since_ns) < start_us(*earliest, since_ns)) earliest = &part;
        if (latest == nullptr || start_us(part, since_ns) > start_us(*latest, since_ns)) latest = &part;
    }
    const double limit_us = result.start_difference_limit_us;
    if (earliest != latest) {
        const auto since_ns = earliest->result.start->intended_unix_ns;
        result.start_difference_us = start_us(*latest, since_ns) - start_us(*earliest, since_ns);
        result.start_uncertainty_us = earliest->before.uncertainty_us + latest->before.uncertainty_us;
    }
    if (result.start_difference_us + result.start_uncertainty_us > limit_us) {
        reasons.push_back({.code = "start_difference",
                           .text = fmt::format("{} started {:.0f} us after {}, known to {:.0f} us (limit {:.0f} us in "
                                               "all)",
                                               latest->result.tester, result.start_difference_us,
                                               earliest->result.tester, result.start_uncertainty_us, limit_us)});
    }
    for (const auto& part : result.parts) {
        const double moved_us = std::abs(part.after.offset_us - part.before.offset_us);
        if (moved_us - part.before.uncertainty_us - part.after.uncertainty_us <= limit_us) continue;
        reasons.push_back(
            {.code = "clock_difference",
             .text = fmt::format("{}: its clock moved by {:.0f} us against the client's during the trial (limit {:.0f} "
                                 "us)",
                                 part.result.tester, moved_us, limit_us)});
    }
}

/// All testers must end early, at one frame, or none: otherwise only a part of the load was sent in the last seconds.
void compare_ends(TogetherResult& result) {
    for (const auto& part : result.parts) {
        if (part.result.stopped_early_s == result.whole.stopped_early_s) continue;
        result.whole.reasons.push_back(
            {.code = "end_difference",
             .text = fmt::format("{} sent for {:.3f} s, but another engine for {:.3f} s", part.result.tester,
                                 part.result.sending_s(), result.whole.sending_s())});
    }
}

}  // namespace

TogetherResult judge_together(TogetherRequest request) {
    if (request.parts.empty()) refuse("no tester has a result", "Give at least one.");
    for (const auto& part : request.parts) {
        if (!part.result.share)
            refuse(fmt::format("{} has no share: it was a tester alone", part.result.tester),
                   "Give each tester a share in its trial request.");
    }
    std::ranges::sort(request.parts, {}, [](const auto& part) { return part.result.share->first; });
    check_one_trial(request.parts);
    check_shares(request.parts, request.lost.empty());

    TogetherResult result{.whole = sum_up(request.parts),
                          .parts = std::move(request.parts),
                          .start_difference_limit_us = request.start_difference_us};
    for (const auto& lost : request.lost) {
        result.whole.reasons.push_back({.code = "engine_lost", .text = fmt::format("{}: {}", lost.tester, lost.what)});
    }
    if (!request.lost.empty()) {
        // The others were stopped because of it, so that their other reasons mean nothing.
        result.whole.verdict = Verdict::invalid;
        return result;
    }
    compare_starts(result);
    compare_ends(result);
    std::vector<TrialResult> parts;
    parts.reserve(result.parts.size());
    for (const auto& part : result.parts) parts.push_back(part.result);
    judge(result.whole, parts);
    return result;
}

}  // namespace evenhand::tally
