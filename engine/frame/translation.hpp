// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: whether a frame that a translator passed on has exactly the addresses that it must
// have been given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/expectation.hpp"
#include "frame/source.hpp"
#include "frame/translation_fault.hpp"
#include "plan/draw.hpp"

namespace evenhand::frame {

/// What arrives through a translator: the twin of TranslatedSource. The ranges alone would take any frame of the plan
/// for any other, so each frame's addresses and ports are drawn again from its number and compared. Frames of a block
/// mostly come one after the other: the blocks that came last are kept. Not for several receivers at once.
class TranslationExpectation {
   public:
    static constexpr bool has_classes = false;

    /// `frames`: what each of them must be besides. `arrives`: the ranges that `draw` stands for on this link.
    /// `streams`: of the direction.
    TranslationExpectation(const TestFrameExpectation& frames, const LinkFrames& arrives, const plan::FlowDraw& draw,
                           std::uint64_t streams);

    [[nodiscard]] std::size_t class_of(std::uint64_t /*sequence*/) const noexcept { return 0; }
    [[nodiscard]] std::size_t frame_octets(std::size_t frame_class) const noexcept {
        return frames_.frame_octets(frame_class);
    }
    /// As TestFrameExpectation::holds(), and each address and port that of this very frame.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
        return !is_without_checksum(frame, version) && frames_.holds(frame_class, frame, version) &&
               has_traffic_class(frame) && has_its_flow(frame);
    }
    /// Why holds() said no, if the frame of that length is sound but for what a translator changes.
    [[nodiscard]] std::optional<TranslationFault> fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept;

   private:
    struct KeptBlock {
        std::uint64_t first = UINT64_MAX;  // number of its first frame
        plan::FlowBlock flows{};
    };
    static constexpr std::size_t kept_blocks = 16;

    [[nodiscard]] bool is_without_checksum(const std::byte* frame, IpVersion version) const noexcept {
        return version == IpVersion::v6 && version_ == version &&
               load<std::uint16_t>(frame + Layout<IpVersion::v6>::udp_checksum) == 0;
    }
    /// Frames are sent with none.
    [[nodiscard]] bool has_traffic_class(const std::byte* frame) const noexcept {
        constexpr std::uint16_t class_of_ipv6 = 0x0FF0;
        return version_ == IpVersion::v4
                   ? frame[Layout<IpVersion::v4>::ip + 1] == std::byte{0}
                   : (big(load<std::uint16_t>(frame + Layout<IpVersion::v6>::ip)) & class_of_ipv6) == 0;
    }
    [[nodiscard]] bool has_its_flow(const std::byte* frame) const noexcept;

    TestFrameExpectation frames_;
    IpVersion version_;
    std::size_t tag_at_;
    std::size_t source_at_;
    std::size_t destination_at_;
    std::size_t ports_at_;
    plan::FlowDraw draw_;
    std::uint64_t streams_;
    mutable std::array<KeptBlock, kept_blocks> kept_{};
};

/// A source whose frames arrive translated: only its expectation differs.
class TranslatedSource : public TestFrameSource {
   public:
    using Expectation = TranslationExpectation;
    using TestFrameSource::TestFrameSource;
};

}  // namespace evenhand::frame
