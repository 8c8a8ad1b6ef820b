// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_pool.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <string_view>

#include "fault.hpp"
#include "port/device_reason.hpp"

namespace evenhand::port {
namespace {

constexpr unsigned pool_cache = 256;

/// DPDK loads the driver of its pools as a plug-in, from a package of its own; without it every pool is "out of
/// memory".
void require_pool_driver() {
    constexpr std::string_view usual = RTE_MBUF_DEFAULT_MEMPOOL_OPS;
    for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; ++i) {
        if (rte_mempool_ops_table.ops[i].name == usual) return;
    }
    throw Fault{FaultCode::no_device, fmt::format("DPDK's driver of buffer pools, {}, is not installed", usual), "host",
                fmt::format("Install its package: sudo apt-get install {}",
                            package_of("librte_mempool_ring", RTE_EAL_PMD_PATH))};
}

}  // namespace

void FreePool::operator()(rte_mempool* pool) const noexcept { rte_mempool_free(pool); }

Pool make_pool(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
               const std::string& device) {
    rte_mempool* pool = rte_pktmbuf_pool_create(name.c_str(), buffers, pool_cache, 0, buffer_octets, node);
    // Memory may have been reserved on another node only: slower, but it works.
    if (pool == nullptr && node != SOCKET_ID_ANY)
        pool = rte_pktmbuf_pool_create(name.c_str(), buffers, pool_cache, 0, buffer_octets, SOCKET_ID_ANY);
    if (pool == nullptr) {
        require_pool_driver();
        throw Fault{FaultCode::no_memory,
                    fmt::format("no memory for {} frame buffers of {} ({})", buffers, device, rte_strerror(rte_errno)),
                    "host.memory_mb", "Raise memory_mb, or lower the ring sizes."};
    }
    return Pool{pool};
}

}  // namespace evenhand::port
