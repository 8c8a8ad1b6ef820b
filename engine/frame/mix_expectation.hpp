// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: what each frame of a mix must be when it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "frame/expectation.hpp"
#include "frame/mix.hpp"
#include "frame/translation.hpp"

namespace evenhand::frame {

/// A frame's number gives its class, and the class says what the frame must be: the twin of MixSource. Copies share
/// what they have drawn: not for several receivers at once.
class MixExpectation {
   public:
    static constexpr bool has_classes = true;

    /// Frames of one class.
    struct Class {
        TestFrameExpectation frames;
        std::optional<TranslationExpectation> translated = std::nullopt;  // where the DUT translates this class
    };

    /// `classes`: in the order of the mix, which outlives this.
    MixExpectation(const FrameMix& mix, std::vector<Class> classes)
        : mix_{&mix},
          has_mark_patterns_{mix.has_mark_patterns()},
          has_vlans_{mix.has_vlans()},
          has_transports_{mix.has_transports()},
          classes_{std::make_shared<const std::vector<Class>>(std::move(classes))} {}

    /// Checks for whole bursts; none if this CPU cannot do them, if it is not known what was sent, or where both plans
    /// arrive in one IP version.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of) const;
    /// Whether traffic class or flow label differ from what frames of this class are sent with.
    [[nodiscard]] bool is_remarked(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept;

    /// Whether flows have VLANs of their own.
    [[nodiscard]] bool has_vlans() const noexcept { return has_vlans_; }
    /// Whether the frame with this number was sent in this VLAN because its flow says so.
    [[nodiscard]] bool is_in_vlan(std::uint64_t sequence, std::uint16_t vlan) const noexcept;

    [[nodiscard]] bool has_transports() const noexcept { return has_transports_; }
    [[nodiscard]] const FrameMix& mix() const noexcept { return *mix_; }
    [[nodiscard]] std::size_t class_of(std::uint64_t sequence) const noexcept { return mix_->class_of(sequence); }
    /// The length of each frame of this class, without FCS.
    [[nodiscard]] std::size_t frame_octets(std::size_t frame_class) const noexcept {
        return (*classes_)[frame_class].frames.frame_octets(0);
    }
    /// As TestFrameExpectation::holds(). A call, not inlined, so that the receiver of frames that are all alike keeps
    /// those checks to itself.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept;
    /// As TranslationExpectation::fault_of; nothing for a class that is routed.
    [[nodiscard]] std::optional<TranslationFault> fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept;

    /// As TestFrameExpectation::frame_fault.
    [[nodiscard]] std::optional<FrameFault> frame_fault(std::size_t frame_class, const std::byte* frame,
                                                        IpVersion version) const noexcept {
        return (*classes_)[frame_class].frames.frame_fault(0, frame, version);
    }

   private:
    /// The same for the frames of one plan.
    [[nodiscard]] BurstChecks burst_checks_of(std::size_t plan, StreamIdentity of) const;

    const FrameMix* mix_;
    bool has_mark_patterns_;
    bool has_vlans_;
    bool has_transports_;
    std::shared_ptr<const std::vector<Class>> classes_;
};

}  // namespace evenhand::frame
