// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_refusal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_errno.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "frame/vlan.hpp"
#include "port/device_argument.hpp"
#include "port/device_reason.hpp"
#include "port/dpdk_host.hpp"
#include "port/packet_sockets.hpp"

namespace evenhand::port {
namespace {

/// The folder that DPDK loads its drivers from.
constexpr std::string_view plugins = RTE_EAL_PMD_PATH;

/// The rights that the kernel requires of a process that opens ports on its interfaces; AF_XDP needs CAP_BPF to load
/// its program.
constexpr std::uint64_t rights_of_packet = 1ULL << 13;                               // CAP_NET_RAW
constexpr std::uint64_t rights_of_xdp = rights_of_packet | 1ULL << 12 | 1ULL << 39;  // CAP_NET_ADMIN, CAP_BPF
constexpr std::uint64_t all_rights = 1ULL << 21;                                     // CAP_SYS_ADMIN stands for CAP_BPF

/// Whether this process lacks a right that the port needs. The kernel may return just "Invalid argument" in that case.
bool lacks_rights(std::string_view device) {
    const bool is_xdp = device.starts_with("net_af_xdp");
    if (!is_xdp && !device.starts_with("net_af_packet")) return false;
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("CapEff:")) continue;
        const auto held = std::strtoull(line.c_str() + std::string_view{"CapEff:"}.size(), nullptr, 16);
        const auto needed =
            is_xdp ? (held & all_rights ? rights_of_xdp & ~(1ULL << 39) : rights_of_xdp) : rights_of_packet;
        return (held & needed) != needed;
    }
    return false;
}

}  // namespace

void refuse(const PortOptions& options, int error, const std::string& what, const std::string& next) {
    // Drivers return -1 if they have no better number, which reads as EPERM: believed only where it can be true.
    const int code = (error < 0 ? -error : error) == EPERM && geteuid() == 0 ? 0 : std::abs(error);
    const bool denied = code == EPERM || code == EACCES || lacks_rights(options.device);
    throw Fault{denied ? FaultCode::no_permission : FaultCode::no_device,
                fmt::format("{}: {} ({})", options.device, what,
                            denied      ? "no permission"
                            : code == 0 ? "no reason given"
                                        : rte_strerror(code)),
                options.where, denied ? "Run as root, or give the program the rights that the device needs." : next};
}

void refuse_frames(const PortOptions& options, std::size_t octets, std::size_t largest_mtu, const std::string& next) {
    constexpr std::size_t around = frame::ethernet_octets + frame::fcs_octets;
    throw Fault{FaultCode::bad_frame_size,
                fmt::format("{}: a frame of {} octets; this port takes {} at the most", options.device,
                            octets + frame::fcs_octets, largest_mtu + around),
                options.where, next};
}

void refuse_memif(const PortOptions& options, const std::string& when, const std::string& other_end) {
    if (!other_end.empty()) {
        throw Fault{FaultCode::no_device,
                    fmt::format("{}: {} listens on {}, but has not answered{}", options.device, other_end,
                                memif_socket(options.device), when),
                    options.where, "See whether a signal has stopped that process, or it hangs; start it again then."};
    }
    const auto reason = explain_memif(options.device);
    throw Fault{FaultCode::no_device, fmt::format("{}: {}{}", options.device, reason.what, when), options.where,
                reason.next};
}

void refuse_link(const PortOptions& options, const std::optional<LinkFault>& of_kernel, const std::string& when) {
    const std::string why = of_kernel ? fmt::format(": {}", of_kernel->what) : "";
    throw Fault{FaultCode::no_device, fmt::format("{}: no link{}{}", options.device, when, why), options.where,
                of_kernel ? of_kernel->next
                          : "Check the cable, and that the other end is up; if its link takes longer, raise "
                            "link_timeout."};
}

void require_frames_as_they_came(const PortOptions& options, const std::string& driver) {
    if (driver == "net_af_packet" && joins_fragments()) {
        throw Fault{FaultCode::no_device,
                    fmt::format("{}: the kernel puts fragments together before this port sees them (DPDK's driver asks "
                                "for that, PACKET_FANOUT_FLAG_DEFRAG, and the engine could not prevent it)",
                                options.device),
                    options.where, "Use net_af_xdp on this interface, and report this with the version of DPDK."};
    }
    for (const auto& interface : interfaces_of(options.device)) {
        const auto features = joining_features(interface);
        if (features.empty()) continue;
        std::string off;
        for (const auto& feature : features) off += fmt::format(" {} off", feature);
        throw Fault{FaultCode::no_device,
                    fmt::format("{}: interface {} makes one frame of several before this port sees them ({})",
                                options.device, interface, fmt::join(features, ", ")),
                    options.where, fmt::format("Switch that off: ethtool -K {}{}", interface, off)};
    }
}

void require_other_end_takes(const PortOptions& options, std::size_t octets) {
    const std::string interface = interface_of(options.device);
    // The kernel lets a frame be longer by one tag, whether or not the frame has one.
    constexpr std::size_t around = frame::ethernet_octets + frame::vlan_tag_octets;
    const auto mtu = interface.empty() ? std::nullopt : read_peer_mtu(interface);
    if (!mtu || octets <= *mtu + around) return;
    throw Fault{
        FaultCode::bad_frame_size,
        fmt::format("{}: a frame of {} octets; the interface at the other end of {} has an MTU of {}, and takes "
                    "{} at the most",
                    options.device, octets + frame::fcs_octets, interface, *mtu,
                    *mtu + frame::ethernet_octets + frame::fcs_octets),
        options.where,
        fmt::format("Use smaller frames, or give that interface, which is the DUT's, room for them: ip link set "
                    "dev ... mtu {}",
                    octets - frame::ethernet_octets)};
}

void require_receive_queue(const PortOptions& options, const std::string& driver, int result, unsigned queue) {
    const auto what = fmt::format("receive queue {} cannot be set up", queue);
    const std::string interface = interface_of(options.device);
    const auto largest = largest_octets(driver, options.device);
    const auto link = interface.empty() ? KernelLink{} : read_kernel_link(interface);
    constexpr std::size_t usual_mtu = frame::largest_usual_frame_size - frame::ethernet_octets - frame::fcs_octets;
    if (result < 0 && driver == "net_af_xdp" && largest && link.mtu > usual_mtu) {
        refuse(options, result,
               fmt::format("{}: interface {} has an MTU of {}, but each packet of an XDP socket has to fit into a page "
                           "with its headroom, which leaves {} octets, and less with some NICs",
                           what, interface, link.mtu, *largest - frame::ethernet_octets),
               fmt::format("Give it a smaller one: ip link set dev {} mtu {}. For larger frames use net_af_packet.",
                           interface, usual_mtu));
    }
    require(options, result, what);
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
