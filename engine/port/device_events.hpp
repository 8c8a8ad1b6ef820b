// SPDX-License-Identifier: Apache-2.0
// Station 4, port: learns that the kernel wants a device back that is open here. Without DPDK's headers.
#pragma once

#include <atomic>
#include <string>

namespace evenhand::port {

/// Listens to what DPDK's interrupt thread reports about a device. Must be destroyed before the port is closed. That a
/// NIC bound to vfio-pci is unplugged is reported here and nowhere else: it continues to work until it is closed, and
/// the kernel waits for that.
class DeviceEvents {
   public:
    /// `bus_name`: the name of the device on its bus, such as 0000:01:00.0.
    explicit DeviceEvents(std::string bus_name);
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    /// May be called by any thread.
    [[nodiscard]] bool is_wanted_back() const noexcept { return is_wanted_back_.load(std::memory_order_relaxed); }

   private:
    std::string bus_name_;
    std::atomic<bool> is_wanted_back_{false};  // written by DPDK's interrupt thread
};

}  // namespace evenhand::port
