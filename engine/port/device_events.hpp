// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what DPDK's interrupt thread tells of a device: that its link changed, and that this host wants it
// back. Without DPDK's headers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace evenhand::port {

/// Of DPDK's port `id`, from now until this goes, which has to be before the port is closed.
class DeviceEvents {
   public:
    /// `bus_name`: of the device on its bus, such as 0000:01:00.0. Drivers that interrupt for nothing, and devices that
    /// nobody takes away, leave both counts at 0.
    DeviceEvents(std::uint16_t id, std::string bus_name);
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    /// Interrupts of a link that went or came, however soon one was behind the other. Only of a port whose driver was
    /// told to interrupt (`intr_conf.lsc`).
    [[nodiscard]] std::uint64_t link_changes() const noexcept { return link_changes_.load(std::memory_order_relaxed); }
    /// Whether the kernel has asked for the device. It waits until the device is closed, which works until then.
    [[nodiscard]] bool is_wanted_back() const noexcept { return is_wanted_back_.load(std::memory_order_relaxed); }

   private:
    std::uint16_t id_;
    std::string bus_name_;
    // Written by DPDK's interrupt thread.
    std::atomic<std::uint64_t> link_changes_{0};
    std::atomic<bool> is_wanted_back_{false};
};

}  // namespace evenhand::port
