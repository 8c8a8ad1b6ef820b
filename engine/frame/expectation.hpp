// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: whether a frame with our tag is one that was sent, and came as a router passes it on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/burst_check.hpp"
#include "frame/reader.hpp"
#include "frame/traffic.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// Whether an address that stands in a frame is one of a side's hosts. The same as plan::HostSet::find(), which is
/// looked up for some thousand neighbours a second and takes 13 ns; this is asked twice for each frame.
template <IpVersion V>
class HostCheck {
   public:
    explicit HostCheck(const plan::HostRange& range) noexcept
        : shares_octets_{range.shares_octets()},
          first_host_{range.host.first},
          hosts_{range.host.count},
          first_network_{range.first_network()},
          networks_{range.networks()},
          host_at_{place(range.low_offset())},
          high_at_{place(range.offset)},
          network_at_{range.has_network_octets() ? place(range.network->offset + 1) : host_at_},
          has_network_octets_{range.has_network_octets()},
          is_apart_{range.gap != 0 || high_at_.word != host_at_.word} {
        Words varying{};
        put(varying, host_at_, is_apart_ ? octet_mask : word_mask);
        if (is_apart_) put(varying, high_at_, octet_mask);
        if (has_network_octets_) put(varying, network_at_, word_mask);
        const Words base = read(reinterpret_cast<const std::byte*>(range.base.octets.data()));
        for (std::size_t i = 0; i < words; ++i) {
            mask_[i] = ~varying[i];
            fixed_[i] = base[i] & mask_[i];
        }
    }

    /// `at`: the address in a frame. Inlined whatever the compiler thinks, which differs with what else is in its file.
    [[nodiscard, gnu::always_inline]] bool holds(const std::byte* at) const noexcept {
        const Words address = read(at);
        std::uint64_t difference = (address[0] & mask_[0]) ^ fixed_[0];
        if constexpr (words == 2) difference |= (address[1] & mask_[1]) ^ fixed_[1];
        const std::uint32_t word = host_number(address);
        // Numbers below the first wrap around and are too large.
        const std::uint32_t host = (shares_octets_ ? word & octet_mask : word) - first_host_;
        std::uint32_t network = 0;
        if (shares_octets_) network = (word >> 8U) - first_network_;
        if (has_network_octets_) network = get(address, network_at_) - first_network_;
        return difference == 0 && host < hosts_ && network < networks_;
    }

   private:
    static constexpr std::size_t words = V == IpVersion::v4 ? 1 : 2;
    static constexpr std::uint32_t word_mask = 0xFFFF;
    static constexpr std::uint32_t octet_mask = 0xFF;
    using Words = std::array<std::uint64_t, words>;  // the address in host order; IPv4 in the lower half

    /// Of an octet in the address, or of a 16-bit number by its lower octet: which of the words, and how far up.
    struct Place {
        std::size_t word;
        unsigned shift;
    };

    static Place place(std::uint32_t offset) noexcept {
        constexpr std::uint32_t octets = V == IpVersion::v4 ? 4 : 8;
        return {.word = offset / octets, .shift = 8 * (octets - 1 - offset % octets)};
    }
    [[nodiscard]] std::uint32_t host_number(const Words& address) const noexcept {
        if constexpr (V == IpVersion::v6) {
            if (is_apart_) return (get(address, high_at_) & octet_mask) << 8U | (get(address, host_at_) & octet_mask);
        }
        return get(address, host_at_);
    }
    static void put(Words& to, Place at, std::uint64_t value) noexcept { to[at.word] |= value << at.shift; }
    static std::uint32_t get(const Words& from, Place at) noexcept {
        return static_cast<std::uint32_t>(from[at.word] >> at.shift & word_mask);
    }
    static Words read(const std::byte* at) noexcept {
        if constexpr (V == IpVersion::v4) {
            return {big(load<std::uint32_t>(at))};
        } else {
            return {big(load<std::uint64_t>(at)), big(load<std::uint64_t>(at + 8))};
        }
    }

    Words mask_{};
    Words fixed_{};
    bool shares_octets_;
    std::uint32_t first_host_;
    std::uint32_t hosts_;
    std::uint32_t first_network_;
    std::uint32_t networks_;
    Place host_at_;
    Place high_at_;
    Place network_at_;
    bool has_network_octets_;
    bool is_apart_;  // the octets of the host number do not stand side by side in one of the words
};

/// What test frames that are all alike have in common when they arrive: the twin of TestFrameSource. A tag alone says
/// too little: what a switch floods, a capture that somebody plays back, or a frame of another plan has it too.
class TestFrameExpectation {
   public:
    static constexpr bool has_classes = false;

