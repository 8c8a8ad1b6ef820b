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

/// Who asks or answers, and about whom.
struct Party {
    plan::MacAddress mac{};
    plan::IpAddress ip;
};

/// Broadcast ARP request with the target MAC field all ones: also RFC 2544's learning frame (R2544-34). Both IPv4.
/// Needs arp_octets of room; returns the octets written.
std::size_t write_arp_request(std::span<std::byte> frame, const Party& sender, const plan::IpAddress& target);

/// Neighbour solicitation to the target's solicited-node group. Both IPv6. Needs solicitation_octets of room.
std::size_t write_neighbor_solicitation(std::span<std::byte> frame, const Party& sender, const plan::IpAddress& target);

/// Tells everybody on the link whose MAC `owner` has (RFC 5227, 3; RFC 4861, 7.2.6): a neighbour that knows another one
/// of it takes this one, a neighbour that does not know it makes no entry. Needs solicitation_octets of room.
std::size_t write_announcement(std::span<std::byte> frame, const Party& owner);

/// The question of an ARP request or a neighbour solicitation.
struct Question {
    Party asker;  // in a duplicate address detection the asker's address is all zero
    plan::IpAddress target;
};
[[nodiscard]] std::optional<Question> read_question(std::span<const std::byte> frame) noexcept;

/// Turn a question in place into its answer: `owner` is the MAC that the target has, `is_router` what an advertisement
/// says of it. Returns the octets of the answer; 0 if `room` does not hold it. `octets` is the length of the question.
[[nodiscard]] std::size_t write_answer(std::span<std::byte> room, std::size_t octets, const Question& question,
                                       const plan::MacAddress& owner, bool is_router = true) noexcept;

/// Who told its own MAC here: the sender of an ARP packet, the asker of a solicitation with the option, or the target
/// of an advertisement.
[[nodiscard]] std::optional<Party> read_announcement(std::span<const std::byte> frame) noexcept;

}  // namespace evenhand::neighbor
