// SPDX-License-Identifier: Apache-2.0
// Station 4, port: why a device or DPDK itself did not open, and what to do: read from the host's files, since DPDK
// only says that it did not. Does not include DPDK.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "port/device_string.hpp"

namespace evenhand::port {

/// The Debian package of a library that DPDK loads when it starts, such as `librte_net_memif` or `librte_mempool_ring`.
/// `plugins` is the folder that DPDK loads from, such as /usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0: the package has its
/// number.
[[nodiscard]] std::string package_of(std::string_view library, const std::filesystem::path& plugins);

/// Whether the folder has this library; also true if there is no such folder, since then nothing is known.
[[nodiscard]] bool has_library(std::string_view library, const std::filesystem::path& plugins);

/// Why a software port such as `net_memif0,...` did not open: its library is missing. Nothing if it is there.
[[nodiscard]] std::optional<Refusal> explain_software_port(std::string_view device,
                                                           const std::filesystem::path& plugins);

/// Why a memif is not joined to another one: nothing listens on the socket of a client, nothing connects to that of a
/// server, or the folder of the socket is not there. `device` is a memif's.
[[nodiscard]] Refusal explain_memif(std::string_view device);

/// The socket of a memif, also if its arguments name none.
[[nodiscard]] std::string memif_socket(std::string_view device);

/// Why this PCI device did not open: it is not there, not bound to a driver that DPDK can use, without an IOMMU, in a
/// group with others, or no driver of DPDK that is installed takes it. `root` is where /sys and /dev are read.
[[nodiscard]] Refusal explain_pci(std::string_view device, const std::filesystem::path& root = "/");

/// Why DPDK did not get `memory_mb` from hugepages: too few of them are free. Nothing if there are enough.
[[nodiscard]] std::optional<Refusal> explain_hugepages(unsigned memory_mb, const std::filesystem::path& root = "/");

}  // namespace evenhand::port
