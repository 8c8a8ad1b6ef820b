// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the VLAN tags of everything that a side sends and receives.
//
// A frame is first written without tags, as many octets behind the beginning of its buffer as the tags take; then the
// MACs and the tags are put in front. Likewise a received frame that has the tags of this side is looked at as if it
// had none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "frame/layout.hpp"

namespace evenhand::frame {

constexpr std::uint16_t ethertype_vlan = 0x8100;          // IEEE 802.1Q
constexpr std::uint16_t ethertype_service_vlan = 0x88A8;  // IEEE 802.1ad: the outer of two
constexpr std::uint16_t largest_vlan = 4094;
constexpr std::size_t vlan_tag_octets = 4;
constexpr std::size_t most_vlan_tags = 2;

/// What the tags of a flow's frames have.
struct FlowTag {
    std::uint8_t priority = 0;  // IEEE 802.1Q, 0 .. 7, in each tag
    std::uint16_t vlan = 0;     // in the innermost tag; 0: that of the side
};

/// The tags of one side: none, one 802.1Q tag, or an outer 802.1ad and an inner 802.1Q tag. Their priority is 0 but in
/// frames of flows that have another one; and flows may have another innermost VLAN.
class VlanTags {
   public:
    VlanTags() = default;
    /// `vlans`: at most two, 1 .. 4094, the outer one first.
    explicit VlanTags(std::span<const std::uint16_t> vlans) noexcept : count_{std::min(vlans.size(), most_vlan_tags)} {
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint32_t type = i + 1 < count_ ? ethertype_service_vlan : ethertype_vlan;
            tags_[i] = big(type << 16U | vlans[i]);
        }
    }

    friend bool operator==(const VlanTags&, const VlanTags&) = default;

    /// How many octets all tags take together.
    [[nodiscard]] std::size_t octets() const noexcept { return count_ * vlan_tag_octets; }

    /// EtherType << 16 | VLAN of each, outermost first.
    [[nodiscard]] std::vector<std::uint32_t> list() const {
        std::vector<std::uint32_t> all;
        all.reserve(count_);
        for (std::size_t i = 0; i < count_; ++i) all.push_back(big(tags_[i]));
        return all;
    }

    /// Puts the tags into a frame. `frame` is where the tagged frame begins; the frame without tags begins octets()
    /// behind it.
    void put(std::byte* frame) const noexcept {
        move_macs(frame, frame + octets());
        for (std::size_t i = 0; i < count_; ++i) store(frame + macs_octets + i * vlan_tag_octets, tags_[i]);
    }
    /// The same for frames of a flow.
    void put(std::byte* frame, FlowTag of) const noexcept {
        constexpr unsigned below_priority = 13;
        const std::uint32_t bits = big(static_cast<std::uint32_t>(of.priority) << below_priority);
        move_macs(frame, frame + octets());
        for (std::size_t i = 0; i < count_; ++i) store(frame + macs_octets + i * vlan_tag_octets, tags_[i] | bits);
        if (of.vlan == 0 || count_ == 0) return;
        const std::uint32_t without_vlan = (tags_[count_ - 1] & ~vlan_bits) | bits;
        store(frame + innermost(), without_vlan | big(std::uint32_t{of.vlan}));
    }

    /// Whether a received frame has these tags, of whatever priority.
    [[nodiscard]] bool fits(const std::byte* frame, std::size_t length) const noexcept {
        if (length < ethernet_octets + octets()) return false;
        for (std::size_t i = 0; i < count_; ++i) {
            if (((load<std::uint32_t>(frame + macs_octets + i * vlan_tag_octets) ^ tags_[i]) & type_and_vlan) != 0)
                return false;
        }
        return true;
    }
    /// The same; if so, the frame without tags begins octets()
    /// behind `frame`. Otherwise it is left unchanged.
    [[nodiscard]] bool take(std::byte* frame, std::size_t length) const noexcept {
        if (!fits(frame, length)) return false;
        take_innermost(frame);
        return true;
    }
    /// Makes a frame again what it was before its tags were taken.
    void put_back(std::byte* frame) const noexcept {
        const auto tags = read_tags(frame);
        move_macs(frame, frame + octets());
        write_tags(frame + macs_octets, tags);
    }
    /// The innermost VLAN of a received frame whose tags are these but for that and their priorities; 0 if they are
    /// not, or there are none.
    [[nodiscard]] std::uint16_t innermost_vlan(const std::byte* frame, std::size_t length) const noexcept {
        if (count_ == 0 || length < ethernet_octets + octets()) return 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint32_t same = i + 1 < count_ ? type_and_vlan : type_and_vlan & ~vlan_bits;
            if (((load<std::uint32_t>(frame + macs_octets + i * vlan_tag_octets) ^ tags_[i]) & same) != 0) return 0;
        }
        return static_cast<std::uint16_t>(big(load<std::uint32_t>(frame + innermost()) & vlan_bits));
    }
    /// Takes the tags of such a frame; they are kept in front of it, for put_back().
    void take_innermost(std::byte* frame) const noexcept {
        const auto tags = read_tags(frame + macs_octets);
        move_macs(frame + octets(), frame);
        write_tags(frame, tags);
    }

   private:
    static constexpr std::size_t macs_octets = 12;
    /// In memory order: all bits of a tag but its priority and its drop-eligible bit.
    static constexpr std::uint32_t type_and_vlan = std::uint32_t{0xFF0F} << 16U | 0xFFFFU;
    static constexpr std::uint32_t vlan_bits = std::uint32_t{0xFF0F} << 16U;

    /// Where the innermost of the tags begins.
    [[nodiscard]] std::size_t innermost() const noexcept { return macs_octets + (count_ - 1) * vlan_tag_octets; }

    using Tags = std::array<std::uint32_t, most_vlan_tags>;

    [[nodiscard]] Tags read_tags(const std::byte* at) const noexcept {
        Tags tags{};
        for (std::size_t i = 0; i < count_; ++i) tags[i] = load<std::uint32_t>(at + i * vlan_tag_octets);
        return tags;
    }
    void write_tags(std::byte* at, const Tags& tags) const noexcept {
        for (std::size_t i = 0; i < count_; ++i) store(at + i * vlan_tag_octets, tags[i]);
    }
    static void move_macs(std::byte* to, const std::byte* from) noexcept {
        const auto first = load<std::uint64_t>(from);
        const auto last = load<std::uint32_t>(from + sizeof first);
        store(to, first);
        store(to + sizeof first, last);
    }

    std::size_t count_ = 0;
    Tags tags_{};  // memory order
};

}  // namespace evenhand::frame
