// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which values frame k has. A pure function of (plan, seed, direction, k): no state, no tables (D3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "plan/philox.hpp"
#include "plan/plan.hpp"

namespace evenhand::plan {

class FlowPatterns;
class WholeDraw;

/// The varying values of one frame, in host order.
struct Flow {
    std::uint32_t source = 0;            // HostRange::value() of the source address
    std::uint32_t destination = 0;       // the same for the destination
    std::uint32_t source_port = 0;       // UDP
    std::uint32_t destination_port = 0;  // UDP

    friend bool operator==(const Flow&, const Flow&) = default;
};

/// Both addresses of a frame, the source first.
struct FlowAddresses {
    IpAddress source;
    IpAddress destination;
};

/// The flows of several frames, by field.
///
/// If one side's hosts are a list, whole addresses vary. In IPv4, source() and destination() are addresses then. In
/// IPv6 they are the sums of the addresses' words, folded to 16 bits, and `addresses` has both as they are in a frame;
/// in all other plans it means nothing.
struct FlowBlock {
    static constexpr std::size_t size = DrawLanes::size;
    static constexpr std::size_t pair_octets = 32;
    DrawLanes lanes;
    alignas(pair_octets) std::array<std::array<std::byte, pair_octets>, size> addresses;
    /// What FlowPatterns says of traffic class, flow label and VLAN priority; where it says nothing, it means nothing.
    DrawLanes::Values marks;

    [[nodiscard]] std::uint32_t source(std::size_t j) const noexcept { return lanes.field[0][j]; }
    [[nodiscard]] std::uint32_t destination(std::size_t j) const noexcept { return lanes.field[1][j]; }
    [[nodiscard]] std::uint32_t source_port(std::size_t j) const noexcept { return lanes.field[2][j]; }
    [[nodiscard]] std::uint32_t destination_port(std::size_t j) const noexcept { return lanes.field[3][j]; }
};

/// The addresses of a side that has networks, chosen by one drawn number: it is uniform below networks * hosts, so that
/// network and host are uniform and independent of each other (SEED-33). What another mode than pseudorandom chooses
/// has no part in the number.
class NetworkSplit {
   public:
    NetworkSplit() = default;
    /// `range` has networks.
    explicit NetworkSplit(const HostRange& range) noexcept;

    [[nodiscard]] std::uint32_t drawn() const noexcept { return networks_ * hosts_; }

    /// HostRange::value() for a number below drawn(), before any step.
    [[nodiscard]] std::uint64_t value(std::uint64_t number) const noexcept {
        // Exact for numbers below 2^24: the rounded-up reciprocal is less than 2^-40 too large.
        const std::uint64_t network = number * reciprocal_ >> reciprocal_bits;
        return first_ + number + network * network_step_;
    }

    /// What is added to a destination's value to put it into the network of this source (SEED-82).
    [[nodiscard]] std::uint64_t network_part(std::uint64_t value) const noexcept {
        return ((value >> network_shift_) - (first_ >> network_shift_)) << network_shift_;
    }

    /// What increment and decrement add to the value of frame k. The network changes when all its hosts have been used.
    [[nodiscard]] std::uint64_t step(std::uint64_t k) const noexcept;

   private:
    static constexpr unsigned reciprocal_bits = 40;

