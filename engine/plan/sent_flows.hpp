// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: what a plan sends, whoever asks: the preview, the proof of the draws, and, through the same parts,
// the sources and expectations of a trial.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "plan/draw.hpp"
#include "plan/four_tuples.hpp"
#include "plan/plan.hpp"

namespace evenhand::plan {

/// The ranges of a direction's flows, in the order of a FlowBlock's fields.
struct FlowRanges {
    HostRange source;
    HostRange destination;
    FieldRange source_port;
    FieldRange destination_port;
};

/// Of the flows that SentFlows has. With state, where the DUT chooses what an answer is sent to, those of the reverse
/// direction are the flows of answers as they arrive.
[[nodiscard]] FlowRanges ranges_of(const AddressPlan& plan, Direction direction);

/// The flow of a direction that answers to one of the other: both ends change places.
void turn_around(FlowBlock& block) noexcept;

/// The flow of each frame of a direction. Copyable; draw_block() allocates nothing.
///
/// Without state each is drawn (FlowDraw). With state frame k is of connection k, as it is while connections are opened
/// and when they are validated (ConnectionUse::each_once): each has a four tuple of its own (FourTuples).
class SentFlows {
   public:
    /// How many frames a direction can have: each connection has its own; nothing where there is no end.
    [[nodiscard]] static std::optional<std::uint64_t> most_frames(const AddressPlan& plan) noexcept;
    /// How many flows there are to choose from, none of which is chosen twice; nothing where each frame's is drawn from
    /// all.
    [[nodiscard]] static std::optional<std::uint64_t> chosen_once_of(const AddressPlan& plan) noexcept;

    SentFlows(const AddressPlan& plan, Direction direction, std::uint64_t seed);

    /// Flows of the frames first, first + stride, ... A block that reaches beyond the last connection has the last one
    /// there.
    void draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) noexcept;
    /// Flow of frame k.
    [[nodiscard]] Flow draw(std::uint64_t k) noexcept;

   private:
    struct OfConnections {
        FourTuples tuples;
        ConnectionDraw which;
    };
    std::variant<FlowDraw, OfConnections> draw_;
    Direction direction_;
};

}  // namespace evenhand::plan