    /// `own_mac` is that of the receiving side; nothing if each of its hosts has its own (R4814-06). `cable_mac` is
    /// where the other side sends to: with a cable instead of a DUT, frames still have it.
    TestFrameExpectation(const LinkFrames& arrives, const std::optional<plan::MacAddress>& own_mac,
                         const plan::MacAddress& cable_mac)
        : version_{arrives.version},
          octets_{arrives.frame_size - fcs_octets},
          sources_v4_{hosts_of(arrives, arrives.sources, IpVersion::v4)},
          destinations_v4_{hosts_of(arrives, arrives.destinations, IpVersion::v4)},
          sources_v6_{hosts_of(arrives, arrives.sources, IpVersion::v6)},
          destinations_v6_{hosts_of(arrives, arrives.destinations, IpVersion::v6)},
          source_ports_{arrives.source_ports},
          destination_ports_{arrives.destination_ports},
          checks_mac_{own_mac.has_value()},
          own_mac_{number_of(own_mac.value_or(plan::MacAddress{}))},
          cable_mac_{number_of(cable_mac)},
          arrives_{arrives},
          mac_{own_mac},
          cable_{cable_mac} {}

    /// The same for whole bursts of a trial, where this CPU and the plan allow it.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of) const {
        const auto own = BurstCheck::make(arrives_, mac_, of);
        if (!own) return {};
        if (!mac_ || *mac_ == cable_) return BurstChecks{*own};
        return {*own, *BurstCheck::make(arrives_, cable_, of)};
    }

    [[nodiscard]] std::size_t class_of(std::uint64_t /*sequence*/) const noexcept { return 0; }
    /// Without FCS.
    [[nodiscard]] std::size_t frame_octets(std::size_t /*frame_class*/) const noexcept { return octets_; }

    /// Of a frame of frame_octets() whose tag was read: the checksums, lengths, protocol and hop limit; no fragment;
    /// from a host of the one side to one of the other, and to the MAC where the DUT should send it; UDP ports of the
    /// plan (R2544-06, R2544-40).
    [[nodiscard]] bool holds(std::size_t /*frame_class*/, const std::byte* frame, IpVersion version) const noexcept {
        if (version != version_ || !is_intact(frame, octets_, version)) return false;
        return version == IpVersion::v4 ? holds_for<IpVersion::v4>(frame) : holds_for<IpVersion::v6>(frame);
    }

   private:
    [[nodiscard]] static std::uint64_t number_of(const plan::MacAddress& mac) noexcept {
        std::uint64_t number = 0;
        for (const auto octet : mac) number = number << 8U | octet;
        return number;
    }
    [[nodiscard]] static plan::HostRange hosts_of(const LinkFrames& frames, const plan::HostRange& range,
                                                  IpVersion version) {
        return frames.version == version ? range : plan::HostRange{};
    }
    [[nodiscard]] static bool is_in(const plan::FieldRange& range, std::uint16_t value) noexcept {
        return value - range.first < range.count;
    }

    template <IpVersion V>
    [[nodiscard]] bool holds_for(const std::byte* frame) const noexcept {
        using L = Layout<V>;
        if (checks_mac_) {
            const std::uint64_t destination = big(load<std::uint64_t>(frame)) >> 16U;
            if (destination != own_mac_ && destination != cable_mac_) return false;
        }
        const auto ttl = hop_limit_of(frame, V);
        if (ttl == 0 || ttl > sent_ttl) return false;
        if (!is_in(source_ports_, big(load<std::uint16_t>(frame + L::udp))) ||
            !is_in(destination_ports_, big(load<std::uint16_t>(frame + L::udp + 2))))
            return false;
        if constexpr (V == IpVersion::v4) {
            return sources_v4_.holds(frame + L::source) && destinations_v4_.holds(frame + L::destination);
        } else {
            return sources_v6_.holds(frame + L::source) && destinations_v6_.holds(frame + L::destination);
        }
    }

    IpVersion version_;
    std::size_t octets_;
    HostCheck<IpVersion::v4> sources_v4_;  // of what arrives; those of the other IP version are never asked
    HostCheck<IpVersion::v4> destinations_v4_;
    HostCheck<IpVersion::v6> sources_v6_;
    HostCheck<IpVersion::v6> destinations_v6_;
    plan::FieldRange source_ports_;
    plan::FieldRange destination_ports_;
    bool checks_mac_;
    std::uint64_t own_mac_;
    std::uint64_t cable_mac_;
    LinkFrames arrives_;
    std::optional<plan::MacAddress> mac_;
    plan::MacAddress cable_;
};

}  // namespace evenhand::frame
