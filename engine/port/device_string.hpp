// SPDX-License-Identifier: Apache-2.0
// Station 4, port: which device strings and options of DPDK are allowed. It knows texts only: neither DPDK nor the
// host.
//
// DPDK accepts much more: drivers that run shell commands, contain other devices, or load programs (SEED-80, R6815-01).
// The client has the same table (python/evenhand/testbed/drivers.py, resources.py), and
// contract/golden/devices.jsonl tests both with the same lines.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace evenhand::port {

/// What is wrong, and what to do next.
struct Refusal {
    std::string what;
    std::string next;
};

/// Why this device string is refused; nothing if its driver, keys and values are allowed.
[[nodiscard]] std::optional<Refusal> refuse_device(std::string_view device);

/// Why the first of these options that is not allowed is refused. Each is one text, `--name=value`.
[[nodiscard]] std::optional<Refusal> refuse_eal_arguments(std::span<const std::string> arguments);

/// The driver of a device string, such as `net_memif` for `net_memif0,id=0`; `pci` for a PCI address; empty if the
/// driver is not allowed.
[[nodiscard]] std::string_view driver_of_device(std::string_view device);

/// The keys and values after the name of a device, in order. They point into `device`.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> device_arguments(std::string_view device);

}  // namespace evenhand::port
