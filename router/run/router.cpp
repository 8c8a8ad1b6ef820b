// SPDX-License-Identifier: Apache-2.0
#include "run/router.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "config/delays.hpp"
#include "fault.hpp"
#include "pace/clock.hpp"
#include "port/bursts.hpp"
#include "units.hpp"

namespace evenhand::router {
namespace {

using namespace std::chrono_literals;

/// The memory for frame buffers and tables, in megabytes.
std::uint64_t memory_mb(const RouterConfig& config, const Room& room) {
    const std::size_t ports = config.ports.size();
    constexpr std::size_t around = 512;  // headroom, and what DPDK needs of each buffer
    constexpr std::size_t page = 4096;
    const std::size_t needed = std::max<std::size_t>(2048, config.largest_frame_size) + around;
    const std::size_t buffer_octets =
        config.host.hugepages ? needed : (needed + page - 1) / page * page;  // each buffer has a page of its own
    const std::size_t other_mb = 64 + 32 * ports;
    const std::size_t buffers =
        ports *
        (room.of_port + 2 * largest_ring);  // in addition to waiting frames: arriving frames, and frames of our own
    return other_mb + (buffers * buffer_octets >> 20U);
}

/// How much memory this machine can still provide; nothing if it does not say.
std::optional<std::uint64_t> available_mb() {
    std::ifstream file{"/proc/meminfo"};
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view key = "MemAvailable:";
        if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10) >> 10U;
    }
    return std::nullopt;
}

/// A router that has no room for the frames that it must delay would lose them.
void refuse_too_long_delays(const RouterConfig& config, std::uint64_t needed_mb) {
    const auto host_mb = available_mb();
    if (!host_mb || config.host.hugepages || needed_mb <= *host_mb) return;
    const bool is_delayed = config.extra_delay_us != 0 || config.longer_delay.us != 0;
    throw Fault{FaultCode::no_memory,
                fmt::format("the frames that wait in the router need {} MB, and this machine has {} MB left", needed_mb,
                            *host_mb),
                is_delayed ? "delayed_load_fps" : "elements.queue_frames",
                is_delayed ? "State the highest load per direction that the delay must hold, or use a shorter delay."
                           : "Use shorter queues, or fewer elements."};
}

Ticks to_ticks(double us, double ticks_per_second) {
    return static_cast<Ticks>(std::llround(us / us_per_second * ticks_per_second));
}

unsigned interface_towards(std::span<const Interface> interfaces, const plan::IpAddress& neighbor) {
    for (const auto& interface : interfaces) {
        if (interface.is_on_link(neighbor)) return interface.number;
    }
    throw Fault{FaultCode::bad_request, fmt::format("{} is on no link of the router", plan::to_string(neighbor)),
                "routes", "Use an address in the network of one of its interfaces."};
}

}  // namespace

