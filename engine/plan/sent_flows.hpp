// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: what a plan sends. The preview and the proof of the draws use it, and the sources and expectations
// of a trial use the same parts.
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

/// The ranges of the flows that SentFlows draws. With state, where the DUT chooses what an answer is sent to, those of
/// the reverse direction are the flows of answers as they arrive.
[[nodiscard]] FlowRanges ranges_of(const AddressPlan& plan, Direction direction);

/// The flow of each frame of a direction. Copyable; draw_block() allocates nothing.
///
/// Without state each flow is drawn (FlowDraw). With state frame k belongs to connection k, as it does when connections
/// are opened and when they are validated (ConnectionUse::each_once), and has the connection's four tuple (FourTuples).
class SentFlows {
   public:
    /// How many frames a direction can have: with state, one for each connection; nothing if there is no limit.
    [[nodiscard]] static std::optional<std::uint64_t> most_frames(const AddressPlan& plan) noexcept;
    /// With state: how many flows there are, each of which is chosen once at most; nothing if each frame's flow is
    /// drawn from all.
    [[nodiscard]] static std::optional<std::uint64_t> chosen_once_of(const AddressPlan& plan) noexcept;

    SentFlows(const AddressPlan& plan, Direction direction, std::uint64_t seed);

    /// The flows of the frames first, first + stride, ... Frames of a block that are beyond the last connection get the
    /// last one.
    void draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) noexcept;
    /// The flow of frame k.
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
