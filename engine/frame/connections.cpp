// SPDX-License-Identifier: Apache-2.0
#include "frame/connections.hpp"

#include <utility>

namespace evenhand::frame {

void ConnectionFlows::draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) noexcept {
    if (fetched_ != first) draw_.numbers(first, stride, numbers_);
    table_->tuples().flows(numbers_, block);
    auto& [source, destination, source_port, destination_port] = block.lanes.field;
    if (direction_ == plan::Direction::reverse) {
        std::swap(source, destination);
        std::swap(source_port, destination_port);
    }
    if (needs_table()) {
        auto& host = end_ == LinkEnd::sent ? destination : source;
        auto& port = end_ == LinkEnd::sent ? destination_port : source_port;
        for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
            const StateTable::Entry translated = table_->entry(numbers_[j]);
            host[j] = translated.host;
            port[j] = translated.port;
        }
    }
    // Now, and not when they are wanted: wide loads would wait for the narrow stores that have just written them.
    fetched_ = first + plan::FlowBlock::size * stride;
    draw_.numbers(fetched_, stride, numbers_);
    if (!needs_table()) return;
    for (const auto number : numbers_) table_->prefetch(number);
}

bool ConnectionExpectation::has_its_flow(const std::byte* frame) const noexcept {
    const auto flow = flows_.of(numbers_at(frame + at().tag));
    if (!flow) return false;
    const plan::FlowBlock& flows = *flow->block;
    const std::size_t i = flow->at;
    const bool is_to = number(frame, at().destination) == (flows.destination(i) & 0xFFFFU) &&
                       number(frame, at().ports + 2) == flows.destination_port(i);
    return is_to && (learns_ || (number(frame, at().source) == (flows.source(i) & 0xFFFFU) &&
                                 number(frame, at().ports) == flows.source_port(i)));
}

}  // namespace evenhand::frame
