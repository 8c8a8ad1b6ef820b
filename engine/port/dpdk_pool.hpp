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

/// How buffers lie in memory. DPDK lets none cross a page, so that a NIC finds it in one piece. net_af_xdp gives the
/// kernel as much memory as all buffers take side by side, from the first one on: where each has a page to itself (no
/// hugepages), two fifths lay outside. The kernel passes over such a buffer and never gives it back, so a port that had
/// come to use them, after an overload, sent and received nothing any more.
///
/// Other software ports copy by address, and a page to each buffer would cost them twice the memory, and the first
/// cache: buffers that begin 4096 octets apart meet in the same 8 or 12 lines of it. They lie side by side if one piece
/// of memory is left for all of them.
enum class BufferLayout : std::uint8_t { within_pages, side_by_side, best_side_by_side };

/// Buffers of `buffer_octets`, headroom included, on that NUMA node, or wherever there is room. `device` is for the
/// fault. Throws Fault{no_memory}, or Fault{no_device} without DPDK's driver of pools.
[[nodiscard]] Pool make_pool(const std::string& name, unsigned buffers, std::uint16_t buffer_octets, int node,
                             const std::string& device, BufferLayout layout = BufferLayout::within_pages);

}  // namespace evenhand::port
