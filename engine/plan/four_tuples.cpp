// SPDX-License-Identifier: Apache-2.0
#include "plan/four_tuples.hpp"

#include <algorithm>
#include <bit>

namespace evenhand::plan {
namespace {

/// Streams of philox4x32, one for each direction. The draws of addresses use 0 and 1, the permutation's keys use 2.
constexpr std::uint32_t stream_of_connections = 4;

/// In the order of a FlowBlock's fields.
DrawBounds sides_of(const AddressPlan& plan) noexcept {
    const HostPair hosts = plan.sent(Direction::forward);
    DrawBounds sides;
    sides.set(0, hosts.sources.host.first, hosts.sources.host.count);
    sides.set(1, hosts.destinations.host.first, hosts.destinations.host.count);
    sides.set(2, plan.source_ports.first, plan.source_ports.count);
    sides.set(3, plan.destination_ports.first, plan.destination_ports.count);
    return sides;
}

PerDirection<RectanglePermutation> permutations_of(const DrawBounds& sides, std::uint64_t seed) noexcept {
    const RectanglePermutation forward{sides, seed};
    return {forward, forward.turned_around()};
}

}  // namespace

std::optional<std::uint64_t> FourTuples::count(const AddressPlan& plan) noexcept {
    return RectanglePermutation::points(sides_of(plan));
}

FourTuples::FourTuples(const AddressPlan& plan, std::uint64_t connections, TupleOrder order,
                       std::uint64_t seed) noexcept
    : connections_{connections}, order_{order}, sides_{sides_of(plan)}, permutations_{permutations_of(sides_, seed)} {}

void FourTuples::flows(const Numbers& numbers, FlowBlock& block, Direction direction) const noexcept {
    if (order_ == TupleOrder::pseudorandom) {
        permutations_[direction].apply(numbers, block.lanes);
        return;
    }
    const std::size_t turn = direction == Direction::reverse ? 1 : 0;
    // For comparison runs, and slow because of the divisions. Ports vary faster than hosts, and source ports fastest,
    // as when a host opens one connection after the other.
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        std::uint64_t tuple = order_ == TupleOrder::increasing ? numbers[j] : connections_ - 1 - numbers[j];
        for (const std::size_t field : {std::size_t{2}, std::size_t{3}, std::size_t{0}, std::size_t{1}}) {
            block.lanes.field[field ^ turn][j] =
                sides_.first[field] + static_cast<std::uint32_t>(tuple % sides_.count[field]);
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
    for (std::size_t word = 0; word < drawn_fields; ++word)
        bounds_.set(word, 0, static_cast<std::uint32_t>(connections));
}

/// As draw_lanes(), with further attempts where the draw is biased.
std::uint32_t ConnectionDraw::draw(std::uint64_t k) const noexcept {
    const std::uint64_t counter = k / run * DrawLanes::size + k % DrawLanes::size;
    const std::size_t word = k % run / DrawLanes::size;
    for (std::uint32_t attempt = 0;; ++attempt) {
        const auto words = philox4x32(
            {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32U), stream_, attempt}, key_);
        const std::uint64_t product = std::uint64_t{words[word]} * bounds_.count[0];
        if (static_cast<std::uint32_t>(product) >= bounds_.threshold[0])
            return static_cast<std::uint32_t>(product >> 32U);
    }
}

/// Draws the connections of 128 consecutive frames, beginning with number * run. With as many connections as a NAT has,
/// some draws in a hundred may be biased; only these are drawn again.
void ConnectionDraw::draw_run(std::uint64_t number) noexcept {
    kept_ = number;
    LaneBits biased;
    if (!draw_lanes(number * DrawLanes::size, 1, stream_, key_, bounds_, drawn_, biased)) return;
    for (std::size_t word = 0; word < drawn_fields; ++word) {
        for (std::uint32_t left = biased[word]; left != 0; left &= left - 1) {
            const auto lane = static_cast<std::size_t>(std::countr_zero(left));
            drawn_.field[word][lane] = draw(number * run + word * DrawLanes::size + lane);
        }
    }
}

void ConnectionDraw::numbers(std::uint64_t first, std::uint64_t stride, FourTuples::Numbers& numbers) noexcept {
    if (use_ == ConnectionUse::each_once) {
        const std::uint64_t last = bounds_.count[0] - 1;
        if (first + (numbers.size() - 1) * stride <= last) [[likely]] {
            const auto step = static_cast<std::uint32_t>(stride);
            for (std::size_t j = 0; j < numbers.size(); ++j)
                numbers[j] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(j) * step;
            return;
        }
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(std::min(first + j * stride, last));
        return;
    }
    if (stride == 1 && first % DrawLanes::size == 0) {
        if (first / run != kept_) draw_run(first / run);
        numbers = drawn_.field[first % run / DrawLanes::size];
        return;
    }
    for (std::size_t j = 0; j < numbers.size(); ++j) {
        const std::uint64_t k = first + j * stride;
        if (k / run != kept_) draw_run(k / run);
        numbers[j] = drawn_.field[k % run / DrawLanes::size][k % DrawLanes::size];
    }
}

void ConnectionDraw::numbers_listed(const FourTuples::FrameNumbers& frames, FourTuples::Numbers& numbers) noexcept {
    if (use_ == ConnectionUse::each_once) {
        const std::uint64_t last = bounds_.count[0] - 1;
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(std::min(frames[j], last));
        return;
    }
    for (std::size_t j = 0; j < numbers.size(); ++j) {
        const std::uint64_t k = frames[j];
        if (k / run != kept_) [[unlikely]]
            draw_run(k / run);
        numbers[j] = drawn_.field[k % run / DrawLanes::size][k % DrawLanes::size];
    }
}

}  // namespace evenhand::plan
