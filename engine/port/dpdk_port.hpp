// SPDX-License-Identifier: Apache-2.0
// Station 4, port: any DPDK device. The only way frames leave and enter.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/address.hpp"
#include "port/device_files.hpp"
#include "tally/result.hpp"

namespace evenhand::port {

struct PortOptions {
    std::string device;  // net_memif0,role=client,... or 0000:01:00.0
    std::string where;   // place in the request, for faults
    unsigned receive_queues = 1;
    unsigned transmit_queues = 1;
    unsigned receive_ring_frames = 2048;
    unsigned transmit_ring_frames = 2048;
    unsigned largest_transmit_octets = 0;  // of the frames that reserve() is for, without FCS; 0: as large as any
    unsigned largest_receive_octets =
        0;                    // of any frame that should come in whole, without FCS; 0: as all ports take them
    unsigned tag_octets = 0;  // of VLAN tags in these; an MTU does not count them
    unsigned extra_receive_buffers = 0;  // for a user that keeps frames for a while, as a router does
    std::optional<double>
        link_timeout_s;  // default: 30 s for a PCI device, whose link may take long to negotiate; else 10 s
};

/// One opened and started device. Buffers for sending come from a pool of each queue whose octets are written once by
/// `fill_buffer`; a buffer is rewritten only after the device gave it back (D8). Each queue is used by one worker.
class DpdkPort {
   public:
    using Frame = rte_mbuf;

    /// Throws Fault{no_device, no_permission, no_memory}, or Fault{bad_frame_size} if the device does not take frames
    /// as large as asked for; leaves nothing open then.
    DpdkPort(PortOptions options, const std::function<void(std::span<std::byte>)>& fill_buffer);
    ~DpdkPort();
    DpdkPort(const DpdkPort&) = delete;
    DpdkPort& operator=(const DpdkPort&) = delete;

    [[nodiscard]] const std::string& device() const noexcept { return options_.device; }
    [[nodiscard]] const std::string& driver() const noexcept { return driver_; }
    [[nodiscard]] plan::MacAddress mac() const;
    [[nodiscard]] bool is_link_up() const;
    /// Wait for the link, at most `link_timeout_s`; the other end may be opened in the meantime. Throws
    /// Fault{no_device}.
    void wait_for_link();
    /// Of the medium; nothing for software ports, whose figure would mean nothing.
    [[nodiscard]] std::optional<double> line_rate_bps() const;
    /// Frames that the receive ring holds: how long the receiver may look away. 2^30 if the device waits for its
    /// reader.
    [[nodiscard]] unsigned receive_ring_frames() const noexcept { return receive_ring_frames_; }
    /// Who says so: "driver", "device" (its arguments, or what all of its kind have), or "assumed": the smallest that
    /// is plausible.
    [[nodiscard]] const char* receive_ring_source() const noexcept { return receive_ring_source_; }
    /// Of Ethernet flow control, which would let a full ring stop the other side: "off", "on" (it cannot be switched
    /// off), "none" (the port is software, and has none), or "unknown" (a NIC stands behind it, and its driver does not
    /// say).
    [[nodiscard]] const char* flow_control() const noexcept { return flow_control_; }
    /// Whether the device stamps frames when they arrive: "none", or "unused": it could, and the engine takes its own
    /// stamps all the same.
    [[nodiscard]] const char* hardware_stamps() const noexcept { return hardware_stamps_; }
    [[nodiscard]] unsigned transmit_ring_frames() const noexcept { return transmit_ring_frames_; }
    /// Whether it counts each frame that comes in, once and at once, so that receivers which saw fewer prove a loss
    /// inside the tester.
    [[nodiscard]] bool counts_exactly() const noexcept;
    [[nodiscard]] tally::PortCounters counters() const;
    [[nodiscard]] std::uint64_t dropped_answers() const noexcept {
        return dropped_answers_.load(std::memory_order_relaxed);
    }
    /// To be called several times a second during a trial: notes a link that goes, and reads counters before short ones
    /// of the device wrap.
    void keep_watch() noexcept;