    std::uint64_t first_ = 0;
    std::uint64_t network_step_ = 0;  // from the last host of a network to the first of the next, less 1
    std::uint64_t reciprocal_ = 0;    // 2^40 / hosts_, rounded up
    std::uint32_t networks_ = 1;      // that are drawn from
    std::uint32_t hosts_ = 1;
    NetworkRange network_;
    FieldRange host_;
    unsigned network_shift_ = 0;
};

/// Draws the flows of one direction. Every field is drawn independently and exactly uniformly, with replacement
/// (SEED-33, SEED-40, SEED-41, SEED-43, R4814-01, R4814-04). Copyable; allocates nothing.
class FlowDraw {
   public:
    FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed);
    /// The same with fields of flows, made for this direction and seed; null: without.
    FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed,
             std::shared_ptr<const FlowPatterns> patterns);

    /// Those that it was made with; null if there are none.
    [[nodiscard]] const FlowPatterns* patterns() const noexcept { return patterns_.get(); }

    /// The flow of frame k; its addresses as a FlowBlock has them.
    [[nodiscard]] Flow draw(std::uint64_t k) const noexcept;

    /// The addresses of frame k, if whole addresses vary; nothing if only numbers in them do.
    [[nodiscard]] std::optional<FlowAddresses> whole_addresses(std::uint64_t k) const noexcept;

    /// The flows of the frames first, first + stride, first + 2 * stride, ..., the same as draw() returns for each.
    void draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;

    /// Whether draw_ahead() is faster: it lets what the next block needs come from memory meanwhile.
    [[nodiscard]] bool has_ahead() const noexcept { return has_ahead_; }
    // If has_ahead(): begins the first block, and finishes a block that was begun and begins the next one. A CPU waits
    // for few places in memory at once: so a part is fetched by itself, when the block's frames have been written.
    void begin_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;
    void draw_ahead(std::uint64_t first, std::uint64_t stride, FlowBlock& block, FlowBlock& next) const noexcept;
    void fetch_rest(const FlowBlock& next) const noexcept;

    /// The flows of the frames whose numbers are the lower 48 bits of these FlowBlock::size words, in any order.
    void draw_listed(const std::uint64_t* words, FlowBlock& block) const noexcept;

   private:
    static constexpr std::size_t address_fields = 2;  // source and destination; then the UDP ports

    void set_addresses(const std::array<HostRange, address_fields>& hosts) noexcept;
    void set_field(std::size_t field, const FieldRange& range) noexcept;
    /// The drawn numbers of frame k.
    [[nodiscard]] std::array<std::uint32_t, drawn_fields> draw_fields(std::uint64_t k) const noexcept;
    // As the functions without `of_plan`, before the patterns of flows.
    [[nodiscard]] Flow draw_of_plan(std::uint64_t k) const noexcept;
    void draw_block_of_plan(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;
    void draw_listed_of_plan(const std::uint64_t* words, FlowBlock& block) const noexcept;
    /// The flow of frame k if no side's hosts are a list.
    [[nodiscard]] Flow draw_of_ranges(std::uint64_t k) const noexcept;
    /// Settles all drawn fields of a block, from which whole addresses are to be made. `numbers`: of the frames;
    /// `biased`: as draw_lanes() found it.
    void settle_for_whole(const std::uint64_t* numbers, const LaneBits& biased, FlowBlock& block) const noexcept;
    void apply_patterns(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept;
    [[nodiscard]] std::array<std::uint32_t, drawn_fields> draw_words(std::uint64_t k,
                                                                     std::uint32_t attempt) const noexcept;
    /// Turns drawn numbers into values of hosts.
    void add_networks(FlowBlock& block) const noexcept;
    static void put(FlowBlock& block, std::size_t j, const Flow& flow) noexcept;
    [[nodiscard]] std::uint32_t settle(std::size_t field, std::uint64_t k, std::uint32_t word) const noexcept;

    DrawBounds bounds_;
    std::array<Mode, drawn_fields> modes_{};
    std::array<NetworkSplit, address_fields> splits_{};
    bool has_networks_ = false;
    bool has_common_network_ = false;
    bool all_pseudorandom_ = true;
    bool has_ahead_ = false;
    PhiloxKey key_;
    std::uint32_t direction_;
    std::shared_ptr<const WholeDraw> whole_;        // null unless one side's hosts are a list
    std::shared_ptr<const FlowPatterns> patterns_;  // null: no field of a flow varies by itself
};

}  // namespace evenhand::plan
