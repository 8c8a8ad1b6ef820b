// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the frames that a direction sends, and what they are when they arrive.
//
// Senders are made from what is sent, receivers from what arrives. A router changes neither addresses nor size, so that
// both are the same but for the VLAN tags of their links, which are not counted here. A device that translates (SIIT)
// changes addresses, IP version and size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace evenhand::frame {

/// Test frames of one kind, as they are on one link.
struct LinkFrames {
    plan::IpVersion version = plan::IpVersion::v4;
    plan::HostRange sources;
    plan::HostRange destinations;
    plan::FieldRange source_ports;
    plan::FieldRange destination_ports;
    std::size_t frame_size = 0;         // with FCS, without the VLAN tags of the link
    std::uint8_t first_of_pattern = 0;  // the octet right behind the tag
};

/// Test frames of one kind in one direction.
struct Traffic {
    LinkFrames sent;
    LinkFrames arrives;
    std::size_t frames = 1;  // how many of a period's frames are of this kind; see DirectionTraffic::period_octets()
};

/// Frames through the device that the plan is for. `frame_size`: that of the request, with FCS, without tags.
[[nodiscard]] inline Traffic traffic_of(const plan::AddressPlan& plan, plan::Direction direction,
                                        std::size_t frame_size) {
    const auto on_link = [&](const plan::PlanSide& side, const plan::HostPair& hosts, const plan::PortPair& ports) {
        return LinkFrames{.version = side.version(),
                          .sources = hosts.sources,
                          .destinations = hosts.destinations,
                          .source_ports = ports.sources,
                          .destination_ports = ports.destinations,
                          .frame_size = frame_size + side.added_octets};
    };
    return {.sent = on_link(plan.side(plan::sending_side(direction)), plan.sent(direction), plan.sent_ports(direction)),
            .arrives = on_link(plan.side(plan::receiving_side(direction)), plan.arriving(direction),
                               plan.arriving_ports(direction))};
}

/// The octets of some frames together, with FCS and with the tags of each link.
struct OctetsOnLinks {
    std::size_t sent = 0;
    std::size_t arriving = 0;
    std::size_t frames = 0;
};

/// All test frames of a direction: one kind, or one for each class of a mix.
struct DirectionTraffic {
    std::vector<Traffic> kinds;  // at least one

    [[nodiscard]] std::size_t largest_sent() const {
        return std::ranges::max(kinds, {}, [](const Traffic& t) { return t.sent.frame_size; }).sent.frame_size;
    }
    [[nodiscard]] std::size_t largest_arriving() const {
        return std::ranges::max(kinds, {}, [](const Traffic& t) { return t.arrives.frame_size; }).arrives.frame_size;
    }
    /// The octets of one period: the frames after which the kinds repeat.
    [[nodiscard]] OctetsOnLinks period_octets(std::size_t sent_tags, std::size_t arriving_tags) const {
        OctetsOnLinks octets;
        for (const auto& kind : kinds) {
            octets.sent += kind.frames * (kind.sent.frame_size + sent_tags);
            octets.arriving += kind.frames * (kind.arrives.frame_size + arriving_tags);
            octets.frames += kind.frames;
        }
        return octets;
    }
};

}  // namespace evenhand::frame
