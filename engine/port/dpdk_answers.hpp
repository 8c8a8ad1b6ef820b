// SPDX-License-Identifier: Apache-2.0
// Station 4, port: passes answers to neighbours from the worker that received the question to the worker that sends.
// For files that include DPDK's headers.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "port/dpdk_pool.hpp"

namespace evenhand::port {

/// The answers of one port: a ring from its receivers to the owner of its transmit queue 0. That worker sends them on
/// queue 0, or on the queue for control frames, if the port has one. Must be destroyed after the device is closed,
/// which may hold its buffers, and before the pools that received frames come from.
class DpdkAnswers {
   public:
    /// `id` and `device` of the port; `queue`: the transmit queue for answers. Throws Fault{no_memory, no_device}.
    DpdkAnswers(std::uint16_t id, std::uint16_t queue, const std::string& device, int node);
    ~DpdkAnswers();
    DpdkAnswers(const DpdkAnswers&) = delete;
    DpdkAnswers& operator=(const DpdkAnswers&) = delete;

    /// Called by any receiving worker. If the ring is full, the answer is dropped as on any wire: the neighbour asks
    /// again. The answer is sent in a buffer of its own: when answers were sent in their receive buffers, net_af_xdp
    /// came to use some of these twice (seen with 20,000 a second), and then received nothing more.
    void post(rte_mbuf* frame) noexcept {
        const auto octets = rte_pktmbuf_data_len(frame);
        rte_mbuf* const answer = octets <= most_octets ? rte_pktmbuf_alloc(pool_.get()) : nullptr;
        if (answer != nullptr) {
            std::memcpy(rte_pktmbuf_mtod(answer, std::byte*), rte_pktmbuf_mtod(frame, std::byte*), octets);
            answer->data_len = octets;
            answer->pkt_len = octets;
        }
        if (answer == nullptr || rte_ring_enqueue(ring_.get(), answer) != 0) {
            rte_pktmbuf_free(answer);
            dropped_.fetch_add(1, std::memory_order_relaxed);
        }
        rte_pktmbuf_free(frame);
    }

    /// Sends waiting answers, at most some bursts; returns how many. For the owner of transmit queue 0 only.
    unsigned flush() noexcept { return held_ != 0 || rte_ring_empty(ring_.get()) == 0 ? send() : 0; }

    /// Sends one frame of our own, which `write` builds in the buffer that it is given. For the owner of transmit queue
    /// 0 only.
    void send_control(const std::function<std::size_t(std::span<std::byte>)>& write) noexcept;

    /// For any thread.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

    /// The largest answer: more than any message of ARP or Neighbour Discovery with two VLAN tags.
    static constexpr std::uint16_t most_octets = 256;

   private:
    struct FreeRing {
        void operator()(rte_ring* ring) const noexcept { rte_ring_free(ring); }
    };
    static constexpr unsigned burst_frames = 32;

    unsigned send() noexcept;

    std::uint16_t id_;
    std::uint16_t queue_;
    Pool pool_;
    std::unique_ptr<rte_ring, FreeRing> ring_;
    std::atomic<std::uint64_t> dropped_{0};  // by all receivers of the port
    // Used by the owner of transmit queue 0: answers taken from the ring, but not yet accepted by the device.
    std::array<rte_mbuf*, burst_frames> burst_{};
    unsigned held_ = 0;
};

}  // namespace evenhand::port