    // The hot path. See the concepts in run/sender.hpp and run/receiver.hpp.
    unsigned reserve(unsigned queue, Frame** frames, unsigned n) noexcept {
        return rte_mempool_get_bulk(transmit_pools_[queue], reinterpret_cast<void**>(frames), n) == 0 ? n : 0;
    }
    static std::byte* octets(Frame* frame) noexcept { return rte_pktmbuf_mtod(frame, std::byte*); }
    static std::size_t length(Frame* frame) noexcept { return rte_pktmbuf_data_len(frame); }
    static std::size_t room(Frame* frame) noexcept { return rte_pktmbuf_data_len(frame) + rte_pktmbuf_tailroom(frame); }
    static void set_length(Frame* frame, std::size_t octets) noexcept {
        frame->data_len = static_cast<std::uint16_t>(octets);
        frame->pkt_len = static_cast<std::uint32_t>(octets);
    }
    unsigned send(unsigned queue, Frame** frames, unsigned n) noexcept {
        return rte_eth_tx_burst(id_, static_cast<std::uint16_t>(queue), frames, static_cast<std::uint16_t>(n));
    }
    void give_back(Frame** frames, unsigned n) noexcept { rte_pktmbuf_free_bulk(frames, n); }
    unsigned receive(unsigned queue, Frame** frames, unsigned n) noexcept {
        return rte_eth_rx_burst(id_, static_cast<std::uint16_t>(queue), frames, static_cast<std::uint16_t>(n));
    }
    void release(Frame** frames, unsigned n) noexcept { rte_pktmbuf_free_bulk(frames, n); }
    /// Any receiving worker; full means dropped, as on any wire: the neighbour asks again. The answer leaves in a
    /// buffer of its own: sent from its own receive buffer, net_af_xdp came to use some of these twice (seen with
    /// 20,000 a second), and then received nothing more.
    void post_answer(Frame* frame) noexcept {
        rte_mbuf* const answer = rte_pktmbuf_alloc(answer_pool_);
        if (answer != nullptr) {
            std::memcpy(octets(answer), octets(frame), length(frame));
            set_length(answer, length(frame));
        }
        if (answer == nullptr || rte_ring_enqueue(answers_, answer) != 0) {
            rte_pktmbuf_free(answer);
            dropped_answers_.fetch_add(1, std::memory_order_relaxed);
        }
        rte_pktmbuf_free(frame);
    }
    /// Sends answers that wait, at most some bursts; returns how many. The worker that owns transmit queue 0 only.
    unsigned flush_answers() noexcept {
        return held_answers_ != 0 || rte_ring_empty(answers_) == 0 ? send_answers() : 0;
    }

    /// Send one frame of our own outside trials, built by `write` in a buffer that it may fill. Owner of transmit queue
    /// 0 only.
    void send_control(const std::function<std::size_t(std::span<std::byte>)>& write);

   private:
    void probe();
    void configure();
    void let_large_frames_in() const;
    void make_pools(const std::function<void(std::span<std::byte>)>& fill_buffer);
    void start();
    void start_device() const;
    void hear_everything() const;
    void switch_flow_control_off();
    void find_extended_counters();
    [[nodiscard]] double link_timeout_s() const;
    [[nodiscard]] std::vector<std::uint64_t> extended(const std::vector<std::uint64_t>& ids) const;
    [[nodiscard]] std::uint64_t kernel_carrier_changes() const;
    unsigned send_answers() noexcept;
    void close() noexcept;

    PortOptions options_;
    DeviceFiles files_;
    std::string driver_;
    std::uint16_t id_ = RTE_MAX_ETHPORTS;
    bool started_ = false;
    unsigned receive_ring_frames_ = 0;
    const char* receive_ring_source_ = "driver";
    const char* flow_control_ = "none";
    const char* hardware_stamps_ = "none";
    std::string kernel_interface_;               // behind the device, if there is one
    std::vector<std::uint64_t> pause_counters_;  // ids of extended statistics
    std::vector<std::uint64_t> drop_counters_;   // the same, of frames that came in and were dropped
    std::vector<std::string> drop_names_;
    bool link_was_up_ = true;         // at the last keep_watch()
    std::uint64_t link_changes_ = 0;  // that it saw
    unsigned watches_ = 0;
    std::atomic<std::uint64_t> dropped_answers_{0};  // by all receivers of this port
    unsigned transmit_ring_frames_ = 0;
    rte_mempool* receive_pool_ = nullptr;
    rte_mempool* answer_pool_ = nullptr;        // shared by the receivers of this port
    std::vector<rte_mempool*> transmit_pools_;  // by queue
    rte_ring* answers_ = nullptr;               // from the receivers of this port to the owner of transmit queue 0
    // Of the owner of transmit queue 0: taken from the ring, not yet taken by the device.
    static constexpr unsigned answer_burst = 32;
    std::array<rte_mbuf*, answer_burst> answer_burst_{};
    unsigned held_answers_ = 0;
};

}  // namespace evenhand::port
