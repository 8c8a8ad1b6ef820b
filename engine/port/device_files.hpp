// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the files that a device string names. It knows the host, but not DPDK.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace evenhand::port {

/// The captures that a port of net_pcap writes. They are created here, never in place of an existing file and never
/// through a link. DPDK, which would do both, gets open files instead of names. Lives as long as the port, since DPDK
/// may open them again by these numbers.
class DeviceFiles {
   public:
    DeviceFiles() = default;
    /// Creates the captures of `device`. Throws Fault{bad_request} if one exists already, or if what the device takes
    /// for a socket is another kind of file; Fault{no_permission, no_device} if one cannot be created. `where`: the
    /// place in the request. After a fault no new file is left behind.
    DeviceFiles(const std::string& device, const std::string& where);
    ~DeviceFiles();
    DeviceFiles(DeviceFiles&& other) noexcept;
    DeviceFiles& operator=(DeviceFiles&& other) noexcept;
    DeviceFiles(const DeviceFiles&) = delete;
    DeviceFiles& operator=(const DeviceFiles&) = delete;

    /// The device string for DPDK.
    [[nodiscard]] const std::string& device() const noexcept { return device_; }

    /// Removes the captures again, because the port does not open.
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
