// SPDX-License-Identifier: Apache-2.0
#include "contract/reply.hpp"

#include <fmt/format.h>

#include <cmath>

#include "contract/reader.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/vlan.hpp"

namespace evenhand::contract {
namespace {

// Keys keep the order in which they are written: a line should read from the important to the small.
using Ordered = nlohmann::ordered_json;

std::string line_of(const Ordered& json) { return json.dump(-1, ' ', false, Ordered::error_handler_t::replace); }

Ordered optional_number(std::optional<double> value) { return value ? Ordered(*value) : Ordered(nullptr); }

Ordered both(const Ordered& left, const Ordered& right) { return {{"left", left}, {"right", right}}; }

constexpr std::array side_names{"left", "right"};  // by plan::Side

Ordered port_counters(const tally::PortCounters& c) {
    Ordered hidden_drops = Ordered::object();
    for (const auto& drop : c.hidden_drops) hidden_drops[drop.name] = drop.frames;
    return {{"received_frames", c.received_frames},
            {"seen_frames", c.seen_frames ? Ordered(*c.seen_frames) : Ordered(nullptr)},
            {"transmitted_frames", c.transmitted_frames},
            {"missed_frames", c.missed_frames},
            {"receive_errors", c.receive_errors},
            {"transmit_errors", c.transmit_errors},
            {"no_buffer_frames", c.no_buffer_frames},
            {"link_changes", c.link_changes},
            {"pause_frames", c.pause_frames},
            {"counts_pause", c.counts_pause},
            {"hidden_drops", hidden_drops},
            {"dropped_answers", c.dropped_answers},
            {"link_up", c.link_up},
            {"is_read", c.is_read}};
}

Ordered clock_offsets(const std::vector<tally::ClockOffset>& offsets) {
    Ordered json = Ordered::array();
    for (const auto& c : offsets)
        json.push_back({{"cpu", c.cpu}, {"offset_us", c.offset_us}, {"uncertainty_us", c.uncertainty_us}});
    return json;
}

Ordered latency(const tally::LatencyHistogram& h, double ticks_per_second) {
    constexpr double ns_per_second = 1e9;
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

Ordered delay_by_slice(const tally::SliceDelays& delays, double ticks_per_second) {
    constexpr double ns_per_second = 1e9;
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

/// R8219-16: a lost frame's delay is infinite in a percentile, which is null here, and has no part in the minimum or in
/// a difference.
Ordered delays(const tally::DelayResult& result, const tally::LatencyHistogram& h, double ticks_per_second) {
    constexpr double ns_per_second = 1e9;
    const auto ns = [=](auto ticks) {
        return std::round(static_cast<double>(ticks) * ns_per_second / ticks_per_second);
    };
    const std::uint64_t frames = h.count() + result.lost_frames;
    const auto ranked = [&](std::uint64_t numerator, std::uint64_t denominator) {
        return tally::nth_delay(result.spreads,
                                std::max<std::uint64_t>(1, (frames * numerator + denominator - 1) / denominator));
    };
    const auto percentile = [&](std::uint64_t numerator, std::uint64_t denominator) -> std::optional<std::uint64_t> {
        const auto found = ranked(numerator, denominator);
        return found ? std::optional{found->delay} : std::nullopt;
    };
    const auto finite = [&](std::optional<std::uint64_t> ticks) {
        return ticks ? Ordered(ns(*ticks)) : Ordered(nullptr);
    };
    const auto worst = ranked(999, 1000);
    const auto p999 = worst ? std::optional{worst->delay} : std::nullopt;
    Ordered tagged = Ordered::array();
    for (const auto& t : result.tagged)
        tagged.push_back({t.sequence, t.delay ? Ordered(ns(*t.delay)) : Ordered(nullptr)});
    Ordered variation = nullptr;
    if (result.variation) {
        const auto& v = result.variation->differences;
        const bool any = v.count() != 0;
        const auto half = v.percentile(1, 2);
        variation = {{"pairs", v.count()},
                     {"unseen_pairs", result.variation->pairs - v.count()},
                     {"min_ns", any ? Ordered(ns(v.min())) : Ordered(nullptr)},
                     {"median_ns", half ? Ordered(ns(*half)) : Ordered(nullptr)},
                     {"max_ns", any ? Ordered(ns(v.max())) : Ordered(nullptr)}};
    }
    return {{"first_frame", result.first_frame},
            {"offered_frames", result.offered_frames},
            {"lost_frames", result.lost_frames},
            {"left_out_frames", result.left_out_frames},
            {"left_out_tags", result.left_out_tags},
            {"min_ns", h.count() != 0 ? Ordered(ns(h.min())) : Ordered(nullptr)},
            {"p50_ns", finite(percentile(1, 2))},
            {"p99_ns", finite(percentile(99, 100))},
            {"p999_ns", finite(p999)},
            {"pdv_ns", finite(p999 ? std::optional{*p999 - h.min()} : std::nullopt)},
            {"pdv_resolution_ns", worst ? Ordered(ns(worst->width + 1)) : Ordered(nullptr)},
            {"tagged", tagged},
            {"variation", variation}};
}

Ordered direction_result(const tally::DirectionResult& d, const tally::TrialResult& trial) {
    Ordered json{
        {"intended_frames", d.intended_frames},
        {"offered_frames", d.offered_frames},
        {"offered_fps", d.offered_fps},
        {"received_frames", d.received_frames},
        {"lost_frames", d.lost_frames()},
        {"duplicated_frames", d.duplicated_frames},
        {"reordered_frames", d.reordered_frames},
        {"late_frames", d.late_frames},
        {"late_by_gap_frames", d.late_by_gap_frames},
        {"corrupted_frames", d.corrupted_frames},
        {"wrong_length_frames", d.wrong_length_frames},
        {"foreign_frames", d.foreign_frames},
        {"stale_frames", d.stale_frames},
        {"unrecorded_frames", d.unrecorded_frames},
        {"wrong_time_frames", d.wrong_time_frames},
        {"neighbor_frames", d.neighbor_frames},
        {"loss_ratio", d.loss_ratio()},
        {"forwarding_rate_fps", static_cast<double>(d.received_frames) / trial.sending_s()},
        {"sender",
         {{"overdue_frames", d.overdue_frames},
          {"max_overdue_us", d.max_overdue_us},
          {"refusals", d.refusals},
          {"largest_burst", d.largest_burst}}},
        {"receiver",
         {{"max_poll_gap_us", d.max_poll_gap_us}, {"gap_frames", d.gap_frames}, {"ring_frames", d.ring_frames}}},
        {"away_frames", d.away_frames},
        {"latency", latency(d.latency, trial.ticks_per_second)},
        {"delay_by_slice", delay_by_slice(d.delay_by_slice, trial.ticks_per_second)},
        {"lost_by_tenth", d.lost_by_tenth},
        {"first_lost", d.first_lost}};
    if (!d.classes.empty()) {
        Ordered classes = Ordered::array();
        for (const auto& c : d.classes) {
            classes.push_back({{"ip_version", static_cast<int>(c.version)},
                               {"frame_size", c.frame_size},
                               {"offered_frames", c.offered_frames},
                               {"received_frames", c.received_frames},
                               {"lost_frames", c.lost_frames()}});
        }
        json["classes"] = classes;
    }
    if (d.queue_filling)
        json["queue_filling"] = {{"slope", d.queue_filling->slope},
                                 {"sustainable_fps", std::round(d.queue_filling->sustainable_fps)}};
    if (trial.then)
        json["last_lost"] = d.last_lost ? Ordered{{"sequence", d.last_lost->sequence}, {"due_s", d.last_lost->due_s}}
                                        : Ordered(nullptr);
    if (d.delays) json["delays"] = delays(*d.delays, d.latency, trial.ticks_per_second);
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

const char* name_of(tally::Verdict verdict) {
    switch (verdict) {
        case tally::Verdict::pass: return "PASS";
        case tally::Verdict::fail: return "FAIL";
        case tally::Verdict::invalid: break;
    }
    return "INVALID";
}

const char* name_of(plan::Mode mode) {
    switch (mode) {
        case plan::Mode::pseudorandom: return "pseudorandom";
        case plan::Mode::fixed: return "fixed";
        case plan::Mode::increment: return "increment";
        case plan::Mode::decrement: break;
    }
    return "decrement";
}

const char* name_of(proof::Generator generator) {
    switch (generator) {
        case proof::Generator::philox: return "philox";
        case proof::Generator::fifteen_bit: return "fifteen_bit";
        case proof::Generator::modulo: break;
    }
    return "modulo";
}

const char* name_of(plan::Direction direction) { return direction == plan::Direction::forward ? "forward" : "reverse"; }

Ordered chi_square(const std::optional<proof::ChiSquare>& c) {
    if (!c) return nullptr;
    return {{"value", c->value}, {"degrees_of_freedom", c->degrees_of_freedom}, {"p", c->p}};
}

Ordered coverage(const proof::Coverage& c) { return {{"occurred", c.occurred}, {"expected", c.expected}, {"p", c.p}}; }

Ordered pair_proof(const proof::PairProof& pair) {
    const auto& c = pair.correlation;
    return {{"first", pair.first},
            {"second", pair.second},
            {"rows", pair.rows},
            {"columns", pair.columns},
            {"exact", pair.is_exact},
            {"coverage", pair.coverage ? coverage(*pair.coverage) : Ordered(nullptr)},
            {"chi_square", chi_square(pair.chi_square)},
            {"correlation", c ? Ordered{{"value", c->value}, {"spread", c->spread}, {"p", c->p}} : Ordered(nullptr)}};
}

Ordered field_proof(const proof::FieldProof& field) {
    return {{"field", field.name},
            {"first", field.range.first},
            {"values", field.range.count},
            {"mode", name_of(field.range.mode)},
            {"proven", field.is_proven},
            {"coverage", coverage(field.coverage)},
            {"expected_per_value", field.expected_per_value},
            {"least_hits", field.least_hits},
            {"most_hits", field.most_hits},
            {"chi_square", chi_square(field.chi_square)},
            {"serial", field.serial ? pair_proof(*field.serial) : Ordered(nullptr)}};
}

std::string hexadecimal(std::span<const std::byte> octets) {
    std::string text;
    text.reserve(2 * octets.size());
    for (const auto octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned>(octet));
    return text;
}

/// Frames are written by the very source that the sender uses: what is shown is what is sent.
template <plan::IpVersion V>
Ordered preview(const FramesRequest& r) {
    const plan::FlowDraw draw{r.plan, r.direction, r.seed};
    const auto& from = r.plan.side(plan::sending_side(r.direction)).hosts;
    const auto& to = r.plan.side(plan::receiving_side(r.direction)).hosts;
    const plan::HostSet hosts{from};
    const plan::HostMacs macs{r.seed, plan::sending_side(r.direction)};
    Ordered frames = Ordered::array();
    std::vector<std::byte> octets(r.frame_size - frame::fcs_octets);
    const frame::VlanTags tags{r.vlans};
    const std::size_t untagged = r.frame_size - std::min(r.frame_size, tags.octets());
    frame::check_frame_size(V, untagged);
    frame::write_pattern(V, std::span{octets}.subspan(tags.octets()));
    for (std::uint64_t k = r.first; k < r.first + r.count; ++k) {
        const auto stream = static_cast<std::uint8_t>(k % r.streams);
        const auto shape =
            frame::make_template(r.plan, untagged, {.direction = r.direction, .stream = stream, .trial = r.trial},
                                 r.source_mac, r.destination_mac);
        frame::TestFrameSource<V> source{shape, draw, {.first = k, .stride = r.streams}};
        std::byte* const buffer = octets.data() + tags.octets();
        if (r.host_macs == run::HostMacMode::pseudorandom) {
            frame::HostMacSource<frame::TestFrameSource<V>, V>{source, hosts, macs}.write_next({&buffer, 1}, 0);
        } else {
            source.write_next({&buffer, 1}, 0);
        }
        tags.put(octets.data());
        const auto flow = draw.draw(k);
        frames.push_back({{"sequence", k},
                          {"stream", stream},
                          {"source", plan::to_string(from.address(flow.source))},
                          {"destination", plan::to_string(to.address(flow.destination))},
                          {"source_port", flow.source_port},
                          {"destination_port", flow.destination_port},
                          {"octets", hexadecimal(octets)}});
    }
    return frames;
}

/// The same for frames of several classes.
Ordered preview_mix(const FramesRequest& r) {
    const auto& mix = r.mix->mix;
    const frame::VlanTags tags{r.vlans};
    const frame::MixedPlans untagged{.mix = mix.without_tags(tags.octets()), .other_plan = r.mix->other_plan};
    frame::check_mix(r.plan, untagged);
    const auto side = plan::sending_side(r.direction);
    const auto host_macs =
        r.host_macs == run::HostMacMode::pseudorandom ? std::optional{plan::HostMacs{r.seed, side}} : std::nullopt;
    std::vector<frame::TaggedSource<frame::MixSource>> sources;
    for (unsigned stream = 0; stream < r.streams; ++stream) {
        // Whose frames go on from `first`.
        const std::uint64_t first = r.first + (stream + r.streams - r.first % r.streams) % r.streams;
        sources.emplace_back(
            frame::MixSource{frame::make_mix_parts(
                r.plan, untagged, r.seed,
                {.direction = r.direction, .stream = static_cast<std::uint8_t>(stream), .trial = r.trial},
                {.first = first, .stride = r.streams},
                {.source_mac = r.source_mac, .dut_macs = {r.destination_mac, r.destination_mac}, .hosts = host_macs})},
            tags);
    }
    std::vector<std::byte> buffer(mix.largest_frame_size() - frame::fcs_octets);
    frame::write_pattern(frame::pattern_of(r.plan.version, mix.has_two_plans()),
                         std::span{buffer}.subspan(tags.octets()));
    Ordered frames = Ordered::array();
    for (std::uint64_t k = r.first; k < r.first + r.count; ++k) {
        auto& source = sources[k % r.streams];
        const auto octets = std::span{buffer}.first(source.frame_octets(0));
        std::byte* const at = buffer.data();
        source.write_next({&at, 1}, 0);
        const auto& plan = r.mix->plan(r.plan, mix.classes()[mix.class_of(k)].plan);
        const auto flow = plan::FlowDraw{plan, r.direction, r.seed}.draw(k);
        frames.push_back(
            {{"sequence", k},
             {"stream", k % r.streams},
             {"source", plan::to_string(plan.side(side).hosts.address(flow.source))},
             {"destination",
              plan::to_string(plan.side(plan::receiving_side(r.direction)).hosts.address(flow.destination))},
             {"source_port", flow.source_port},
             {"destination_port", flow.destination_port},
             {"octets", hexadecimal(octets)}});
    }
    return frames;
}

Ordered preview_any(const FramesRequest& r) {
    if (r.mix) return preview_mix(r);
    return r.plan.version == plan::IpVersion::v4 ? preview<plan::IpVersion::v4>(r) : preview<plan::IpVersion::v6>(r);
}

}  // namespace

std::string write_fault(std::optional<std::int64_t> id, const Fault& fault) {
    return line_of({{"id", id ? Ordered(*id) : Ordered(nullptr)},
                    {"fault",
                     {{"code", to_string(fault.code)},
                      {"kind", kind_of(fault.code)},
                      {"what", fault.what_text},
                      {"where", fault.where},
                      {"next", fault.next}}}});
}

std::string write_plain(std::int64_t id, const char* response) { return line_of({{"id", id}, {"response", response}}); }

std::string write_about(std::int64_t id, const About& about) {
    return line_of({{"id", id},
                    {"response", "about"},
                    {"version", about.version},
                    {"contract", version},
                    {"dpdk", about.dpdk},
                    {"compiler", about.compiler},
                    {"build_type", about.build_type}});
}

std::string write_frames(std::int64_t id, const FramesRequest& request) {
    return line_of({{"id", id}, {"response", "frames"}, {"frames", preview_any(request)}});
}

std::string write_open(std::int64_t id, const BothSides<OpenedPort>& ports, double ticks_per_second,
                       std::uint16_t session, const std::vector<tally::ClockOffset>& offsets) {
    const auto port = [](const OpenedPort& p) -> Ordered {
        return {{"device", p.device},
                {"driver", p.driver},
                {"mac", plan::to_string(p.mac)},
                {"line_rate_bps", optional_number(p.line_rate_bps)},
                {"link_up", p.link_up},
                {"receive_ring_frames", p.receive_ring_frames},
                {"receive_ring_source", p.receive_ring_source},
                {"transmit_ring_frames", p.transmit_ring_frames},
                {"flow_control", p.flow_control},
                {"hardware_stamps", p.hardware_stamps},
                {"receive_count", p.counts_exactly ? "exact" : "unknown"}};
    };
    return line_of({{"id", id},
                    {"response", "open"},
                    {"left", port(ports[0])},
                    {"right", port(ports[1])},
                    {"ticks_per_second", ticks_per_second},
                    {"session", session},
                    {"clock_offsets", clock_offsets(offsets)}});
}

std::string write_resolve(std::int64_t id, const BothSides<ResolvedSide>& sides) {
    const auto side = [](const ResolvedSide& s) -> Ordered {
        return {{"dut_mac", plan::to_string(s.dut_mac)}, {"static", s.is_static}};
    };
    return line_of({{"id", id}, {"response", "resolve"}, {"left", side(sides[0])}, {"right", side(sides[1])}});
}

std::string write_counters(std::int64_t id, const BothSides<SideCounters>& sides) {
    const auto side = [](const SideCounters& s) -> Ordered {
        return {{"port", port_counters(s.port)}, {"neighbor", {{"requests", s.questions}, {"answers", s.answers}}}};
    };
    return line_of({{"id", id}, {"response", "counters"}, {"left", side(sides[0])}, {"right", side(sides[1])}});
}

std::string write_progress(std::int64_t id, const run::Progress& p) {
    constexpr double ns_per_second = 1e9;
    const auto ns = [](const std::optional<double>& seconds) -> Ordered {
        return seconds ? Ordered(*seconds * ns_per_second) : Ordered(nullptr);
    };
    Ordered event{{"id", id},
                  {"event", "progress"},
                  {"trial", p.trial},
                  {"phase", p.phase},
                  {"elapsed_s", p.elapsed_s},
                  {"total_s", p.total_s},
                  {"sent_frames", p.sent_frames},
                  {"received_frames", p.received_frames}};
    for (std::size_t i = 0; i < p.directions.size(); ++i) {
        if (!p.directions[i]) continue;
        const auto& d = *p.directions[i];
        event["directions"][name_of(static_cast<plan::Direction>(i))] = {
            {"sent_frames", d.sent_frames},
            {"received_frames", d.received_frames},
            {"settled_frames", d.settled_frames},
            {"lost_frames", d.lost_frames},
            {"latency", {{"mean_ns", ns(d.mean_latency_s)}, {"max_ns", ns(d.max_latency_s)}}}};
    }
    return line_of(event);
}

std::string write_proving(std::int64_t id, const proof::ProofRequest& request, std::uint64_t drawn_frames) {
    return line_of({{"id", id},
                    {"event", "proving"},
                    {"direction", name_of(request.direction)},
                    {"drawn_frames", drawn_frames},
                    {"frames", request.frames}});
}

std::string write_prove(std::int64_t id, const proof::ProofRequest& request, const proof::ProofResult& result) {
    Ordered fields = Ordered::array();
    for (const auto& field : result.fields) fields.push_back(field_proof(field));
    Ordered pairs = Ordered::array();
    for (const auto& pair : result.pairs) pairs.push_back(pair_proof(pair));
    return line_of({{"id", id},
                    {"response", "prove"},
                    {"generator", name_of(request.generator)},
                    {"direction", name_of(request.direction)},
                    {"seed", request.seed},
                    {"first", request.first},
                    {"streams", request.streams},
                    {"stream", request.stream},
                    {"frames", result.frames},
                    {"stopped", result.frames < request.frames},
                    {"fields", fields},
                    {"pairs", pairs}});
}

std::string write_learning(std::int64_t id, const run::LearningProgress& p) {
    Ordered event{{"id", id}, {"event", "learning"}, {"round", p.round}, {"rate_share", p.rate_share}};
    for (std::size_t side = 0; side < p.sides.size(); ++side) {
        if (p.sides[side])
            event[side_names[side]] = {{"hosts", p.sides[side]->hosts}, {"reachable", p.sides[side]->reachable}};
    }
    return line_of(event);
}

std::string write_learn(std::int64_t id, const run::LearningResult& r) {
    Ordered response{{"id", id}, {"response", "learn"}, {"stopped", r.stopped}, {"rate_share", r.rate_share}};
    for (std::size_t side = 0; side < r.sides.size(); ++side) {
        if (!r.sides[side]) continue;
        const auto& s = *r.sides[side];
        Ordered unreachable = Ordered::array();
        for (const auto& address : s.unreachable) unreachable.push_back(plan::to_string(address));
        response[side_names[side]] = {{"hosts", s.hosts},
                                      {"reachable", s.reachable},
                                      {"rounds", s.rounds},
                                      {"unreachable", unreachable},
                                      {"questions_answered", s.questions_answered}};
    }
    return line_of(response);
}

std::string write_watch(std::int64_t id, const witness::WatchResult& r) {
    constexpr double us_per_second = 1e6;
    Ordered cpus = Ordered::array();
    for (const auto& c : r.cpus) {
        double away_s = 0;
        for (const auto& absence : c.absences) away_s += absence.at_least_s;
        cpus.push_back({{"cpu", c.cpu},
                        {"absences", c.absences.size()},
                        {"longest_us", us_per_second * c.longest_s()},
                        {"away_us", us_per_second * away_s},
                        {"stolen_us", us_per_second * c.stolen_s}});
    }
    return line_of({{"id", id},
                    {"response", "watch"},
                    {"seconds", r.seconds},
                    {"cpus", cpus},
                    {"clock",
                     {{"ticks_per_second", r.ticks_per_second},
                      {"error_ppm_raw", r.error_ppm_raw},
                      {"error_ppm_monotonic", r.error_ppm_monotonic}}}});
}

std::string write_trial(std::int64_t id, const tally::TrialResult& r) {
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
    for (const auto& d : r.directions) directions[name_of(d.direction)] = direction_result(d, r);
    const auto before_after = [](const tally::TrialResult::BeforeAfter& p) -> Ordered {
        return {{"before", port_counters(p.before)}, {"after", port_counters(p.after)}};
    };
    Ordered json{{"id", id},
                 {"response", "trial"},
                 {"contract", version},
                 {"trial", r.trial},
                 {"verdict", name_of(r.verdict)},
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
                   {"duplicate_tolerance", r.limits.duplicate_tolerance}}},
                 {"deviations", deviations},
                 {"phases", phases},
                 {"directions", directions},
                 {"ports", both(before_after(r.ports[0]), before_after(r.ports[1]))},
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
    if (r.stopped_early_s) json["stopped_early_s"] = *r.stopped_early_s;
    return line_of(json);
}

}  // namespace evenhand::contract