Router::Router(const RouterConfig& config)
    : context_{.ticks_per_second = pace::calibrate_ticks_per_second(), .overdue_after_us = config.overdue_after_us},
      flush_us_per_entry_{config.nat ? std::optional{config.nat->flush_us_per_entry} : std::nullopt} {
    const Room room = room_of(config);
    open_ports(config, room);
    for (std::size_t number = 0; number < ports_.size() / 2; ++number) pairs_.push_back(make_pair(config, number));

    ForwardOptions options;
    options.ticks_per_second = static_cast<Ticks>(std::llround(context_.ticks_per_second));
    options.extra_delay = to_ticks(config.extra_delay_us, context_.ticks_per_second);
    options.overdue_after = to_ticks(config.overdue_after_us, context_.ticks_per_second);
    options.waiting_frames = room.in_total;
    options.longer_every = config.longer_delay.every;
    options.longer_delay = to_ticks(config.longer_delay.us, context_.ticks_per_second);
    options.stalls.every = to_ticks(config.stall.every_ms * us_per_ms, context_.ticks_per_second);
    options.stalls.length = to_ticks(config.stall.for_ms * us_per_ms, context_.ticks_per_second);
    options.stalls.queue_frames = config.stall.queue_frames;
    options.horizon = options.extra_delay + options.longer_delay + options.stalls.length;
    std::optional<ElementModel> model;
    if (config.model) {
        ElementOptions elements = config.model->elements;
        if (config.nat) elements.dear_cost = config.nat->entry_cost;
        model.emplace(Spread{config.model->spread}, Elements{elements, options.ticks_per_second}, config.neighbor_cost);
        const std::size_t most_neighbors = pairs_.size() * std::max<std::size_t>(config.neighbors.limit, 1);
        const double dearest = config.neighbor_cost.factor(most_neighbors);
        options.horizon += static_cast<Ticks>(static_cast<double>(model->elements.longest_stay()) * dearest);
    }
    constexpr Ticks most_stalls = 65536;  // that frames may be waiting for at the same time
    if (options.stalls.every != 0 && options.horizon / options.stalls.every > most_stalls) {
        throw Fault{FaultCode::bad_request,
                    fmt::format("a frame may wait in the router for more than {} stalls", most_stalls),
                    "stall.every_ms", "Make the stalls rarer, or the delays and queues shorter."};
    }
    std::vector<port::TaggedPort*> ports;
    ports.reserve(ports_.size());
    for (const auto& port : ports_) ports.push_back(port.get());
    std::vector<VirtualRouter> pairs;
    pairs.reserve(pairs_.size());
    for (const auto& pair : pairs_) {
        pairs.push_back({.interfaces = std::span<const Interface, 2>{pair->interfaces},
                         .routes = pair->routes.get(),
                         .neighbors = pair->neighbors.get(),
                         .local = pair->local.get()});
    }
    forwarder_ = std::make_unique<Forwarder<port::TaggedPort>>(
        ports, std::move(pairs), std::move(model),
        config.translation ? std::optional{Translator{*config.translation}} : std::nullopt,
        config.nat ? std::optional{Nat{*config.nat, context_.ticks_per_second}} : std::nullopt, Defects{config.defects},
        options, pace::TickClock::now());

    std::promise<void> started;
    auto is_started = started.get_future();
    thread_ = std::thread{[this, cpu = config.cpu, &started] {
        std::optional<port::WorkerThread> worker;
        try {
            worker.emplace(cpu);
        } catch (...) {
            started.set_exception(std::current_exception());
            return;
        }
        thread_id_ = gettid();
        started.set_value();
        work();
    }};
    try {
        is_started.get();
    } catch (...) {
        thread_.join();
        throw;
    }
    port::keep_off({config.cpu});
}

Router::~Router() {
    quit_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

void Router::open_ports(const RouterConfig& config, const Room& room) {
    port::HostOptions host = config.host;
    const std::uint64_t needed_mb = memory_mb(config, room);
    refuse_too_long_delays(config, needed_mb);
    host.memory_mb = std::max(host.memory_mb, static_cast<unsigned>(needed_mb));
    std::vector<std::string> pci;
    for (const auto& port : config.ports) {
        if (port::is_pci_device(port.device)) pci.push_back(port.device);
    }
    port::start_dpdk(host, pci);
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const frame::VlanTags tags{config.ports[i].vlans};
        const bool is_second = i % 2 == 1;
        if (is_second && config.ports[i].device == config.ports[i - 1].device) {
            ports_.push_back(std::make_unique<port::TaggedPort>(ports_[i - 1]->shared_port(), tags));
            port::TaggedPort::join(*ports_[i - 1], *ports_[i]);
            macs_.push_back(config.ports[i].mac.value_or(macs_[i - 1]));
            continue;
        }
        const bool is_one_armed =
            !is_second && i + 1 < config.ports.size() && config.ports[i].device == config.ports[i + 1].device;
        const auto around =
            std::max(tags.octets(), is_one_armed ? frame::VlanTags{config.ports[i + 1].vlans}.octets() : tags.octets());
        auto port = std::make_shared<port::DpdkPort>(
            port::PortOptions{
                .device = config.ports[i].device,
                .where = where_of_port(i) + ".device",
                .receive_ring_frames = config.ports[i].receive_ring_frames,
                .transmit_ring_frames = config.ports[i].transmit_ring_frames,
                .largest_receive_octets = static_cast<unsigned>(config.largest_frame_size - frame::fcs_octets + around),
                .tag_octets = static_cast<unsigned>(around),
                .extra_receive_buffers = static_cast<unsigned>((is_one_armed ? 2 : 1) * room.of_port),
                .sends_received_buffers = true},
            [](std::span<std::byte>, unsigned) {});
        ports_.push_back(std::make_unique<port::TaggedPort>(std::move(port), tags));
        macs_.push_back(config.ports[i].mac.value_or(ports_[i]->port().mac()));
    }
}

