// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "config/delays.hpp"
#include "config/networks.hpp"
#include "config/route_files.hpp"
#include "config/translations.hpp"
#include "contract/reader.hpp"
#include "fault.hpp"
#include "frame/vlan.hpp"
#include "port/device_string.hpp"
#include "units.hpp"

namespace evenhand::router {
namespace {

using contract::Json;
using contract::ObjectReader;

constexpr double any_number = std::numeric_limits<double>::max();
constexpr std::size_t most_elements = 512;
constexpr std::size_t default_table_size = 128;

std::string element_text(ObjectReader& r, std::string_view key, const Json& value) {
    if (!value.is_string()) r.refuse(key, fmt::format("{} is not a text", value.dump()), "Give a list of texts.");
    return value.get<std::string>();
}

PortConfig read_port(ObjectReader r) {
    PortConfig port;
    port.device = r.text("device");
    if (port.device.empty())
        r.refuse("device", "the device is empty",
                 "Name a DPDK device, such as net_memif0,role=server,id=0,socket=/tmp/left.sock.");
    if (const auto refusal = port::refuse_device(port.device)) r.refuse("device", refusal->what, refusal->next);
    if (r.has("mac")) port.mac = r.mac("mac");
    for (const auto& value : r.array("addresses")) {
        const auto [address, length] = read_prefix(r, "addresses", element_text(r, "addresses", value));
        port.addresses.push_back({.address = address, .prefix_length = length});
    }
    if (r.has("receive_ring_frames"))
        port.receive_ring_frames = static_cast<unsigned>(r.whole("receive_ring_frames", 64, 16384));
    if (r.has("transmit_ring_frames"))
        port.transmit_ring_frames = static_cast<unsigned>(r.whole("transmit_ring_frames", 64, 16384));
    if (r.has("vlan")) {
        for (const auto& value : r.array("vlan")) {
            if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
                value.get<std::uint64_t>() > frame::largest_vlan) {
                r.refuse("vlan", fmt::format("{} is not a VLAN", value.dump()),
                         fmt::format("Use 1 to {}.", frame::largest_vlan));
            }
            port.vlans.push_back(value.get<std::uint16_t>());
        }
        if (port.vlans.empty() || port.vlans.size() > frame::most_vlan_tags) {
            r.refuse("vlan", fmt::format("{} VLAN tags", port.vlans.size()),
                     "Give one, or two: the outer (802.1ad) first; or leave it out.");
        }
    }
    r.finish();
    return port;
}

std::vector<std::uint8_t> read_key(ObjectReader& r, std::size_t longest_input) {
    const std::string text = r.text("key");
    std::vector<std::uint8_t> key;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        std::uint8_t octet = 0;
        const auto [stop, error] = std::from_chars(text.data() + i, text.data() + i + 2, octet, 16);
        if (error != std::errc{} || stop != text.data() + i + 2) break;
        key.push_back(octet);
    }
    const std::size_t least = longest_input + hash_window_octets;
    if (2 * key.size() != text.size() || key.size() < least) {
        r.refuse("key", fmt::format("\"{}\" is not a hash key: {} octets read", text, key.size()),
                 fmt::format("Write {} octets or more as hexadecimal digits.", least));
    }
    return key;
}

ModelConfig read_model(ObjectReader r) {
    ModelConfig model;
    model.elements.count = r.whole("count", 1, most_elements);
    model.elements.rate_fps = r.number("rate_fps", 0, any_number, true);
    model.elements.queue_frames = r.whole("queue_frames", 1, 131072);
    constexpr std::array<std::pair<const char*, HashType>, 2> hashes{
        {{"type1", HashType::addresses}, {"type2", HashType::addresses_and_ports}}};
    model.spread.hash = r.choice("hash", hashes, "type1: addresses only; type2: addresses and ports.");
    if (r.has("symmetric")) model.spread.is_symmetric = r.boolean("symmetric");
    model.spread.key = read_key(r, model.spread.hash == HashType::addresses ? 32 : longest_hash_input);
    if (r.has("table")) {
        for (const auto& value : r.array("table")) {
            if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= model.elements.count) {
                r.refuse("table", fmt::format("{} is not an element", value.dump()),
                         fmt::format("Use element numbers below {}.", model.elements.count));
            }
            model.spread.table.push_back(value.get<std::uint16_t>());
        }
        constexpr std::size_t largest = 65536;
        if (!std::has_single_bit(model.spread.table.size()) || model.spread.table.size() > largest) {
            r.refuse("table", fmt::format("it has {} entries", model.spread.table.size()),
                     fmt::format("Use a power of two, at most {}.", largest));
        }
    } else {
        const std::size_t size = std::max(default_table_size, std::bit_ceil(model.elements.count));
        for (std::size_t i = 0; i < size; ++i)
            model.spread.table.push_back(static_cast<std::uint16_t>(i % model.elements.count));
    }
    r.finish();
    return model;
}

