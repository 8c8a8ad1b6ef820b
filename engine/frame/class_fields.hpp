// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: fields that the frames of one class have, and other classes not: what makes a class a flow of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/checksum.hpp"
#include "frame/layout.hpp"
#include "frame/template.hpp"
#include "frame/transport.hpp"
#include "plan/field_pattern.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

constexpr std::uint64_t largest_dscp = 63;
constexpr std::uint64_t largest_ecn = 3;
constexpr std::uint64_t largest_flow_label = 0xFFFFF;
constexpr std::uint64_t largest_vlan_priority = 7;

struct ClassFields {
    std::uint8_t traffic_class = 0;  // DSCP and below it ECN (RFC 2474, RFC 3168); in IPv4 the type of service
    std::uint32_t flow_label = 0;    // RFC 6437; 0 in IPv4, which has none
    std::uint8_t vlan_priority = 0;
    std::optional<std::uint16_t> source_port = std::nullopt;  // nothing: drawn, as the plan says
    std::optional<std::uint16_t> destination_port = std::nullopt;
    plan::FieldPatterns patterns{};  // of fields that have no value above
    Transport transport{};

    friend bool operator==(const ClassFields&, const ClassFields&) = default;

    /// Traffic class and flow label, in the bits of the word that begins an IPv6 header; in IPv4 the type of service.
    [[nodiscard]] std::uint32_t mark(IpVersion version) const noexcept {
        return version == IpVersion::v4 ? traffic_class : std::uint32_t{traffic_class} << 20U | flow_label;
    }
    /// The ports of these frames where the plan's are `ports`.
    [[nodiscard]] plan::PortPair narrow(const plan::PortPair& ports) const {
        const auto of = [&](const std::optional<std::uint16_t>& port, plan::FlowField field,
                            const plan::FieldRange& drawn) {
            if (port) return plan::FieldRange{.first = *port, .count = 1};
            return patterns[field] ? patterns[field]->bounds() : drawn;
        };
        return {.sources = of(source_port, plan::FlowField::source_port, ports.sources),
                .destinations = of(destination_port, plan::FlowField::destination_port, ports.destinations)};
    }
};

/// The mark of a received frame: see ClassFields::mark().
[[nodiscard]] inline std::uint32_t mark_of(const std::byte* frame, IpVersion version) noexcept {
    constexpr std::uint32_t class_and_label = 0x0FFFFFFF;
    return version == IpVersion::v4 ? static_cast<std::uint32_t>(frame[Layout<IpVersion::v4>::ip + 1])
                                    : big(load<std::uint32_t>(frame + Layout<IpVersion::v6>::ip)) & class_and_label;
}

/// Puts such a mark into a frame that has none, and corrects its header's checksum (RFC 1624).
inline void put_mark(std::byte* frame, IpVersion version, std::uint32_t mark) noexcept {
    if (version == IpVersion::v6) {
        std::byte* const word = frame + Layout<IpVersion::v6>::ip;
        store(word, load<std::uint32_t>(word) | big(mark));
        return;
    }
    using L = Layout<IpVersion::v4>;
    frame[L::ip + 1] = static_cast<std::byte>(mark);
    const auto sum = static_cast<std::uint16_t>(~big(load<std::uint16_t>(frame + L::ipv4_checksum)));
    store(frame + L::ipv4_checksum, big(static_cast<std::uint16_t>(~fold(std::uint64_t{sum} + mark))));
}

/// Puts DSCP, ECN and flow label into a template that has none of them. UDP checksums do not cover them.
void mark(FrameTemplate& t, const ClassFields& fields) noexcept;

/// A drawn port, or the one that all frames of a class have.
struct PortChoice {
    std::uint32_t drawn = 0xFFFF;  // mask of the drawn port
    std::uint32_t fixed = 0;

    [[nodiscard]] static PortChoice of(const plan::FieldRange& range) noexcept {
        return range.count == 1 ? PortChoice{.drawn = 0, .fixed = range.first} : PortChoice{};
    }
    [[nodiscard]] std::uint32_t operator()(std::uint32_t port) const noexcept { return (port & drawn) | fixed; }
};

}  // namespace evenhand::frame