std::unique_ptr<Router::Pair> Router::make_pair(const RouterConfig& config, std::size_t number) const {
    auto pair = std::make_unique<Pair>();
    auto& interfaces = pair->interfaces;
    for (unsigned i = 0; i < interfaces.size(); ++i) {
        const auto port = 2 * number + i;
        interfaces[i] = {.number = i,
                         .mac = macs_[port],
                         .addresses = config.ports[port].addresses,
                         .link_local = plan::link_local_address(macs_[port])};
    }
    std::vector<RouteEntry> routes = routes_of(interfaces);
    for (const auto& route : config.routes) {
        routes.push_back({.network = route.network,
                          .prefix_length = route.prefix_length,
                          .route = {.interface = interface_towards(interfaces, route.via), .via = route.via}});
    }
    std::vector<RouteGroup> groups;
    groups.reserve(config.route_files.size());
    for (const auto& file : config.route_files) {
        groups.push_back({.prefixes = file.prefixes,
                          .route = {.interface = interface_towards(interfaces, file.via), .via = file.via}});
    }
    pair->routes = std::make_unique<RouteTable>(routes, groups);
    pair->neighbors = std::make_unique<NeighborTable>(config.neighbors, context_.ticks_per_second);
    for (const auto& neighbor : config.static_neighbors)
        pair->neighbors->fix(interface_towards(interfaces, neighbor.address), neighbor.address, neighbor.mac);
    pair->local =
        std::make_unique<LocalAnswerer>(std::vector<Interface>{interfaces.begin(), interfaces.end()}, *pair->neighbors);
    return pair;
}

void Router::work() {
    constexpr int turns = 256;  // between two checks for requests of other threads
    const auto idle_after = static_cast<Ticks>(context_.ticks_per_second * 0.05);
    while (!quit_.load(std::memory_order_relaxed)) {
        port::Bursts::is_between();
        if (forwarder_->is_idle(idle_after)) {
            // No traffic: leaves the CPU to others.
            std::this_thread::sleep_for(50us);
            forwarder_->turn(pace::TickClock::now);
        } else {
            for (int i = 0; i < turns; ++i) forwarder_->turn(pace::TickClock::now);
        }
        const Wish wish = wish_.load(std::memory_order_acquire);
        if (wish == Wish::none) continue;
        if (wish == Wish::counters) copy_counters();
        if (wish == Wish::flush) flushed_entries_ = forwarder_->flush();
        wish_.store(Wish::none, std::memory_order_release);
    }
}

void Router::copy_counters() {
    copy_.forward = forwarder_->counters();
    copy_.elements.clear();
    if (const auto& model = forwarder_->model(); model) {
        for (std::size_t i = 0; i < model->elements.count(); ++i) copy_.elements.push_back(model->elements.counters(i));
    }
    if (const auto& translator = forwarder_->translator()) copy_.translation = translator->counters();
    if (const auto& nat = forwarder_->nat()) copy_.nat = nat->counters();
    copy_.neighbor_entries = copy_.neighbor_questions = copy_.given_up_frames = 0;
    for (const auto& pair : pairs_) {
        const NeighborTable& neighbors = *pair->neighbors;
        copy_.neighbor_entries += neighbors.size();
        copy_.neighbor_questions += neighbors.counters().questions.value() + neighbors.counters().probes.value();
        copy_.given_up_frames += neighbors.counters().dropped_frames.value();
    }
}

void Router::wait_for(Wish wish) {
    constexpr auto between_looks = 100us;
    wish_.store(wish, std::memory_order_release);
    while (wish_.load(std::memory_order_acquire) != Wish::none) std::this_thread::sleep_for(between_looks);
}

RouterCounters Router::counters() {
    wait_for(Wish::counters);
    return copy_;
}

Flushed Router::flush() {
    if (!flush_us_per_entry_) {
        throw Fault{FaultCode::bad_request, "the router has no connections", "request",
                    "Configure it with nat, which makes it a translator of connections."};
    }
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    wait_for(Wish::flush);
    // The worker forwards meanwhile.
    const std::chrono::duration<double, std::micro> modelled{*flush_us_per_entry_ *
                                                             static_cast<double>(flushed_entries_)};
    std::this_thread::sleep_until(begin + std::chrono::ceil<Clock::duration>(modelled));
    return {.entries = flushed_entries_, .seconds = std::chrono::duration<double>{Clock::now() - begin}.count()};
}

}  // namespace evenhand::router