void read_neighbors(ObjectReader r, RouterConfig& config) {
    auto& options = config.neighbors;
    if (r.has("limit")) options.limit = r.whole("limit", 1, 1U << 25U);
    if (r.has("reachable_s")) options.reachable_s = r.number("reachable_s", 0, any_number, true);
    if (r.has("retry_s")) options.retry_s = r.number("retry_s", 0, any_number, true);
    if (r.has("tries")) options.tries = static_cast<unsigned>(r.whole("tries", 1, 100));
    if (r.has("queue_frames")) options.queue_frames = r.whole("queue_frames", 1, 65536);
    if (r.has("static")) {
        const Json& list = r.array("static");
        for (std::size_t i = 0; i < list.size(); ++i) {
            ObjectReader entry{list[i], fmt::format("{}[{}]", r.where("static"), i)};
            config.static_neighbors.push_back({.address = entry.address("address"), .mac = entry.mac("mac")});
            entry.finish();
        }
    }
    if (r.has("free_entries")) config.neighbor_cost.free_entries = r.whole("free_entries", 1, 1U << 25U);
    if (r.has("growth")) config.neighbor_cost.growth = r.number("growth", 0, 100);
    r.finish();
}

DefectOptions read_defects(ObjectReader r) {
    constexpr std::array<const char*, defect_kinds> names{"loss", "duplication", "reordering", "corruption"};
    constexpr double least_ratio = 1e-9;
    DefectOptions defects;
    if (r.has("seed")) defects.seed = r.whole("seed", 0, std::numeric_limits<std::uint64_t>::max());
    if (r.has("dscp")) defects.dscp = static_cast<std::uint8_t>(r.whole("dscp", 0, 63));
    for (std::size_t i = 0; i < defect_kinds; ++i) {
        if (!r.has(names[i])) continue;
        auto kind = r.object(names[i]);
        if (kind.has("ratio")) {
            defects.ratios[i] = kind.number("ratio", 0, 1);
            if (defects.ratios[i] != 0 && defects.ratios[i] < least_ratio)
                kind.refuse("ratio", fmt::format("{} is too small", defects.ratios[i]), "Use 0, or 1e-9 to 1.");
        }
        if (kind.has("at")) {
            for (const auto& value : kind.array("at")) {
                if (!value.is_number_unsigned())
                    kind.refuse("at", fmt::format("{} is not a frame number", value.dump()),
                                "Count forwarded frames from 0.");
                defects.at[i].push_back(value.get<std::uint64_t>());
            }
        }
        kind.finish();
    }
    r.finish();
    return defects;
}

void read_host(ObjectReader r, port::HostOptions& host) {
    if (r.has("memory_mb")) host.memory_mb = static_cast<unsigned>(r.whole("memory_mb", 64, 1U << 20U));
    if (r.has("hugepages")) host.hugepages = r.boolean("hugepages");
    if (r.has("extra_eal_arguments")) {
        for (const auto& value : r.array("extra_eal_arguments"))
            host.extra_eal_arguments.push_back(element_text(r, "extra_eal_arguments", value));
        if (const auto refusal = port::refuse_eal_arguments(host.extra_eal_arguments))
            r.refuse("extra_eal_arguments", refusal->what, refusal->next);
    }
    r.finish();
}

void read_pair(ObjectReader r, RouterConfig& config) {
    config.ports.push_back(read_port(r.object("left")));
    config.ports.push_back(read_port(r.object("right")));
    r.finish();
}

void check_addresses(const RouterConfig& config) {
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        if (config.ports[i].addresses.empty()) {
            throw Fault{FaultCode::bad_request, "the interface has no address", where_of_port(i) + ".addresses",
                        "Give at least one, such as 10.0.0.1/24."};
        }
    }
}

