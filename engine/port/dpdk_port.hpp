// SPDX-License-Identifier: Apache-2.0
// Station 4, port: any DPDK device. Frames leave and enter by no other way.
//
// Without DPDK's headers. The hot path is inlined where a loop is compiled: see port/dpdk_port_inline.hpp.
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
class OwnLink;

struct PortOptions {
    std::string device;  // net_memif0,role=client,... or 0000:01:00.0
    std::string where;   // place in the request, for faults
    unsigned receive_queues = 1;
    unsigned transmit_queues = 1;
    unsigned receive_ring_frames = 2048;
    unsigned transmit_ring_frames = 2048;
    unsigned largest_transmit_octets = 0;  // of the frames that reserve() is for, without FCS; 0: no limit
    unsigned largest_receive_octets =
        0;                    // of any frame that must be received whole, without FCS; 0: what all ports accept
    unsigned tag_octets = 0;  // octets of VLAN tags in these; an MTU does not include them
    unsigned extra_receive_buffers = 0;  // for a user that keeps frames for a while, such as a router
    bool sends_received_buffers =
        false;  // true for a router; a tester sends all frames of a queue in buffers of one pool
    std::optional<double>
        link_timeout_s;  // default: 30 s for a PCI device, whose link may take long to negotiate; else 10 s
};

/// Writes the octets of a transmit buffer that never change; called once for each buffer of each transmit queue.
using FillBuffer = std::function<void(std::span<std::byte> buffer, unsigned queue)>;

/// One opened and started device. Buffers for sending come from a pool for each queue, whose octets are written once by
/// `fill_buffer`; a buffer is rewritten only after the device has given it back (D8). Each queue is used by one worker.
class DpdkPort {
   public:
    using Frame = rte_mbuf;

    /// Throws Fault{no_device, no_permission, no_memory}, or Fault{bad_frame_size} if the device does not accept frames
    /// of the required size. After a fault nothing stays open.
    DpdkPort(PortOptions options, const FillBuffer& fill_buffer);
    ~DpdkPort();
    DpdkPort(const DpdkPort&) = delete;
    DpdkPort& operator=(const DpdkPort&) = delete;
    /// Closes the device, which gives back all buffers that it still holds, but keeps the port's own pools until the
    /// destructor. Where a port sends frames that another one received, all devices must be closed before the first
    /// pool is destroyed.
    void close_device() noexcept;

    [[nodiscard]] const std::string& device() const noexcept { return options_.device; }
    [[nodiscard]] const std::string& driver() const noexcept { return driver_; }
    [[nodiscard]] plan::MacAddress mac() const;
    [[nodiscard]] bool is_link_up() const;
    /// Takes the port's own link down or up, so that the other end loses its carrier or gets it back; nothing if it is
    /// so already. close_device() takes it up again. Throws Fault{bad_request} if the driver cannot, and
    /// Fault{no_permission, no_device} if that fails.
    void set_link(bool is_up);
    /// Whether set_link() has taken it down.
    [[nodiscard]] bool is_taken_down() const noexcept;
    /// Throws Fault{no_device} that names the port and the reason if the link is down, and Fault{bad_order} if it was
    /// taken down. To be called after wait_for_link().
    void check_link() const;
    /// Throws Fault{bad_frame_size} if the other end is known not to accept frames of that many octets, without FCS.
    void check_other_end(std::size_t octets) const;
    [[nodiscard]] double link_timeout_s() const;
    /// Waits for the link, at most `link_timeout_s`; the other end may be opened meanwhile. Throws Fault{no_device}.
    void wait_for_link();
    /// The line rate of the medium; nothing for software ports, whose figure would mean nothing.
    [[nodiscard]] std::optional<double> line_rate_bps() const;
    /// The NUMA node that a NIC is attached to; nothing if it is unknown, or for a software port.
    [[nodiscard]] std::optional<unsigned> numa_node() const;
    /// How many frames the receive ring holds, which limits how long the receiver may be away. 2^30 if the device waits
    /// for its reader.
    [[nodiscard]] unsigned receive_ring_frames() const noexcept { return receive_ring_frames_; }
    /// The source of that number: "driver", "device" (its arguments, or a property of its kind), or "assumed" (the
    /// smallest plausible one).
    [[nodiscard]] const char* receive_ring_source() const noexcept { return receive_ring_source_; }
    /// The state of Ethernet flow control, which would let a full ring stop the other side: "off", "on" (it cannot be
    /// switched off), "none" (a software port without it), or "unknown" (there is a NIC behind the port, whose driver
    /// does not report it).
    [[nodiscard]] const char* flow_control() const noexcept { return flow_control_; }
    /// Whether the device can stamp frames when they arrive: "none", or "unused", since the engine takes its own stamps
    /// in any case.
    [[nodiscard]] const char* hardware_stamps() const noexcept { return hardware_stamps_; }
    [[nodiscard]] unsigned transmit_ring_frames() const noexcept { return transmit_ring_frames_; }
    /// Whether answers and other control frames leave by a transmit queue of their own, so that they need not wait for
    /// test frames.
    [[nodiscard]] bool has_control_queue() const noexcept { return has_control_queue_; }
    /// Whether the device gives back a queue's buffers without looking up the pool of each: all of a queue's buffers
    /// are of one pool.
    [[nodiscard]] bool frees_fast() const noexcept { return frees_fast_; }
    /// Whether the device counts each received frame exactly once and immediately, so that a loss inside the tester is
    /// proven if the receivers saw fewer.
    [[nodiscard]] bool counts_exactly() const noexcept;
    [[nodiscard]] tally::PortCounters counters() const;
    /// Whether the device was removed from this machine, or is about to be: an interface that was deleted, a NIC or a
    /// virtual function that the kernel wants back. From then on, nothing that it counts or sends is meaningful.
    [[nodiscard]] bool is_removed() const;
    [[nodiscard]] std::uint64_t dropped_answers() const noexcept;
    /// To be called several times a second during a trial: notes a link that went down, and reads counters before the
    /// device's short ones wrap.
    void keep_watch() noexcept;
    /// Whether a link that is down for a moment can only be noticed by calling note_link() each millisecond or so.
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
    /// Sends waiting answers, at most some bursts; returns how many. For the worker that owns transmit queue 0 only.
    inline unsigned flush_answers() noexcept;

    /// Sends one frame of our own outside trials, which `write` builds in the buffer that it is given. For the owner of
    /// transmit queue 0 only.
    void send_control(const std::function<std::size_t(std::span<std::byte>)>& write);

   private:
    static constexpr std::uint16_t no_id = 0xFFFF;

    void probe();
    void configure();
    [[nodiscard]] std::uint16_t all_transmit_queues() const noexcept;
    [[nodiscard]] std::uint16_t control_queue() const noexcept;
    void make_pools(const FillBuffer& fill_buffer);
    void start();
    void start_device();
    /// The process that has accepted the connection of this memif's client without answering it yet; empty if there is
    /// none.
    [[nodiscard]] std::string waits_for() const;
    void hear_everything() const;

    PortOptions options_;
    DeviceFiles files_;
    std::vector<int> connections_before_;  // to the socket of a memif, made by this process's other ports
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
    std::vector<Pool> transmit_pools_;        // one for each queue
    std::unique_ptr<DpdkAnswers> answers_;    // of the receivers of this port
    std::unique_ptr<DpdkCounters> counters_;  // set once the device is started
    std::unique_ptr<OwnLink> own_link_;       // the same
};

}  // namespace evenhand::port
