// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: whether a frame with our tag is one that was sent, and arrived as a router forwards
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "frame/burst_check.hpp"
#include "frame/class_fields.hpp"
#include "frame/frame_fault.hpp"
#include "frame/kept_flows.hpp"
#include "frame/pattern.hpp"
#include "frame/reader.hpp"
#include "frame/traffic.hpp"
#include "plan/address_list.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// Whether an address in a frame is one of a side's hosts. It gives the same answer as plan::HostSet::find(), which
/// serves some thousand neighbours a second and takes 13 ns; this check runs twice for each frame.
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

    /// `at`: where the address begins. Always inlined: the compiler's own choice depends on what else is in the same
    /// file.
    [[nodiscard, gnu::always_inline]] bool holds(const std::byte* at) const noexcept {
        const Words address = read(at);
        std::uint64_t difference = (address[0] & mask_[0]) ^ fixed_[0];
        if constexpr (words == 2) difference |= (address[1] & mask_[1]) ^ fixed_[1];
        const std::uint32_t word = host_number(address);
        // Numbers below the first one wrap around and are too large.
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

    /// Where an octet of the address is, or a 16-bit number by its lower octet: in which of the words, and how far up.
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

/// What test frames that are all alike have in common when they arrive: the twin of TestFrameSource. The tag alone
/// proves too little: frames that a switch floods, that somebody replays from a capture, or that belong to another plan
/// have it too.
class TestFrameExpectation {
   public:
    static constexpr bool has_classes = false;

    /// `own_mac`: the MAC of the receiving side; nothing if each of its hosts has its own (R4814-06). `cable_mac`: the
    /// MAC that the other side sends to, which frames still have if there is a cable in place of a DUT.
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
          source_port_{PortChoice::of(arrives.source_ports)},
          destination_port_{PortChoice::of(arrives.destination_ports)},
          source_at_{address_at(arrives.version, arrives.sources, Layout<IpVersion::v4>::source,
                                Layout<IpVersion::v6>::source)},
          destination_at_{address_at(arrives.version, arrives.destinations, Layout<IpVersion::v4>::destination,
                                     Layout<IpVersion::v6>::destination)},
          has_lists_{plan::HostPair{arrives.sources, arrives.destinations}.has_list()},
          checks_mac_{own_mac.has_value()},
          own_mac_{number_of(own_mac.value_or(plan::MacAddress{}))},
          cable_mac_{number_of(cable_mac)},
          arrives_{arrives},
          mac_{own_mac},
          cable_{cable_mac} {}

    /// From now on each frame must be the one with its number: a router changes nothing but MACs, hop limit and header
    /// checksum. Before this call, any frame that the plan allows is accepted. `streams`: how many the direction has.
    /// Copies share what they have drawn: not for several receivers at once.
    void know(const plan::FlowDraw& draw, std::uint64_t streams) {
        flows_ = std::make_shared<KeptFlows<plan::FlowDraw>>(draw, streams);
        draw_.emplace(draw);
        streams_ = streams;
    }
    /// The same, with the flows that `other` has drawn, for frames of another class of the same plan.
    void know_as(const TestFrameExpectation& other) {
        flows_ = other.flows_;
        draw_ = other.draw_;
        streams_ = other.streams_;
    }

    /// The same checks for whole bursts of a trial; nothing if this CPU cannot do them, or before know().
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of) const;
    /// The same for all classes of a mix that begin with this one: see BurstFlows::classes.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of, std::shared_ptr<const BurstClasses> classes) const;
    /// The same for frames that have these flows when they arrive.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of, const BurstFlows& flows) const;

    [[nodiscard]] std::size_t class_of(std::uint64_t /*sequence*/) const noexcept { return 0; }
    /// The length of a frame, without FCS.
    [[nodiscard]] std::size_t frame_octets(std::size_t /*frame_class*/) const noexcept { return octets_; }
    /// What arrives.
    [[nodiscard]] const LinkFrames& arrives() const noexcept { return arrives_; }
    [[nodiscard]] bool is_known() const noexcept { return flows_ != nullptr; }
    /// Those of flows; null if there are none, and before know().
    [[nodiscard]] const plan::FlowPatterns* patterns() const noexcept { return draw_ ? draw_->patterns() : nullptr; }

    /// Whether a frame of frame_octets() octets, whose tag was read, is as it must be: checksums, lengths, protocol and
    /// hop limit; not a fragment; from a host of one side to a host of the other, and to the MAC that the DUT should
    /// send it to; UDP ports of the plan; payload (R2544-06, R2544-40). After know(), the addresses and ports must be
    /// those of the frame with this number. Traffic class and flow label are not checked here: see is_remarked().
    [[nodiscard]] bool holds(std::size_t /*frame_class*/, const std::byte* frame, IpVersion version) const noexcept {
        if (version != version_ || !is_intact(frame, octets_, version)) return false;
        return version == IpVersion::v4 ? holds_for<IpVersion::v4>(frame) : holds_for<IpVersion::v6>(frame);
    }

    /// What FlowPatterns says of the traffic class and flow label of the frame with this number; nothing before know(),
    /// and if no stream sends it. Only for flows whose marks have patterns.
    [[nodiscard]] std::optional<std::uint32_t> drawn_marks(const std::byte* frame, IpVersion version) const noexcept;

    /// What is wrong with a frame of frame_octets() octets whose tag was read; nothing if holds().
    [[nodiscard]] std::optional<FrameFault> frame_fault(std::size_t frame_class, const std::byte* frame,
                                                        IpVersion version) const noexcept;

   private:
    [[nodiscard]] static std::uint64_t number_of(const plan::MacAddress& mac) noexcept {
        std::uint64_t number = 0;
        for (const auto octet : mac) number = number << 8U | octet;
        return number;
    }
    /// A list becomes a range without any host, so that only where no host was found, a list is asked for.
    [[nodiscard]] static plan::HostRange hosts_of(const LinkFrames& frames, const plan::HostRange& range,
                                                  IpVersion version) {
        if (range.list) return {.base = {}, .host = {.first = 0, .count = 0}};
        return frames.version == version ? range : plan::HostRange{};
    }
    /// Both ports, as they stand in a frame; a class may have one of its own, which is not drawn.
    [[nodiscard]] std::uint32_t ports_of(const plan::FlowBlock& flows, std::size_t i) const noexcept {
        return source_port_(flows.source_port(i)) << 16U | destination_port_(flows.destination_port(i));
    }
    [[nodiscard]] static bool is_in(const plan::FieldRange& range, std::uint16_t value) noexcept {
        return value - range.first < range.count;
    }

    /// Where the varying numbers of an address are in a frame.
    struct AddressPlace {
        HostPlace host;
        bool has_network_octets = false;
        std::size_t network_at = 0;
    };
    [[nodiscard]] static AddressPlace address_at(IpVersion version, const plan::HostRange& range, std::size_t at_in_v4,
                                                 std::size_t at_in_v6) {
        const std::size_t at = version == IpVersion::v4 ? at_in_v4 : at_in_v6;
        return {.host = host_place(range, at),
                .has_network_octets = range.has_network_octets(),
                .network_at = range.has_network_octets() ? at + range.network->offset : 0};
    }
    [[nodiscard]] static std::uint32_t word(const std::byte* frame, std::size_t high, std::size_t low) noexcept {
        return static_cast<std::uint32_t>(frame[high]) << 8U | static_cast<std::uint32_t>(frame[low]);
    }
    /// plan::HostRange::value() of the address at this place.
    [[nodiscard]] static std::uint32_t value(const std::byte* frame, const AddressPlace& at) noexcept {
        const std::uint32_t host = word(frame, at.host.high, at.host.low);
        return at.has_network_octets ? word(frame, at.network_at, at.network_at + 1) << 16U | host : host;
    }
    [[nodiscard]] static std::uint32_t value_of(std::uint32_t drawn, const AddressPlace& at) noexcept {
        return at.has_network_octets ? drawn : drawn & 0xFFFFU;
    }

    template <IpVersion V>
    [[nodiscard]] bool has_addresses(const std::byte* frame) const noexcept {
        using L = Layout<V>;
        if constexpr (V == IpVersion::v4) {
            return sources_v4_.holds(frame + L::source) && destinations_v4_.holds(frame + L::destination);
        } else {
            return sources_v6_.holds(frame + L::source) && destinations_v6_.holds(frame + L::destination);
        }
    }
    template <IpVersion V>
    [[nodiscard]] bool has_ports(const std::byte* frame) const noexcept {
        return is_in(source_ports_, big(load<std::uint16_t>(frame + Layout<V>::udp))) &&
               is_in(destination_ports_, big(load<std::uint16_t>(frame + Layout<V>::udp + 2)));
    }
    [[nodiscard]] bool has_mac(const std::byte* frame) const noexcept {
        if (!checks_mac_) return true;
        const std::uint64_t destination = big(load<std::uint64_t>(frame)) >> 16U;
        return destination == own_mac_ || destination == cable_mac_;
    }
    [[nodiscard]] static bool has_hop_limit(const std::byte* frame, IpVersion version) noexcept {
        const auto hops = hop_limit_of(frame, version);
        return hops != 0 && hops <= sent_ttl;
    }
    /// Checks what the checksums of a known frame cannot: a router changes neither identification nor flags, and a UDP
    /// checksum of 0 means that there is none.
    template <IpVersion V>
    [[nodiscard]] static bool has_flags(const std::byte* frame) noexcept {
        return V == IpVersion::v6 || load<std::uint32_t>(frame + Layout<V>::ip + 4) == 0;
    }
    template <IpVersion V>
    [[nodiscard]] static bool has_udp_checksum(const std::byte* frame) noexcept {
        return load<std::uint16_t>(frame + Layout<V>::udp_checksum) != 0;
    }

    template <IpVersion V>
    [[nodiscard]] bool holds_for(const std::byte* frame) const noexcept {
        using L = Layout<V>;
        if (!has_mac(frame) || !has_hop_limit(frame, V) || !has_ports<V>(frame) || !has_addresses<V>(frame) ||
            !has_pattern(frame + L::tag_end, octets_ - L::tag_end, arrives_.first_of_pattern))
            return has_lists_ && holds_whole<V>(frame);
        if (!flows_) return true;
        if (!has_flags<V>(frame) || !has_udp_checksum<V>(frame)) return false;
        const auto flow = flows_->of(numbers_at(frame + L::tag));
        if (!flow) return false;
        const plan::FlowBlock& flows = *flow->block;
        const std::size_t i = flow->at;
        return value(frame, source_at_) == value_of(flows.source(i), source_at_) &&
               value(frame, destination_at_) == value_of(flows.destination(i), destination_at_) &&
               big(load<std::uint32_t>(frame + L::udp)) == ports_of(flows, i);
    }

    /// holds_for() where whole addresses vary.
    template <IpVersion V>
    [[nodiscard]] bool holds_whole(const std::byte* frame) const noexcept;
    /// Whether the addresses are hosts of the sides.
    template <IpVersion V>
    [[nodiscard]] bool has_hosts(const std::byte* frame) const noexcept;
    /// Whether the addresses are those of this flow.
    template <IpVersion V>
    [[nodiscard]] bool has_addresses_of(const plan::FlowBlock& flows, std::size_t i,
                                        const std::byte* frame) const noexcept;
    template <IpVersion V>
    [[nodiscard]] std::optional<FrameFault> fault_for(const std::byte* frame) const noexcept;

    IpVersion version_;
    std::size_t octets_;
    HostCheck<IpVersion::v4> sources_v4_;  // of arriving frames; the pair of the other IP version is never used
    HostCheck<IpVersion::v4> destinations_v4_;
    HostCheck<IpVersion::v6> sources_v6_;
    HostCheck<IpVersion::v6> destinations_v6_;
    plan::FieldRange source_ports_;
    plan::FieldRange destination_ports_;
    PortChoice source_port_;
    PortChoice destination_port_;
    AddressPlace source_at_;
    AddressPlace destination_at_;
    bool has_lists_;
    bool checks_mac_;
    std::uint64_t own_mac_;
    std::uint64_t cable_mac_;
    LinkFrames arrives_;
    std::optional<plan::MacAddress> mac_;
    plan::MacAddress cable_;
    std::shared_ptr<KeptFlows<plan::FlowDraw>> flows_;  // null: any frame of the plan is accepted
    std::optional<plan::FlowDraw> draw_;                // set together with flows_
    std::uint64_t streams_ = 1;
};

}  // namespace evenhand::frame
