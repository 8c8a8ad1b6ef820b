// SPDX-License-Identifier: Apache-2.0
// Stations 4 and 5: to which of two sides on one port a received frame belongs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "frame/envelope.hpp"
#include "frame/reader.hpp"
#include "plan/plan.hpp"

namespace evenhand::run {

/// What tells the frames of a side from those of the other one.
template <class Responder>
struct SideOfPort {
    const frame::Envelope& envelope;
    const Responder* responder;  // answers neighbours that have the envelope
    const Responder* outside;    // of a side in a tunnel: answers those of the link

    [[nodiscard]] bool is_in_tunnel(bool fits) const noexcept { return fits && !envelope.tunnel().is_none(); }
    [[nodiscard]] bool is_on_link(const std::byte* octets, std::size_t length) const noexcept {
        return envelope.outside().fits(octets, length);
    }
    /// Whether a frame that is in no tunnel asks this side on its link, or announces the DUT's MAC there.
    [[nodiscard]] bool is_concerned(const std::byte* octets, std::size_t length) const noexcept {
        const Responder* const of_link = envelope.tunnel().is_none() ? responder : outside;
        if constexpr (requires(std::span<const std::byte> frame) { of_link->is_concerned(frame); }) {
            if (of_link == nullptr || !is_on_link(octets, length)) return false;
            const std::size_t around = envelope.counted_octets();
            const std::span<const std::byte> frame{octets + around, length - around};
            return frame::look_at(frame.data(), frame.size()).kind == frame::FrameKind::neighbor &&
                   of_link->is_concerned(frame);
        }
        return false;
    }
};

/// Whether a received frame is of the second of both sides, not of the first; nothing if it is of neither. They are
/// known by their envelopes or, where both have the same, by what they are; `arrives_at_second`: the direction whose
/// test frames then are the second side's.
template <class Responder>
[[nodiscard]] std::optional<bool> is_of_second(const SideOfPort<Responder>& first, const SideOfPort<Responder>& second,
                                               plan::Direction arrives_at_second, const std::byte* octets,
                                               std::size_t length) noexcept {
    const bool fits_first = first.envelope.fits(octets, length);
    const bool fits_second = second.envelope.fits(octets, length);
    const bool is_tunnelled = first.is_in_tunnel(fits_first) || second.is_in_tunnel(fits_second);
    if (!is_tunnelled && (first.outside != nullptr || second.outside != nullptr)) {
        // Neighbours of the link are in no tunnel, and a side without a tunnel would take them all.
        const bool concerns_first = first.is_concerned(octets, length);
        const bool concerns_second = second.is_concerned(octets, length);
        if (concerns_first != concerns_second) return concerns_second;
    }
    if (!fits_first && !fits_second) {
        const bool is_on_first = first.is_on_link(octets, length);
        const bool is_on_second = second.is_on_link(octets, length);
        if (is_on_first != is_on_second) return is_on_second;
        const auto tags_of_first = first.envelope.counted_octets();
        const auto tags_of_second = second.envelope.counted_octets();
        if (!is_on_first || tags_of_first == tags_of_second) return std::nullopt;
        return tags_of_second > tags_of_first;
    }
    if (fits_first != fits_second) return fits_second;
    // A side without tags and tunnel would take any frame.
    if (first.envelope != second.envelope) return second.envelope.octets() > first.envelope.octets();
    // Nothing that is read of a frame here is in front of its tags.
    const std::size_t around = first.envelope.octets();
    const std::span<const std::byte> frame{octets + around, length - around};
    const frame::FirstLook look = frame::look_at(frame.data(), frame.size());
    if (look.kind == frame::FrameKind::test) return look.tag.direction == arrives_at_second;
    if constexpr (requires { first.responder->is_concerned(frame); }) {
        if (look.kind == frame::FrameKind::neighbor)
            return second.responder->is_concerned(frame) && !first.responder->is_concerned(frame);
    }
    return false;
}

}  // namespace evenhand::run
