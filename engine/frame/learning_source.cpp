// SPDX-License-Identifier: Apache-2.0
#include "frame/learning_source.hpp"

#include <cstring>
#include <utility>

#include "frame/checksum.hpp"

namespace evenhand::frame {
namespace {

template <IpVersion V>
void write_constant_fields(FrameTemplate& t, const plan::AddressPlan& plan, const plan::IpAddress& source) {
    using L = Layout<V>;
    const auto bytes = source.bytes();
    std::memcpy(t.head.data() + L::source, bytes.data(), bytes.size());
    store(t.head.data() + L::udp, big(static_cast<std::uint16_t>(plan.source_ports.first)));
    store(t.head.data() + L::udp + 2, big(static_cast<std::uint16_t>(plan.destination_ports.first)));
}

}  // namespace

LearningSource::LearningSource(const plan::AddressPlan& plan, StreamIdentity identity, const plan::HostSet& from,
                               plan::HostSet to, std::span<const std::uint32_t> pending, StreamShare share,
                               const plan::MacAddress& source_mac, const plan::MacAddress& destination_mac)
    : version_{plan.side(plan::sending_side(identity.direction)).version()},
      template_{make_template(plan, octets_of(version_) + fcs_octets,
                              {.direction = identity.direction, .stream = identity.stream, .trial = 0}, source_mac,
                              destination_mac)},
      to_{std::move(to)},
      pending_{pending},
      share_{share} {
    if (version_ == IpVersion::v4) {
        write_constant_fields<IpVersion::v4>(template_, plan, from.address(0));
    } else {
        write_constant_fields<IpVersion::v6>(template_, plan, from.address(0));
    }
}

std::size_t LearningSource::octets_of(IpVersion version) noexcept {
    return version == IpVersion::v4 ? Layout<IpVersion::v4>::tag_end : Layout<IpVersion::v6>::tag_end;
}

void LearningSource::write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
    for (std::byte* const frame : frames) {
        const std::uint32_t host = pending_[share_.sequence(next_++)];
        if (version_ == IpVersion::v4) {
            write<IpVersion::v4>(frame, host, now_ticks & time_mask);
        } else {
            write<IpVersion::v6>(frame, host, now_ticks & time_mask);
        }
    }
}

template <IpVersion V>
void LearningSource::write(std::byte* frame, std::uint32_t host, std::uint64_t time) const noexcept {
    using L = Layout<V>;
    std::memcpy(frame, template_.head.data(), L::tag_end);
    const auto destination = to_.address(host);
    std::memcpy(frame + L::destination, destination.octets.data(), plan::address_octets(V));
    frame[L::tag + tag_stream] ^= std::byte{time_check(time)};
    store(frame + L::tag + tag_sequence, big(std::uint64_t{host} << 16U | time >> 32U));
    store(frame + L::tag + tag_time + 2, big(static_cast<std::uint32_t>(time)));
    // The checksum is computed from all octets: to know where the plan's varying octets are is not worth it for so few
    // frames.
    if constexpr (V == IpVersion::v4) {
        store(frame + L::ipv4_checksum, std::uint16_t{0});
        store(frame + L::ipv4_checksum, ip_checksum(sum_octets(frame + L::ip, L::ip_octets)));
    }
    store(frame + L::udp_checksum, std::uint16_t{0});
    store(frame + L::udp_checksum, udp_checksum(sum_octets(frame + L::source, L::tag_end - L::source) +
                                                pseudo_header_sum(protocol_udp, L::tag_end - L::udp)));
}

}  // namespace evenhand::frame
