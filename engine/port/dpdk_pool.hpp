// SPDX-License-Identifier: Apache-2.0
// Station 4, port: pools of frame buffers. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct rte_mempool;

namespace evenhand::port {

struct FreePool {
    void operator()(rte_mempool* pool) const noexcept;
};
using Pool = std::unique_ptr<rte_mempool, FreePool>;

/// Buffers of `buffer_octets`, headroom included, on that NUMA node, or wherever there is room. `device` is for the
/// fault. Throws Fault{no_memory}, or Fault{no_device} without DPDK's driver of pools.
[[nodiscard]] Pool make_pool(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
                             const std::string& device);

}  // namespace evenhand::port
