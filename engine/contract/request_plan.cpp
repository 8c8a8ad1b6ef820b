// SPDX-License-Identifier: Apache-2.0
// Contract: the plan of a request, its frames, and the MACs that their hosts have.
#include <algorithm>
#include <span>

#include "contract/request_parts.hpp"
#include "frame/layout.hpp"
#include "frame/vlan.hpp"
#include "plan/address_list.hpp"

namespace evenhand::contract {
namespace {

constexpr std::array<std::pair<const char*, plan::Mode>, 4> modes{{{"pseudorandom", plan::Mode::pseudorandom},
                                                                   {"fixed", plan::Mode::fixed},
                                                                   {"increment", plan::Mode::increment},
                                                                   {"decrement", plan::Mode::decrement}}};

plan::Mode read_mode(ObjectReader& r) { return r.has("mode") ? r.choice("mode", modes) : plan::Mode::pseudorandom; }

plan::HostRange read_hosts(ObjectReader hosts) {
    plan::HostRange range;
    range.base = hosts.address("base");
    auto host = hosts.object("host");
    range.offset = static_cast<std::uint32_t>(host.whole("offset", 0, 14));
    range.host = {.first = static_cast<std::uint32_t>(host.whole("first", 0, 65535)),
                  .count = static_cast<std::uint32_t>(host.whole("count", 1, 65536)),
                  .mode = read_mode(host)};
    if (host.has("gap")) range.gap = static_cast<std::uint32_t>(host.whole("gap", 0, 1));
    host.finish();
    if (hosts.has("network")) {
        auto network = hosts.object("network");
        range.network = {.offset = static_cast<std::uint32_t>(network.whole("offset", 0, 14)),
                         .count = static_cast<std::uint32_t>(network.whole("count", 1, plan::most_networks)),
                         .mode = read_mode(network)};
        network.finish();
    }
    hosts.finish();
    return range;
}

constexpr std::array<std::pair<const char*, plan::Choice>, 2> choices{
    {{"entry", plan::Choice::entry}, {"host", plan::Choice::host}}};

struct ListedHosts {
    std::shared_ptr<const plan::AddressList> list;
    plan::Mode mode;
};

/// Reads the list's file last, so that a wrong key is refused before it.
ListedHosts read_list(ObjectReader hosts, plan::IpVersion version) {
    auto list = hosts.object("list");
    const auto path = list.text("path");
    const auto entries = list.whole("entries", 1, plan::AddressList::most_entries_v4);
    const auto choice = list.has("choose") ? list.choice("choose", choices) : plan::Choice::entry;
    const auto mode = read_mode(list);
    list.finish();
    hosts.finish();
    return {plan::AddressList::read(path, version, entries, choice, hosts.where("list")), mode};
}

plan::HostRange read_listed_hosts(ObjectReader hosts, plan::IpVersion version) {
    auto found = read_list(std::move(hosts), version);
    return plan::HostRange::of(std::move(found.list), found.mode);
}

/// Checks that the addresses of a side have this IP version.
void check_version(ObjectReader& r, const plan::IpAddress& base, std::uint64_t version) {
    if (static_cast<std::uint64_t>(base.version) == version) return;
    throw Fault{FaultCode::bad_plan, fmt::format("{} is not an IPv{} address", plan::to_string(base), version),
                r.where("hosts") + ".base",
                "Give all addresses of a side in one IP version, and those of both sides unless the DUT translates."};
}

std::uint64_t read_version(ObjectReader& r) {
    const auto version = r.whole("ip_version", 4, 6);
    if (version == 5) r.refuse("ip_version", "there is no IPv5 to test", "Use 4 or 6.");
    return version;
}

/// `version`: that of both sides; nothing: the DUT translates, and each side has a version of its own.
plan::PlanSide read_plan_side(ObjectReader r, std::optional<std::uint64_t> version) {
    plan::PlanSide side;
    const auto own_version = version ? *version : read_version(r);
    if (r.has("gateway")) side.gateway = r.address("gateway");
    side.dut_address = r.address("dut_address");
    auto hosts = r.object("hosts");
    side.hosts = hosts.has("list")
                     ? read_listed_hosts(hosts, own_version == 4 ? plan::IpVersion::v4 : plan::IpVersion::v6)
                     : read_hosts(hosts);
    check_version(r, side.hosts.base, own_version);
    if (r.has("peers")) side.peers = read_hosts(r.object("peers"));
    if (r.has("added_octets")) side.added_octets = static_cast<std::uint32_t>(r.whole("added_octets", 0, 64));
    r.finish();
    return side;
}

plan::FieldRange read_udp_range(ObjectReader r) {
    const auto first = static_cast<std::uint32_t>(r.whole("first", 0, 65535));
    const auto last = static_cast<std::uint32_t>(r.whole("last", 0, 65535));
    if (last < first)
        r.refuse("last", fmt::format("UDP ports {}-{}: the last is below the first", first, last),
                 "Want first <= last.");
    const auto mode = r.has("mode") ? read_mode(r) : plan::Mode::pseudorandom;
    r.finish();
    return {.first = first, .count = last - first + 1, .mode = mode};
}

}  // namespace

std::vector<std::uint64_t> read_wholes(ObjectReader& r, std::string_view key, std::uint64_t least, std::uint64_t most) {
    std::vector<std::uint64_t> found;
    const Json& list = r.array(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string place = fmt::format("{}[{}]", r.where(key), i);
        const Json holder{{place, list[i]}};
        found.push_back(ObjectReader{holder, ""}.whole(place, least, most));
    }
    return found;
}

std::size_t read_frame_size(ObjectReader& r) { return r.whole("frame_size", 64, frame::largest_frame_size); }

plan::AddressPlan read_plan(ObjectReader r) {
    plan::AddressPlan plan;
    plan.name = r.text("name");
    const auto version = r.has("ip_version") ? std::optional{read_version(r)} : std::nullopt;
    plan.left = read_plan_side(r.object("left"), version);
    plan.right = read_plan_side(r.object("right"), version);
    auto udp = r.object("udp_ports");
    plan.source_ports = read_udp_range(udp.object("source"));
    plan.destination_ports = read_udp_range(udp.object("destination"));
    udp.finish();
    if (r.has("fixed_source")) plan.fixed_source = r.boolean("fixed_source");
    if (r.has("fixed_source_network")) plan.fixed_source_network = r.boolean("fixed_source_network");
    if (r.has("common_network")) plan.common_network = r.boolean("common_network");
    if (r.has("stateful")) plan.has_state = r.boolean("stateful");
    r.finish();
    plan::check_plan(plan);
    return plan;
}

std::vector<std::uint16_t> read_vlans(ObjectReader& r) {
    std::vector<std::uint16_t> vlans;
    if (!r.has("vlan")) return vlans;
    for (const auto vlan : read_wholes(r, "vlan", 1, frame::largest_vlan))
        vlans.push_back(static_cast<std::uint16_t>(vlan));
    if (vlans.empty() || vlans.size() > frame::most_vlan_tags) {
        r.refuse("vlan", fmt::format("{} VLAN tags", vlans.size()),
                 "Give one, or two: the outer (802.1ad) first; or leave it out.");
    }
    return vlans;
}

/// What all patterns have behind their values.
void finish_pattern(ObjectReader& r, plan::FieldPattern& pattern) {
    pattern.mode = read_mode(r);
    if (r.has("lock_step")) pattern.is_in_lock_step = r.boolean("lock_step");
    r.finish();
}

void check_list(ObjectReader& r, std::size_t values) {
    if (values == 0 || values > plan::FieldPattern::longest_list)
        r.refuse("values", fmt::format("a list of {} values", values),
                 fmt::format("Give 1 to {}, or first, count and step.", plan::FieldPattern::longest_list));
}

/// A pattern of a flow's hosts: addresses of one IP version, or those of prefixes of the plan's version.
plan::FieldPattern read_host_pattern(ObjectReader r, plan::IpVersion version) {
    constexpr std::uint64_t most_hosts = 65536;
    constexpr std::uint64_t largest_step = 1U << 24U;
    plan::FieldPattern pattern;
    if (r.has("list")) {
        auto found = read_list(r, version);
        if (found.mode != plan::Mode::pseudorandom)
            r.refuse("list", "hosts of a flow's prefixes that are not pseudorandom", "Leave mode out.");
        pattern.prefixes = std::move(found.list);
        return pattern;
    }
    if (r.has("values")) {
        const Json& list = r.array("values");
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string place = fmt::format("{}[{}]", r.where("values"), i);
            const Json holder{{place, list[i]}};
            pattern.addresses.push_back(ObjectReader{holder, ""}.address(place));
            if (pattern.addresses.back().version != pattern.addresses.front().version)
                r.refuse("values", "addresses of both IP versions", "Give addresses of one.");
        }
        check_list(r, list.size());
    } else {
        pattern.addresses.push_back(r.address("first"));
        pattern.count = static_cast<std::uint32_t>(r.whole("count", 1, most_hosts));
        if (r.has("step")) pattern.step = static_cast<std::uint32_t>(r.whole("step", 1, largest_step));
    }
    finish_pattern(r, pattern);
    return pattern;
}

