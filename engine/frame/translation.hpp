// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: whether a frame that a translator passed on has exactly the addresses that it must
// have been given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "frame/expectation.hpp"
#include "frame/kept_flows.hpp"
#include "frame/source.hpp"
#include "frame/translation_fault.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// What is common to all frames that a device passes on with other addresses or ports, perhaps in the other IP version.
class TranslatedFrames {
   public:
    [[nodiscard]] std::size_t class_of(std::uint64_t /*sequence*/) const noexcept { return 0; }
    [[nodiscard]] std::size_t frame_octets(std::size_t frame_class) const noexcept {
        return frames_.frame_octets(frame_class);
    }
    /// Why a frame of the expected length does not count, if it is sound but for what a translator changes.
    [[nodiscard]] std::optional<TranslationFault> fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept;
    /// What is wrong with a frame for which fault_of() found nothing.
    [[nodiscard]] std::optional<FrameFault> frame_fault(std::size_t frame_class, const std::byte* frame,
                                                        IpVersion version) const noexcept {
        return frames_.frame_fault(frame_class, frame, version);
    }

   protected:
    /// `frames`: the checks that such a frame must pass as well. `arrives`: the ranges of its numbers on this link.
    TranslatedFrames(TestFrameExpectation frames, const LinkFrames& arrives);

    /// As TestFrameExpectation::holds(), and what a translator must keep or make is right.
    [[nodiscard]] bool is_sound(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
        return !is_without_checksum(frame, version) && frames_.holds(frame_class, frame, version) &&
               has_traffic_class(frame);
    }
    /// The 16-bit number at an offset.
    [[nodiscard]] static std::uint16_t number(const std::byte* frame, std::size_t offset) noexcept {
        return big(load<std::uint16_t>(frame + offset));
    }

    /// The host number at a place in the frame.
    [[nodiscard]] static std::uint16_t number(const std::byte* frame, HostPlace place) noexcept {
        return static_cast<std::uint16_t>(static_cast<unsigned>(frame[place.high]) << 8U |
                                          static_cast<unsigned>(frame[place.low]));
    }

    /// Offsets in a frame; for addresses, those of the numbers that vary in them.
    struct Places {
        std::size_t tag = 0;
        HostPlace source;
        HostPlace destination;
        std::size_t ports = 0;
    };
    [[nodiscard]] const Places& at() const noexcept { return at_; }
    [[nodiscard]] const TestFrameExpectation& frames() const noexcept { return frames_; }

   private:
    [[nodiscard]] bool is_without_checksum(const std::byte* frame, IpVersion version) const noexcept {
        return version == IpVersion::v6 && version_ == version &&
               load<std::uint16_t>(frame + Layout<IpVersion::v6>::udp_checksum) == 0;
    }
    /// Frames are sent with traffic class 0.
    [[nodiscard]] bool has_traffic_class(const std::byte* frame) const noexcept {
        constexpr std::uint16_t class_of_ipv6 = 0x0FF0;
        return version_ == IpVersion::v4
                   ? frame[Layout<IpVersion::v4>::ip + 1] == std::byte{0}
                   : (big(load<std::uint16_t>(frame + Layout<IpVersion::v6>::ip)) & class_of_ipv6) == 0;
    }

    TestFrameExpectation frames_;
    IpVersion version_;
    Places at_;
};

/// What arrives through a stateless translator: the twin of TranslatedSource. The ranges alone would accept any frame
/// of the plan for any other one, so each frame's addresses and ports are drawn again from its number and compared.
/// Copies share what they have drawn: not for several receivers at once.
class TranslationExpectation : public TranslatedFrames {
   public:
    static constexpr bool has_classes = false;

    /// `arrives`: the ranges that `draw` draws from, on this link. `streams`: how many the direction has.
    TranslationExpectation(const TestFrameExpectation& frames, const LinkFrames& arrives, const plan::FlowDraw& draw,
                           std::uint64_t streams)
        : TranslatedFrames{frames, arrives}, flows_{std::make_shared<KeptFlows<plan::FlowDraw>>(draw, streams)} {}

    /// As TestFrameExpectation::holds(), and each address and port must be that of the frame with this number.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
        return is_sound(frame_class, frame, version) && has_its_flow(frame);
    }

    /// The same checks for whole bursts of a trial; nothing if this CPU cannot do them. `classes`: of a mix that
    /// begins with this one, as in BurstFlows.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of,
                                           std::shared_ptr<const BurstClasses> classes = nullptr) const {
        return frames().burst_checks(of, {.draw = flows_->draw(),
                                          .streams = flows_->streams(),
                                          .is_translated = true,
                                          .classes = std::move(classes)});
    }

   private:
    [[nodiscard]] bool has_its_flow(const std::byte* frame) const noexcept;

    std::shared_ptr<KeptFlows<plan::FlowDraw>> flows_;
};

/// A source like TestFrameSource whose frames arrive translated: only its expectation differs.
using TranslatedSource = DrawnFrameSource<plan::FlowDraw, TranslationExpectation>;

}  // namespace evenhand::frame
