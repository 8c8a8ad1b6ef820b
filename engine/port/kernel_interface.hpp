// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what the kernel reports about its interface behind a port. It is queried over a socket in the
// process's own network namespace, since /sys may belong to another namespace, and since DPDK's drivers always report
// "up".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace evenhand::port {

struct KernelLink {
    bool is_known = false;  // the kernel has answered
    bool is_there = false;
    unsigned index = 0;  // another interface of the same name has another index
    bool is_enabled = false;
    bool has_carrier = false;
    bool is_operational = false;
    std::uint64_t carrier_changes = 0;  // how often the link went up or down since the interface was created
    std::size_t mtu = 0;
    bool is_veth = false;

    /// An unknown state counts as up.
    [[nodiscard]] bool is_up() const noexcept { return !is_known || (is_enabled && has_carrier && is_operational); }
};

[[nodiscard]] KernelLink read_kernel_link(const std::string& interface) noexcept;

/// Switches the interface on or off, as `ip link set INTERFACE up` does. Returns 0 or a negative error number.
[[nodiscard]] int switch_kernel_link(const std::string& interface, bool on) noexcept;

/// The MTU of the other end of a veth, in whatever namespace that is; nothing for other interfaces, or where it cannot
/// be queried.
[[nodiscard]] std::optional<std::size_t> read_peer_mtu(const std::string& interface) noexcept;

/// Why frames do not pass, and what to do; `link`: the state that was read of `interface`.
struct LinkFault {
    std::string what;
    std::string next;
};
[[nodiscard]] LinkFault explain_link(const std::string& interface, const KernelLink& link);

/// The features, by their names in `ethtool -k`, that are on and join several frames into one before a port sees them.
/// Empty if there are none, or if the interface does not report them.
[[nodiscard]] std::vector<std::string> joining_features(const std::string& interface);

/// Those of the features that are on, named as in ETHTOOL_GFEATURES, which join frames.
[[nodiscard]] std::vector<std::string> joining_among(const std::vector<std::string>& on);

}  // namespace evenhand::port