/// Both ports of a pair may be one device, if their frames can be told apart.
void check_one_armed(const RouterConfig& config) {
    const auto name_of = [](const PortConfig& port) { return port.device.substr(0, port.device.find(',')); };
    for (std::size_t i = 0; i + 1 < config.ports.size(); i += 2) {
        const auto& left = config.ports[i];
        const auto& right = config.ports[i + 1];
        if (name_of(left) != name_of(right)) continue;
        if (left.device != right.device || left.receive_ring_frames != right.receive_ring_frames ||
            left.transmit_ring_frames != right.transmit_ring_frames) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("both ports are {}, with other arguments or rings", name_of(left)),
                        where_of_port(i + 1) + ".device", "Say the same of it twice, or name another device."};
        }
        if (left.vlans == right.vlans) {
            throw Fault{FaultCode::bad_request,
                        fmt::format("both ports are {}, with the same VLAN tags", name_of(left)),
                        where_of_port(i + 1) + ".vlan", "Give each its own VLAN, or name another device."};
        }
    }
}

/// Left and right; further pairs are in a list.
template <class Side>
void put_ports(Json& line, std::size_t ports, const Side& side) {
    line["left"] = side(0);
    line["right"] = side(1);
    for (std::size_t i = 2; i < ports; i += 2)
        line["more_ports"].push_back({{"left", side(i)}, {"right", side(i + 1)}});
}

void check_pool(const RouterConfig& config) {
    if (!config.nat) return;
    for (const auto& port : config.ports) {
        for (const auto& [address, length] : port.addresses) {
            if (config.nat->pool.contains(address)) {
                throw Fault{
                    FaultCode::bad_request,
                    fmt::format("{}, an address of the router itself, is in the pool", plan::to_string(address)),
                    "nat.pool", "Use other addresses for the pool."};
            }
        }
    }
}

}  // namespace

std::string where_of_port(std::size_t port) {
    const char* const side = port % 2 == 0 ? "left" : "right";
    return port < 2 ? fmt::format("ports.{}", side) : fmt::format("more_ports[{}].{}", port / 2 - 1, side);
}

RouterConfig read_config(std::string_view text) {
    const Json json =
        contract::read_document(text, {.name = "the configuration",
                                       .most_octets = contract::longest_configuration,
                                       .next = "Write one JSON object, as contract/router-config.schema.json has it."});
    ObjectReader r{json, ""};
    RouterConfig config;
    read_pair(r.object("ports"), config);
    if (r.has("more_ports")) {
        const Json& list = r.array("more_ports");
        constexpr std::size_t most = most_interfaces / 2 - 1;
        if (list.size() > most)
            r.refuse("more_ports", fmt::format("{} more pairs of ports", list.size()),
                     fmt::format("Use up to {}.", most));
        for (std::size_t i = 0; i < list.size(); ++i) read_pair({list[i], fmt::format("more_ports[{}]", i)}, config);
    }
    config.cpu = static_cast<unsigned>(r.whole("cpu", 0, 65535));
    if (r.has("routes")) {
        const Json& list = r.array("routes");
        for (std::size_t i = 0; i < list.size(); ++i) {
            ObjectReader entry{list[i], fmt::format("routes[{}]", i)};
            const auto [network, length] = read_prefix(entry, "network", entry.text("network"));
            config.routes.push_back({.network = network, .prefix_length = length, .via = entry.address("via")});
            entry.finish();
        }
    }
    if (r.has("route_files")) config.route_files = read_route_files(r);
    if (r.has("elements")) config.model = read_model(r.object("elements"));
    if (r.has("neighbors")) read_neighbors(r.object("neighbors"), config);
    if (r.has("translation")) config.translation = read_translation(r.object("translation"));
    if (r.has("nat")) {
        if (config.translation)
            r.refuse("nat", "it is given together with translation",
                     "Leave one of them out: a router translates in one way.");
        config.nat = read_nat(r.object("nat"));
    }
    if (r.has("defects")) config.defects = read_defects(r.object("defects"));
    read_delays(r, config);
    if (r.has("largest_frame_size"))
        config.largest_frame_size =
            r.whole("largest_frame_size", frame::largest_usual_frame_size, frame::largest_frame_size);
    if (r.has("host")) read_host(r.object("host"), config.host);
    r.finish();
    check_addresses(config);
    check_one_armed(config);
    check_pool(config);
    return config;
}

RouterRequest read_router_request(std::string_view line) {
    const Json json = contract::read_document(
        line, {.name = "the line",
               .most_octets = contract::longest_line,
               .next = R"(Send {"request":"counters"}, {"request":"flush"} or {"request":"stop"}.)"});
    ObjectReader r{json, ""};
    constexpr std::array<std::pair<const char*, RouterRequest>, 3> requests{
        {{"counters", RouterRequest::counters}, {"flush", RouterRequest::flush}, {"stop", RouterRequest::stop}}};
    const auto request = r.choice("request", requests);
    r.finish();
    return request;
}

