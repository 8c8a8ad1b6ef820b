// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_frame_size.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>

#include "frame/layout.hpp"
#include "frame/vlan.hpp"
#include "port/device_argument.hpp"
#include "port/dpdk_host.hpp"
#include "port/dpdk_refusal.hpp"

namespace evenhand::port {

void let_large_frames_in(std::uint16_t id, const std::string& driver, const PortOptions& options) {
    const std::size_t octets = std::max(options.largest_receive_octets, options.largest_transmit_octets);
    if (const auto largest = largest_octets(driver, options.device); largest && octets > *largest) {
        const char* const next = driver == "net_af_packet" ? "Raise framesz and blocksz of the device."
                                 : driver == "net_memif"
                                     ? "Raise bsize of the device, at both ends: a frame must fit into one buffer."
                                     : "Use smaller frames, or another kind of port.";
        refuse_frames(options, octets, *largest - frame::ethernet_octets, next);
    }
    const std::string interface = interface_of(options.device);
    const bool is_of_kernel = !interface.empty() && driver != "net_tap";  // net_tap creates its interface itself
    // The kernel lets a frame be longer by one 802.1Q tag, but by no other tag.
    const std::size_t tags = is_of_kernel && options.tag_octets != frame::vlan_tag_octets ? 0 : options.tag_octets;
    if (octets <= frame::largest_usual_frame_size - frame::fcs_octets + tags) return;
    const auto mtu = static_cast<std::uint16_t>(octets - frame::ethernet_octets - tags);
    rte_eth_dev_info info{};
    require(options, rte_eth_dev_info_get(id, &info), "the device does not report what it is");
    const auto take_at_most = [&](std::size_t largest_mtu, const std::string& next) {
        if (mtu > largest_mtu) refuse_frames(options, octets, largest_mtu + tags, next);
    };
    if (is_of_kernel) {
        take_at_most(info.max_mtu, "Use smaller frames, or another kind of port.");
        std::size_t kernel_mtu = mtu;
        std::ifstream{"/sys/class/net/" + interface + "/mtu"} >> kernel_mtu;
        take_at_most(
            kernel_mtu,
            fmt::format("Give the interface room for them, and its neighbours as well: ip link set dev {} mtu {}",
                        interface, mtu));
        return;
    }
    const int result = rte_eth_dev_set_mtu(id, mtu);
    if (result == 0 || (result == -ENOTSUP && !is_pci_device(options.device))) return;
    take_at_most(info.max_mtu, "Use smaller frames, or another port.");
    refuse(options, result, fmt::format("the device does not take an MTU of {}", mtu),
           "Use smaller frames, or another port.");
}

}  // namespace evenhand::port
