// SPDX-License-Identifier: Apache-2.0
// Station 4, port: any DPDK device. The only way frames leave and enter.
//
// What it is and can, without DPDK's headers. The hot path is inlined where a loop is compiled:
// port/dpdk_port_inline.hpp has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/address.hpp"
#include "port/device_files.hpp"
#include "port/dpdk_pool.hpp"
#include "tally/result.hpp"

struct rte_mbuf;

namespace evenhand::port {

class DpdkAnswers;
class DpdkCounters;

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
    unsigned extra_receive_buffers = 0;   // for a user that keeps frames for a while, as a router does
    bool sends_received_buffers = false;  // as a router does; a tester sends all frames of a queue in those of one pool
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
    /// Ends its device, which gives back all buffers that it still holds, and keeps its own pools until the destructor.
    /// Where a port sends what another one received, all devices are closed before the first pool goes.
    void close_device() noexcept;

    [[nodiscard]] const std::string& device() const noexcept { return options_.device; }
    [[nodiscard]] const std::string& driver() const noexcept { return driver_; }
    [[nodiscard]] plan::MacAddress mac() const;
    [[nodiscard]] bool is_link_up() const;
    /// Throws Fault{no_device} that names the port and says why. After wait_for_link().
    void check_link() const;
    /// Throws Fault{bad_frame_size} if the other end is known to take no frames of so many octets, without FCS.
    void check_other_end(std::size_t octets) const;
    [[nodiscard]] double link_timeout_s() const;
    /// Wait for the link, at most `link_timeout_s`; the other end may be opened in the meantime. Throws
    /// Fault{no_device}.
    void wait_for_link();
    /// Of the medium; nothing for software ports, whose figure would mean nothing.
    [[nodiscard]] std::optional<double> line_rate_bps() const;
    /// Of a NIC: the NUMA node that it is attached to; nothing if it is unknown, or if the port is software.
    [[nodiscard]] std::optional<unsigned> numa_node() const;
    /// Frames that the receive ring holds: how long the receiver may look away. 2^30 if the device waits for its
    /// reader.
    [[nodiscard]] unsigned receive_ring_frames() const noexcept { return receive_ring_frames_; }
    /// Who says so: "driver", "device" (its arguments, or what all of its kind have), or "assumed": the smallest that
    /// is plausible.
    [[nodiscard]] const char* receive_ring_source() const noexcept { return receive_ring_source_; }
    /// Of Ethernet flow control, which would let a full ring stop the other side: "off", "on" (it cannot be switched
    /// off), "none" (the port is software, and has none), or "unknown" (there is a NIC behind it, whose driver does not
    /// say).
    [[nodiscard]] const char* flow_control() const noexcept { return flow_control_; }
    /// Whether the device stamps frames when they arrive: "none", or "unused": it could, and the engine takes its own
    /// stamps all the same.
    [[nodiscard]] const char* hardware_stamps() const noexcept { return hardware_stamps_; }
    [[nodiscard]] unsigned transmit_ring_frames() const noexcept { return transmit_ring_frames_; }
    /// Whether answers and other control frames leave by a transmit queue of their own, in front of which no test frame
    /// waits.
    [[nodiscard]] bool has_control_queue() const noexcept { return has_control_queue_; }
    /// Whether the device gives back a queue's buffers without asking each where it belongs: each queue's are of one
    /// pool.
    [[nodiscard]] bool frees_fast() const noexcept { return frees_fast_; }
    /// Whether it counts each frame that comes in, once and at once, so that receivers which saw fewer prove a loss
    /// inside the tester.
    [[nodiscard]] bool counts_exactly() const noexcept;
    [[nodiscard]] tally::PortCounters counters() const;
    /// Whether the device was taken away from this host, or is about to be: an interface that was deleted, a NIC or a
    /// virtual function that the kernel wants back. Nothing that it counts or sends means anything from then on.
    [[nodiscard]] bool is_removed() const;
    [[nodiscard]] std::uint64_t dropped_answers() const noexcept;
    /// To be called several times a second during a trial: notes a link that goes, and reads counters before short ones
    /// of the device wrap.
    void keep_watch() noexcept;
    /// Whether a link that is down for a moment shows only where note_link() is called each millisecond or so in
    /// between.
    [[nodiscard]] bool needs_link_looks() const;
    void note_link() noexcept;

    // The hot path. See the concepts in run/sender.hpp and run/receiver.hpp.
    inline unsigned reserve(unsigned queue, Frame** frames, unsigned n) noexcept;
    inline static std::byte* octets(Frame* frame) noexcept;
    inline static std::size_t length(Frame* frame) noexcept;
    inline static std::size_t room(Frame* frame) noexcept;
    inline static void set_length(Frame* frame, std::size_t octets) noexcept;
    inline unsigned send(unsigned queue, Frame** frames, unsigned n) noexcept;
    inline void give_back(Frame** frames, unsigned n) noexcept;
    inline unsigned receive(unsigned queue, Frame** frames, unsigned n) noexcept;
    inline void release(Frame** frames, unsigned n) noexcept;
    /// An answer in its receive buffer; from any receiving worker.
    inline void post_answer(Frame* frame) noexcept;
    /// Sends answers that wait, at most some bursts; returns how many. The worker that owns transmit queue 0 only.
    inline unsigned flush_answers() noexcept;

    /// Send one frame of our own outside trials, built by `write` in a buffer that it may fill. Owner of transmit queue
    /// 0 only.
    void send_control(const std::function<std::size_t(std::span<std::byte>)>& write);

   private:
    static constexpr std::uint16_t no_id = 0xFFFF;

    void probe();
    void configure();
    [[nodiscard]] std::uint16_t all_transmit_queues() const noexcept;
    [[nodiscard]] std::uint16_t control_queue() const noexcept;
    void make_pools(const std::function<void(std::span<std::byte>)>& fill_buffer);
    void start();
    void start_device();
    /// Who has taken the connection of this memif's client, and has not answered it yet; empty if nobody.
    [[nodiscard]] std::string waits_for() const;
    void hear_everything() const;

    PortOptions options_;
    DeviceFiles files_;
    std::vector<int> connections_before_;  // to the socket of a memif, by this process's other ports
    std::string driver_;
    std::uint16_t id_ = no_id;
    bool started_ = false;
    unsigned receive_ring_frames_ = 0;
    const char* receive_ring_source_ = "driver";
    const char* flow_control_ = "none";
    const char* hardware_stamps_ = "none";
    bool has_control_queue_ = false;  // it is the last one
    bool frees_fast_ = false;
    unsigned transmit_ring_frames_ = 0;
    Pool receive_pool_;
    std::vector<Pool> transmit_pools_;        // by queue
    std::unique_ptr<DpdkAnswers> answers_;    // of the receivers of this port
    std::unique_ptr<DpdkCounters> counters_;  // once it is started
};

}  // namespace evenhand::port
