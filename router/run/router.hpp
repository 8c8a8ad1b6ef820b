// SPDX-License-Identifier: Apache-2.0
// Run: a configured router on its ports, and the thread that runs it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "config/config.hpp"
#include "config/delays.hpp"
#include "forward/forwarder.hpp"
#include "port/tagged_port.hpp"

namespace evenhand::router {

/// Forwards from constructor to destructor.
class Router {
   public:
    /// Starts DPDK, opens the ports, fills the tables. Throws Fault{bad_request, no_device, no_permission, no_memory,
    /// no_cpu}.
    explicit Router(const RouterConfig& config);
    ~Router();
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;

    /// The MACs of its interfaces: left and right of each pair.
    [[nodiscard]] const std::vector<plan::MacAddress>& macs() const noexcept { return macs_; }
    [[nodiscard]] const CountersContext& context() const noexcept { return context_; }
    /// The id of the forwarding thread, by which the host reports how long it waited for its CPU.
    [[nodiscard]] int thread_id() const noexcept { return thread_id_; }

    /// A copy of all counters, which the worker makes between two turns.
    [[nodiscard]] RouterCounters counters();

    /// Removes all connections, between two turns of the worker. Returns when the configured time for that has passed.
    /// Throws Fault{bad_request} if the router does not translate connections.
    [[nodiscard]] Flushed flush();

   private:
    enum class Wish : std::uint8_t { none, counters, flush };

    /// Left and right of each pair. Each port may hold frames of another one's pool, so all devices are closed before
    /// the first pool is destroyed.
    class Ports : public std::vector<std::unique_ptr<port::TaggedPort>> {
       public:
        Ports() = default;
        Ports(const Ports&) = delete;
        Ports& operator=(const Ports&) = delete;
        ~Ports() {
            for (const auto& port : *this) port->port().close_device();
        }
    };

    /// The tables of two interfaces.
    struct Pair {
        std::array<Interface, 2> interfaces;
        std::unique_ptr<RouteTable> routes;
        std::unique_ptr<NeighborTable> neighbors;
        std::unique_ptr<LocalAnswerer> local;
    };

    void open_ports(const RouterConfig& config, const Room& room);
    [[nodiscard]] std::unique_ptr<Pair> make_pair(const RouterConfig& config, std::size_t number) const;
    void work();
    void copy_counters();
    void wait_for(Wish wish);

    CountersContext context_;
    Ports ports_;
    std::vector<plan::MacAddress> macs_;
    std::vector<std::unique_ptr<Pair>> pairs_;
    std::unique_ptr<Forwarder<port::TaggedPort>> forwarder_;
    std::atomic<bool> quit_{false};
    std::optional<double> flush_us_per_entry_;  // nothing: the router has no connections
    std::atomic<Wish> wish_{Wish::none};        // set by the caller, cleared by the worker when it is done
    RouterCounters copy_;                       // the worker's while a request is pending, otherwise the caller's
    std::size_t flushed_entries_ = 0;           // like copy_
    int thread_id_ = 0;                         // written by the worker before the constructor returns
    std::thread thread_;
};

}  // namespace evenhand::router
