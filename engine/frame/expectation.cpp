// SPDX-License-Identifier: Apache-2.0
#include "frame/expectation.hpp"

#include <cstring>

#include "plan/flow_patterns.hpp"

namespace evenhand::frame {

BurstChecks TestFrameExpectation::burst_checks(StreamIdentity of) const {
    if (!draw_) return {};
    return burst_checks(of, {.draw = *draw_, .streams = streams_});
}

BurstChecks TestFrameExpectation::burst_checks(StreamIdentity of, std::shared_ptr<const BurstClasses> classes) const {
    if (!draw_) return {};
    return burst_checks(of, {.draw = *draw_, .streams = streams_, .classes = std::move(classes)});
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
bool TestFrameExpectation::has_hosts(const std::byte* frame) const noexcept {
    using L = Layout<V>;
    if (!has_lists_) return has_addresses<V>(frame);
    const auto is_in = [&](const plan::HostRange& hosts, std::size_t at) {
        if (hosts.list) return hosts.list->contains(frame + at);
        return hosts.contains(plan::address_of(V, plan::number_of(V, frame + at)));
    };
    return is_in(arrives_.sources, L::source) && is_in(arrives_.destinations, L::destination);
}

template <IpVersion V>
bool TestFrameExpectation::has_addresses_of(const plan::FlowBlock& flows, std::size_t i,
                                            const std::byte* frame) const noexcept {
    using L = Layout<V>;
    if (has_lists_) {
        if constexpr (V == IpVersion::v4) {
            return big(load<std::uint32_t>(frame + L::source)) == flows.source(i) &&
                   big(load<std::uint32_t>(frame + L::destination)) == flows.destination(i);
        }
        return std::memcmp(frame + L::source, flows.addresses[i].data(), plan::FlowBlock::pair_octets) == 0;
    }
    return value(frame, source_at_) == value_of(flows.source(i), source_at_) &&
           value(frame, destination_at_) == value_of(flows.destination(i), destination_at_);
}

template <IpVersion V>
bool TestFrameExpectation::holds_whole(const std::byte* frame) const noexcept {
    using L = Layout<V>;
    if (!has_mac(frame) || !has_hop_limit(frame, V) || !has_ports<V>(frame) ||
        !has_pattern(frame + L::tag_end, octets_ - L::tag_end, arrives_.first_of_pattern))
        return false;
    if (!flows_) return has_hosts<V>(frame);
    if (!has_flags<V>(frame) || !has_udp_checksum<V>(frame)) return false;
    const auto flow = flows_->of(numbers_at(frame + L::tag));
    if (!flow) return false;
    const plan::FlowBlock& flows = *flow->block;
    const std::size_t i = flow->at;
    return has_addresses_of<V>(flows, i, frame) && big(load<std::uint32_t>(frame + L::udp)) == ports_of(flows, i);
}
template bool TestFrameExpectation::holds_whole<IpVersion::v4>(const std::byte*) const noexcept;
template bool TestFrameExpectation::holds_whole<IpVersion::v6>(const std::byte*) const noexcept;

template <IpVersion V>
std::optional<FrameFault> TestFrameExpectation::fault_for(const std::byte* frame) const noexcept {
    using L = Layout<V>;
    if (const auto damage = damage_of(frame, octets_, V)) return damage;
    if (flows_ && !has_flags<V>(frame)) return FrameFault::header;
    if (flows_ && !has_udp_checksum<V>(frame)) return FrameFault::udp_checksum;
    if (!has_mac(frame)) return FrameFault::destination_mac;
    if (!has_hop_limit(frame, V)) return FrameFault::hop_limit;
    if (!has_hosts<V>(frame)) return FrameFault::address;
    if (flows_) {
        // No flow: the stream does not exist or does not send this number, so the tag's stream was altered, or its
        // time, whose check is in the stream's octet.
        const auto flow = flows_->of(numbers_at(frame + L::tag));
        if (!flow) return FrameFault::payload;
        const plan::FlowBlock& flows = *flow->block;
        const std::size_t i = flow->at;
        if (!has_addresses_of<V>(flows, i, frame)) return FrameFault::address;
        if (big(load<std::uint32_t>(frame + L::udp)) != ports_of(flows, i)) return FrameFault::port;
    } else if (!has_ports<V>(frame)) {
        return FrameFault::port;
    }
    if (!has_pattern(frame + L::tag_end, octets_ - L::tag_end, arrives_.first_of_pattern)) return FrameFault::payload;
    return std::nullopt;
}

std::optional<std::uint32_t> TestFrameExpectation::drawn_marks(const std::byte* frame,
                                                               IpVersion version) const noexcept {
    if (!flows_) return std::nullopt;
    const std::size_t tag = version == IpVersion::v4 ? Layout<IpVersion::v4>::tag : Layout<IpVersion::v6>::tag;
    const auto flow = flows_->of(numbers_at(frame + tag));
    if (!flow) return std::nullopt;
    return flow->block->marks[flow->at] & plan::FlowPatterns::mark_mask;
}

std::optional<FrameFault> TestFrameExpectation::frame_fault(std::size_t /*frame_class*/, const std::byte* frame,
                                                            IpVersion version) const noexcept {
    if (version != version_) return FrameFault::header;
    return version == IpVersion::v4 ? fault_for<IpVersion::v4>(frame) : fault_for<IpVersion::v6>(frame);
}

}  // namespace evenhand::frame
