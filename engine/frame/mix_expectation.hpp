// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: what each frame of a mix must be when it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/expectation.hpp"
#include "frame/mix.hpp"

namespace evenhand::frame {

/// By a frame's number its class, by the class what it must be: the twin of MixSource.
class MixExpectation {
   public:
    static constexpr bool has_classes = true;

    /// `of_class`: by class. `mix` outlives this.
    MixExpectation(const FrameMix& mix, std::vector<TestFrameExpectation> of_class)
        : mix_{&mix}, of_class_{std::move(of_class)} {}

    [[nodiscard]] std::size_t class_of(std::uint64_t sequence) const noexcept { return mix_->class_of(sequence); }
    /// Without FCS, of a frame of this class.
    [[nodiscard]] std::size_t frame_octets(std::size_t frame_class) const noexcept {
        return of_class_[frame_class].frame_octets(0);
    }
    /// As TestFrameExpectation::holds. Called, not inlined: the receiver of frames that are all alike shall have those
    /// checks for itself.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept;

   private:
    const FrameMix* mix_;
    std::vector<TestFrameExpectation> of_class_;
};

}  // namespace evenhand::frame
