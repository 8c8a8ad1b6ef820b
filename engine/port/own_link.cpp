// SPDX-License-Identifier: Apache-2.0
#include "port/own_link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_ethdev.h>

#include <cerrno>
#include <utility>

#include "fault.hpp"
#include "port/device_argument.hpp"
#include "port/dpdk_host.hpp"
#include "port/dpdk_refusal.hpp"
#include "port/kernel_interface.hpp"

namespace evenhand::port {

OwnLink::OwnLink(std::uint16_t id, const PortOptions& options, std::string driver)
    : id_{id}, options_{options}, driver_{std::move(driver)} {
    if (driver_ == "net_af_packet" || driver_ == "net_af_xdp" || driver_ == "net_pcap")
        interfaces_ = interfaces_of(options_.device);
}

OwnLink::~OwnLink() {
    if (!is_taken_down_) return;
    if (is_pci_device(options_.device)) (void)rte_eth_dev_set_link_up(id_);
    for (const auto& interface : interfaces_) (void)switch_kernel_link(interface, true);
}

void OwnLink::set(bool is_up, DpdkCounters& counters) {
    if (is_up != is_taken_down_) return;
    if (driver_ == "net_tap") refuse_change("its interface is the DUT's own");
    if (!is_pci_device(options_.device) && interfaces_.empty())
        refuse_change("it has no link that its other end could lose");
    counters.expect_link(is_up);
    try {
        if (is_pci_device(options_.device)) set_driver_link(is_up);
        switch_interfaces(is_up);
    } catch (const Fault&) {
        counters.expect_link(!is_taken_down_);
        throw;
    }
    is_taken_down_ = !is_up;
}

void OwnLink::set_driver_link(bool is_up) {
    const int result = is_up ? rte_eth_dev_set_link_up(id_) : rte_eth_dev_set_link_down(id_);
    if (result == -ENOTSUP) refuse_change("the driver has no such function");
    require(options_, result, is_up ? "its link cannot be taken up" : "its link cannot be taken down");
}

void OwnLink::switch_interfaces(bool on) {
    if (!on) {
        for (const auto& interface : interfaces_) keepers_.push_back(std::make_unique<LinkKeeper>(interface));
    }
    int result = 0;
    for (const auto& interface : interfaces_) {
        if (result == 0) result = switch_kernel_link(interface, on);
    }
    if (result != 0 && !on) {
        for (const auto& interface : interfaces_) (void)switch_kernel_link(interface, true);
    }
    if (on == (result == 0)) keepers_.clear();
    require(options_, result,
            fmt::format("interface {} cannot be switched {}", fmt::join(interfaces_, ", "), on ? "on" : "off"));
}

void OwnLink::refuse_change(const char* why) const {
    throw Fault{FaultCode::bad_request,
                fmt::format("{}: a port of {} cannot take its link down: {}", options_.device, driver_, why),
                options_.where,
                "Switch the DUT's own interface off instead, or use net_af_packet, net_af_xdp, or a NIC whose driver "
                "can."};
}

}  // namespace evenhand::port
