// SPDX-License-Identifier: Apache-2.0
// Station 4, port: files that a device string names. Knows the host, but not DPDK.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace evenhand::port {

/// The captures that a port of net_pcap writes. They are made here, never in the place of a file and never through a
/// link; DPDK, which would do both, gets open files instead of names. Lives as long as the port: DPDK may open them by
/// these numbers again.
class DeviceFiles {
   public:
    DeviceFiles() = default;
    /// Makes the captures of `device`. Throws Fault{bad_request} if one is there already, or if what it takes for a
    /// socket is another file; Fault{no_permission, no_device} if one cannot be made. `where`: place in the request.
    /// Leaves no file behind then.
    DeviceFiles(const std::string& device, const std::string& where);
    ~DeviceFiles();
    DeviceFiles(DeviceFiles&& other) noexcept;
    DeviceFiles& operator=(DeviceFiles&& other) noexcept;
    DeviceFiles(const DeviceFiles&) = delete;
    DeviceFiles& operator=(const DeviceFiles&) = delete;

    /// The device string for DPDK.
    [[nodiscard]] const std::string& device() const noexcept { return device_; }

    /// Take the captures away again: the port does not open.
    void remove() noexcept;

   private:
    struct Capture {
        std::string path;
        int file;
    };
    void make(const std::string& path, const std::string& where);
    void close() noexcept;

    std::string device_;
    std::vector<Capture> captures_;
};

}  // namespace evenhand::port
