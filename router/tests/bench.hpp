// SPDX-License-Identifier: Apache-2.0
// A router between two ports in memory, in a time that the test controls.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "forward/forwarder.hpp"
#include "frame/reader.hpp"
#include "frame/source.hpp"
#include "neighbor/messages.hpp"
#include "octets.hpp"
#include "plans.hpp"
#include "port/memory_port.hpp"

namespace evenhand::tests::forwarding {

using namespace evenhand::router;
using frame::IpVersion;
using port::MemoryPort;

constexpr Ticks us = 1000;  // a tick is 1 ns
constexpr Ticks second = 1'000'000 * us;
constexpr plan::MacAddress left_tester{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress right_tester{2, 0, 0, 0, 0, 2};
constexpr plan::MacAddress left_dut{2, 0, 0, 0, 0xd0, 1};
constexpr plan::MacAddress right_dut{2, 0, 0, 0, 0xd0, 2};

/// The DUT of Figures 3 and 5, both at once; with several pairs of ports, each pair is one. Ports are left and right of
/// each pair.
class Bench {
   public:
    explicit Bench(std::optional<ElementModel> model = {}, DefectOptions defects = {}, Ticks extra_delay = 0,
                   Ticks start = 100 * second)
        : Bench{{.extra_delay = extra_delay}, std::move(model), std::move(defects), start} {}
    explicit Bench(const ForwardOptions& delays, std::optional<ElementModel> model = {}, DefectOptions defects = {},
                   Ticks start = 100 * second, const std::optional<NatOptions>& nat = {}, std::size_t pairs = 1)
        : now{start} {
        for (std::size_t port = 0; port < 2 * pairs; ++port) {
            MemoryPort& inside = inside_.emplace_back(16384);
            outside_.emplace_back(4).connect(inside);
            inside.connect(outside_.back());
        }
        for (std::size_t pair = 0; pair < pairs; ++pair) pairs_.emplace_back();
        forwarder_ = make(std::move(model), std::move(defects), delays, nat);
    }

    void send(unsigned port, const tests::Octets& octets) {
        MemoryPort::Frame f;
        std::ranges::copy(octets, f.octets.begin());
        f.length = octets.size();
        inside_[port].inject(f);
    }
    void turn() {
        forwarder_->turn([this] { return now; });
    }
    void run(Ticks duration, Ticks step = us) {
        for (const Ticks end = now + duration; static_cast<std::int64_t>(end - now) > 0; now += step) turn();
    }
    std::vector<tests::Octets> take(unsigned port) {
        std::vector<tests::Octets> frames;
        for (auto& f : outside_[port].arrived())
            frames.emplace_back(f.octets.begin(), f.octets.begin() + static_cast<std::ptrdiff_t>(f.length));
        outside_[port].arrived().clear();
        return frames;
    }
    /// Takes test frames only: the router also probes the gateways that it uses (RFC 4861, 7.3.3).
    std::vector<tests::Octets> take_test_frames(unsigned port) {
        auto frames = take(port);
        std::erase_if(frames, [](const tests::Octets& f) {
            return frame::look_at(f.data(), f.size()).kind != frame::FrameKind::test;
        });
        return frames;
    }
    /// Both gateways announce themselves, as a tester's learning frames do.
    void introduce() {
        for (unsigned port = 0; port < inside_.size(); port += 2) {
            for (const bool v6 : {false, true}) {
                send(port, question(v6, left_tester, v6 ? "2001:2:0:1000::2" : "10.0.0.2",
                                    v6 ? "2001:2:0:1000::1" : "10.0.0.1"));
                send(port + 1, question(v6, right_tester, v6 ? "2001:2:0:9000::2" : "10.0.1.2",
                                        v6 ? "2001:2:0:9000::1" : "10.0.1.1"));
            }
        }
        turn();
        for (unsigned port = 0; port < inside_.size(); ++port) REQUIRE(take(port).size() == 2);
    }
    static tests::Octets question(bool v6, const plan::MacAddress& mac, const char* from, const char* about) {
        tests::Octets octets(neighbor::solicitation_octets);
        const neighbor::Party self{.mac = mac, .ip = ip(from)};
        octets.resize(v6 ? neighbor::write_neighbor_solicitation(octets, self, ip(about))
                         : neighbor::write_arp_request(octets, self, ip(about)));
        return octets;
    }

    [[nodiscard]] const ForwardCounters& counters() const { return forwarder_->counters(); }
    [[nodiscard]] const Forwarder<MemoryPort>& forwarder() const { return *forwarder_; }
    [[nodiscard]] Forwarder<MemoryPort>& forwarder() { return *forwarder_; }
    [[nodiscard]] NatCounters nat_counters() const { return forwarder_->nat()->counters(); }
    [[nodiscard]] const NeighborTable& neighbors(std::size_t pair = 0) const { return pairs_[pair].neighbors; }

    Ticks now;

   private:
    std::unique_ptr<Forwarder<MemoryPort>> make(std::optional<ElementModel> model, DefectOptions defects,
                                                ForwardOptions options, const std::optional<NatOptions>& nat) {
        options.overdue_after = 100 * us;
        options.waiting_frames = 8192;
        options.horizon = options.extra_delay + options.longer_delay + options.stalls.length;
        options.ticks_per_second = second;
        if (model) options.horizon += model->elements.longest_stay();
        std::vector<MemoryPort*> ports;
        ports.reserve(inside_.size());
        for (auto& port : inside_) ports.push_back(&port);
        std::vector<VirtualRouter> pairs;
        pairs.reserve(pairs_.size());
        for (auto& pair : pairs_) {
            pairs.push_back({.interfaces = std::span<const Interface, 2>{pair.interfaces},
                             .routes = &routes_,
                             .neighbors = &pair.neighbors,
                             .local = &pair.local});
        }
        return std::make_unique<Forwarder<MemoryPort>>(
            ports, std::move(pairs), std::move(model), std::nullopt,
            nat ? std::optional{Nat{*nat, static_cast<double>(second)}} : std::nullopt, Defects{std::move(defects)},
            options, now);
    }

    static std::array<Interface, 2> make_interfaces() {
        std::array<Interface, 2> interfaces;
        interfaces[0] = {.number = 0,
                         .mac = left_dut,
                         .addresses = {{ip("10.0.0.1"), 24}, {ip("2001:2:0:1000::1"), 64}},
                         .link_local = plan::link_local_address(left_dut)};
        interfaces[1] = {.number = 1,
                         .mac = right_dut,
                         .addresses = {{ip("10.0.1.1"), 24}, {ip("2001:2:0:9000::1"), 64}},
                         .link_local = plan::link_local_address(right_dut)};
        return interfaces;
    }
    static std::vector<RouteEntry> make_routes(const std::array<Interface, 2>& interfaces) {
        auto routes = routes_of(interfaces);
        routes.push_back(
            {.network = ip("198.18.0.0"), .prefix_length = 16, .route = {.interface = 0, .via = ip("10.0.0.2")}});
        routes.push_back(
            {.network = ip("198.19.0.0"), .prefix_length = 16, .route = {.interface = 1, .via = ip("10.0.1.2")}});
        routes.push_back(
            {.network = ip("2001:2::"), .prefix_length = 64, .route = {.interface = 0, .via = ip("2001:2:0:1000::2")}});
        routes.push_back({.network = ip("2001:2:0:8000::"),
                          .prefix_length = 64,
                          .route = {.interface = 1, .via = ip("2001:2:0:9000::2")}});
        return routes;
    }

    struct Pair {
        std::array<Interface, 2> interfaces = make_interfaces();
        NeighborTable neighbors{NeighborTable::Options{}, static_cast<double>(second)};
        LocalAnswerer local{{interfaces.begin(), interfaces.end()}, neighbors};
    };

    RouteTable routes_{make_routes(make_interfaces())};  // the same for each pair
    std::deque<MemoryPort> inside_;                      // deques, whose elements never move
    std::deque<MemoryPort> outside_;
    std::deque<Pair> pairs_;
    std::unique_ptr<Forwarder<MemoryPort>> forwarder_;
};

/// Test frames of a plan, beginning with the first.
template <IpVersion V>
std::vector<tests::Octets> test_frames(const plan::AddressPlan& plan, plan::Direction direction, std::size_t count,
                                       std::size_t size = frame::Layout<V>::smallest_frame_size) {
    const bool is_forward = direction == plan::Direction::forward;
    const auto shape = frame::make_template(plan, size, {.direction = direction, .stream = 0, .trial = 1},
                                            is_forward ? left_tester : right_tester, is_forward ? left_dut : right_dut);
    frame::TestFrameSource source{shape, plan::FlowDraw{plan, direction, 1}, {}};
    std::vector<tests::Octets> frames(count, tests::Octets(shape.octets));
    for (auto& f : frames) {
        frame::write_pattern(V, f);
        std::byte* const at = f.data();
        source.write_next(std::span{&at, 1}, 0);
    }
    return frames;
}

inline std::uint64_t number_of(const tests::Octets& f) { return frame::look_at(f.data(), f.size()).tag.sequence; }

inline ElementModel model_of(std::size_t count, double rate_fps, std::size_t queue_frames,
                             HashType hash = HashType::addresses) {
    SpreadOptions spread{.hash = hash, .is_symmetric = false, .key = {}, .table = {}};
    for (const auto octet :
         tests::octets_of("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"))
        spread.key.push_back(static_cast<std::uint8_t>(octet));
    for (std::size_t i = 0; i < 128; ++i) spread.table.push_back(static_cast<std::uint16_t>(i % count));
    return {.spread = Spread{spread},
            .elements = Elements{{.count = count, .rate_fps = rate_fps, .queue_frames = queue_frames}, second},
            .neighbor_cost = {}};
}

}  // namespace evenhand::tests::forwarding
