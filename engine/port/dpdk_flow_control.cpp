// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_flow_control.hpp"

#include <rte_ethdev.h>

#include <filesystem>

#include "port/dpdk_host.hpp"

namespace evenhand::port {

// With flow control, a full ring of ours would stop the DUT, which would then drop frames, and a full DUT would stop us
// (R2544-39). Ports without it return ENOTSUP.
const char* switch_flow_control_off(std::uint16_t id, const std::string& device, const std::string& kernel_interface) {
    rte_eth_fc_conf conf{};
    if (rte_eth_dev_flow_ctrl_get(id, &conf) != 0) {
        // A NIC has flow control, whether or not its driver reports it, and so has a NIC behind a kernel interface.
        const bool is_nic =
            is_pci_device(device) ||
            (!kernel_interface.empty() && std::filesystem::exists("/sys/class/net/" + kernel_interface + "/device"));
        return is_nic ? "unknown" : "none";
    }
    if (conf.mode != RTE_ETH_FC_NONE) {
        conf.mode = RTE_ETH_FC_NONE;
        (void)rte_eth_dev_flow_ctrl_set(id, &conf);
        if (rte_eth_dev_flow_ctrl_get(id, &conf) != 0) conf.mode = RTE_ETH_FC_FULL;
    }
    return conf.mode == RTE_ETH_FC_NONE ? "off" : "on";
}

}  // namespace evenhand::port
