// SPDX-License-Identifier: Apache-2.0
#include "plan/four_tuples.hpp"

#include <algorithm>

namespace evenhand::plan {
namespace {

/// Streams of philox4x32, one for each direction; those of addresses are 0 and 1, that of the permutation's keys is 2.
constexpr std::uint32_t stream_of_connections = 4;

/// By the fields of a FlowBlock.
DrawBounds sides_of(const AddressPlan& plan) noexcept {
    const HostPair hosts = plan.sent(Direction::forward);
    DrawBounds sides;
    sides.set(0, hosts.sources.host.first, hosts.sources.host.count);
    sides.set(1, hosts.destinations.host.first, hosts.destinations.host.count);
    sides.set(2, plan.source_ports.first, plan.source_ports.count);
    sides.set(3, plan.destination_ports.first, plan.destination_ports.count);
    return sides;
}

}  // namespace

std::optional<std::uint64_t> FourTuples::count(const AddressPlan& plan) noexcept {
    return RectanglePermutation::points(sides_of(plan));
}

FourTuples::FourTuples(const AddressPlan& plan, std::uint64_t connections, TupleOrder order,
                       std::uint64_t seed) noexcept
    : connections_{connections}, order_{order}, sides_{sides_of(plan)}, permutation_{sides_, seed} {}

void FourTuples::flows(const Numbers& numbers, FlowBlock& block) const noexcept {
    if (order_ == TupleOrder::pseudorandom) {
        permutation_.apply(numbers, block.lanes);
        return;
    }
    // For comparison runs, and as slow as division is. Ports vary faster than hosts, source ports fastest: what a host
    // does that opens one connection after the other.
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        std::uint64_t tuple = order_ == TupleOrder::increasing ? numbers[j] : connections_ - 1 - numbers[j];
        for (const std::size_t field : {std::size_t{2}, std::size_t{3}, std::size_t{0}, std::size_t{1}}) {
            block.lanes.field[field][j] = sides_.first[field] + static_cast<std::uint32_t>(tuple % sides_.count[field]);
            tuple /= sides_.count[field];
        }
    }
}

Flow FourTuples::flow(std::uint32_t number) const noexcept {
    Numbers numbers;
    numbers.fill(number);
    FlowBlock block;
    flows(numbers, block);
    return {.source = block.source(0),
            .destination = block.destination(0),
            .source_port = block.source_port(0),
            .destination_port = block.destination_port(0)};
}

ConnectionDraw::ConnectionDraw(ConnectionUse use, Direction direction, std::uint64_t connections,
                               std::uint64_t seed) noexcept
    : use_{use},
      stream_{stream_of_connections + static_cast<std::uint32_t>(direction)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)} {
    bounds_.set(0, 0, static_cast<std::uint32_t>(connections));
}

/// As draw_lanes(), with further attempts where that one is biased.
std::uint32_t ConnectionDraw::draw(std::uint64_t k) const noexcept {
    for (std::uint32_t attempt = 0;; ++attempt) {
        const auto words =
            philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream_, attempt}, key_);
        const std::uint64_t product = std::uint64_t{words[0]} * bounds_.count[0];
        if (static_cast<std::uint32_t>(product) >= bounds_.threshold[0])
            return static_cast<std::uint32_t>(product >> 32U);
    }
}

void ConnectionDraw::numbers(std::uint64_t first, std::uint64_t stride, FourTuples::Numbers& numbers) const noexcept {
    if (use_ == ConnectionUse::each_once) {
        const std::uint64_t last = bounds_.count[0] - 1;
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(std::min(first + j * stride, last));
        return;
    }
    DrawLanes drawn;
    if (!draw_lanes(first, stride, stream_, key_, bounds_, drawn)) [[likely]] {
        numbers = drawn.field[0];
        return;
    }
    for (std::size_t j = 0; j < numbers.size(); ++j) numbers[j] = draw(first + j * stride);
}

}  // namespace evenhand::plan
