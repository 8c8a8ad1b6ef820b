// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what a device counts, and what becomes of its link. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/device_events.hpp"
#include "tally/result.hpp"

namespace evenhand::port {

/// Of DPDK's port `id`, as it is now.
[[nodiscard]] bool is_link_up(std::uint16_t id) noexcept;
/// As the device tells it; nothing if it does not.
[[nodiscard]] std::optional<double> link_rate_bps(std::uint16_t id) noexcept;

/// The counters of a started device.
class DpdkCounters {
   public:
    /// `kernel_interface`: behind the device; empty if there is none. `bus_name`: of the device.
    DpdkCounters(std::uint16_t id, std::string kernel_interface, std::string bus_name);

    /// All but the answers that were dropped: the device knows nothing of these.
    [[nodiscard]] tally::PortCounters read();
    /// Whether the device is no longer this host's, or not for long: its interface of the kernel has gone, or the
    /// kernel wants it back.
    [[nodiscard]] bool is_removed() const;

    /// Notes a link that goes, and reads counters before short ones of the device wrap.
    void keep_watch() noexcept;
    /// That the link came up is no change.
    void begin_with_link_up() noexcept { link_was_up_ = true; }
    /// A look at the link alone, which may be down for a moment only.
    void note_link() noexcept;

   private:
    [[nodiscard]] std::vector<std::uint64_t> extended(const std::vector<std::uint64_t>& ids) const;
    void note_carrier() noexcept;
    /// What the kernel has in a file of its interface; nothing if that is not there.
    [[nodiscard]] std::optional<std::uint64_t> kernel_number(const char* file) const;

    std::uint16_t id_;
    std::string kernel_interface_;
    DeviceEvents events_;
    std::optional<std::uint64_t> kernel_index_;  // of the interface; another one of the same name has another
    std::vector<std::uint64_t> pause_counters_;  // ids of extended statistics
    std::vector<std::uint64_t> drop_counters_;   // the same, of frames that came in and were dropped
    std::vector<std::string> drop_names_;
    bool link_was_up_ = true;            // when it was last looked at
    std::uint64_t link_changes_ = 0;     // that were seen then
    std::uint64_t carrier_changes_ = 0;  // as the kernel counts them, so that nothing between two looks is missed
    unsigned watches_ = 0;
};

}  // namespace evenhand::port
