// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_dev_event_callback_register: the same in all of DPDK since 18.05
#include "port/device_events.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace evenhand::port {
namespace {

/// Some drivers call it without a change, so it looks for itself.
int look_at_link(std::uint16_t id, rte_eth_event_type /*event*/, void* events, void* /*unused*/) {
    static_cast<DeviceEvents*>(events)->note_link(is_link_up(id));
    return 0;
}

void note_removal(const char* /*device*/, rte_dev_event_type event, void* flag) {
    if (event == RTE_DEV_EVENT_REMOVE) static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
}

/// A callback that is running cannot be taken away: it is over in a moment.
template <class Unregister>
void until_unregistered(Unregister unregister) {
    using namespace std::chrono_literals;
    while (unregister() == -EAGAIN) std::this_thread::sleep_for(1ms);
}

}  // namespace

bool is_link_up(std::uint16_t id) noexcept {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

DeviceEvents::DeviceEvents(std::uint16_t id, std::string bus_name) : id_{id}, bus_name_{std::move(bus_name)} {
    (void)rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_LSC, look_at_link, this);
    (void)rte_dev_event_callback_register(bus_name_.c_str(), note_removal, &is_wanted_back_);
}

DeviceEvents::~DeviceEvents() {
    until_unregistered(
        [this] { return rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_LSC, look_at_link, this); });
    // DPDK takes away those of all other devices as well (up to 24.11 at the least). Ports are closed together.
    until_unregistered(
        [this] { return rte_dev_event_callback_unregister(bus_name_.c_str(), note_removal, &is_wanted_back_); });
}

}  // namespace evenhand::port
