// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what a device counts, and what becomes of its link. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::port {

/// Of DPDK's port `id`, as it is now.
[[nodiscard]] bool is_link_up(std::uint16_t id) noexcept;
/// As the device tells it; nothing if it does not.
[[nodiscard]] std::optional<double> link_rate_bps(std::uint16_t id) noexcept;

/// The counters of a started device.
class DpdkCounters {
   public:
    /// `kernel_interface`: behind the device; empty if there is none.
    DpdkCounters(std::uint16_t id, std::string kernel_interface);

    /// All but the answers that were dropped: the device knows nothing of these.
    [[nodiscard]] tally::PortCounters read() const;

    /// Notes a link that goes, and reads counters before short ones of the device wrap.
    void keep_watch() noexcept;
    /// That the link came up is no change.
    void begin_with_link_up() noexcept { link_was_up_ = true; }

   private:
    [[nodiscard]] std::vector<std::uint64_t> extended(const std::vector<std::uint64_t>& ids) const;
    [[nodiscard]] std::uint64_t kernel_carrier_changes() const;

    std::uint16_t id_;
    std::string kernel_interface_;
    std::vector<std::uint64_t> pause_counters_;  // ids of extended statistics
    std::vector<std::uint64_t> drop_counters_;   // the same, of frames that came in and were dropped
    std::vector<std::string> drop_names_;
    bool link_was_up_ = true;         // at the last keep_watch()
    std::uint64_t link_changes_ = 0;  // that it saw
    unsigned watches_ = 0;
};

}  // namespace evenhand::port
