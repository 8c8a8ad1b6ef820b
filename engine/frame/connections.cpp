// SPDX-License-Identifier: Apache-2.0
#include "frame/connections.hpp"

#include <algorithm>

#include "frame/layout.hpp"
#include "plan/sent_flows.hpp"

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
        table_->tuples().flows(places, block);
    } else {
        plan::FourTuples::Numbers numbers;
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(own.sequence(places[j]));
        table_->tuples().flows(numbers, block);
    }
    if (direction_ == plan::Direction::reverse) plan::turn_around(block);
}

void ConnectionFlows::put_translated(const plan::FourTuples::Numbers& places, plan::FlowBlock& block) const noexcept {
    auto& [source, destination, source_port, destination_port] = block.lanes.field;
    auto& host = end_ == LinkEnd::sent ? destination : source;
    auto& port = end_ == LinkEnd::sent ? destination_port : source_port;
    for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
        const StateTable::Entry translated = table_->entry(places[j]);
        host[j] = translated.host;
        port[j] = translated.port;
    }
}

void ConnectionFlows::draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) noexcept {
    if (fetched_ != first) draw_places(first, stride);
    put_tuples(places_, block);
    if (needs_table()) put_translated(places_, block);
    // Prefetched now and not when the entries are needed: wide loads would wait for the narrow stores that have just
    // written the places.
    fetched_ = first + plan::FlowBlock::size * stride;
    draw_places(fetched_, stride);
    if (!needs_table()) return;
    for (const auto place : places_) table_->prefetch(place);
}

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
