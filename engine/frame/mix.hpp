// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: frames of several kinds in one direction, in a sequence that repeats: sizes (RFC 6985), IP versions
// (RFC 5180), flows with fields of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/class_fields.hpp"
#include "frame/source.hpp"
#include "plan/draw.hpp"
#include "plan/flow_patterns.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// One kind of frame.
struct FrameClass {
    std::size_t plan = 0;        // 0: the plan of the request; 1: that of the other IP version
    std::size_t frame_size = 0;  // with FCS, as sent
    std::string name;            // of the flow that the class is; empty in a mix of sizes or versions
    ClassFields fields{};
    std::optional<double> loss_at_most = std::nullopt;  // of the flow's frames; nothing: judged with all others
};

/// Which class each frame of a direction has: frame k has the class at k modulo the length of the cycle. So a receiver
/// knows what frame k must be, and the counts of each class are exact.
class FrameMix {
   public:
    static constexpr std::size_t most_classes = 64;  // tally::most_frame_classes
    static constexpr std::size_t longest_cycle = 65536;

    /// `cycle`: the class numbers, one for each frame. Throws Fault{bad_request} for no classes or too many, for a
    /// number that no class has, and for a class that does not occur.
    FrameMix(std::vector<FrameClass> classes, std::vector<std::uint8_t> cycle);

    [[nodiscard]] const std::vector<FrameClass>& classes() const noexcept { return classes_; }
    [[nodiscard]] std::size_t period() const noexcept { return cycle_.size(); }
    [[nodiscard]] std::size_t class_of(std::uint64_t k) const noexcept { return cycle_[k % cycle_.size()]; }

    /// How many of the first `frames` frames of a stream are of each class.
    [[nodiscard]] std::vector<std::uint64_t> count(const StreamShare& share, std::uint64_t frames) const;

    /// The octets of one period's frames together, with FCS.
    [[nodiscard]] std::size_t period_octets() const noexcept;
    [[nodiscard]] double mean_frame_size() const noexcept {
        return static_cast<double>(period_octets()) / static_cast<double>(period());
    }
    [[nodiscard]] std::size_t largest_frame_size() const noexcept;
    [[nodiscard]] bool has_two_plans() const noexcept;
    /// A flow has a pattern for its traffic class, flow label or VLAN priority.
    [[nodiscard]] bool has_mark_patterns() const noexcept;
    /// A flow says in which VLANs its frames are.
    [[nodiscard]] bool has_vlans() const noexcept;
    /// A flow has another header than UDP's, or a payload of its own.
    [[nodiscard]] bool has_transports() const noexcept;
    /// The header that this frame of the direction has, with its payload.
    [[nodiscard]] const Transport& transport_of(std::uint64_t k) const noexcept {
        return classes_[class_of(k)].fields.transport;
    }
    /// The lengths of the payloads of all classes, the longest first; the last is 0 in any case.
    [[nodiscard]] const std::vector<std::uint8_t>& payload_sizes() const noexcept { return payload_sizes_; }
    /// The classes are flows: all have names.
    [[nodiscard]] bool has_flows() const noexcept { return !classes_.front().name.empty(); }

    /// The same mix without that many octets of VLAN tags in each frame. A class that is smaller than its tags gets a
    /// size that no frame can have.
    [[nodiscard]] FrameMix without_tags(std::size_t octets) const;

   private:
    std::vector<FrameClass> classes_;
    std::vector<std::uint8_t> cycle_;
    std::vector<std::uint8_t> payload_sizes_{0};
};

/// A mix, with the second plan where it needs one.
struct MixedPlans {
    FrameMix mix;
    std::optional<plan::AddressPlan> other_plan;  // the plan of the other IP version, where a class uses it

    /// Plan 0 is that of the request.
    [[nodiscard]] const plan::AddressPlan& plan(const plan::AddressPlan& first, std::size_t number) const {
        return number == 0 ? first : other_plan.value();
    }
};

/// The patterns of a mix's flows in this direction; null if there are none.
[[nodiscard]] std::shared_ptr<const plan::FlowPatterns> patterns_of(const FrameMix& mix, const plan::AddressPlan& plan,
                                                                    plan::Direction direction, std::uint64_t seed);
/// What the frames of a mix that are of this plan have.
[[nodiscard]] plan::FlowDraw draw_of(const plan::AddressPlan& plan, const FrameMix& mix, plan::Direction direction,
                                     std::uint64_t seed);

/// Throws Fault{bad_request} for a plan that is missing or never used, for names of flows that are missing or twice
/// there, and for flows where the DUT translates; Fault{bad_plan} for two plans of one IP version or of different
/// forms; and Fault{bad_frame_size} for a class whose frames cannot be so small or large.
void check_mix(const plan::AddressPlan& first, const MixedPlans& mixed);

}  // namespace evenhand::frame
