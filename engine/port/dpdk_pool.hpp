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

/// How buffers are placed in memory. DPDK lets no buffer cross a page, so that each is in one piece for a NIC.
/// net_af_xdp registers with the kernel as much memory as all buffers need side by side, beginning with the first. If
/// each buffer has a page to itself (no hugepages), two fifths of them are outside that memory. The kernel skips such a
/// buffer and never returns it, so that a port which had come to use them, after an overload, sent and received nothing
/// any more.
///
/// Other software ports copy by address. A page for each buffer would take twice the memory, and would hurt the
/// first-level cache: buffers that begin 4096 octets apart use the same 8 or 12 lines of it. They are placed side by
/// side if there is one piece of memory for all of them.
enum class BufferLayout : std::uint8_t { within_pages, side_by_side, best_side_by_side };

/// Whether each core keeps some hundred buffers of a pool at hand. They are for bursts: without them a core takes from
/// the pool itself, which takes longer. But DPDK has room for them in each pool, 1.5 MB for all cores that there could
/// be, and touches all of it.
enum class CoreCaches : bool { no, yes };

/// Buffers of `buffer_octets`, including headroom, on that NUMA node, or on any node for SOCKET_ID_ANY. `device` is for
/// the fault. Throws Fault{no_memory}, or Fault{no_device} if DPDK's driver for pools is missing.
[[nodiscard]] Pool make_pool(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
                             const std::string& device, BufferLayout layout = BufferLayout::within_pages,
                             CoreCaches caches = CoreCaches::yes);

}  // namespace evenhand::port
