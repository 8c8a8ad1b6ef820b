// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what becomes of a device while it is open: its link goes or comes, or the kernel wants it back.
// Without DPDK's headers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace evenhand::port {

/// Of DPDK's port `id`, as it is now.
[[nodiscard]] bool is_link_up(std::uint16_t id) noexcept;

/// Listens to the interrupts of a device from now until it goes itself, which has to be before the port is closed.
class DeviceEvents {
   public:
    /// `id`: of DPDK's port. `bus_name`: of its device on the bus, such as 0000:01:00.0.
    DeviceEvents(std::uint16_t id, std::string bus_name);
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    /// The link as somebody has just seen it. Any thread.
    void note_link(bool is_up) noexcept {
        if (link_was_up_.exchange(is_up, std::memory_order_relaxed) != is_up)
            link_changes_.fetch_add(1, std::memory_order_relaxed);
    }
    /// That the link came up at first is no change.
    void begin_with_link_up() noexcept { link_was_up_.store(true, std::memory_order_relaxed); }
    /// How often the link was seen to go or come, by whoever looks now and then, and by interrupts: of a port whose
    /// driver was told to interrupt (`intr_conf.lsc`) also what came and went between two looks.
    [[nodiscard]] std::uint64_t link_changes() const noexcept { return link_changes_.load(std::memory_order_relaxed); }
    /// Whether the kernel has asked for the device. It waits until the device is closed, which works until then.
    [[nodiscard]] bool is_wanted_back() const noexcept { return is_wanted_back_.load(std::memory_order_relaxed); }

   private:
    std::uint16_t id_;
    std::string bus_name_;
    // DPDK's interrupt thread writes these, too.
    std::atomic<bool> link_was_up_{true};
    std::atomic<std::uint64_t> link_changes_{0};
    std::atomic<bool> is_wanted_back_{false};
};

}  // namespace evenhand::port