/// A pattern of a flow's field, whose values are `least` to `most`.
plan::FieldPattern read_pattern(ObjectReader r, std::uint64_t least, std::uint64_t most) {
    plan::FieldPattern pattern;
    if (r.has("values")) {
        for (const auto value : read_wholes(r, "values", least, most))
            pattern.list.push_back(static_cast<std::uint32_t>(value));
        check_list(r, pattern.list.size());
    } else {
        pattern.first = static_cast<std::uint32_t>(r.whole("first", least, most));
        pattern.count = static_cast<std::uint32_t>(r.whole("count", 1, most - least + 1));
        if (r.has("step")) pattern.step = static_cast<std::uint32_t>(r.whole("step", 1, most - least + 1));
        const std::uint64_t last = pattern.first + std::uint64_t{pattern.count - 1} * pattern.step;
        if (last > most)
            r.refuse("count", fmt::format("values up to {}", last), fmt::format("Let the last be at most {}.", most));
    }
    finish_pattern(r, pattern);
    return pattern;
}

/// A field that is one number, or the pattern of it. `otherwise`: the number where the key is absent, or a pattern.
std::uint64_t read_field(ObjectReader& r, const char* key, std::uint64_t least, std::uint64_t most,
                         std::optional<plan::FieldPattern>& pattern, std::uint64_t otherwise = 0) {
    if (!r.has(key)) return otherwise;
    if (!r.value(key).is_object()) return r.whole(key, least, most);
    pattern = read_pattern(r.object(key), least, most);
    return otherwise;
}

