// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: what is around the frames of a side on its link: VLAN tags, and the headers of a tunnel. No other
// part knows of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "frame/tunnel.hpp"
#include "frame/vlan.hpp"

namespace evenhand::frame {

class Envelope {
   public:
    Envelope() = default;
    // Tags alone are an envelope.
    Envelope(const VlanTags& tags) noexcept : tags_{tags} {}  // NOLINT(google-explicit-constructor)
    Envelope(const VlanTags& tags, const Tunnel& tunnel) noexcept : tags_{tags}, tunnel_{tunnel} {}

    friend bool operator==(const Envelope&, const Envelope&) = default;

    /// How much longer it makes a frame.
    [[nodiscard]] std::size_t octets() const noexcept { return tags_.octets() + tunnel_.octets(); }
    /// What of it a frame size counts: the tags.
    [[nodiscard]] std::size_t counted_octets() const noexcept { return tags_.octets(); }
    [[nodiscard]] const VlanTags& tags() const noexcept { return tags_; }
    [[nodiscard]] const Tunnel& tunnel() const noexcept { return tunnel_; }
    /// The envelope of frames that are not in the tunnel.
    [[nodiscard]] Envelope outside() const noexcept { return {tags_, {}}; }
    /// See Tunnel::between().
    [[nodiscard]] Envelope between(const plan::MacAddress& own_mac, const plan::MacAddress& dut_mac) const noexcept {
        return {tags_, tunnel_.between(own_mac, dut_mac)};
    }

    /// The same toward the station of the link that sent this frame, which was taken from its envelope.
    [[nodiscard]] Envelope answering(const std::byte* frame) const noexcept {
        if (!tunnel_.has_ethernet()) return *this;
        plan::MacAddress own_mac{};
        plan::MacAddress other_mac{};
        std::memcpy(own_mac.data(), frame + tags_.octets(), own_mac.size());
        std::memcpy(other_mac.data(), frame + tags_.octets() + own_mac.size(), other_mac.size());
        return between(own_mac, other_mac);
    }

    /// Puts all of it around a frame. `frame` is where the whole frame begins, which has `octets`; the frame inside
    /// begins octets() behind it.
    void put(std::byte* frame, std::size_t octets) const noexcept {
        if (!tunnel_.is_none()) tunnel_.put(frame + tags_.octets(), octets - tags_.octets());
        tags_.put(frame);
    }
    /// Whether a received frame has this envelope.
    [[nodiscard]] bool fits(const std::byte* frame, std::size_t length) const noexcept {
        return tags_.fits(frame, length) &&
               (tunnel_.is_none() || tunnel_.fits(frame + tags_.octets(), length - tags_.octets()));
    }
    /// The same; if so, the frame inside begins octets() behind `frame` now. Otherwise it is left unchanged.
    [[nodiscard]] bool take(std::byte* frame, std::size_t length) const noexcept {
        if (tunnel_.is_none()) return tags_.take(frame, length);
        if (!fits(frame, length)) return false;
        (void)tags_.take(frame, length);
        tunnel_.take(frame + tags_.octets());
        return true;
    }
    /// Makes a frame again what it was before take() or take_innermost().
    void put_back(std::byte* frame) const noexcept {
        if (!tunnel_.is_none()) tunnel_.put_back(frame + tags_.octets());
        tags_.put_back(frame);
    }
    /// See VlanTags; 0 where there is a tunnel, since a frame in it has the side's tags.
    [[nodiscard]] std::uint16_t innermost_vlan(const std::byte* frame, std::size_t length) const noexcept {
        return tunnel_.is_none() ? tags_.innermost_vlan(frame, length) : std::uint16_t{0};
    }
    void take_innermost(std::byte* frame) const noexcept { tags_.take_innermost(frame); }

   private:
    VlanTags tags_;
    Tunnel tunnel_;
};

/// A source around another one, chosen before the start: puts the envelope of the sending side around its frames.
template <class Source>
class TaggedSource {
   public:
    using Expectation = typename Source::Expectation;

    TaggedSource(Source source, const Envelope& envelope) noexcept : source_{std::move(source)}, envelope_{envelope} {}

    [[nodiscard]] std::size_t frame_octets(std::size_t ahead) const noexcept {
        return source_.frame_octets(ahead) + envelope_.octets();
    }

    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        // A local copy: the compiler must assume that a store through std::byte* changes any object.
        const VlanTags tags = envelope_.tags();
        while (!frames.empty()) {
            const std::size_t n = std::min(frames.size(), most);
            const auto burst = frames.first(n);
            if constexpr (requires { source_.has_flow_tags(); }) {
                if (source_.has_flow_tags()) {
                    std::array<FlowTag, most> of;
                    for (std::size_t i = 0; i < n; ++i) of[i] = source_.flow_tag(i);
                    write_inside(burst, now_ticks);
                    for (std::size_t i = 0; i < n; ++i) tags.put(burst[i], of[i]);
                    frames = frames.subspan(n);
                    continue;
                }
            }
            write_inside(burst, now_ticks);
            for (std::size_t i = 0; i < n; ++i) tags.put(burst[i]);
            frames = frames.subspan(n);
        }
    }

   private:
    static constexpr std::size_t most = 32;

    /// Writes at most that many frames but their tags.
    void write_inside(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        const std::size_t around = envelope_.octets();
        std::array<std::byte*, most> inner;
        for (std::size_t i = 0; i < frames.size(); ++i) inner[i] = frames[i] + around;
        if (envelope_.tunnel().is_none()) {
            source_.write_next(std::span{inner}.first(frames.size()), now_ticks);
            return;
        }
        std::array<std::size_t, most> octets;
        for (std::size_t i = 0; i < frames.size(); ++i)
            octets[i] = source_.frame_octets(i) + envelope_.tunnel().octets();
        source_.write_next(std::span{inner}.first(frames.size()), now_ticks);
        for (std::size_t i = 0; i < frames.size(); ++i)
            envelope_.tunnel().put(frames[i] + envelope_.tags().octets(), octets[i]);
    }

    Source source_;
    Envelope envelope_;
};

}  // namespace evenhand::frame
