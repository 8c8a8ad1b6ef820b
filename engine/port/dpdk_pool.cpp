// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_pool.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "fault.hpp"
#include "port/device_reason.hpp"

namespace evenhand::port {
namespace {

constexpr unsigned pool_cache = 256;

/// DPDK loads the driver for its pools as a plug-in from a package of its own. Without it, creating a pool fails with
/// "out of memory".
void require_pool_driver() {
    constexpr std::string_view usual = RTE_MBUF_DEFAULT_MEMPOOL_OPS;
    for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; ++i) {
        if (rte_mempool_ops_table.ops[i].name == usual) return;
    }
    throw Fault{FaultCode::no_device, fmt::format("DPDK's driver of buffer pools, {}, is not installed", usual), "host",
                fmt::format("Install its package: sudo apt-get install {}",
                            package_of("librte_mempool_ring", RTE_EAL_PMD_PATH))};
}

/// Whether all buffers are within the memory that they would take side by side, beginning with the first.
bool are_side_by_side(rte_mempool* pool) {
    if (pool->nb_mem_chunks != 1) return false;
    const auto* const begin = static_cast<const std::byte*>(STAILQ_FIRST(&pool->mem_list)->addr);
    const std::size_t each = rte_mempool_calc_obj_size(pool->elt_size, pool->flags, nullptr);
    struct Span {
        const std::byte* end;
        bool has_all = true;
    } span{begin + pool->populated_size * each};
    rte_mempool_obj_iter(
        pool,
        [](rte_mempool* of, void* into, void* object, unsigned) {
            auto& all = *static_cast<Span*>(into);
            const auto* const behind = static_cast<const std::byte*>(object) + of->elt_size + of->trailer_size;
            all.has_all = all.has_all && behind <= all.end;
        },
        &span);
    return span.has_all;
}

/// As rte_pktmbuf_pool_create() does it, but with buffers that may cross pages; null with rte_errno set on failure.
/// Needs one contiguous piece of memory.
rte_mempool* make_side_by_side(const char* name, unsigned buffers, std::uint16_t buffer_octets, int node) {
    Pool pool{rte_mempool_create_empty(name, buffers, sizeof(rte_mbuf) + buffer_octets, pool_cache,
                                       sizeof(rte_pktmbuf_pool_private), node, RTE_MEMPOOL_F_NO_IOVA_CONTIG)};
    if (!pool) return nullptr;
    if (rte_mempool_set_ops_byname(pool.get(), rte_mbuf_best_mempool_ops(), nullptr) != 0) return nullptr;
    rte_pktmbuf_pool_private facts{};
    facts.mbuf_data_room_size = buffer_octets;
    rte_pktmbuf_pool_init(pool.get(), &facts);
    const int made = rte_mempool_populate_default(pool.get());
    if (made < 0 || !are_side_by_side(pool.get())) {
        rte_errno = made < 0 ? -made : ENOMEM;
        return nullptr;
    }
    rte_mempool_obj_iter(pool.get(), rte_pktmbuf_init, nullptr);
    return pool.release();
}

rte_mempool* try_to_make(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
                         BufferLayout layout, CoreCaches caches) {
    if (layout != BufferLayout::within_pages) {
        rte_mempool* const pool = make_side_by_side(name.c_str(), buffers, buffer_octets, node);
        if (pool != nullptr || layout == BufferLayout::side_by_side) return pool;
    }
    return rte_pktmbuf_pool_create(name.c_str(), buffers, caches == CoreCaches::yes ? pool_cache : 0, 0, buffer_octets,
                                   node);
}

}  // namespace

void FreePool::operator()(rte_mempool* pool) const noexcept { rte_mempool_free(pool); }

Pool make_pool(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
               const std::string& device, BufferLayout layout, CoreCaches caches) {
    rte_mempool* pool = try_to_make(name, buffers, buffer_octets, node, layout, caches);
    // Memory may have been reserved on another node only, which is slower but works.
    if (pool == nullptr && node != SOCKET_ID_ANY)
        pool = try_to_make(name, buffers, buffer_octets, SOCKET_ID_ANY, layout, caches);
    if (pool == nullptr) {
        require_pool_driver();
        throw Fault{FaultCode::no_memory,
                    fmt::format("no memory for {} frame buffers of {} ({})", buffers, device, rte_strerror(rte_errno)),
                    "host.memory_mb", "Raise memory_mb, or lower the ring sizes."};
    }
    return Pool{pool};
}

}  // namespace evenhand::port
