// SPDX-License-Identifier: Apache-2.0
// Contract: the result of a trial.
#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "contract/reply.hpp"
#include "contract/reply_parts.hpp"
#include "contract/translated.hpp"
#include "tally/frame_capture.hpp"
#include "tally/icmp_errors.hpp"
#include "tally/reception_counts.hpp"
#include "units.hpp"

namespace evenhand::contract {
namespace {

Ordered both(const Ordered& left, const Ordered& right) { return {{"left", left}, {"right", right}}; }

Ordered latency(const tally::LatencyHistogram& h, double ticks_per_second) {
    const auto ns = [=](std::uint64_t ticks) {
        return std::round(static_cast<double>(ticks) * ns_per_second / ticks_per_second);
    };
    const auto percentile = [&](std::uint64_t numerator, std::uint64_t denominator) -> Ordered {
        const auto ticks = h.percentile(numerator, denominator);
        return ticks ? Ordered(ns(*ticks)) : Ordered(nullptr);
    };
    const bool any = h.count() != 0;
    Ordered buckets = Ordered::array();
    h.for_each_group([&](std::uint64_t lower, std::uint64_t count) { buckets.push_back({ns(lower), count}); });
    return {{"count", h.count()},
            {"min_ns", any ? Ordered(ns(h.min())) : Ordered(nullptr)},
            {"max_ns", any ? Ordered(ns(h.max())) : Ordered(nullptr)},
            {"mean_ns", any ? Ordered(std::round(h.mean() * ns_per_second / ticks_per_second)) : Ordered(nullptr)},
            {"p50_ns", percentile(1, 2)},
            {"p99_ns", percentile(99, 100)},
            {"p999_ns", percentile(999, 1000)},
            {"buckets", buckets}};
}

/// What is known of a flow besides the counts of each class. `is_part`: with all that is needed to add it to what other
/// testers counted.
Ordered flow(const tally::ClassCount& c, double ticks_per_second, bool is_part) {
    const auto& delays = c.flow.delays;
    const auto ns = [=](double ticks) { return std::round(ticks * ns_per_second / ticks_per_second); };
    const auto of_any = [&](double ticks) { return delays.count() == 0 ? Ordered(nullptr) : Ordered(ns(ticks)); };
    const auto percentile = [&](std::uint64_t numerator, std::uint64_t denominator) -> Ordered {
        const auto ticks = delays.percentile(numerator, denominator);
        return ticks ? Ordered(ns(static_cast<double>(*ticks))) : Ordered(nullptr);
    };
    Ordered json{{"name", c.name},
                 {"loss_at_most", c.loss_at_most ? Ordered(*c.loss_at_most) : Ordered(nullptr)},
                 {"duplicated_frames", c.flow.duplicated_frames},
                 {"reordered_frames", c.flow.reordered_frames},
                 {"late_frames", c.flow.late_frames},
                 {"remarked_frames", c.flow.remarked_frames},
                 {"latency",
                  {{"count", delays.count()},
                   {"min_ns", of_any(static_cast<double>(delays.min()))},
                   {"max_ns", of_any(static_cast<double>(delays.max()))},
                   {"mean_ns", of_any(delays.mean())},
                   {"p50_ns", percentile(1, 2)},
                   {"p99_ns", percentile(99, 100)},
                   {"p999_ns", percentile(999, 1000)}}}};
    if (is_part) {
        Ordered buckets = Ordered::array();
        delays.for_each_bucket([&](std::uint64_t lower, std::uint64_t count) {
            buckets.push_back({ns(static_cast<double>(lower)), count});
        });
        json["latency"]["buckets"] = buckets;
    }
    return json;
}

Ordered delay_by_slice(const tally::SliceDelays& delays, double ticks_per_second) {
    const auto ns = [=](double ticks) { return std::round(ticks * ns_per_second / ticks_per_second); };
    Ordered json = Ordered::array();
    for (const auto& s : delays.all()) {
        if (s.frames == 0) {
            json.push_back({0, nullptr, nullptr, nullptr});
        } else {
            json.push_back({s.frames, ns(static_cast<double>(s.sum) / static_cast<double>(s.frames)),
                            ns(static_cast<double>(s.min)), ns(static_cast<double>(s.max))});
        }
    }
    return json;
}

Ordered port_of_trial(const tally::TrialResult::BeforeAfter& p) {
    Ordered json{{"before", port_counters(p.before)}, {"after", port_counters(p.after)}};
    for (const auto& each : p.link_switches) json["link_switches"].push_back({{"at_s", each.at_s}, {"up", each.is_up}});
    if (p.icmp_errors.empty()) return json;
    Ordered errors = Ordered::array();
    for (const auto& e : p.icmp_errors) {
        errors.push_back({{"ip_version", static_cast<int>(e.version)},
                          {"type", e.type},
                          {"code", e.code},
                          {"means", tally::meaning_of(e).what},
                          {"frames", e.frames},
                          {"mtu", e.mtu == 0 ? Ordered(nullptr) : Ordered(e.mtu)},
                          {"first_frame", e.first_frame ? Ordered(*e.first_frame) : Ordered(nullptr)}});
    }
    json["icmp_errors"] = errors;
    return json;
}

/// Frames that were kept, as hexadecimal digits, with the time of day at which each was received.
Ordered kept_frames(const tally::TrialResult& r) {
    Ordered json = Ordered::array();
    for (const auto side : plan::both_sides) {
        for (const auto& f : r.ports[side].kept_frames) {
            const auto before_s =
                static_cast<double>(static_cast<std::int64_t>(r.ended.ticks - f.received)) / r.ticks_per_second;
            Ordered octets = std::string{};
            auto& digits = octets.get_ref<std::string&>();
            for (const std::byte octet : f.octets) {
                constexpr std::string_view hex = "0123456789abcdef";
                digits += hex[std::to_integer<std::size_t>(octet >> 4U)];
                digits += hex[std::to_integer<std::size_t>(octet & std::byte{0xf})];
            }
            json.push_back({{"side", side == plan::Side::left ? "left" : "right"},
                            {"kind", tally::kept_names[static_cast<std::size_t>(f.kind)]},
                            {"fault", f.kind == tally::Kept::corrupted && f.fault
                                          ? Ordered(frame::damage_names[static_cast<std::size_t>(*f.fault)])
                                          : Ordered(nullptr)},
                            {"number", f.number ? Ordered(*f.number) : Ordered(nullptr)},
                            {"unix_ns", r.ended.time_ns - static_cast<std::int64_t>(before_s * ns_per_second)},
                            {"length", f.length},
                            {"octets", octets}});
        }
    }
    return json;
}

/// [lowest, highest, count] in ns. Adjacent buckets that are equal in ns are joined.
Ordered buckets(const tally::DelayBuckets& of, double ticks_per_second) {
    const auto ns = [=](std::int64_t ticks) {
        return static_cast<std::int64_t>(std::llround(static_cast<double>(ticks) * ns_per_second / ticks_per_second));
    };
    std::vector<tally::DelayBucket> found;
    for (const auto& b : of.all()) {
        const tally::DelayBucket bucket{.lowest = ns(b.lowest), .highest = ns(b.highest), .count = b.count};
        if (!found.empty() && found.back().lowest == bucket.lowest && found.back().highest == bucket.highest) {
            found.back().count += bucket.count;
        } else {
            found.push_back(bucket);
        }
    }
    Ordered json = Ordered::array();
    for (const auto& b : found) json.push_back({b.lowest, b.highest, b.count});
    return json;
}

/// R8219-16: a lost frame's delay is infinite in a percentile, shown as null, and does not count in the minimum or in a
/// difference. `is_part`: as in direction_result().
Ordered delays(const tally::DelayResult& result, const tally::LatencyHistogram& h, double ticks_per_second,
               bool is_part) {
    const auto ns = [=](auto ticks) {
        return std::round(static_cast<double>(ticks) * ns_per_second / ticks_per_second);
    };
    const std::uint64_t frames = h.count() + result.lost_frames;
    const auto percentile = [&](std::uint64_t numerator, std::uint64_t denominator) -> std::optional<std::int64_t> {
        const auto found = result.delays.percentile(numerator, denominator, frames);
        return found ? std::optional{found->highest} : std::nullopt;
    };
    const auto finite = [&](std::optional<std::int64_t> ticks) {
        return ticks ? Ordered(ns(*ticks)) : Ordered(nullptr);
    };
    const auto worst = result.delays.percentile(999, 1000, frames);
    const auto p999 = worst ? std::optional{worst->highest} : std::nullopt;
    Ordered tagged = Ordered::array();
    for (const auto& t : result.tagged)
        tagged.push_back({t.sequence, t.delay ? Ordered(ns(*t.delay)) : Ordered(nullptr)});
    Ordered variation = nullptr;
    if (result.variation) {
        const auto& v = result.variation->differences;
        const bool any = v.count() != 0;
        const auto half = v.percentile(1, 2, v.count());
        variation = {{"pairs", v.count()},
                     {"unseen_pairs", result.variation->pairs - v.count()},
                     {"min_ns", any ? Ordered(ns(v.min())) : Ordered(nullptr)},
                     {"median_ns", half ? Ordered(ns(half->highest)) : Ordered(nullptr)},
                     {"max_ns", any ? Ordered(ns(v.max())) : Ordered(nullptr)}};
        if (is_part) variation["buckets"] = buckets(v, ticks_per_second);
    }
    Ordered json{{"first_frame", result.first_frame},
                 {"offered_frames", result.offered_frames},
                 {"lost_frames", result.lost_frames},
                 {"left_out_frames", result.left_out_frames},
                 {"left_out_tags", result.left_out_tags},
                 {"min_ns", h.count() != 0 ? Ordered(ns(h.min())) : Ordered(nullptr)},
                 {"p50_ns", finite(percentile(1, 2))},
                 {"p99_ns", finite(percentile(99, 100))},
                 {"p999_ns", finite(p999)},
                 {"pdv_ns", finite(p999 ? std::optional{*p999 - static_cast<std::int64_t>(h.min())} : std::nullopt)},
                 {"pdv_resolution_ns", worst ? Ordered(ns(worst->highest - worst->lowest + 1)) : Ordered(nullptr)},
                 {"tagged", tagged},
                 {"variation", variation}};
    if (is_part) {
        json["has_tags"] = result.has_tags;
        json["buckets"] = buckets(result.delays, ticks_per_second);
    }
    return json;
}

Ordered receiver(const tally::DirectionResult& d) {
    Ordered found{{"max_poll_gap_us", d.max_poll_gap_us}, {"gap_frames", d.gap_frames}, {"ring_frames", d.ring_frames}};
    if (d.received_by_queue.size() > 1) found["by_queue"] = d.received_by_queue;
    return found;
}

/// `is_part`: the result of one of several testers, with everything that is needed to judge them together.
Ordered direction_result(const tally::DirectionResult& d, const tally::TrialResult& trial, bool is_part) {
    Ordered json{
        {"intended_frames", d.intended_frames}, {"offered_frames", d.offered_frames}, {"offered_fps", d.offered_fps}};
    if (d.intended_fps) json["intended_fps"] = *d.intended_fps;
    for (const auto& count : tally::reception_counts) {
        if (count.result == &tally::DirectionResult::strayed_frames)
            continue;  // only in results of one of several testers
        json[count.name] = d.*count.result;
        if (count.result == &tally::DirectionResult::received_frames) json["lost_frames"] = d.lost_frames();
        if (count.result == &tally::DirectionResult::corrupted_frames) {
            for (std::size_t i = 0; i < frame::damages; ++i)
                json["corrupted_by"][frame::damage_names.at(i)] = d.corrupted_by.at(i);
        }
    }
    json.update(Ordered{{"loss_ratio", d.loss_ratio()},
                        {"forwarding_rate_fps", static_cast<double>(d.received_frames) / trial.sending_s()},
                        {"sender",
                         {{"overdue_frames", d.overdue_frames},
                          {"max_overdue_us", d.max_overdue_us},
                          {"refusals", d.refusals},
                          {"largest_burst", d.largest_burst}}},
                        {"receiver", receiver(d)},
                        {"away_frames", d.away_frames},
                        {"latency", latency(d.latency, trial.ticks_per_second)},
                        {"delay_by_slice", delay_by_slice(d.delay_by_slice, trial.ticks_per_second)},
                        {"lost_by_tenth", d.lost_by_tenth},
                        {"first_lost", d.first_lost}});
    if (!d.classes.empty()) {
        Ordered classes = Ordered::array();
        for (const auto& c : d.classes) {
            classes.push_back({{"ip_version", static_cast<int>(c.version)},
                               {"frame_size", c.frame_size},
                               {"offered_frames", c.offered_frames},
                               {"received_frames", c.received_frames},
                               {"lost_frames", c.lost_frames()}});
            if (!c.name.empty()) classes.back()["flow"] = flow(c, trial.ticks_per_second, is_part);
            if (c.clean) classes.back()["clean"] = {{"frames", c.clean->frames}, {"lost_frames", c.clean->lost_frames}};
        }
        json["classes"] = classes;
    }
    if (d.clean) json["clean"] = {{"frames", d.clean->frames}, {"lost_frames", d.clean->lost_frames}};
    add_translation(json, d);
    if (d.queue_filling)
        json["queue_filling"] = {{"slope", d.queue_filling->slope},
                                 {"sustainable_fps", std::round(d.queue_filling->sustainable_fps)}};
    if (d.overload)
        json["line_overload"] = {{"needed_bps", d.overload->needed_bps}, {"line_bps", d.overload->line_bps}};
    if (trial.then)
        json["last_lost"] = d.last_lost ? Ordered{{"sequence", d.last_lost->sequence}, {"due_s", d.last_lost->due_s}}
                                        : Ordered(nullptr);
    if (is_part) {
        json["strayed_frames"] = d.strayed_frames;
        json["ahead_us"] = d.ahead_us;
        json["before_start_us"] = d.before_start_us;
        json["hop_limit_was_lowered"] = d.hop_limit_was_lowered;
    }
    if (d.delays) json["delays"] = delays(*d.delays, d.latency, trial.ticks_per_second, is_part);
    return json;
}

Ordered host_record(const tally::HostRecord& host) {
    Ordered tester = Ordered::array();
    for (const auto& c : host.tester)
        tester.push_back({{"cpu", c.cpu}, {"stolen_us", c.stolen_us}, {"waited_us", c.waited_us}});
    Ordered dut = nullptr;
    if (host.dut) {
        Ordered cpus = Ordered::array();
        for (const auto& c : host.dut->cpus) {
            cpus.push_back({{"cpu", c.cpu},
                            {"stolen_us", c.stolen_us},
                            {"waited_us", c.waited_us},
                            {"absences", c.absences},
                            {"longest_us", c.longest_us}});
        }
        dut = {{"ring_frames", host.dut->ring_frames}, {"cpus", cpus}};
    }
    return {{"tester", tester}, {"dut", dut}};
}

/// The parts that are left out are listed up to a maximum number.
Ordered clean_time(const tally::TrialResult::Clean& clean) {
    constexpr std::size_t most_listed = 1000;
    Ordered lapses;
    for (std::size_t kind = 0; kind < tally::lapse_names.size(); ++kind)
        lapses[tally::lapse_names.at(kind)] = clean.lapses.at(kind);
    const auto listed = std::span{clean.left_out}.first(std::min(clean.left_out.size(), most_listed));
    return {{"wanted_s", clean.wanted_s}, {"at_most_s", clean.most_s},         {"sent_s", clean.sent_s},
            {"clean_s", clean.clean_s},   {"is_enough", clean.is_enough()},    {"pieces", clean.pieces},
            {"lapses", lapses},           {"left_out", left_out_parts(listed)}};
}

const char* word_of(tally::Verdict verdict) {
    switch (verdict) {
        case tally::Verdict::pass: return "PASS";
        case tally::Verdict::fail: return "FAIL";
        case tally::Verdict::invalid: break;
    }
    return "INVALID";
}

Ordered trial_result(std::int64_t id, const char* response, const tally::TrialResult& r) {
    Ordered reasons = Ordered::array();
    for (const auto& reason : r.reasons) reasons.push_back({{"code", reason.code}, {"text", reason.text}});
    Ordered notes = Ordered::array();
    for (const auto& note : r.notes) notes.push_back({{"code", note.code}, {"text", note.text}});
    Ordered deviations = Ordered::array();
    for (const auto& d : r.deviations) deviations.push_back({{"requirement", d.requirement}, {"text", d.text}});
    Ordered phases = Ordered::array();
    for (const auto& p : r.phases)
        phases.push_back({{"phase", p.name}, {"start_s", p.start_s}, {"seconds", p.seconds}});
    Ordered directions = Ordered::object();
    for (const auto& d : r.directions) directions[name_of(d.direction)] = direction_result(d, r, r.share.has_value());
    Ordered json{{"id", id},
                 {"response", response},
                 {"contract", version},
                 {"trial", r.trial},
                 {"verdict", word_of(r.verdict)},
                 {"reasons", reasons},
                 {"notes", notes},
                 {"started_at", r.started_at},
                 {"frame_size", r.frame_size},
                 {"intended_fps", r.intended_fps},
                 {"intended_duration_s", r.intended_duration_s},
                 {"loss_ratio", r.loss_ratio()},
                 {"limits",
                  {{"loss_ratio", r.limits.loss_ratio},
                   {"offered_tolerance", r.limits.offered_tolerance},
                   {"overdue_after_us", r.limits.overdue_after_us},
                   {"overdue_tolerance", r.limits.overdue_tolerance},
                   {"longest_overdue_us", r.limits.longest_overdue_us},
                   {"clock_ppm", r.limits.clock_ppm},
                   {"duplicate_tolerance", r.limits.duplicate_tolerance},
                   {"remarked_tolerance", r.limits.remarked_tolerance}}},
                 {"deviations", deviations},
                 {"phases", phases},
                 {"directions", directions},
                 {"ports", both(port_of_trial(r.ports[plan::Side::left]), port_of_trial(r.ports[plan::Side::right]))},
                 {"host", host_record(r.host)},
                 {"clock",
                  {{"ticks_per_second", r.ticks_per_second},
                   {"error_ppm", r.clock_error_ppm},
                   {"steered_error_ppm", optional_number(r.steered_clock_error_ppm)},
                   {"offsets", clock_offsets(r.clock_offsets)}}}};
    if (r.mix) json["mix"] = {{"period_frames", r.mix->period_frames}, {"mean_frame_size", r.mix->mean_frame_size}};
    if (r.burst)
        json["burst"] = {
            {"frames", r.burst->frames}, {"interval_s", r.burst->interval_s}, {"rate_fps", r.burst->rate_fps}};
    if (r.then)
        json["then"] = {
            {"before_fps", r.then->before_fps}, {"rate_fps", r.then->rate_fps}, {"duration_s", r.then->duration_s}};
    if (r.clean) json["clean"] = clean_time(*r.clean);
    if (r.keeps_frames) json["kept_frames"] = kept_frames(r);
    if (r.stopped_early_s) json["stopped_early_s"] = *r.stopped_early_s;
    if (const auto& share = r.share)
        json["share"] = {{"first", share->first}, {"streams", share->streams}, {"stride", share->stride}};
    if (r.is_one_armed) json["one_armed"] = true;
    if (r.start)
        json["start"] = {{"intended_unix_ns", r.start->intended_unix_ns}, {"actual_unix_ns", r.start->actual_unix_ns}};
    return json;
}

Ordered compared_clock(const tally::ComparedClock& clock) {
    return {{"offset_us", clock.offset_us}, {"uncertainty_us", clock.uncertainty_us}};
}

/// The facts of a single tester.
Ordered tester_of(const tally::TrialPart& part) {
    const auto& r = part.result;
    Ordered directions = Ordered::object();
    for (const auto& d : r.directions) {
        Ordered& of_direction = directions[name_of(d.direction)];
        of_direction = {{"intended_frames", d.intended_frames}, {"offered_frames", d.offered_frames},
                        {"offered_fps", d.offered_fps},         {"received_frames", d.received_frames},
                        {"lost_frames", d.lost_frames()},       {"strayed_frames", d.strayed_frames},
                        {"overdue_frames", d.overdue_frames},   {"max_overdue_us", d.max_overdue_us},
                        {"max_poll_gap_us", d.max_poll_gap_us}};
        add_translation(of_direction, d);
    }
    Ordered start = nullptr;
    if (r.start) start = {{"intended_unix_ns", r.start->intended_unix_ns}, {"actual_unix_ns", r.start->actual_unix_ns}};
    return {{"engine", r.tester},
            {"share", {{"first", r.share->first}, {"streams", r.share->streams}, {"stride", r.share->stride}}},
            {"started_at", r.started_at},
            {"start", start},
            {"compared_clock", {{"before", compared_clock(part.before)}, {"after", compared_clock(part.after)}}},
            {"clock",
             {{"ticks_per_second", r.ticks_per_second},
              {"error_ppm", r.clock_error_ppm},
              {"steered_error_ppm", optional_number(r.steered_clock_error_ppm)},
              {"offsets", clock_offsets(r.clock_offsets)}}},
            {"directions", directions},
            {"ports", both(port_of_trial(r.ports[plan::Side::left]), port_of_trial(r.ports[plan::Side::right]))},
            {"host", host_record(r.host)}};
}

}  // namespace

std::string write_trial(std::int64_t id, const tally::TrialResult& result) {
    return line_of(trial_result(id, "trial", result));
}

std::string write_judge(std::int64_t id, const tally::TogetherResult& result) {
    Ordered json = trial_result(id, "judge", result.whole);
    json["starts"] = {{"difference_us", result.start_difference_us},
                      {"uncertainty_us", result.start_uncertainty_us},
                      {"limit_us", result.start_difference_limit_us}};
    Ordered engines = Ordered::array();
    for (const auto& part : result.parts) engines.push_back(tester_of(part));
    json["engines"] = engines;
    return line_of(json);
}

}  // namespace evenhand::contract
