// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what the kernel knows of an interface of its own behind a port: asked over a socket of the process's
// own network namespace, since /sys may be another namespace's, and DPDK's drivers say "up" whatever is the case.
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
    unsigned index = 0;  // another interface of the same name has another
    bool is_enabled = false;
    bool has_carrier = false;
    bool is_operational = false;
    std::uint64_t carrier_changes = 0;  // up and down, since the interface was made
    std::size_t mtu = 0;

    /// What is not known is not held against it.
    [[nodiscard]] bool is_up() const noexcept { return !is_known || (is_enabled && has_carrier && is_operational); }
};

[[nodiscard]] KernelLink read_kernel_link(const std::string& interface) noexcept;

/// MTU of the other end of a veth, in whatever namespace that is; nothing for other interfaces, or where it cannot be
/// asked.
[[nodiscard]] std::optional<std::size_t> read_peer_mtu(const std::string& interface) noexcept;

/// Why frames do not pass, and what to do; `link`: what was read of `interface`.
struct LinkFault {
    std::string what;
    std::string next;
};
[[nodiscard]] LinkFault explain_link(const std::string& interface, const KernelLink& link);

/// By their names in `ethtool -k`, those features that are on and make one frame of several before a port sees them.
/// Empty if there are none, or if the interface does not say.
[[nodiscard]] std::vector<std::string> joining_features(const std::string& interface);

/// Names of features, as ETHTOOL_GFEATURES has them, of which these are on.
[[nodiscard]] std::vector<std::string> joining_among(const std::vector<std::string>& on);

}  // namespace evenhand::port
