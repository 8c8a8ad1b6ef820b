// SPDX-License-Identifier: Apache-2.0
#include "port/extended_counters.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "tally/port_change.hpp"

namespace evenhand::port {
namespace {

bool has(std::string_view name, std::string_view part) noexcept { return name.find(part) != std::string_view::npos; }

}  // namespace

bool is_pause_counter(std::string_view name) noexcept {
    return has(name, "pause") || has(name, "xon") || has(name, "xoff");
}

bool is_hidden_drop_counter(std::string_view name) noexcept {
    if (name.starts_with("tx") || has(name, "_tx_")) return false;
    // Discarded by a filter: the frame was meant for another host.
    if (has(name, "filter")) return false;
    return has(name, "discard") || has(name, "missed") || has(name, "out_of_buffer");
}

std::uint64_t total_of(std::span<const std::uint64_t> counters) noexcept {
    if (!std::ranges::all_of(counters, tally::is_count)) return std::numeric_limits<std::uint64_t>::max();
    return std::accumulate(counters.begin(), counters.end(), std::uint64_t{0});
}

bool tells_each_frame(std::string_view driver) noexcept {
    constexpr std::array<std::string_view, 11> drivers{
        // These drivers count when they hand frames over (in their rx_burst), so that the count can neither lag nor
        // include other frames.
        "net_memif", "net_af_packet", "net_af_xdp", "net_ring", "net_null", "net_pcap", "net_tap", "net_virtio",
        // These drivers read registers when asked: ixgbe those of its queues, i40e and ice those of this function, less
        // what it discarded.
        "net_ixgbe", "net_i40e", "net_ice"};
    return std::ranges::find(drivers, driver) != drivers.end();
}

}  // namespace evenhand::port
