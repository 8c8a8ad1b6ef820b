// SPDX-License-Identifier: Apache-2.0
// Station 4, port: which NUMA node a CPU belongs to. Reads /sys; does not include DPDK.
#pragma once

#include <filesystem>
#include <optional>

namespace evenhand::port {

/// According to the kernel; nothing if it does not say. `root`: where /sys is read.
[[nodiscard]] std::optional<unsigned> node_of_cpu(unsigned cpu, const std::filesystem::path& root = "/");

}  // namespace evenhand::port
