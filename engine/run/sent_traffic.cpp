// SPDX-License-Identifier: Apache-2.0
#include "run/sent_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "fault.hpp"
#include "frame/mix_source.hpp"
#include "frame/template.hpp"

namespace evenhand::run {
namespace {

void check_least(const OpenRequest& request, plan::Side side, plan::IpVersion version) {
    const auto tags = envelope_of(request.ports[side]).counted_octets();
    const std::size_t least = frame::smallest_frame_size(version) - request.plan.side(side).added_octets + tags;
    if (request.frame_size >= least) return;
    throw Fault{FaultCode::bad_frame_size,
                fmt::format("{} octets cannot be an IPv{} test frame{} of the {} side", request.frame_size,
                            static_cast<int>(version), tags == 0 ? "" : " with the VLAN tags", name_of(side)),
                "frame_size", fmt::format("Use at least {}.", least)};
}

/// The key of the request that has the size of these frames.
std::string where_of(const OpenRequest& request, plan::Direction direction, std::size_t frame_class) {
    if (!request.mix) return "frame_size";
    const bool is_reverse = direction == plan::Direction::reverse && request.reverse_mix;
    return fmt::format("{}.classes[{}].frame_size", is_reverse ? "reverse_mix" : "mix", frame_class);
}

}  // namespace

frame::Envelope envelope_of(const PortRequest& port) {
    return {frame::VlanTags{port.vlans}, frame::Tunnel{port.tunnel}};
}

frame::DirectionTraffic traffic_of(const OpenRequest& request, plan::Direction direction) {
    const auto from = plan::sending_side(direction);
    const auto tags = envelope_of(request.ports[from]).counted_octets();
    const auto without_tags = [&](std::size_t size) { return size - std::min(size, tags); };
    frame::DirectionTraffic traffic;
    const auto* const mix = request.mix_of(direction);
    if (mix == nullptr) {
        traffic.kinds.push_back(frame::traffic_of(request.plan, direction, without_tags(request.frame_size)));
        return traffic;
    }
    const auto frames = mix->count({}, mix->period());
    for (std::size_t c = 0; c < frames.size(); ++c) {
        const auto& of_class = mix->classes()[c];
        auto kind = frame::traffic_of(request.mix->plan(request.plan, of_class.plan), direction,
                                      without_tags(of_class.frame_size));
        kind.frames = frames[c];
        for (auto* const end : {&kind.sent, &kind.arrives}) {
            const auto ports = of_class.fields.narrow({end->source_ports, end->destination_ports});
            end->source_ports = ports.sources;
            end->destination_ports = ports.destinations;
        }
        kind.sent.first_of_pattern = kind.arrives.first_of_pattern = frame::first_of_pattern(
            kind.sent.version, frame::pattern_of(request.plan.side(from).version(), mix->has_two_plans()));
        traffic.kinds.push_back(kind);
    }
    return traffic;
}

void check_frame_sizes(const OpenRequest& request) {
    for (const auto side : plan::both_sides) {
        const auto direction = plan::direction_sent_by(side);
        const auto* const mix = request.mix_of(direction);
        const auto around_sent = envelope_of(request.ports[side]).octets();
        const auto around_arriving = envelope_of(request.ports[plan::other_side(side)]).octets();
        const auto traffic = traffic_of(request, direction);
        for (std::size_t c = 0; c < traffic.kinds.size(); ++c) {
            const auto& [sent, arrives, frames] = traffic.kinds[c];
            if (mix == nullptr) check_least(request, side, sent.version);
            frame::check_length(mix == nullptr ? request.frame_size : mix->classes()[c].frame_size,
                                std::max(sent.frame_size + around_sent, arrives.frame_size + around_arriving),
                                where_of(request, direction, c));
        }
    }
}

}  // namespace evenhand::run
