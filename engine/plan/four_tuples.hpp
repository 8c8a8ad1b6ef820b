// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the connections of a stateful test: which four tuple each has, and which connection a frame belongs
// to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/draw.hpp"
#include "plan/per_direction.hpp"
#include "plan/permutation.hpp"
#include "plan/plan.hpp"

namespace evenhand::plan {

/// The order in which the plan's four tuples are assigned to the connections 0, 1, 2, ... (R9693-05).
enum class TupleOrder : std::uint8_t { pseudorandom, increasing, decreasing };

constexpr std::uint64_t most_connections = (std::uint64_t{1} << 32U) - 1;

/// The four tuple of each connection as its initiator sends it: hosts and UDP ports of the plan's forward direction. No
/// two connections have the same one (R9693-05). Copyable; allocates nothing.
class FourTuples {
   public:
    using Numbers = RectanglePermutation::Numbers;
    using FrameNumbers = std::array<std::uint64_t, FlowBlock::size>;

    /// How many four tuples the plan has: source hosts x source ports x destination hosts x destination ports
    /// (R9693-04); nothing if 64 bits cannot count them.
    [[nodiscard]] static std::optional<std::uint64_t> count(const AddressPlan& plan) noexcept;

    /// The tuples of `connections` connections, at most count(plan) and most_connections.
    FourTuples(const AddressPlan& plan, std::uint64_t connections, TupleOrder order, std::uint64_t seed) noexcept;

    [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }
    [[nodiscard]] TupleOrder order() const noexcept { return order_; }

    /// The tuples of these connections, or those of answers to them: both ends are exchanged.
    void flows(const Numbers& numbers, FlowBlock& block, Direction direction = Direction::forward) const noexcept;
    [[nodiscard]] Flow flow(std::uint32_t number) const noexcept;

   private:
    std::uint64_t connections_;
    TupleOrder order_;
    DrawBounds sides_;
    PerDirection<RectanglePermutation> permutations_;
};

/// Which connection each frame of a direction belongs to.
enum class ConnectionUse : std::uint8_t {
    each_once,  // frame k belongs to connection k
    drawn       // each frame belongs to any of them, independently and uniformly drawn
};

/// The connection of each frame of a direction: a pure function of the frame's number. Copyable; allocates nothing.
///
/// A frame needs one word and philox4x32 gives four, so of 128 consecutive frames the first 32 use the first words of
/// 32 counters, the next 32 the second words, and so on. One call of draw_lanes() thus serves all 128, and its result
/// is kept.
class ConnectionDraw {
   public:
    ConnectionDraw(ConnectionUse use, Direction direction, std::uint64_t connections, std::uint64_t seed) noexcept;

    [[nodiscard]] ConnectionUse use() const noexcept { return use_; }

    /// The connections of the frames first, first + stride, ... Frames of a block that are beyond the trial's last one
    /// get the last connection.
    void numbers(std::uint64_t first, std::uint64_t stride, FourTuples::Numbers& numbers) noexcept;

    /// The same for these frames, in any order. Fast if neighbours belong to the same 128 frames.
    void numbers_listed(const FourTuples::FrameNumbers& frames, FourTuples::Numbers& numbers) noexcept;

   private:
    static constexpr std::size_t run = drawn_fields * DrawLanes::size;

    [[nodiscard]] std::uint32_t draw(std::uint64_t k) const noexcept;
    void draw_run(std::uint64_t number) noexcept;

    ConnectionUse use_;
    std::uint32_t stream_;
    DrawBounds bounds_;
    PhiloxKey key_;
    std::uint64_t kept_ = UINT64_MAX;  // number of the run whose connections are these
    DrawLanes drawn_{};
};

}  // namespace evenhand::plan
