// SPDX-License-Identifier: Apache-2.0
#include "port/device_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "fault.hpp"
#include "port/device_string.hpp"
#include "port/left_socket.hpp"

namespace evenhand::port {
namespace {

constexpr std::string_view nowhere = "/dev/null";
constexpr std::string_view kernel_vhost = "/dev/vhost-net";  // of net_virtio_user; other devices there may be NICs

bool names_a_socket(std::string_view device, std::string_view key, bool is_abstract) {
    if (device.starts_with("net_memif")) return key == "socket" && !is_abstract;
    return (device.starts_with("net_vhost") && key == "iface") ||
           (device.starts_with("net_virtio_user") && key == "path");
}

void require_socket(const std::string& path, std::string_view key, const std::string& where) {
    struct stat facts{};
    if (path == kernel_vhost) return;
    if (stat(path.c_str(), &facts) != 0) {
        if (errno != EACCES && errno != EPERM) return;  // the file does not exist, or the driver says what is wrong
        throw Fault{FaultCode::no_permission, fmt::format("{}={}: no permission to look for a socket there", key, path),
                    where, "Run as the user who made the socket, or as root."};
    }
    if (S_ISSOCK(facts.st_mode)) return;
    throw Fault{FaultCode::bad_request, fmt::format("{}={} exists, but is not a socket", key, path), where,
                "Name a socket, or a path that is free."};
}

using Arguments = std::vector<std::pair<std::string_view, std::string_view>>;

/// The type of the socket on which a device with these arguments listens; 0: the other end creates it.
int type_to_listen(std::string_view device, const Arguments& arguments) {
    const auto is = [&](std::string_view key, std::string_view value) {
        return std::ranges::find(arguments, std::pair{key, value}) != arguments.end();
    };
    if (device.starts_with("net_memif")) return is("role", "server") ? SOCK_SEQPACKET : 0;
    if (device.starts_with("net_vhost")) return is("client", "1") ? 0 : SOCK_STREAM;
    return device.starts_with("net_virtio_user") && is("server", "1") ? SOCK_STREAM : 0;
}

}  // namespace

DeviceFiles::DeviceFiles(const std::string& device, const std::string& where)
    : device_{device.substr(0, device.find(','))} {
    const auto arguments = device_arguments(device);
    bool is_abstract = true;  // unless the device says otherwise
    for (const auto& [key, value] : arguments)
        is_abstract = is_abstract && (key != "socket-abstract" || value == "yes");
    try {
        for (const auto& [key, value] : arguments) {
            std::string given{value};
            if (names_a_socket(device, key, is_abstract)) {
                require_socket(given, key, where);
                if (const int type = type_to_listen(device, arguments); type != 0)
                    make_room_to_listen(given, type, fmt::format("{}={}", key, given), where);
            }
            if (device.starts_with("net_pcap") && key == "tx_pcap" && value != nowhere) {
                make(given, where);
                given = fmt::format("/proc/self/fd/{}", captures_.back().file);
            }
            device_ += fmt::format(",{}={}", key, given);
        }
    } catch (...) {
        remove();
        throw;
    }
}

void DeviceFiles::make(const std::string& path, const std::string& where) {
    constexpr mode_t readable = 0644;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, readable);
    if (file >= 0) {
        captures_.push_back({path, file});
        return;
    }
    const int error = errno;
    if (error == EEXIST)
        throw Fault{FaultCode::bad_request, fmt::format("tx_pcap={} is there already, and is not overwritten", path),
                    where, "Name a new file."};
    throw Fault{error == EACCES || error == EPERM ? FaultCode::no_permission : FaultCode::no_device,
                fmt::format("tx_pcap={} cannot be made: {}", path, std::strerror(error)), where,
                "Name a file in a folder that is there, and that you may write."};
}

void DeviceFiles::remove() noexcept {
    for (const auto& capture : captures_) (void)unlink(capture.path.c_str());
    close();
}

void DeviceFiles::close() noexcept {
    for (const auto& capture : captures_) ::close(capture.file);
    captures_.clear();
}

DeviceFiles::~DeviceFiles() { close(); }

DeviceFiles::DeviceFiles(DeviceFiles&& other) noexcept
    : device_{std::move(other.device_)}, captures_{std::exchange(other.captures_, {})} {}

DeviceFiles& DeviceFiles::operator=(DeviceFiles&& other) noexcept {
    if (this != &other) {
        close();
        device_ = std::move(other.device_);
        captures_ = std::exchange(other.captures_, {});
    }
    return *this;
}

}  // namespace evenhand::port
