// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_dev_event_callback_register: the same in all of DPDK since 18.05
#include "port/device_events.hpp"

#include <rte_dev.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace evenhand::port {
namespace {

void note_removal(const char* /*device*/, rte_dev_event_type event, void* flag) {
    if (event == RTE_DEV_EVENT_REMOVE) static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
}

}  // namespace

DeviceEvents::DeviceEvents(std::string bus_name) : bus_name_{std::move(bus_name)} {
    (void)rte_dev_event_callback_register(bus_name_.c_str(), note_removal, &is_wanted_back_);
}

DeviceEvents::~DeviceEvents() {
    using namespace std::chrono_literals;
    // DPDK removes the callbacks of all other devices as well (at least up to 24.11): ports are closed together. A
    // callback that is running cannot be removed, but will end in a moment.
    while (rte_dev_event_callback_unregister(bus_name_.c_str(), note_removal, &is_wanted_back_) == -EAGAIN)
        std::this_thread::sleep_for(1ms);
}

}  // namespace evenhand::port
