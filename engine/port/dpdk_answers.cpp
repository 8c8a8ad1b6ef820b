// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_answers.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>

#include "fault.hpp"

namespace evenhand::port {
namespace {

/// As many answers as questions wait in the usual receive ring. A receiver takes 64 questions a turn, and answers leave
/// every few turns.
constexpr unsigned ring_frames = 2048;

/// Including headroom. Without hugepages, buffers of the usual 2 KB have a page each: 32 MB for each port, all of which
/// DPDK touches when it starts.
constexpr std::uint16_t buffer_octets = RTE_PKTMBUF_HEADROOM + DpdkAnswers::most_octets;

}  // namespace

DpdkAnswers::DpdkAnswers(std::uint16_t id, std::uint16_t queue, const std::string& device, int node)
    : id_{id},
      queue_{queue},
      pool_{make_pool(fmt::format("answer-{}", id), 2 * ring_frames - 1, buffer_octets, node, device,
                      BufferLayout::within_pages, CoreCaches::no)},
      ring_{rte_ring_create(fmt::format("answers-{}", id).c_str(), ring_frames, SOCKET_ID_ANY, RING_F_SC_DEQ)} {
    if (!ring_)
        throw Fault{FaultCode::no_memory, "no memory for the ring of answers", "host.memory_mb", "Raise memory_mb."};
}

DpdkAnswers::~DpdkAnswers() {
    rte_pktmbuf_free_bulk(burst_.data(), held_);
    while (rte_ring_empty(ring_.get()) == 0) {
        void* frame = nullptr;
        if (rte_ring_dequeue(ring_.get(), &frame) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
}

unsigned DpdkAnswers::send() noexcept {
    unsigned total = 0;
    // Limited, so that test frames need not wait long: a burst of answers takes about as long as a burst of test
    // frames.
    constexpr int most_bursts = 4;
    for (int burst = 0; burst < most_bursts; ++burst) {
        if (held_ == 0)
            held_ = rte_ring_dequeue_burst(ring_.get(), reinterpret_cast<void**>(burst_.data()), burst_frames, nullptr);
        const unsigned sent = rte_eth_tx_burst(id_, queue_, burst_.data(), static_cast<std::uint16_t>(held_));
        total += sent;
        held_ -= sent;
        // Answers that the device does not accept now stay here, or in the ring, until the next flush.
        std::copy_n(burst_.begin() + sent, held_, burst_.begin());
        if (held_ != 0 || rte_ring_empty(ring_.get()) != 0) break;
    }
    return total;
}

void DpdkAnswers::send_control(const std::function<std::size_t(std::span<std::byte>)>& write) noexcept {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_.get());
    if (frame == nullptr) return;
    const std::size_t room = rte_pktmbuf_data_len(frame) + rte_pktmbuf_tailroom(frame);
    const std::size_t octets = write({rte_pktmbuf_mtod(frame, std::byte*), room});
    frame->data_len = static_cast<std::uint16_t>(octets);
    frame->pkt_len = static_cast<std::uint32_t>(octets);
    if (rte_eth_tx_burst(id_, queue_, &frame, 1) == 0) rte_pktmbuf_free(frame);
}

}  // namespace evenhand::port
