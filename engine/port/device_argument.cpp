// SPDX-License-Identifier: Apache-2.0
#include "port/device_argument.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>
#include <system_error>

#include "port/device_string.hpp"

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

/// The size of one frame's slot in the ring of a packet socket.
unsigned packet_slot_octets(const std::string& device) {
    constexpr unsigned usual = 2048;
    return device_argument(device, "framesz").value_or(usual);
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

std::optional<std::size_t> largest_octets(const std::string& driver, const std::string& device) {
    constexpr std::size_t xdp_octets = 3456;  // one page, less what DPDK and the kernel need of it
    constexpr unsigned head_octets =
        80;  // what the kernel puts before a frame in a packet socket's ring (66 octets), rounded up
    constexpr unsigned memif_default_octets = 2048;
    if (driver == "net_af_xdp") return xdp_octets;
    // Larger frames take several buffers, and DPDK from 24.11 on hands them over as chains of buffers, which no
    // receiver here expects.
    if (driver == "net_memif") return device_argument(device, "bsize").value_or(memif_default_octets);
    if (driver != "net_af_packet") return std::nullopt;
    const unsigned slot = packet_slot_octets(device);
    return slot - std::min(slot, head_octets);
}

std::size_t receive_room(const std::string& driver, const std::string& device, std::size_t octets) {
    constexpr std::size_t xdp_headroom = 256;  // the kernel's, in front of each frame
    if (driver == "net_af_xdp") return octets + xdp_headroom;
    if (driver == "net_af_packet")
        return std::max<std::size_t>(octets, packet_slot_octets(device));  // otherwise DPDK does not accept the buffers
    if (driver_of_device(device) != "pci") return octets;
    // A NIC fills buffers in units of its own, and spreads a larger frame over several buffers, which no receiver here
    // joins again: Intel's NICs up to 10 Gbps use multiples of 1 KB, those of net_e1000_em powers of two.
    constexpr std::size_t around = 32;  // FCS, two tags and virtio's header, for which drivers reserve room
    constexpr std::size_t unit = 1024;
    if (driver == "net_e1000_em") return std::bit_ceil(octets + around);
    return (octets + around + unit - 1) / unit * unit;
}

bool takes_control_queue(const std::string& driver, const std::string& device) {
    const bool is_software = device.starts_with("net_");
    return is_software ? driver == "net_null" : driver != "net_virtio";
}

bool receives_on_pairs(const std::string& driver, const std::string& device) {
    return driver == "net_virtio" && driver_of_device(device) == "pci";
}

std::string interface_of(const std::string& device) {
    constexpr std::string_view key = ",iface=";
    const auto at = device.find(key);
    if (at == std::string::npos) return {};
    const auto begin = at + key.size();
    return device.substr(begin, device.find(',', begin) - begin);
}

std::vector<std::string> interfaces_of(const std::string& device) {
    std::vector<std::string> found;
    for (const auto& [key, value] : device_arguments(device)) {
        const bool is_interface = key == "iface" || key == "rx_iface" || key == "rx_iface_in" || key == "tx_iface";
        // The value of net_vhost is a socket.
        if (is_interface && value.find('/') == std::string_view::npos && std::ranges::find(found, value) == found.end())
            found.emplace_back(value);
    }
    return found;
}

}  // namespace evenhand::port
