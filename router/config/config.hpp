// SPDX-License-Identifier: Apache-2.0
// Config: reads the router's configuration and requests, and writes its lines. The only folder of the router that sees
// JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elements/defects.hpp"
#include "elements/elements.hpp"
#include "elements/spread.hpp"
#include "forward/counters.hpp"
#include "forward/nat_options.hpp"
#include "forward/translation.hpp"
#include "frame/layout.hpp"
#include "plan/address.hpp"
#include "port/dpdk_host.hpp"
#include "tables/interface.hpp"
#include "tables/neighbor_table.hpp"
#include "tables/route_table.hpp"

namespace evenhand::router {

struct PortConfig {
    std::string device;
    std::optional<plan::MacAddress> mac;  // default: the device's
    std::vector<InterfaceAddress> addresses;
    unsigned receive_ring_frames = 2048;
    unsigned transmit_ring_frames = 2048;
    std::vector<std::uint16_t> vlans;  // VLAN tags of all frames on its link: none, one, or two (the outer one first)
};

struct RouteConfig {
    plan::IpAddress network;
    unsigned prefix_length = 0;
    plan::IpAddress via;
};

/// A file of prefixes with one next hop, as it was read.
struct RouteFileConfig {
    plan::IpAddress via;
    std::vector<RoutePrefix> prefixes;
};

struct StaticNeighborConfig {
    plan::IpAddress address;
    plan::MacAddress mac{};
};

struct ModelConfig {
    SpreadOptions spread;
    ElementOptions elements;
};

/// A second delay: some frames take longer.
struct LongerDelayConfig {
    std::uint64_t every = 0;  // 0: none does
    double us = 0;
};

/// Regular times in which nothing leaves.
struct StallConfig {
    double every_ms = 0;  // 0: never
    double for_ms = 0;
    std::size_t queue_frames = 0;  // that wait for the end of a stall, on each side
};

/// See contract/router-config.schema.json.
struct RouterConfig {
    std::vector<PortConfig> ports;  // left and right of each pair, 1 to most_interfaces / 2 of them
    std::vector<RouteConfig> routes;
    std::vector<RouteFileConfig> route_files;
    std::optional<ModelConfig> model;  // default: as fast as possible
    NeighborCost neighbor_cost;
    NeighborTable::Options neighbors;
    std::vector<StaticNeighborConfig> static_neighbors;
    std::optional<TranslationOptions> translation;  // default: none, the router only routes
    std::optional<NatOptions> nat;                  // not together with `translation`
    DefectOptions defects;
    double extra_delay_us = 0;
    LongerDelayConfig longer_delay;
    std::optional<double> delayed_load_fps;  // the highest load in each direction for whose frames the delays have room
    StallConfig stall;
    double overdue_after_us = 100;
    std::size_t largest_frame_size = frame::largest_usual_frame_size;  // octets with FCS that its ports take
    unsigned cpu = 0;
    port::HostOptions host;
};

/// The configuration's name for this port, such as `ports.left`.
[[nodiscard]] std::string where_of_port(std::size_t port);

/// Throws Fault{bad_json, bad_request} that names the place and the value.
[[nodiscard]] RouterConfig read_config(std::string_view text);

/// One line of stdin. Throws Fault{bad_json, bad_request}.
enum class RouterRequest : std::uint8_t { counters, flush, stop };
[[nodiscard]] RouterRequest read_router_request(std::string_view line);

/// What is needed to convert the model's counters into times.
struct CountersContext {
    double ticks_per_second = 1;
    double overdue_after_us = 100;
};

/// A copy of all counters at one moment.
struct RouterCounters {
    ForwardCounters forward;
    std::vector<ElementCounters> elements;
    std::size_t neighbor_entries = 0;
    std::uint64_t neighbor_questions = 0;
    std::uint64_t given_up_frames = 0;  // waited for a next hop that did not answer
    std::optional<TranslationCounters> translation;
    std::optional<NatCounters> nat;
};

/// The result of emptying the connection table.
struct Flushed {
    std::size_t entries = 0;
    double seconds = 0;  // from the request to the answer
};

/// Lines without a line end. `event` is "counters", or "stopped" in the last line.
[[nodiscard]] std::string ready_line(const RouterConfig& config, const std::vector<plan::MacAddress>& macs,
                                     int thread_id, std::string_view version, std::string_view dpdk);
/// `ports`: the number of ports.
[[nodiscard]] std::string counters_line(std::string_view event, const RouterCounters& counters, std::size_t ports,
                                        const CountersContext& context);
[[nodiscard]] std::string flushed_line(const Flushed& flushed);
[[nodiscard]] std::string fault_line(std::string_view code, std::string_view kind, std::string_view what,
                                     std::string_view where, std::string_view next);

}  // namespace evenhand::router
