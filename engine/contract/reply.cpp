// SPDX-License-Identifier: Apache-2.0
#include "contract/reply.hpp"

#include "contract/reply_parts.hpp"
#include "units.hpp"

namespace evenhand::contract {

using plan::Side;

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
            {"is_removed", c.is_removed},
            {"is_read", c.is_read}};
}

Ordered clock_offsets(const std::vector<tally::ClockOffset>& offsets) {
    Ordered json = Ordered::array();
    for (const auto& c : offsets)
        json.push_back({{"cpu", c.cpu}, {"offset_us", c.offset_us}, {"uncertainty_us", c.uncertainty_us}});
    return json;
}

Ordered left_out_parts(std::span<const tally::LeftOut> left_out) {
    Ordered parts = Ordered::array();
    for (const auto& part : left_out) {
        Ordered kinds = Ordered::array();
        for (std::size_t kind = 0; kind < part.kinds.size(); ++kind) {
            if (part.kinds.at(kind)) kinds.push_back(tally::lapse_names.at(kind));
        }
        parts.push_back({part.from_s, part.until_s, kinds});
    }
    return parts;
}

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

std::string write_clock(std::int64_t id, std::int64_t time_ns, bool is_steered) {
    return line_of({{"id", id}, {"response", "clock"}, {"time_unix_ns", time_ns}, {"steered", is_steered}});
}

std::string write_about(std::int64_t id, const About& about) {
    return line_of({{"id", id},
                    {"response", "about"},
                    {"version", about.version},
                    {"contract", version},
                    {"dpdk", about.dpdk},
                    {"compiler", about.compiler},
                    {"build_type", about.build_type}});
}

std::string write_open(std::int64_t id, const plan::PerSide<OpenedPort>& ports, double ticks_per_second,
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
                {"receive_count", p.counts_exactly ? "exact" : "unknown"},
                {"control_queue", p.has_control_queue ? "own" : "shared"},
                {"fast_free", p.frees_fast},
                {"numa_node", p.numa_node ? Ordered(*p.numa_node) : Ordered(nullptr)},
                {"far_cpus", p.far_cpus}};
    };
    return line_of({{"id", id},
                    {"response", "open"},
                    {"left", port(ports[Side::left])},
                    {"right", port(ports[Side::right])},
                    {"ticks_per_second", ticks_per_second},
                    {"session", session},
                    {"clock_offsets", clock_offsets(offsets)}});
}

std::string write_resolve(std::int64_t id, const plan::PerSide<ResolvedSide>& sides, const run::Way& way) {
    const auto side = [](const ResolvedSide& s) -> Ordered {
        return {{"dut_mac", plan::to_string(s.dut_mac)}, {"static", s.is_static}};
    };
    Ordered reply{
        {"id", id}, {"response", "resolve"}, {"left", side(sides[Side::left])}, {"right", side(sides[Side::right])}};
    for (const auto direction : plan::both_directions) {
        if (const auto& tried = way.directions[direction])
            reply["way"][name_of(direction)] = {{"sent_frames", tried->sent}, {"received_frames", tried->came}};
    }
    for (const auto& hint : way.hints)
        reply["hints"].push_back({{"code", hint.code}, {"what", hint.what}, {"next", hint.next}});
    return line_of(reply);
}

std::string write_link(std::int64_t id, const plan::PerSide<bool>& are_up) {
    const auto side = [&](Side of) -> Ordered { return {{"link_up", static_cast<bool>(are_up[of])}}; };
    return line_of({{"id", id}, {"response", "link"}, {"left", side(Side::left)}, {"right", side(Side::right)}});
}

std::string write_counters(std::int64_t id, const plan::PerSide<SideCounters>& sides) {
    const auto side = [](const SideCounters& s) -> Ordered {
        return {{"port", port_counters(s.port)}, {"neighbor", {{"requests", s.questions}, {"answers", s.answers}}}};
    };
    return line_of(
        {{"id", id}, {"response", "counters"}, {"left", side(sides[Side::left])}, {"right", side(sides[Side::right])}});
}

std::string write_progress(std::int64_t id, const run::Progress& p) {
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
    for (const auto direction : plan::both_directions) {
        if (!p.directions[direction]) continue;
        const auto& d = *p.directions[direction];
        event["directions"][name_of(direction)] = {
            {"sent_frames", d.sent_frames},
            {"received_frames", d.received_frames},
            {"settled_frames", d.settled_frames},
            {"lost_frames", d.lost_frames},
            {"latency", {{"mean_ns", ns(d.mean_latency_s)}, {"max_ns", ns(d.max_latency_s)}}}};
        if (const auto& recent = d.recent_latency)
            event["directions"][name_of(direction)]["recent_latency"] = {{"median_ns", ns(recent->median_s)},
                                                                         {"p999_ns", ns(recent->p999_s)}};
        if (!d.received_of_flows.empty())
            event["directions"][name_of(direction)]["received_of_flows"] = d.received_of_flows;
    }
    if (!p.left_out.empty()) event["sending_s"] = p.sending_s, event["left_out"] = left_out_parts(p.left_out);
    if (const auto& f = p.failing)
        event["failing"] = {{"lost_frames", f->lost_frames},
                            {"allowed_frames", static_cast<std::uint64_t>(f->allowed_frames)}};
    return line_of(event);
}

std::string write_learning(std::int64_t id, const run::LearningProgress& p) {
    Ordered event{{"id", id}, {"event", "learning"}, {"round", p.round}, {"rate_share", p.rate_share}};
    for (const auto side : plan::both_sides) {
        if (p.sides[side])
            event[name_of(side)] = {{"hosts", p.sides[side]->hosts}, {"reachable", p.sides[side]->reachable}};
    }
    return line_of(event);
}

std::string write_learn(std::int64_t id, const run::LearningResult& r) {
    Ordered response{{"id", id}, {"response", "learn"}, {"stopped", r.stopped}, {"rate_share", r.rate_share}};
    for (const auto side : plan::both_sides) {
        if (!r.sides[side]) continue;
        const auto& s = *r.sides[side];
        Ordered unreachable = Ordered::array();
        for (const auto& address : s.unreachable) unreachable.push_back(plan::to_string(address));
        response[name_of(side)] = {{"hosts", s.hosts},
                                   {"reachable", s.reachable},
                                   {"rounds", s.rounds},
                                   {"unreachable", unreachable},
                                   {"questions_answered", s.questions_answered}};
    }
    return line_of(response);
}

std::string write_watch(std::int64_t id, const witness::WatchResult& r) {
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

}  // namespace evenhand::contract
