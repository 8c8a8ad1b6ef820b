// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the counters of a device, and the state of its link. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/device_events.hpp"
#include "port/kernel_interface.hpp"
#include "tally/result.hpp"

namespace evenhand::port {

/// Whether the link of DPDK's port `id` is up according to its driver. The drivers for kernel interfaces always report
/// "up" (net_af_xdp, and net_af_packet up to DPDK 24.11).
[[nodiscard]] bool is_driver_link_up(std::uint16_t id) noexcept;
/// The link's rate according to the device; nothing if it does not report one.
[[nodiscard]] std::optional<double> link_rate_bps(std::uint16_t id) noexcept;

/// The counters of a started device.
class DpdkCounters {
   public:
    /// `kernel_interfaces`: the interfaces behind the device. `bus_name`: the device's name on its bus.
    DpdkCounters(std::uint16_t id, const std::vector<std::string>& kernel_interfaces, std::string bus_name);

    /// All counters except dropped answers, which the device knows nothing about.
    [[nodiscard]] tally::PortCounters read();
    /// Whether this machine no longer has the device, or will soon lose it: its kernel interface was deleted, or the
    /// kernel wants the device back.
    [[nodiscard]] bool is_removed() const;

    /// The present state according to the driver and the kernel.
    [[nodiscard]] bool is_link_up() const noexcept;
    /// Why the first kernel interface that is not up is down; nothing if all are up.
    [[nodiscard]] std::optional<LinkFault> kernel_link_fault() const;

    /// Notes a link that went down, and reads counters before the device's short ones wrap.
    void keep_watch() noexcept;
    /// To be called when the link first comes up: this is not counted as a change.
    void begin_with_link_up() noexcept;
    /// Checks the driver's link only, which may be down for just a moment.
    void note_link() noexcept;
    /// To be called before the port takes its own link down or up: until it is up, no change counts.
    void expect_link(bool is_up) noexcept;

   private:
    [[nodiscard]] std::vector<std::uint64_t> extended(const std::vector<std::uint64_t>& ids) const;
    void note_kernel_link() noexcept;

    /// What the port does with its own link.
    enum class Expected : std::uint8_t { no_change, down, coming_up };

    /// One kernel interface, as it was when it was last checked.
    struct Interface {
        std::string name;
        unsigned index = 0;                 // 0: not known
        std::uint64_t carrier_changes = 0;  // counted by the kernel, so that nothing between two checks is missed
        bool was_enabled = true;
    };

    std::uint16_t id_;
    std::vector<Interface> interfaces_;
    DeviceEvents events_;
    std::vector<std::uint64_t> pause_counters_;  // ids of extended statistics that count PAUSE frames
    std::vector<std::uint64_t> drop_counters_;   // ids of extended statistics that count dropped received frames
    std::vector<std::string> drop_names_;
    Expected expected_ = Expected::no_change;
    bool link_was_up_ = true;         // when it was last checked
    std::uint64_t link_changes_ = 0;  // seen by the checks
    unsigned watches_ = 0;
};

}  // namespace evenhand::port
