// SPDX-License-Identifier: Apache-2.0
#include "frame/connections.hpp"

#include <algorithm>

#include "frame/layout.hpp"

namespace evenhand::frame {

void ConnectionFlows::draw_places(std::uint64_t first, std::uint64_t stride) noexcept {
    const TesterShare& own = table_->own();
    // Frame k opened connection k, so the place of a frame is that of its connection.
    if (draw_.use() == plan::ConnectionUse::each_once && !own.is_whole())
        draw_.numbers(own.place(first), own.streams(), places_);
    else
        draw_.numbers(first, stride, places_);
}

void ConnectionFlows::put_tuples(const plan::FourTuples::Numbers& places, plan::FlowBlock& block) const noexcept {
    if (const TesterShare& own = table_->own(); own.is_whole()) [[likely]] {
        table_->tuples().flows(places, block, direction_);
    } else {
        plan::FourTuples::Numbers numbers;
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(own.sequence(places[j]));
        table_->tuples().flows(numbers, block, direction_);
    }
}

void ConnectionFlows::put_translated(const plan::FourTuples::Numbers& places, plan::FlowBlock& block) const noexcept {
    auto& [source, destination, source_port, destination_port] = block.lanes.field;
    if (end_ == LinkEnd::sent)
        table_->entries(places, destination, destination_port);
    else
        table_->entries(places, source, source_port);
}

template <std::size_t quarter>
void ConnectionFlows::fetch() const noexcept {
    if (!needs_table()) return;
    constexpr std::size_t some = plan::FlowBlock::size / quarters;
    for (std::size_t j = quarter * some; j < (quarter + 1) * some; ++j) table_->prefetch(places_[j]);
}

void ConnectionFlows::draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) noexcept {
    if (fetched_ != first) draw_places(first, stride);
    const plan::FourTuples::Numbers places{places_};
    // Drawn now and not when the next block needs them: wide loads would wait for the narrow stores that have just
    // written the places. Their entries are fetched a few at a time: as many as the CPU can wait for at once would keep
    // everything else waiting.
    fetched_ = first + plan::FlowBlock::size * stride;
    draw_places(fetched_, stride);
    fetch<0>();
    put_tuples(places, block);
    fetch<1>();
    if (needs_table()) put_translated(places, block);
    fetch<2>();
}

void ConnectionFlows::fetch_rest() const noexcept { fetch<3>(); }

void ConnectionFlows::draw_listed(const std::uint64_t* words, plan::FlowBlock& block) noexcept {
    const TesterShare& own = table_->own();
    const std::uint64_t last = table_->connections() - 1;
    plan::FourTuples::FrameNumbers frames;
    for (std::size_t j = 0; j < frames.size(); ++j) frames[j] = words[j] & sequence_mask;
    if (draw_.use() == plan::ConnectionUse::each_once && !own.is_whole()) {
        for (auto& frame : frames) frame = own.has(frame) ? own.place(frame) : 0;
    }
    plan::FourTuples::Numbers places;
    draw_.numbers_listed(frames, places);
    // The numbers of frames that nobody sent may lead beyond the table.
    for (auto& place : places) place = static_cast<std::uint32_t>(std::min<std::uint64_t>(place, last));
    if (needs_table()) {
        for (const auto place : places) table_->prefetch(place);
    }
    put_tuples(places, block);
    if (needs_table()) put_translated(places, block);
}

bool ConnectionExpectation::has_its_flow(const std::byte* frame) const noexcept {
    const auto flow = flows_->of(numbers_at(frame + at().tag));
    if (!flow) return false;
    const plan::FlowBlock& flows = *flow->block;
    const std::size_t i = flow->at;
    const bool is_to = number(frame, at().destination) == (flows.destination(i) & 0xFFFFU) &&
                       number(frame, at().ports + 2) == flows.destination_port(i);
    return is_to && (learns_ || (number(frame, at().source) == (flows.source(i) & 0xFFFFU) &&
                                 number(frame, at().ports) == flows.source_port(i)));
}

}  // namespace evenhand::frame
