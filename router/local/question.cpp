// SPDX-License-Identifier: Apache-2.0
#include "local/question.hpp"

#include <cstring>

#include "frame/checksum.hpp"

namespace evenhand::router {
namespace {

/// A solicitation to the address itself instead of its group (RFC 4861, 4.3).
void make_unicast(std::span<std::byte> f, const plan::IpAddress& target) noexcept {
    using L = frame::Layout<plan::IpVersion::v6>;
    constexpr std::size_t icmp = L::ip + L::ip_octets;
    constexpr std::size_t icmp_octets = neighbor::solicitation_octets - icmp;
    std::memcpy(f.data() + L::destination, target.octets.data(), target.octets.size());
    frame::store(f.data() + icmp + 2, std::uint16_t{0});
    const std::uint64_t sum = frame::sum_octets(f.data() + L::source, 32 + icmp_octets) +
                              frame::pseudo_header_sum(frame::protocol_icmpv6, icmp_octets);
    frame::store(f.data() + icmp + 2, frame::udp_checksum(sum));
}

}  // namespace

std::size_t write_question(std::span<std::byte> room, const Interface& interface,
                           const NeighborQuestion& question) noexcept {
    const plan::IpAddress* const source = interface.source_for(question.target);
    if (source == nullptr || room.size() < question_octets) return 0;
    const neighbor::Party asker{.mac = interface.mac, .ip = *source};
    const bool v4 = question.target.version == plan::IpVersion::v4;
    const std::size_t octets = v4 ? neighbor::write_arp_request(room, asker, question.target)
                                  : neighbor::write_neighbor_solicitation(room, asker, question.target);
    if (question.to) {
        std::memcpy(room.data(), question.to->data(), question.to->size());
        if (!v4) make_unicast(room, question.target);
    }
    return octets;
}

}  // namespace evenhand::router
