// SPDX-License-Identifier: Apache-2.0
#include "plan/sent_flows.hpp"

#include <algorithm>
#include <limits>

namespace evenhand::plan {

FlowRanges ranges_of(const AddressPlan& plan, Direction direction) {
    if (plan.has_state && direction == Direction::reverse) {
        const HostPair hosts = plan.arriving(direction);
        const PortPair ports = plan.arriving_ports(direction);
        return {.source = hosts.sources,
                .destination = hosts.destinations,
                .source_port = ports.sources,
                .destination_port = ports.destinations};
    }
    const PortPair ports = plan.sent_ports(direction);
    FlowRanges ranges{.source = plan.sources(direction),
                      .destination = plan.sent(direction).destinations,
                      .source_port = ports.sources,
                      .destination_port = ports.destinations};
    // The destination's network is not drawn: it is that of the source.
    if (plan.common_network && ranges.destination.network) ranges.destination.network->mode = Mode::fixed;
    return ranges;
}

std::optional<std::uint64_t> SentFlows::most_frames(const AddressPlan& plan) noexcept {
    if (!plan.has_state) return std::nullopt;
    return std::min(FourTuples::count(plan).value_or(most_connections), most_connections);
}

std::optional<std::uint64_t> SentFlows::chosen_once_of(const AddressPlan& plan) noexcept {
    if (!plan.has_state) return std::nullopt;
    return FourTuples::count(plan).value_or(std::numeric_limits<std::uint64_t>::max());
}

SentFlows::SentFlows(const AddressPlan& plan, Direction direction, std::uint64_t seed)
    : draw_{FlowDraw{plan, direction, seed}}, direction_{direction} {
    if (const auto connections = most_frames(plan)) {
        draw_ = OfConnections{.tuples = {plan, *connections, TupleOrder::pseudorandom, seed},
                              .which = {ConnectionUse::each_once, direction, *connections, seed}};
    }
}

void SentFlows::draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) noexcept {
    if (auto* const of = std::get_if<OfConnections>(&draw_); of != nullptr) {
        FourTuples::Numbers numbers;
        of->which.numbers(first, stride, numbers);
        of->tuples.flows(numbers, block, direction_);
        return;
    }
    std::get_if<FlowDraw>(&draw_)->draw_block(first, stride, block);
}

Flow SentFlows::draw(std::uint64_t k) noexcept {
    FlowBlock block;
    draw_block(k, 1, block);
    return {.source = block.source(0),
            .destination = block.destination(0),
            .source_port = block.source_port(0),
            .destination_port = block.destination_port(0)};
}

}  // namespace evenhand::plan