/// Hexadecimal digits of `least` to `most` octets, which begin `found`. Returns how many.
std::size_t read_octets(ObjectReader& r, const char* key, std::span<std::byte> found, std::size_t least,
                        std::size_t most) {
    const std::string digits = r.text(key);
    const std::size_t octets = digits.size() / 2;
    if (digits.size() % 2 != 0 || octets < least || octets > most ||
        digits.find_first_not_of("0123456789abcdef") != std::string::npos)
        r.refuse(key, fmt::format("\"{}\"", digits),
                 fmt::format("Give {} octets as hexadecimal digits.",
                             least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most)));
    for (std::size_t i = 0; i < octets; ++i)
        found[i] = static_cast<std::byte>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    return octets;
}

/// A header in place of UDP's, with zeros where each frame has its own values.
frame::Transport read_transport(ObjectReader r) {
    using Kind = frame::Transport::Kind;
    frame::Transport found;
    constexpr std::array<std::pair<const char*, Kind>, 2> kinds{{{"tcp", Kind::tcp}, {"icmp", Kind::icmp}}};
    found.kind = r.choice("protocol", kinds);
    const std::size_t octets = frame::Transport::octets_of(found.kind);
    (void)read_octets(r, "header", found.header, octets, octets);
    std::byte* const at = found.header.data();
    frame::store(at + frame::Transport::numbers_of(found.kind), std::uint32_t{0});
    frame::store(at + frame::Transport::checksum_of(found.kind), std::uint16_t{0});
    r.finish();
    return found;
}

/// DSCP, one or a pattern of several, and ECN.
void read_traffic_class(ObjectReader& r, frame::ClassFields& fields) {
    auto& pattern = fields.patterns[plan::FlowField::traffic_class];
    const auto dscp = static_cast<std::uint32_t>(read_field(r, "dscp", 0, frame::largest_dscp, pattern));
    const auto ecn = static_cast<std::uint32_t>(r.has("ecn") ? r.whole("ecn", 0, frame::largest_ecn) : 0);
    const auto octet = [ecn](std::uint32_t of) { return of << 2U | ecn; };
    if (!pattern) {
        fields.traffic_class = static_cast<std::uint8_t>(octet(dscp));
        return;
    }
    std::ranges::transform(pattern->list, pattern->list.begin(), octet);
    pattern->first = octet(pattern->first);
    pattern->step <<= 2U;
}

