// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: what each frame of a mix must be when it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "frame/expectation.hpp"
#include "frame/mix.hpp"
#include "frame/translation.hpp"

namespace evenhand::frame {

/// By a frame's number its class, by the class what it must be: the twin of MixSource.
class MixExpectation {
   public:
    static constexpr bool has_classes = true;

    /// `of_class`: by class; `translated`: the same where the DUT translates the class. `mix` outlives this.
    MixExpectation(const FrameMix& mix, std::vector<TestFrameExpectation> of_class,
                   std::vector<std::optional<TranslationExpectation>> translated = {})
        : mix_{&mix}, of_class_{std::move(of_class)}, translated_{std::move(translated)} {}

    [[nodiscard]] std::size_t class_of(std::uint64_t sequence) const noexcept { return mix_->class_of(sequence); }
    /// Without FCS, of a frame of this class.
    [[nodiscard]] std::size_t frame_octets(std::size_t frame_class) const noexcept {
        return of_class_[frame_class].frame_octets(0);
    }
    /// As TestFrameExpectation::holds. Called, not inlined: the receiver of frames that are all alike shall have those
    /// checks for itself.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept;
    /// As TranslationExpectation::fault_of; nothing for a class that is routed.
    [[nodiscard]] std::optional<TranslationFault> fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept;

    /// As TestFrameExpectation::frame_fault.
    [[nodiscard]] std::optional<FrameFault> frame_fault(std::size_t frame_class, const std::byte* frame,
                                                        IpVersion version) const noexcept {
        return of_class_[frame_class].frame_fault(0, frame, version);
    }

   private:
    [[nodiscard]] const TranslationExpectation* translation_of(std::size_t frame_class) const noexcept {
        const bool is_translated = frame_class < translated_.size() && translated_[frame_class];
        return is_translated ? &*translated_[frame_class] : nullptr;
    }

    const FrameMix* mix_;
    std::vector<TestFrameExpectation> of_class_;
    std::vector<std::optional<TranslationExpectation>> translated_;
};

}  // namespace evenhand::frame
