// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: the flow of each frame of the connections through a DUT that keeps state, for those who write
// frames and for those who check them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/state_table.hpp"
#include "plan/four_tuples.hpp"

namespace evenhand::frame {

enum class LinkEnd : std::uint8_t { sent, arriving };

/// The flow of each frame of a direction, as it is sent or as it must arrive. `table` outlives it; `draw` says which of
/// the table's connections each frame belongs to.
class ConnectionFlows {
   public:
    ConnectionFlows(const StateTable& table, const plan::ConnectionDraw& draw, plan::Direction direction,
                    LinkEnd end) noexcept
        : table_{&table}, draw_{draw}, direction_{direction}, end_{end} {}

    /// Draws the flows of frames first, first + stride, ..., which all belong to one stream. The addresses of a
    /// connection that is not known yet are 0. Prefetches table entries of the stream's next block.
    void draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) noexcept;
    /// Prefetches those that draw_block() has left for later. To be called when the block's frames have been written.
    void fetch_rest() const noexcept;

    /// The flows of the frames whose numbers are the lower 48 bits of these FlowBlock::size words, in any order. All
    /// table entries are prefetched before the first is read. The flow of a frame that another tester sends is any.
    void draw_listed(const std::uint64_t* words, plan::FlowBlock& block) noexcept;

   private:
    static constexpr std::size_t quarters = 4;  // of a block, whose entries are prefetched one after the other

    [[nodiscard]] bool needs_table() const noexcept {
        return (direction_ == plan::Direction::reverse) == (end_ == LinkEnd::sent);
    }
    /// The flows of connections `places`, as their initiators send them.
    void put_tuples(const plan::FourTuples::Numbers& places, plan::FlowBlock& block) const noexcept;
    /// Replaces what the DUT translates by what the table has of it.
    void put_translated(const plan::FourTuples::Numbers& places, plan::FlowBlock& block) const noexcept;
    /// Prefetches entries of places_. Always inlined: GCC drops calls of a function that does nothing but prefetch.
    template <std::size_t quarter>
    [[gnu::always_inline]] inline void fetch() const noexcept;
    /// Determines the connections of frames first, first + stride, ...
    void draw_places(std::uint64_t first, std::uint64_t stride) noexcept;

    const StateTable* table_;
    plan::ConnectionDraw draw_;
    plan::Direction direction_;
    LinkEnd end_;
    std::uint64_t fetched_ = UINT64_MAX;  // first frame of the block whose connections are these
    plan::FourTuples::Numbers places_{};  // in the table
};

}  // namespace evenhand::frame