std::string ready_line(const RouterConfig& config, const std::vector<plan::MacAddress>& macs, int thread_id,
                       std::string_view version, std::string_view dpdk) {
    const auto side = [&](std::size_t i) {
        return Json{{"device", config.ports[i].device}, {"mac", plan::to_string(macs[i])}};
    };
    Json line{{"event", "ready"}, {"version", version}, {"dpdk", dpdk}, {"thread", thread_id}};
    put_ports(line, macs.size(), side);
    return line.dump();
}

std::string counters_line(std::string_view event, const RouterCounters& counters, std::size_t ports,
                          const CountersContext& context) {
    const auto to_us = [&](std::uint64_t ticks) {
        return static_cast<double>(ticks) * us_per_second / context.ticks_per_second;
    };
    const auto side = [&](std::size_t i) {
        const InterfaceCounters& c = counters.forward.interfaces[i];
        return Json{{"received_frames", c.received_frames},
                    {"transmitted_frames", c.transmitted_frames},
                    {"transmit_dropped_frames", c.transmit_dropped_frames},
                    {"local_frames", c.local_frames},
                    {"other_mac_frames", c.other_mac_frames},
                    {"ignored_frames", c.ignored_frames},
                    {"malformed_frames", c.malformed_frames},
                    {"martian_frames", c.martian_frames},
                    {"expired_frames", c.expired_frames},
                    {"no_route_frames", c.no_route_frames},
                    {"unresolved_frames", c.unresolved_frames},
                    {"element_dropped_frames", c.element_dropped_frames},
                    {"stalled_frames", c.stalled_frames}};
    };
    Json elements = Json::array();
    for (const auto& e : counters.elements) {
        elements.push_back({{"served_frames", e.served_frames},
                            {"dropped_frames", e.dropped_frames},
                            {"most_waiting_frames", e.most_waiting}});
    }
    const ModelCounters& model = counters.forward.model;
    const DefectCounters& defects = counters.forward.defects;
    Json line{{"event", event},
              {"elements", elements},
              {"neighbors",
               {{"entries", counters.neighbor_entries},
                {"questions", counters.neighbor_questions},
                {"given_up_frames", counters.given_up_frames}}},
              {"model",
               {{"departed_frames", model.departed_frames},
                {"overdue_frames", model.overdue_frames},
                {"overdue_after_us", context.overdue_after_us},
                {"longest_overdue_us", to_us(model.longest_overdue)},
                {"longest_gap_us", to_us(model.longest_gap)},
                {"overflow_frames", model.overflow_frames}}},
              {"defects",
               {{"lost_frames", defects.lost_frames},
                {"duplicated_frames", defects.duplicated_frames},
                {"reordered_frames", defects.reordered_frames},
                {"corrupted_frames", defects.corrupted_frames}}}};
    put_ports(line, ports, side);
    if (const auto& t = counters.translation) {
        line["translation"] = {{"translated_frames", t->translated_frames},
                               {"refused_frames", t->refused_frames},
                               {"wrong_address_frames", t->wrong_address_frames},
                               {"no_checksum_frames", t->no_checksum_frames},
                               {"traffic_class_frames", t->traffic_class_frames}};
    }
    if (const auto& n = counters.nat) {
        line["nat"] = {{"entries", n->entries},
                       {"most_entries", n->most_entries},
                       {"created", n->created},
                       {"replaced", n->replaced},
                       {"expired", n->expired},
                       {"flushed", n->flushed},
                       {"translated_frames", n->translated_frames},
                       {"refused_full", n->refused_full},
                       {"exhausted_ports", n->exhausted_ports},
                       {"unknown_frames", n->unknown_frames},
                       {"refused_frames", n->refused_frames},
                       {"same_tuple_frames", n->same_tuple_frames},
                       {"lost_entry_frames", n->lost_entry_frames},
                       {"other_address_frames", n->other_address_frames},
                       {"wrong_checksum_frames", n->wrong_checksum_frames}};
    }
    return line.dump();
}

std::string flushed_line(const Flushed& flushed) {
    return Json{{"event", "flushed"}, {"entries", flushed.entries}, {"seconds", flushed.seconds}}.dump();
}

std::string fault_line(std::string_view code, std::string_view kind, std::string_view what, std::string_view where,
                       std::string_view next) {
    // `what` may repeat octets of a line that is not valid UTF-8.
    return Json{{"fault", {{"code", code}, {"kind", kind}, {"what", what}, {"where", where}, {"next", next}}}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace evenhand::router