/// A class that is a flow: its name, and the fields that its frames have.
void read_flow(ObjectReader& r, frame::FrameClass& c, plan::IpVersion version) {
    using enum plan::FlowField;
    constexpr std::uint64_t largest_port = 65535;
    auto& patterns = c.fields.patterns;
    const auto field = [&](const char* key, std::uint64_t largest, plan::FlowField of) {
        return static_cast<std::uint32_t>(read_field(r, key, 0, largest, patterns[of]));
    };
    if (r.has("transport")) c.fields.transport = read_transport(r.object("transport"));
    if (auto& transport = c.fields.transport; r.has("payload"))
        transport.payload_octets = static_cast<std::uint8_t>(
            read_octets(r, "payload", transport.payload, 1, frame::Transport::most_payload_octets));
    // ICMP's identifier and sequence number may be 0.
    const std::uint64_t least = c.fields.transport.kind == frame::Transport::Kind::icmp ? 0 : 1;
    const auto port = [&](const char* key, plan::FlowField of) {
        const auto found = static_cast<std::uint16_t>(read_field(r, key, least, largest_port, patterns[of]));
        return !r.has(key) || patterns[of] ? std::nullopt : std::optional{found};
    };
    const auto hosts = [&](const char* key, plan::FlowField of) {
        if (r.has(key)) patterns[of] = read_host_pattern(r.object(key), version);
    };
    c.name = r.text("name");
    if (c.name.empty()) r.refuse("name", "a flow without a name", "Give it one, or leave the key out.");
    read_traffic_class(r, c.fields);
    c.fields.flow_label = field("flow_label", frame::largest_flow_label, flow_label);
    c.fields.vlan_priority =
        static_cast<std::uint8_t>(field("vlan_priority", frame::largest_vlan_priority, vlan_priority));
    if (const auto vlan = read_field(r, "vlan", 1, frame::largest_vlan, patterns[plan::FlowField::vlan]); vlan != 0)
        patterns[plan::FlowField::vlan] =
            plan::FieldPattern{.addresses = {}, .list = {}, .first = static_cast<std::uint32_t>(vlan)};
    c.fields.source_port = port("source_port", source_port);
    c.fields.destination_port = port("destination_port", destination_port);
    hosts("left_host", left_host);
    hosts("right_host", right_host);
    if (r.has("loss_at_most")) c.loss_at_most = r.number("loss_at_most", 0, 1);
}

/// The classes of a mix, and their cycle.
frame::FrameMix read_frames(ObjectReader& mix, plan::IpVersion version) {
    std::vector<frame::FrameClass> classes;
    const Json& list = mix.array("classes");
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("{}[{}]", mix.where("classes"), i)};
        frame::FrameClass c{.plan = 0, .frame_size = read_frame_size(entry)};
        if (entry.has("plan")) c.plan = entry.whole("plan", 0, 1);
        if (entry.has("name")) read_flow(entry, c, version);
        entry.finish();
        classes.push_back(c);
    }
    std::vector<std::uint8_t> cycle;
    for (const auto number : read_wholes(mix, "cycle", 0, frame::FrameMix::most_classes - 1))
        cycle.push_back(static_cast<std::uint8_t>(number));
    mix.finish();
    return {std::move(classes), std::move(cycle)};
}

std::optional<frame::MixedPlans> read_mix(ObjectReader& r, const plan::AddressPlan& plan) {
    if (!r.has("mix")) return std::nullopt;
    auto mix = r.object("mix");
    std::optional<plan::AddressPlan> other_plan;
    if (mix.has("other_plan")) other_plan = read_plan(mix.object("other_plan"));
    frame::MixedPlans mixed{.mix = read_frames(mix, plan.left.version()), .other_plan = std::move(other_plan)};
    frame::check_mix(plan, mixed);
    return mixed;
}

std::optional<frame::FrameMix> read_reverse_mix(ObjectReader& r, const plan::AddressPlan& plan,
                                                const std::optional<frame::MixedPlans>& forward) {
    if (!r.has("reverse_mix")) return std::nullopt;
    if (!forward || !forward->mix.has_flows())
        r.refuse("reverse_mix", "flows of the reverse direction, and none of the forward one",
                 "Give those in mix, or leave it out.");
    auto mix = r.object("reverse_mix");
    try {
        frame::MixedPlans mixed{.mix = read_frames(mix, plan.left.version()), .other_plan = {}};
        frame::check_mix(plan, mixed);
        if (!mixed.mix.has_flows())
            r.refuse("reverse_mix", "classes without names where the forward direction has flows", "Name each class.");
        return std::move(mixed.mix);
    } catch (Fault& fault) {
        if (fault.where.starts_with("mix.")) fault.where = "reverse_" + fault.where;
        throw;
    }
}

run::HostMacMode read_host_macs(ObjectReader& r, const plan::AddressPlan& plan) {
    if (!r.has("host_macs")) return run::HostMacMode::port;
    constexpr std::array<std::pair<const char*, run::HostMacMode>, 2> modes{
        {{"port", run::HostMacMode::port}, {"pseudorandom", run::HostMacMode::pseudorandom}}};
    const auto mode = r.choice("host_macs", modes);
    if (mode == run::HostMacMode::pseudorandom && (plan.left.gateway || plan.right.gateway)) {
        r.refuse("host_macs",
                 "\"pseudorandom\" with a gateway: hosts behind a gateway have no MAC on the link (R4814-06)",
                 "Use a direct plan, or leave host_macs out.");
    }
    return mode;
}

}  // namespace evenhand::contract
