// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_dev_event_callback_register, unchanged since DPDK 18.05
#include "port/device_events.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace evenhand::port {
namespace {

int count_link_change(std::uint16_t /*id*/, rte_eth_event_type /*event*/, void* count, void* /*unused*/) {
    static_cast<std::atomic<std::uint64_t>*>(count)->fetch_add(1, std::memory_order_relaxed);
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

DeviceEvents::DeviceEvents(std::uint16_t id, std::string bus_name) : id_{id}, bus_name_{std::move(bus_name)} {
    (void)rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_LSC, count_link_change, &link_changes_);
    (void)rte_dev_event_callback_register(bus_name_.c_str(), note_removal, &is_wanted_back_);
}

DeviceEvents::~DeviceEvents() {
    until_unregistered(
        [this] { return rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_LSC, count_link_change, &link_changes_); });
    until_unregistered(
        [this] { return rte_dev_event_callback_unregister(bus_name_.c_str(), note_removal, &is_wanted_back_); });
}

}  // namespace evenhand::port
