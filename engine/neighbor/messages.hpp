// SPDX-License-Identifier: Apache-2.0
// Neighbours: the frames of ARP (RFC 826) and neighbour discovery (RFC 4861) that a tester needs. Octets without FCS.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "plan/address.hpp"

namespace evenhand::neighbor {

constexpr std::size_t arp_octets = 60;                         // padded to the least Ethernet frame
constexpr std::size_t solicitation_octets = 14 + 40 + 24 + 8;  // with a link-layer address option

/// Who asks or answers, or who is asked about.
struct Party {
    plan::MacAddress mac{};
    plan::IpAddress ip;
};

/// Broadcast ARP request with the target MAC field all ones: also RFC 2544's learning frame (R2544-34). Both IPv4.
/// Needs arp_octets of room; returns the octets written.
std::size_t write_arp_request(std::span<std::byte> frame, const Party& sender, const plan::IpAddress& target);

/// Neighbour solicitation to the target's solicited-node group. Both IPv6. Needs solicitation_octets of room.
std::size_t write_neighbor_solicitation(std::span<std::byte> frame, const Party& sender, const plan::IpAddress& target);

/// Announces to everybody on the link the MAC of `owner` (RFC 5227, 3; RFC 4861, 7.2.6): a neighbour that knows another
/// MAC replaces it, a neighbour that knows none makes no entry. Needs solicitation_octets of room.
std::size_t write_announcement(std::span<std::byte> frame, const Party& owner);

/// The question of an ARP request or a neighbour solicitation.
struct Question {
    Party asker;  // in a duplicate address detection the asker's address is all zero
    plan::IpAddress target;
};
[[nodiscard]] std::optional<Question> read_question(std::span<const std::byte> frame) noexcept;

/// Turns a question in place into its answer. `owner`: the MAC of the target; `is_router`: what an advertisement says
/// about the target. Returns the octets of the answer; 0 if it does not fit into `room`. `octets`: the length of the
/// question.
[[nodiscard]] std::size_t write_answer(std::span<std::byte> room, std::size_t octets, const Question& question,
                                       const plan::MacAddress& owner, bool is_router = true) noexcept;

/// Who announces his own MAC in this frame: the sender of an ARP packet, the asker of a solicitation that has the
/// option, or the target of an advertisement.
[[nodiscard]] std::optional<Party> read_announcement(std::span<const std::byte> frame) noexcept;

}  // namespace evenhand::neighbor
