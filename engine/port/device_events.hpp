// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the kernel wants a device back that is open here. Without DPDK's headers.
#pragma once

#include <atomic>
#include <string>

namespace evenhand::port {

/// Listens to what DPDK's interrupt thread tells of a device, until it goes itself, which has to be before the port is
/// closed. A NIC bound to vfio-pci that is unplugged is told here and nowhere else: it works on until it is closed, and
/// the kernel waits for that.
class DeviceEvents {
   public:
    /// `bus_name`: of the device on its bus, such as 0000:01:00.0.
    explicit DeviceEvents(std::string bus_name);
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    /// Any thread.
    [[nodiscard]] bool is_wanted_back() const noexcept { return is_wanted_back_.load(std::memory_order_relaxed); }

   private:
    std::string bus_name_;
    std::atomic<bool> is_wanted_back_{false};  // written by DPDK's interrupt thread
};

}  // namespace evenhand::port
