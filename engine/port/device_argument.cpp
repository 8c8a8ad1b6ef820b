// SPDX-License-Identifier: Apache-2.0
#include "port/device_argument.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

namespace evenhand::port {
namespace {

constexpr unsigned all_the_time_in_the_world = 1U << 30U;

/// The value of `key=` in a device string.
std::optional<unsigned> device_argument(const std::string& device, const std::string& key) {
    const auto at = device.find("," + key + "=");
    if (at == std::string::npos) return std::nullopt;
    unsigned value = 0;
    const char* const begin = device.data() + at + key.size() + 2;
    const auto [end, error] = std::from_chars(begin, device.data() + device.size(), value);
    return error == std::errc{} ? std::optional{value} : std::nullopt;
}

}  // namespace

std::optional<unsigned> software_ring_frames(const std::string& driver, const std::string& device) {
    constexpr unsigned memif_default_log2 = 10;
    constexpr unsigned packet_default_frames = 512;
    constexpr unsigned net_ring_frames = 1024;
    constexpr unsigned tap_queue_frames = 500;  // of the kernel's interface (TUN_READQ_SIZE)
    if (driver == "net_memif") return 1U << device_argument(device, "rsize").value_or(memif_default_log2);
    if (driver == "net_af_packet") return device_argument(device, "framecnt").value_or(packet_default_frames);
    if (driver == "net_ring") return net_ring_frames;
    if (driver == "net_tap") return tap_queue_frames;
    if (driver == "net_pcap" || driver == "net_null") return all_the_time_in_the_world;
    return std::nullopt;
}

std::string interface_of(const std::string& device) {
    constexpr std::string_view key = ",iface=";
    const auto at = device.find(key);
    if (at == std::string::npos) return {};
    const auto begin = at + key.size();
    return device.substr(begin, device.find(',', begin) - begin);
}

}  // namespace evenhand::port
