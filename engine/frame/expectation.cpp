// SPDX-License-Identifier: Apache-2.0
#include "frame/expectation.hpp"

namespace evenhand::frame {

BurstChecks TestFrameExpectation::burst_checks(StreamIdentity of) const {
    if (!draw_) return {};
    return burst_checks(of, {.draw = *draw_, .streams = streams_});
}

BurstChecks TestFrameExpectation::burst_checks(StreamIdentity of, const BurstFlows& flows) const {
    const auto make = [&](const std::optional<plan::MacAddress>& mac) {
        return BurstCheck::make(arrives_, mac, of, flows);
    };
    const auto own = make(mac_);
    if (!own) return {};
    if (!mac_ || *mac_ == cable_) return BurstChecks{*own};
    return {*own, *make(cable_)};
}

template <IpVersion V>
std::optional<FrameFault> TestFrameExpectation::fault_for(const std::byte* frame) const noexcept {
    using L = Layout<V>;
    if (const auto damage = damage_of(frame, octets_, V)) return damage;
    if (flows_ && !has_flags<V>(frame)) return FrameFault::header;
    if (flows_ && !has_udp_checksum<V>(frame)) return FrameFault::udp_checksum;
    if (!has_mac(frame)) return FrameFault::destination_mac;
    if (!has_hop_limit(frame, V)) return FrameFault::hop_limit;
    if (!has_addresses<V>(frame)) return FrameFault::address;
    if (flows_) {
        // No flow: the stream does not exist or does not send this number, so the tag's stream was altered, or its
        // time, whose check is in the stream's octet.
        const auto flow = flows_->of(numbers_at(frame + L::tag));
        if (!flow) return FrameFault::payload;
        const plan::FlowBlock& flows = *flow->block;
        const std::size_t i = flow->at;
        if (value(frame, source_at_) != value_of(flows.source(i), source_at_) ||
            value(frame, destination_at_) != value_of(flows.destination(i), destination_at_))
            return FrameFault::address;
        if (big(load<std::uint32_t>(frame + L::udp)) != (flows.source_port(i) << 16U | flows.destination_port(i)))
            return FrameFault::port;
    } else if (!has_ports<V>(frame)) {
        return FrameFault::port;
    }
    if (!has_pattern(frame + L::tag_end, octets_ - L::tag_end, arrives_.first_of_pattern)) return FrameFault::payload;
    return std::nullopt;
}

std::optional<FrameFault> TestFrameExpectation::frame_fault(std::size_t /*frame_class*/, const std::byte* frame,
                                                            IpVersion version) const noexcept {
    if (version != version_) return FrameFault::header;
    return version == IpVersion::v4 ? fault_for<IpVersion::v4>(frame) : fault_for<IpVersion::v6>(frame);
}

}  // namespace evenhand::frame
