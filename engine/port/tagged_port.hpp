// SPDX-License-Identifier: Apache-2.0
// Station 4, port: a port whose user never sees the VLAN tags of its link. For the router; the tester has a faster way
// of its own (frame/vlan.hpp).
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "frame/vlan.hpp"
#include "port/dpdk_port_inline.hpp"

namespace evenhand::port {

/// Frames without these tags are not received, and frames that are sent get them.
class TaggedPort {
   public:
    using Frame = DpdkPort::Frame;

    TaggedPort(std::shared_ptr<DpdkPort> port, const frame::VlanTags& tags) : port_{std::move(port)}, tags_{tags} {}

    /// Two interfaces on one port, which have different tags: each keeps what it receives of the other's. Both outlive
    /// the last use of either, which is from one thread.
    static void join(TaggedPort& one, TaggedPort& other) noexcept {
        one.other_ = &other;
        other.other_ = &one;
    }
    /// The port, to be shared with another interface.
    [[nodiscard]] const std::shared_ptr<DpdkPort>& shared_port() const noexcept { return port_; }

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
        if (other_ != nullptr) return receive_shared(queue, frames, n);
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
    static constexpr unsigned burst_frames = 64;

    /// What the other interface has received for this one comes first, as it came first.
    unsigned receive_shared(unsigned queue, Frame** frames, unsigned n) noexcept {
        unsigned got = 0;
        while (got < n && waiting_ != 0) frames[got++] = kept_[first_++ % kept_.size()], --waiting_;
        std::array<Frame*, burst_frames> burst;
        const unsigned most = std::min({n - got, burst_frames, static_cast<unsigned>(kept_.size()) - other_->waiting_});
        const unsigned came = most == 0 ? 0 : port_->receive(queue, burst.data(), most);
        unsigned dropped = 0;
        for (unsigned i = 0; i < came; ++i) {
            // Without tags, an interface would take any frame.
            const bool is_others = other_->tags_.octets() > tags_.octets() && other_->take_tags(burst[i]);
            if (!is_others && take_tags(burst[i])) {
                frames[got++] = burst[i];
            } else if (is_others || other_->take_tags(burst[i])) {
                other_->kept_[(other_->first_ + other_->waiting_++) % other_->kept_.size()] = burst[i];
            } else {
                burst[dropped++] = burst[i];
            }
        }
        if (dropped != 0) port_->release(burst.data(), dropped);
        return got;
    }

    static void move_begin(Frame* frame, int octets) noexcept {
        frame->data_off = static_cast<std::uint16_t>(frame->data_off + octets);
        set_length(frame, static_cast<std::size_t>(static_cast<int>(length(frame)) - octets));
    }
    [[nodiscard]] bool take_tags(Frame* frame) noexcept {
        if (!tags_.take(octets(frame), length(frame))) return false;
        move_begin(frame, static_cast<int>(tags_.octets()));
        return true;
    }

    std::shared_ptr<DpdkPort> port_;
    frame::VlanTags tags_;
    TaggedPort* other_ = nullptr;  // on the same port
    std::array<Frame*, std::size_t{4} * burst_frames> kept_{};
    unsigned first_ = 0;
    unsigned waiting_ = 0;
};

}  // namespace evenhand::port
