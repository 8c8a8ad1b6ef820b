// SPDX-License-Identifier: Apache-2.0
// Contract: reads the replies of several testers to their trial requests, to judge them together.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "contract/request_parts.hpp"
#include "contract/translated.hpp"
#include "frame/layout.hpp"
#include "tally/reception_counts.hpp"
#include "units.hpp"

namespace evenhand::contract {
namespace {

constexpr std::size_t longest_name = 64;

bool is_null(ObjectReader& r, std::string_view key) { return !r.has(key) || r.value(key).is_null(); }

std::uint64_t count(ObjectReader& r, std::string_view key) { return r.whole(key, 0, any_whole); }
double any(ObjectReader& r, std::string_view key) { return r.number(key, -any_number, any_number); }
double not_negative(ObjectReader& r, std::string_view key) { return r.number(key, 0, any_number); }

/// A number from an object that a reply has.
template <class T>
T item(const ObjectReader& r, std::string_view key, const Json& value) {
    if (!value.is_number() || value.get<double>() < 0)
        r.refuse(key, "there is something else in it than numbers from 0 on", "Send the replies as they came.");
    return value.get<T>();
}

tally::PortCounters read_counters(ObjectReader r) {
    tally::PortCounters c;
    c.received_frames = count(r, "received_frames");
    if (!is_null(r, "seen_frames")) c.seen_frames = count(r, "seen_frames");
    c.transmitted_frames = count(r, "transmitted_frames");
    c.missed_frames = count(r, "missed_frames");
    c.receive_errors = count(r, "receive_errors");
    c.transmit_errors = count(r, "transmit_errors");
    c.no_buffer_frames = count(r, "no_buffer_frames");
    c.link_changes = count(r, "link_changes");
    c.pause_frames = count(r, "pause_frames");
    c.counts_pause = r.boolean("counts_pause");
    c.dropped_answers = count(r, "dropped_answers");
    c.link_up = r.boolean("link_up");
    c.is_removed = r.has("is_removed") && r.boolean("is_removed");
    c.is_read = r.boolean("is_read");
    const Json& drops = r.value("hidden_drops");
    if (!drops.is_object()) r.refuse("hidden_drops", "it is not an object", "Send the replies as they came.");
    for (const auto& [name, frames] : drops.items())
        c.hidden_drops.push_back({.name = name, .frames = item<std::uint64_t>(r, "hidden_drops", frames)});
    return c;
}

tally::TrialResult::BeforeAfter read_port_counts(ObjectReader r) {
    tally::TrialResult::BeforeAfter port{.before = read_counters(r.object("before")),
                                         .after = read_counters(r.object("after"))};
    if (r.has("link_switches")) {
        constexpr double most_s = 1e9;
        for (const Json& item : r.array("link_switches")) {
            ObjectReader s{item, r.where("link_switches")};
            port.link_switches.push_back({.at_s = s.number("at_s", -most_s, most_s), .is_up = s.boolean("up")});
        }
    }
    if (!r.has("icmp_errors")) return port;
    const Json& list = r.array("icmp_errors");
    for (const Json& item : list) {
        constexpr std::uint64_t most = 255;
        ObjectReader e{item, r.where("icmp_errors")};
        tally::IcmpErrorCount error{
            .version = e.whole("ip_version", 4, 6) == 4 ? plan::IpVersion::v4 : plan::IpVersion::v6,
            .type = static_cast<std::uint8_t>(e.whole("type", 0, most)),
            .code = static_cast<std::uint8_t>(e.whole("code", 0, most)),
            .frames = count(e, "frames")};
        (void)e.text("means");  // checked only
        if (!is_null(e, "mtu")) error.mtu = static_cast<std::uint32_t>(e.whole("mtu", 1, ~std::uint32_t{0}));
        if (!is_null(e, "first_frame")) error.first_frame = count(e, "first_frame");
        port.icmp_errors.push_back(error);
    }
    return port;
}

/// A delay, or a mean of delays, in ns, limited to the largest value of the histogram, which no frame can exceed.
double possible(double ns) { return std::min(ns, std::ldexp(1.0, 47)); }

/// The sum of that many delays, in ns: for a day at 148.8 Mfps, 64 bits would not suffice.
Wide sum_of(double mean_ns, std::uint64_t frames) {
    return static_cast<Wide>(std::round(possible(mean_ns) * static_cast<double>(frames)));
}

/// Delays as a reply has them: in groups, each counted at its lower bound; minimum, maximum and mean are exact to 1 ns.
template <class Histogram>
void read_latency(ObjectReader r, Histogram& histogram) {
    const auto frames = count(r, "count");
    if (frames == 0) return;
    const double mean = not_negative(r, "mean_ns");
    histogram.add(frames, sum_of(mean, frames), static_cast<std::uint64_t>(possible(not_negative(r, "min_ns"))),
                  static_cast<std::uint64_t>(possible(not_negative(r, "max_ns"))));
    std::uint64_t counted = 0;
    for (const Json& bucket : r.array("buckets")) {
        if (!bucket.is_array() || bucket.size() != 2)
            r.refuse("buckets", "a bucket is not a pair of numbers", "Send the replies as they came.");
        const auto in_it = item<std::uint64_t>(r, "buckets", bucket[1]);
        histogram.put(static_cast<std::uint64_t>(possible(item<double>(r, "buckets", bucket[0]))), in_it);
        counted += in_it;
    }
    if (counted != frames)
        r.refuse("buckets", fmt::format("they have {} frames instead of {}", counted, frames),
                 "Send the replies as they came.");
}

void read_slices(ObjectReader& r, tally::SliceDelays& delays) {
    const Json& slices = r.array("delay_by_slice");
    if (slices.size() != tally::SliceDelays::slices)
        r.refuse("delay_by_slice", fmt::format("there are {} slices", slices.size()), "Send the replies as they came.");
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const Json& slice = slices[i];
        if (!slice.is_array() || slice.size() != 4)
            r.refuse("delay_by_slice", "a slice has no four numbers", "Send the replies as they came.");
        const auto frames = item<std::uint64_t>(r, "delay_by_slice", slice[0]);
        if (frames == 0) continue;
        delays.add(i, {.frames = frames,
                       .sum = sum_of(item<double>(r, "delay_by_slice", slice[1]), frames),
                       .min = static_cast<std::uint64_t>(possible(item<double>(r, "delay_by_slice", slice[2]))),
                       .max = static_cast<std::uint64_t>(possible(item<double>(r, "delay_by_slice", slice[3])))});
    }
}

void read_flow(ObjectReader r, tally::ClassCount& c) {
    c.name = r.text("name");
    if (!is_null(r, "loss_at_most")) c.loss_at_most = r.number("loss_at_most", 0, 1);
    c.flow.duplicated_frames = count(r, "duplicated_frames");
    c.flow.reordered_frames = count(r, "reordered_frames");
    c.flow.late_frames = count(r, "late_frames");
    c.flow.remarked_frames = count(r, "remarked_frames");
    read_latency(r.object("latency"), c.flow.delays);
}

std::vector<tally::ClassCount> read_classes(ObjectReader& r) {
    std::vector<tally::ClassCount> classes;
    if (!r.has("classes")) return classes;
    const Json& list = r.array("classes");
    for (const Json& item : list) {
        ObjectReader c{item, r.where("classes")};
        classes.push_back({.version = c.whole("ip_version", 4, 6) == 4 ? plan::IpVersion::v4 : plan::IpVersion::v6,
                           .frame_size = c.whole("frame_size", 1, frame::largest_frame_size),
                           .offered_frames = count(c, "offered_frames"),
                           .received_frames = count(c, "received_frames")});
        if (c.has("flow")) read_flow(c.object("flow"), classes.back());
    }
    return classes;
}

/// [lowest, highest, count] in ns; the counts must add up to `values`.
tally::DelayBuckets read_buckets(ObjectReader& r, std::uint64_t values) {
    tally::DelayBuckets buckets;
    for (const Json& json : r.array("buckets")) {
        const bool is_bucket = json.is_array() && json.size() == 3 && json[0].is_number_integer() &&
                               json[1].is_number_integer() && json[2].is_number_unsigned();
        const auto bucket = is_bucket ? tally::DelayBucket{.lowest = json[0].get<std::int64_t>(),
                                                           .highest = json[1].get<std::int64_t>(),
                                                           .count = json[2].get<std::uint64_t>()}
                                      : tally::DelayBucket{};
        if (bucket.count == 0 || bucket.lowest > bucket.highest || bucket.count > values - buckets.count())
            r.refuse("buckets", "there is something else in it than delays from one to another, and how many",
                     "Send the replies as they came.");
        buckets.add(bucket);
    }
    if (buckets.count() != values)
        r.refuse("buckets", fmt::format("they have {} frames instead of {}", buckets.count(), values),
                 "Send the replies as they came.");
    buckets.sort();
    return buckets;
}

/// `frames`: the number of frames whose delay counts.
std::shared_ptr<const tally::DelayResult> read_delays(ObjectReader r, std::uint64_t frames) {
    auto delays = std::make_shared<tally::DelayResult>();
    delays->first_frame = count(r, "first_frame");
    delays->offered_frames = count(r, "offered_frames");
    delays->lost_frames = count(r, "lost_frames");
    delays->left_out_frames = count(r, "left_out_frames");
    delays->left_out_tags = count(r, "left_out_tags");
    delays->delays = read_buckets(r, frames);
    delays->has_tags = r.boolean("has_tags");
    for (const Json& tag : r.array("tagged")) {
        if (!tag.is_array() || tag.size() != 2 || !tag[0].is_number_unsigned())
            r.refuse("tagged", "there is something else in it than a frame's number and its delay",
                     "Send the replies as they came.");
        auto& found = delays->tagged.emplace_back(tally::DelayResult::Tagged{tag[0].get<std::uint64_t>(), {}});
        if (!tag[1].is_null()) found.delay = static_cast<std::uint64_t>(item<double>(r, "tagged", tag[1]));
    }
    if (!is_null(r, "variation")) {
        auto v = r.object("variation");
        auto& variation = delays->variation.emplace(tally::DelayResult::Variation{});
        const auto seen = count(v, "pairs");
        variation.pairs = seen + count(v, "unseen_pairs");
        variation.differences = read_buckets(v, seen);
    }
    return delays;
}

tally::DirectionResult read_direction(ObjectReader r, plan::Direction direction) {
    tally::DirectionResult d{.direction = direction};
    if (r.has("intended_fps")) d.intended_fps = r.number("intended_fps", 0, any_number, true);
    d.intended_frames = count(r, "intended_frames");
    d.offered_frames = count(r, "offered_frames");
    d.offered_fps = not_negative(r, "offered_fps");
    for (const auto& of : tally::reception_counts) d.*of.result = count(r, of.name);
    auto damaged = r.object("corrupted_by");
    for (std::size_t i = 0; i < frame::damages; ++i) d.corrupted_by.at(i) = count(damaged, frame::damage_names.at(i));
    d.ahead_us = not_negative(r, "ahead_us");
    d.before_start_us = not_negative(r, "before_start_us");
    d.hop_limit_was_lowered = r.boolean("hop_limit_was_lowered");
    d.away_frames = count(r, "away_frames");
    auto sender = r.object("sender");
    d.overdue_frames = count(sender, "overdue_frames");
    d.max_overdue_us = any(sender, "max_overdue_us");
    d.refusals = count(sender, "refusals");
    d.largest_burst = count(sender, "largest_burst");
    auto receiver = r.object("receiver");
    d.max_poll_gap_us = not_negative(receiver, "max_poll_gap_us");
    d.gap_frames = count(receiver, "gap_frames");
    d.ring_frames = count(receiver, "ring_frames");
    read_latency(r.object("latency"), d.latency);
    read_slices(r, d.delay_by_slice);
    if (r.has("delays")) d.delays = read_delays(r.object("delays"), d.latency.count());
    for (const Json& lost : r.array("lost_by_tenth"))
        d.lost_by_tenth.push_back(item<std::uint64_t>(r, "lost_by_tenth", lost));
    for (const Json& lost : r.array("first_lost")) d.first_lost.push_back(item<std::uint64_t>(r, "first_lost", lost));
    d.classes = read_classes(r);
    read_translation(r, d);
    if (r.has("line_overload")) {
        auto overload = r.object("line_overload");
        d.overload = tally::LineOverload{.needed_bps = overload.number("needed_bps", 0, any_number, true),
                                         .line_bps = overload.number("line_bps", 0, any_number, true)};
    }
    if (!is_null(r, "last_lost")) {
        auto lost = r.object("last_lost");
        d.last_lost = {.sequence = count(lost, "sequence"), .due_s = not_negative(lost, "due_s")};
    }
    return d;
}

tally::HostCpu read_cpu(const Json& json, const std::string& where, bool is_watched) {
    ObjectReader r{json, where};
    tally::HostCpu cpu{.cpu = static_cast<unsigned>(r.whole("cpu", 0, largest_cpu)),
                       .stolen_us = any(r, "stolen_us"),
                       .waited_us = any(r, "waited_us")};
    if (is_watched) {
        cpu.absences = count(r, "absences");
        cpu.longest_us = not_negative(r, "longest_us");
    }
    return cpu;
}

tally::HostRecord read_host(ObjectReader r) {
    tally::HostRecord host;
    for (const Json& cpu : r.array("tester")) host.tester.push_back(read_cpu(cpu, r.where("tester"), false));
    if (is_null(r, "dut")) return host;
    auto dut = r.object("dut");
    tally::HostRecord::Dut found{
        .ring_frames = static_cast<unsigned>(dut.whole("ring_frames", 0, std::numeric_limits<unsigned>::max())),
        .cpus = {}};
    for (const Json& cpu : dut.array("cpus")) found.cpus.push_back(read_cpu(cpu, dut.where("cpus"), true));
    host.dut = std::move(found);
    return host;
}

/// Frames that came while the DUT's CPU was away require that the CPU was watched.
void check_away_frames(const ObjectReader& r, const tally::TrialResult& result) {
    for (const auto& d : result.directions) {
        if (d.away_frames != 0 && !result.host.dut)
            r.refuse("host",
                     fmt::format("away_frames is {}, but dut is null: nobody watched the DUT's CPUs", d.away_frames),
                     "Send the replies as they came.");
    }
}

void read_clock(ObjectReader r, tally::TrialResult& result) {
    // Ticks in the reply are nanoseconds.
    result.ticks_per_second = ns_per_second;
    result.clock_error_ppm = any(r, "error_ppm");
    if (!is_null(r, "steered_error_ppm")) result.steered_clock_error_ppm = any(r, "steered_error_ppm");
    for (const Json& offset : r.array("offsets")) {
        ObjectReader o{offset, r.where("offsets")};
        result.clock_offsets.push_back({.cpu = static_cast<unsigned>(o.whole("cpu", 0, largest_cpu)),
                                        .offset_us = any(o, "offset_us"),
                                        .uncertainty_us = not_negative(o, "uncertainty_us")});
    }
}

tally::Limits read_limits(ObjectReader r) {
    return {.loss_ratio = not_negative(r, "loss_ratio"),
            .offered_tolerance = not_negative(r, "offered_tolerance"),
            .overdue_after_us = not_negative(r, "overdue_after_us"),
            .overdue_tolerance = not_negative(r, "overdue_tolerance"),
            .longest_overdue_us = not_negative(r, "longest_overdue_us"),
            .clock_ppm = not_negative(r, "clock_ppm"),
            .duplicate_tolerance = not_negative(r, "duplicate_tolerance"),
            .remarked_tolerance = not_negative(r, "remarked_tolerance")};
}

void read_load(ObjectReader& r, tally::TrialResult& result) {
    result.intended_fps = r.number("intended_fps", 0, any_number, true);
    result.intended_duration_s = r.number("intended_duration_s", 0, any_number, true);
    if (r.has("burst")) {
        auto burst = r.object("burst");
        result.burst = tally::Burst{.frames = count(burst, "frames"),
                                    .interval_s = not_negative(burst, "interval_s"),
                                    .rate_fps = not_negative(burst, "rate_fps")};
    }
    if (r.has("then")) {
        auto then = r.object("then");
        result.then = tally::LoadChange{.rate_fps = not_negative(then, "rate_fps"),
                                        .duration_s = not_negative(then, "duration_s"),
                                        .before_fps = not_negative(then, "before_fps")};
    }
    if (r.has("mix")) {
        auto mix = r.object("mix");
        result.mix = tally::TrialResult::Mix{.period_frames = count(mix, "period_frames"),
                                             .mean_frame_size = not_negative(mix, "mean_frame_size")};
    }
}

/// Reads a reply to a trial request. Keys that are results of judging, such as its verdict, are ignored.
tally::TrialResult read_result(ObjectReader r) {
    tally::TrialResult result;
    result.trial = static_cast<std::uint16_t>(r.whole("trial", 1, 65535));
    result.started_at = r.text("started_at");
    result.frame_size = r.whole("frame_size", 1, frame::largest_frame_size);
    read_load(r, result);
    if (r.has("stopped_early_s")) result.stopped_early_s = r.number("stopped_early_s", 0, any_number, true);
    result.limits = read_limits(r.object("limits"));
    for (const Json& json : r.array("reasons")) {
        ObjectReader reason{json, r.where("reasons")};
        result.stopped = result.stopped || reason.text("code") == "stopped";
    }
    for (const Json& json : r.array("deviations")) {
        ObjectReader deviation{json, r.where("deviations")};
        result.deviations.push_back({.requirement = deviation.text("requirement"), .text = deviation.text("text")});
    }
    for (const Json& json : r.array("phases")) {
        ObjectReader phase{json, r.where("phases")};
        result.phases.push_back({.name = phase.text("phase"),
                                 .start_s = not_negative(phase, "start_s"),
                                 .seconds = not_negative(phase, "seconds")});
    }
    auto of_directions = r.object("directions");
    for (const auto& [name, direction] : directions) {
        if (of_directions.has(name)) result.directions.push_back(read_direction(of_directions.object(name), direction));
    }
    if (result.directions.empty()) r.refuse("directions", "there is none", "Send the replies as they came.");
    auto ports = r.object("ports");
    result.ports = {read_port_counts(ports.object("left")), read_port_counts(ports.object("right"))};
    result.host = read_host(r.object("host"));
    check_away_frames(r, result);
    read_clock(r.object("clock"), result);
    result.is_one_armed = r.has("one_armed") && r.boolean("one_armed");
    if (r.has("share")) {
        auto share = r.object("share");
        result.share = tally::Share{.first = share.whole("first", 0, frame::most_streams),
                                    .streams = share.whole("streams", 1, frame::most_streams),
                                    .stride = share.whole("stride", 1, frame::most_streams)};
    }
    if (r.has("start")) {
        auto start = r.object("start");
        constexpr auto latest_ns = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
        result.start = tally::StartTime{
            .intended_unix_ns = static_cast<std::int64_t>(start.whole("intended_unix_ns", 0, latest_ns)),
            .actual_unix_ns = static_cast<std::int64_t>(start.whole("actual_unix_ns", 0, latest_ns))};
    } else if (!result.stopped &&
               !std::ranges::any_of(result.ports, [](const auto& p) { return p.after.is_removed; })) {
        r.refuse("start", "no start was given to this tester", "Ask for start_at_unix_ns.");
    }
    return result;
}

tally::ComparedClock read_compared(ObjectReader r) {
    const tally::ComparedClock clock{any(r, "offset_us"), not_negative(r, "uncertainty_us")};
    r.finish();
    return clock;
}

}  // namespace

tally::TogetherRequest read_judge(ObjectReader& r) {
    tally::TogetherRequest request;
    std::vector<std::string> names;
    const Json& list = r.array("results");
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("results[{}]", i)};
        const auto name = entry.text("engine");
        if (name.empty() || name.size() > longest_name)
            entry.refuse("engine", fmt::format("a name has 1 to {} letters", longest_name), "Shorten it.");
        if (std::ranges::find(names, name) != names.end())
            entry.refuse("engine", fmt::format("{} is given twice", name), "Give each its own name.");
        names.push_back(name);
        if (entry.has("lost")) {
            request.lost.push_back({.tester = name, .what = entry.text("lost")});
        } else {
            tally::TrialPart part{.result = read_result(entry.object("result")), .before = {}, .after = {}};
            part.result.tester = name;
            auto clock = entry.object("clock");
            part.before = read_compared(clock.object("before"));
            part.after = read_compared(clock.object("after"));
            clock.finish();
            request.parts.push_back(std::move(part));
        }
        entry.finish();
    }
    if (r.has("start_difference_us"))
        request.start_difference_us = r.number("start_difference_us", 0, any_number, true);
    return request;
}

}  // namespace evenhand::contract
