// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_refusal.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "port/device_reason.hpp"
#include "port/dpdk_host.hpp"

namespace evenhand::port {
namespace {

/// Where DPDK loads its drivers from.
constexpr std::string_view plugins = RTE_EAL_PMD_PATH;

}  // namespace

void refuse(const PortOptions& options, int error, const std::string& what, const std::string& next) {
    // Drivers return -1 for want of a better number, which reads as EPERM: believe it only where it can be true.
    const int code = (error < 0 ? -error : error) == EPERM && geteuid() == 0 ? 0 : std::abs(error);
    const bool denied = code == EPERM || code == EACCES;
    throw Fault{denied ? FaultCode::no_permission : FaultCode::no_device,
                fmt::format("{}: {} ({})", options.device, what, code == 0 ? "no reason given" : rte_strerror(code)),
                options.where, denied ? "Run as root, or give the program the rights that the device needs." : next};
}

void refuse_frames(const PortOptions& options, std::size_t octets, std::size_t largest_mtu, const std::string& next) {
    constexpr std::size_t around = frame::ethernet_octets + frame::fcs_octets;
    throw Fault{FaultCode::bad_frame_size,
                fmt::format("{}: a frame of {} octets; this port takes {} at the most", options.device,
                            octets + frame::fcs_octets, largest_mtu + around),
                options.where, next};
}

void refuse_memif(const PortOptions& options, const std::string& when) {
    const auto reason = explain_memif(options.device);
    throw Fault{FaultCode::no_device, fmt::format("{}: {}{}", options.device, reason.what, when), options.where,
                reason.next};
}

void refuse_unopened(const PortOptions& options, int result) {
    const auto reason = is_pci_device(options.device) ? std::optional{explain_pci(options.device)}
                                                      : explain_software_port(options.device, plugins);
    if (!reason && result == -EINVAL && options.device.starts_with("net_memif")) refuse_memif(options);
    if (!reason) refuse(options, result, "the device does not open", "Check the device string.");
    throw Fault{FaultCode::no_device, fmt::format("{}: {}", options.device, reason->what), options.where, reason->next};
}

void require(const PortOptions& options, int result, const std::string& what) {
    if (result < 0) refuse(options, result, what, "Try another kind of port; the engine's stderr may say more.");
}

}  // namespace evenhand::port
