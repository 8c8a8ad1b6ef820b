// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: what flows with patterns make of the drawn values. A pure function of (flows, seed, direction, k),
// as the draw is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/address_list.hpp"
#include "plan/draw.hpp"
#include "plan/field_pattern.hpp"

namespace evenhand::plan {

/// Replaces the fields of those flows that have patterns for them. Fields are drawn independently of each other and of
/// what the plan draws, each value equally likely; what steps does so with each frame of its flow, whatever other flows
/// lie between. Allocates nothing after it was made.
class FlowPatterns {
   public:
    /// FlowBlock::marks: the bits of the word that begins an IPv6 header, or IPv4's type of service; above them the
    /// VLAN priority.
    static constexpr unsigned priority_shift = 28;
    static constexpr std::uint32_t mark_mask = (1U << priority_shift) - 1;

    /// `plan`: without networks, if a flow has hosts of its own; these are hosts of the plan (are_hosts()).
    /// `flows`: by number. `cycle`: which flow frame k is of, at k modulo the length. Where any flow has a pattern for
    /// traffic class, flow label or VLAN priority, all flows have one for each that is not 0, perhaps of one value.
    FlowPatterns(const std::vector<FieldPatterns>& flows, std::vector<std::uint8_t> cycle, const AddressPlan& plan,
                 Direction direction, std::uint64_t seed);

    /// Whether it fills FlowBlock::marks.
    [[nodiscard]] bool has_marks() const noexcept { return has_marks_; }
    /// For the frames with these FlowBlock::size numbers.
    void apply(const std::uint64_t* numbers, FlowBlock& block) const noexcept;
    /// For frame k; of addresses only those that are numbers.
    void apply(std::uint64_t k, Flow& flow) const noexcept;
    /// For frame k of a plan in which whole addresses vary.
    void apply(std::uint64_t k, FlowAddresses& addresses) const noexcept;
    /// That of frame k, as FlowBlock::marks has it; for what needs it before the block.
    [[nodiscard]] std::uint32_t mark(std::uint64_t k) const noexcept;
    /// Whether a flow says in which VLANs its frames are.
    [[nodiscard]] bool has_vlans() const noexcept { return has_vlans_; }
    /// The VLAN of frame k, as its innermost tag has it; 0 if its flow says nothing.
    [[nodiscard]] std::uint16_t vlan(std::uint64_t k) const noexcept;

   private:
    static constexpr std::size_t mark_lane = drawn_fields;  // behind the lanes of the draw
    static constexpr std::size_t all_lanes = drawn_fields + 1;
    /// Streams of four words each: one for each field, and one for lock-step. A VLAN has a word behind them, since only
    /// tags need it.
    static constexpr std::size_t draws = 2;
    static constexpr std::size_t lock_step_word = 7;
    static constexpr std::size_t vlan_word = draws * drawn_fields;
    static_assert(static_cast<std::size_t>(FlowField::vlan) == lock_step_word && lock_step_word < vlan_word);

    struct Entry {
        FieldPattern pattern;
        std::size_t word;
        std::size_t lane;
        unsigned shift;               // within the lane
        std::uint32_t threshold;      // 2^32 modulo the number of values
        std::vector<Wide> addresses;  // those of the pattern, where whole addresses vary; else none
        unsigned host_at = 0;         // of prefixes, where only numbers vary: the bit where the host number begins

        [[nodiscard]] Wide address(std::uint32_t number) const noexcept {
            return addresses.size() > 1 ? addresses[number] : addresses[0] + Wide{number} * pattern.step;
        }
    };
    struct OfFlow {
        std::vector<Entry> entries;
        std::optional<Entry> vlan;
        std::uint64_t frames = 0;  // in a cycle
    };

    /// Which of the entry's values frame k has.
    [[nodiscard]] std::uint32_t choose(const Entry& entry, std::uint64_t k, std::uint64_t turn,
                                       std::uint32_t word) const noexcept;
    [[nodiscard]] std::array<std::uint32_t, drawn_fields> draw(std::size_t which, std::uint64_t k,
                                                               std::uint32_t attempt) const noexcept;
    /// The words from which an address of a prefix is chosen: in IPv4 those of both ends together.
    [[nodiscard]] std::uint32_t stream_of_end(std::size_t end) const noexcept;
    /// The same as one number. `words`: of that stream.
    template <class Words>
    [[nodiscard]] Wide bits_of(std::size_t end, const Words& words) const noexcept;
    /// `word_of`: gives the drawn word of a number. `bits_at`: gives those for an address of the source (0) or the
    /// destination (1). `lane_of`: gives the place of a lane's value. `put_address`: takes a whole address, and which
    /// of both it is.
    template <class WordOf, class BitsAt, class LaneOf, class PutAddress>
    void put(std::uint64_t k, const WordOf& word_of, const BitsAt& bits_at, const LaneOf& lane_of,
             const PutAddress& put_address) const noexcept;
    template <class LaneOf, class PutAddress>
    void put_one(std::uint64_t k, const LaneOf& lane_of, const PutAddress& put_address) const noexcept;

    std::vector<OfFlow> flows_;
    std::vector<std::uint8_t> cycle_;
    std::vector<std::uint32_t> turn_in_cycle_;  // how many of the frames in front are of the same flow
    IpVersion version_;
    std::array<bool, draws> needs_draw_{};
    std::array<bool, 2> needs_bits_{};  // of source and destination
    bool is_whole_;                     // whole addresses vary
    bool has_marks_ = false;
    bool has_vlans_ = false;
    PhiloxKey key_;
    std::uint32_t direction_;
};

/// Whether these are hosts of a side of the plan, which has no networks; of prefixes, whether each entry lies in one of
/// the side's.
[[nodiscard]] bool are_hosts(const FieldPattern& pattern, const HostRange& hosts);

}  // namespace evenhand::plan
