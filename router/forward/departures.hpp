// SPDX-License-Identifier: Apache-2.0
// Forward: the last station in the router. Frames that are due get their defects, and leave in bursts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "elements/defects.hpp"
#include "forward/counters.hpp"
#include "pace/clock.hpp"

namespace evenhand::router {

using pace::Ticks;

/// Frames leave a port as they do for a sender (engine/run/sender.hpp), on transmit queue 0.
template <class Port>
class Departures {
   public:
    using Frame = typename Port::Frame;

    /// There may be at most `most_interfaces` ports.
    Departures(std::vector<Port*> ports, Defects defects, Ticks hold_at_most, ForwardCounters& counters) noexcept
        : ports_{std::move(ports)}, defects_{std::move(defects)}, hold_at_most_{hold_at_most}, counters_{&counters} {}

    /// Sends a forwarded frame out of interface `out`.
    void leave(Frame* frame, unsigned out, Ticks now) noexcept {
        const bool may_have = !defects_.dscp() || dscp_of(Port::octets(frame), Port::length(frame)) == defects_.dscp();
        const unsigned defects = may_have ? defects_.of(number_++) : 0;
        if (defects != 0) {
            leave_with(frame, out, now, defects);
            return;
        }
        put(frame, out);
        if (exchanged_[out] != nullptr) release_exchanged(out, true);
    }

    /// Sends a frame of the router's own, without defects; it does not count as forwarded.
    void put(Frame* frame, unsigned out) noexcept {
        Burst& burst = bursts_[out];
        burst.frames[burst.size++] = frame;
        if (burst.size == burst_size) flush(out);
    }

    /// `may_leave`: whether forwarded frames may leave now.
    void flush_all(Ticks now, bool may_leave) noexcept {
        for (unsigned out = 0; out < ports_.size(); ++out) {
            // No frame has arrived with which it could be exchanged.
            if (may_leave && exchanged_[out] != nullptr && now - exchanged_at_[out] > hold_at_most_)
                release_exchanged(out, false);
            if (bursts_[out].size != 0) flush(out);
        }
    }

   private:
    static constexpr unsigned burst_size = 32;
    struct Burst {
        std::array<Frame*, burst_size> frames{};
        unsigned size = 0;
    };

    /// The DSCP of an IP frame, with VLAN tags or without; nothing for any other frame.
    [[nodiscard]] static std::optional<std::uint8_t> dscp_of(const std::byte* frame, std::size_t octets) noexcept {
        constexpr std::size_t tag_octets = 4;
        std::size_t type_at = 12;
        const auto type = [&] {
            return static_cast<unsigned>(frame[type_at]) << 8U | static_cast<unsigned>(frame[type_at + 1]);
        };
        const auto is_tag = [](unsigned t) { return t == 0x8100 || t == 0x88A8; };
        while (type_at + 2 * tag_octets <= octets && is_tag(type())) type_at += tag_octets;
        if (type_at + tag_octets > octets) return std::nullopt;
        const auto first = static_cast<unsigned>(frame[type_at + 2]);
        const auto second = static_cast<unsigned>(frame[type_at + 3]);
        if (type() == 0x0800) return static_cast<std::uint8_t>(second >> 2U);
        if (type() == 0x86DD) return static_cast<std::uint8_t>((first << 4U | second >> 4U) >> 2U & 0x3FU);
        return std::nullopt;
    }

    void leave_with(Frame* frame, unsigned out, Ticks now, unsigned defects) noexcept {
        if (Defects::has(defects, Defect::loss)) {
            ++counters_->defects.lost_frames;
            ports_[out]->release(&frame, 1);
            return;
        }
        if (Defects::has(defects, Defect::corruption)) {
            ++counters_->defects.corrupted_frames;
            Port::octets(frame)[Port::length(frame) - 1] ^= std::byte{0xFF};
        }
        if (Defects::has(defects, Defect::duplication)) duplicate(frame, out);
        if (Defects::has(defects, Defect::reordering) && exchanged_[out] == nullptr) {
            exchanged_[out] = frame;
            exchanged_at_[out] = now;
            return;
        }
        put(frame, out);
        if (exchanged_[out] != nullptr) release_exchanged(out, true);
    }

    void duplicate(Frame* frame, unsigned out) noexcept {
        Frame* copy = nullptr;
        if (ports_[out]->reserve(0, &copy, 1) != 1) return;
        const std::size_t octets = std::min(Port::length(frame), Port::room(copy));
        Port::set_length(copy, octets);
        std::memcpy(Port::octets(copy), Port::octets(frame), octets);
        ++counters_->defects.duplicated_frames;
        put(copy, out);
    }

    void release_exchanged(unsigned out, bool is_exchanged) noexcept {
        if (is_exchanged) ++counters_->defects.reordered_frames;
        put(exchanged_[out], out);
        exchanged_[out] = nullptr;
    }

    void flush(unsigned out) noexcept {
        Burst& burst = bursts_[out];
        const unsigned sent = ports_[out]->send(0, burst.frames.data(), burst.size);
        InterfaceCounters& interface = counters_->interfaces[out];
        interface.transmitted_frames += sent;
        if (sent < burst.size) {
            interface.transmit_dropped_frames += burst.size - sent;
            ports_[out]->release(burst.frames.data() + sent, burst.size - sent);
        }
        burst.size = 0;
    }

    std::vector<Port*> ports_;
    Defects defects_;
    Ticks hold_at_most_;
    ForwardCounters* counters_;
    std::uint64_t number_ = 0;  // of the next forwarded frame that may have a defect
    std::array<Burst, most_interfaces> bursts_{};
    std::array<Frame*, most_interfaces> exchanged_{};
    std::array<Ticks, most_interfaces> exchanged_at_{};
};

}  // namespace evenhand::router
