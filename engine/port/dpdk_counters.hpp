// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what a device counts, and what becomes of its link. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/device_events.hpp"
#include "port/kernel_interface.hpp"
#include "tally/result.hpp"

namespace evenhand::port {

/// Of DPDK's port `id`, as its driver tells it now: those of the kernel's interfaces say "up" whatever is the case
/// (net_af_xdp, and net_af_packet up to DPDK 24.11).
[[nodiscard]] bool is_driver_link_up(std::uint16_t id) noexcept;
/// As the device tells it; nothing if it does not.
[[nodiscard]] std::optional<double> link_rate_bps(std::uint16_t id) noexcept;

/// The counters of a started device.
class DpdkCounters {
   public:
    /// `kernel_interfaces`: behind the device. `bus_name`: of the device.
    DpdkCounters(std::uint16_t id, const std::vector<std::string>& kernel_interfaces, std::string bus_name);

    /// All but the answers that were dropped: the device knows nothing of these.
    [[nodiscard]] tally::PortCounters read();
    /// Whether the device is no longer this host's, or not for long: its interface of the kernel has gone, or the
    /// kernel wants it back.
    [[nodiscard]] bool is_removed() const;

    /// As the driver and the kernel tell it now.
    [[nodiscard]] bool is_link_up() const noexcept;
    /// Of the first of the kernel's interfaces that is not up: why; nothing if they all are.
    [[nodiscard]] std::optional<LinkFault> kernel_link_fault() const;

    /// Notes a link that goes, and reads counters before short ones of the device wrap.
    void keep_watch() noexcept;
    /// That the link came up is no change.
    void begin_with_link_up() noexcept;
    /// A look at the driver's link alone, which may be down for a moment only.
    void note_link() noexcept;

   private:
    [[nodiscard]] std::vector<std::uint64_t> extended(const std::vector<std::uint64_t>& ids) const;
    void note_kernel_link() noexcept;

    /// One of the kernel's, and when it was last looked at.
    struct Interface {
        std::string name;
        unsigned index = 0;                 // 0: not known
        std::uint64_t carrier_changes = 0;  // as the kernel counts them, so that nothing between two looks is missed
        bool was_enabled = true;
    };

    std::uint16_t id_;
    std::vector<Interface> interfaces_;
    DeviceEvents events_;
    std::vector<std::uint64_t> pause_counters_;  // ids of extended statistics
    std::vector<std::uint64_t> drop_counters_;   // the same, of frames that came in and were dropped
    std::vector<std::string> drop_names_;
    bool link_was_up_ = true;         // when it was last looked at
    std::uint64_t link_changes_ = 0;  // that were seen then
    unsigned watches_ = 0;
};

}  // namespace evenhand::port
