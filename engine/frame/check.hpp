// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: whether a frame with our tag is one that was sent, and came as a router passes it on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/reader.hpp"
#include "plan/host_set.hpp"

namespace evenhand::frame {

/// What the test frames of one direction of a plan have in common when they arrive. A tag alone says too little: what a switch floods, a
/// capture that somebody plays back, or a frame of another plan has it too.
class FrameCheck {
   public:
    /// `frame_octets`: without FCS. `own_mac` is that of the receiving side; nothing if each of its hosts has its own (R4814-06). `cable_mac` is
    /// where the other side sends to: with a cable instead of a DUT, frames still have it.
    FrameCheck(const plan::AddressPlan& plan, plan::Direction direction, std::size_t frame_octets, const std::optional<plan::MacAddress>& own_mac,
               const plan::MacAddress& cable_mac)
        : version_{plan.version},
          octets_{frame_octets},
          sources_{plan.side(plan::sending_side(direction)).hosts},
          destinations_{plan.side(plan::receiving_side(direction)).hosts},
          source_ports_{plan.source_ports},
          destination_ports_{plan.destination_ports},
          checks_mac_{own_mac.has_value()},
          own_mac_{number_of(own_mac.value_or(plan::MacAddress{}))},
          cable_mac_{number_of(cable_mac)} {}

    /// Without FCS.
    [[nodiscard]] std::size_t frame_octets() const noexcept { return octets_; }

    /// Of a frame of frame_octets() whose tag was read: the checksums, lengths, protocol and hop limit; no fragment; from a host of the one side
    /// to one of the other, and to the MAC where the DUT should send it; UDP ports of the plan (R2544-06, R2544-40).
    [[nodiscard]] bool holds(const std::byte* frame, IpVersion version) const noexcept {
        if (version != version_ || !is_intact(frame, octets_, version)) return false;
        return version == IpVersion::v4 ? holds_for<IpVersion::v4>(frame) : holds_for<IpVersion::v6>(frame);
    }

   private:
    [[nodiscard]] static std::uint64_t number_of(const plan::MacAddress& mac) noexcept {
        std::uint64_t number = 0;
        for (const auto octet : mac) number = number << 8U | octet;
        return number;
    }
    [[nodiscard]] static bool is_in(const plan::FieldRange& range, std::uint16_t value) noexcept { return value - range.first < range.count; }

    template <IpVersion V>
    [[nodiscard]] bool holds_for(const std::byte* frame) const noexcept {
        using L = Layout<V>;
        if (checks_mac_) {
            const std::uint64_t destination = big(load<std::uint64_t>(frame)) >> 16U;
            if (destination != own_mac_ && destination != cable_mac_) return false;
        }
        const auto ttl = static_cast<std::uint8_t>(frame[V == IpVersion::v4 ? L::ip + 8 : L::ip + 7]);
        if (ttl == 0 || ttl > sent_ttl) return false;
        if (!is_in(source_ports_, big(load<std::uint16_t>(frame + L::udp))) || !is_in(destination_ports_, big(load<std::uint16_t>(frame + L::udp + 2)))) return false;
        return sources_.find(frame + L::source).has_value() && destinations_.find(frame + L::destination).has_value();
    }

    IpVersion version_;
    std::size_t octets_;
    plan::HostSet sources_;
    plan::HostSet destinations_;
    plan::FieldRange source_ports_;
    plan::FieldRange destination_ports_;
    bool checks_mac_;
    std::uint64_t own_mac_;
    std::uint64_t cable_mac_;
};

}  // namespace evenhand::frame
