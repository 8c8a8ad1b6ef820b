// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the hot path of DPDK's ports, for the few files that compile a loop over them (port/dpdk_loops.cpp,
// the router, the benches). All other files include port/dpdk_port.hpp.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "port/dpdk_answers.hpp"
#include "port/dpdk_port.hpp"

namespace evenhand::port {

unsigned DpdkPort::reserve(unsigned queue, Frame** frames, unsigned n) noexcept {
    return rte_mempool_get_bulk(transmit_pools_[queue].get(), reinterpret_cast<void**>(frames), n) == 0 ? n : 0;
}
std::byte* DpdkPort::octets(Frame* frame) noexcept { return rte_pktmbuf_mtod(frame, std::byte*); }
std::size_t DpdkPort::length(Frame* frame) noexcept { return rte_pktmbuf_data_len(frame); }
std::size_t DpdkPort::room(Frame* frame) noexcept { return rte_pktmbuf_data_len(frame) + rte_pktmbuf_tailroom(frame); }
void DpdkPort::set_length(Frame* frame, std::size_t octets) noexcept {
    frame->data_len = static_cast<std::uint16_t>(octets);
    frame->pkt_len = static_cast<std::uint32_t>(octets);
}
unsigned DpdkPort::send(unsigned queue, Frame** frames, unsigned n) noexcept {
    return rte_eth_tx_burst(id_, static_cast<std::uint16_t>(queue), frames, static_cast<std::uint16_t>(n));
}
void DpdkPort::give_back(Frame** frames, unsigned n) noexcept { rte_pktmbuf_free_bulk(frames, n); }
unsigned DpdkPort::receive(unsigned queue, Frame** frames, unsigned n) noexcept {
    return rte_eth_rx_burst(id_, static_cast<std::uint16_t>(queue), frames, static_cast<std::uint16_t>(n));
}
void DpdkPort::release(Frame** frames, unsigned n) noexcept { rte_pktmbuf_free_bulk(frames, n); }
void DpdkPort::post_answer(Frame* frame) noexcept { answers_->post(frame); }
unsigned DpdkPort::flush_answers() noexcept { return answers_->flush(); }

}  // namespace evenhand::port
