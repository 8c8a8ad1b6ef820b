// SPDX-License-Identifier: Apache-2.0
// Station 4, port: a port whose user never sees the VLAN tags of its link. For the router; the tester has a faster way
// of its own (frame/vlan.hpp).
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <utility>

#include "frame/vlan.hpp"
#include "port/dpdk_port_inline.hpp"

namespace evenhand::port {

/// Frames without these tags are not received, and frames that are sent get them.
class TaggedPort {
   public:
    using Frame = DpdkPort::Frame;

    TaggedPort(std::unique_ptr<DpdkPort> port, const frame::VlanTags& tags) : port_{std::move(port)}, tags_{tags} {}

    [[nodiscard]] DpdkPort& port() noexcept { return *port_; }

    unsigned reserve(unsigned queue, Frame** frames, unsigned n) noexcept {
        const unsigned got = port_->reserve(queue, frames, n);
        for (unsigned i = 0; i < got; ++i)
            rte_pktmbuf_reset_headroom(
                frames[i]);  // a frame that was sent in this buffer before began further in front
        return got;
    }
    static std::byte* octets(Frame* frame) noexcept { return DpdkPort::octets(frame); }
    static std::size_t length(Frame* frame) noexcept { return DpdkPort::length(frame); }
    static std::size_t room(Frame* frame) noexcept { return DpdkPort::room(frame); }
    static void set_length(Frame* frame, std::size_t octets) noexcept { DpdkPort::set_length(frame, octets); }

    unsigned send(unsigned queue, Frame** frames, unsigned n) noexcept {
        if (tags_.octets() == 0) return port_->send(queue, frames, n);
        for (unsigned i = 0; i < n; ++i) {
            move_begin(frames[i], -static_cast<int>(tags_.octets()));
            tags_.put(octets(frames[i]));
        }
        const unsigned sent = port_->send(queue, frames, n);
        for (unsigned i = sent; i < n; ++i) (void)take_tags(frames[i]);
        return sent;
    }
    void give_back(Frame** frames, unsigned n) noexcept { port_->give_back(frames, n); }

    unsigned receive(unsigned queue, Frame** frames, unsigned n) noexcept {
        const unsigned came = port_->receive(queue, frames, n);
        if (tags_.octets() == 0) return came;
        unsigned kept = 0;
        for (unsigned i = 0; i < came; ++i) {
            if (take_tags(frames[i])) {
                std::swap(frames[kept++], frames[i]);
            }
        }
        if (kept != came) port_->release(frames + kept, came - kept);
        return kept;
    }
    void release(Frame** frames, unsigned n) noexcept { port_->release(frames, n); }

   private:
    static void move_begin(Frame* frame, int octets) noexcept {
        frame->data_off = static_cast<std::uint16_t>(frame->data_off + octets);
        set_length(frame, static_cast<std::size_t>(static_cast<int>(length(frame)) - octets));
    }
    [[nodiscard]] bool take_tags(Frame* frame) noexcept {
        if (!tags_.take(octets(frame), length(frame))) return false;
        move_begin(frame, static_cast<int>(tags_.octets()));
        return true;
    }

    std::unique_ptr<DpdkPort> port_;
    frame::VlanTags tags_;
};

}  // namespace evenhand::port
