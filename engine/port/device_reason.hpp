// SPDX-License-Identifier: Apache-2.0
// Station 4, port: why a device or DPDK itself did not open, and what to do about it. Read from the host's files, since
// DPDK does not say. Does not include DPDK.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "port/device_string.hpp"

namespace evenhand::port {

/// The Debian package of a library that DPDK loads when it starts, such as `librte_net_memif` or `librte_mempool_ring`.
/// `plugins`: the folder that DPDK loads from, such as /usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0, which has the
/// package's number in its name.
[[nodiscard]] std::string package_of(std::string_view library, const std::filesystem::path& plugins);

/// Whether the folder has this library; also true if there is no such folder, since nothing is known then.
[[nodiscard]] bool has_library(std::string_view library, const std::filesystem::path& plugins);

/// Why a software port such as `net_memif0,...` did not open: its library is missing. Nothing if the library exists.
[[nodiscard]] std::optional<Refusal> explain_software_port(std::string_view device,
                                                           const std::filesystem::path& plugins);

/// Why a memif is not connected: nothing listens on the socket of a client, nothing connects to the socket of a server,
/// or the socket's folder does not exist. `device` is a memif's.
[[nodiscard]] Refusal explain_memif(std::string_view device);

/// The socket of a memif, including the default if its arguments name none.
[[nodiscard]] std::string memif_socket(std::string_view device);

/// Why this PCI device did not open: it does not exist, is not bound to a driver that DPDK can use, has no IOMMU,
/// shares a group with other devices, or is supported by no installed driver of DPDK. `root`: where /sys and /dev are
/// read.
[[nodiscard]] Refusal explain_pci(std::string_view device, const std::filesystem::path& root = "/");

/// Why DPDK did not get `memory_mb` from hugepages: too few of them are free. Nothing if there are enough.
[[nodiscard]] std::optional<Refusal> explain_hugepages(unsigned memory_mb, const std::filesystem::path& root = "/");

}  // namespace evenhand::port
