// SPDX-License-Identifier: Apache-2.0
// Elements: deliberate defects, to test testers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace evenhand::router {

enum class Defect : std::uint8_t { loss, duplication, reordering, corruption };
constexpr std::size_t defect_kinds = 4;

struct DefectOptions {
    std::uint64_t seed = 1;
    std::array<double, defect_kinds> ratios{};  // 0..1 of the forwarded frames
    std::array<std::vector<std::uint64_t>, defect_kinds>
        at{};  // numbers of forwarded frames, from 0, in ascending order
    /// Only frames with this DSCP have defects, and count in their numbers; nothing: all.
    std::optional<std::uint8_t> dscp = std::nullopt;
};

/// Which frames get which defect: a pure function of the options and the frame's number.
class Defects {
   public:
    Defects() : Defects(DefectOptions{}) {}
    explicit Defects(DefectOptions options);

    /// A set of (1 << Defect) for frame number `frame`. Must be called for one frame after the other.
    [[nodiscard]] unsigned of(std::uint64_t frame) noexcept { return frame < next_ ? 0 : look_up(frame); }

    [[nodiscard]] static bool has(unsigned set, Defect defect) noexcept {
        return (set >> static_cast<unsigned>(defect) & 1U) != 0;
    }
    /// The DSCP of the frames that may be affected; nothing: all may be.
    [[nodiscard]] const std::optional<std::uint8_t>& dscp() const noexcept { return dscp_; }
    [[nodiscard]] bool is_none() const noexcept { return next_ == never; }

   private:
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    /// One kind: listed numbers, and gaps drawn from the geometric distribution.
    struct Kind {
        double ratio = 0;
        std::vector<std::uint64_t> at;
        std::size_t at_next = 0;
        std::uint64_t drawn = never;
        std::uint64_t state = 0;  // of the generator for gaps

        [[nodiscard]] std::uint64_t next() const noexcept {
            return std::min(drawn, at_next < at.size() ? at[at_next] : never);
        }
        void pass(std::uint64_t frame) noexcept;
        [[nodiscard]] std::uint64_t draw_gap() noexcept;
    };

    unsigned look_up(std::uint64_t frame) noexcept;

    std::array<Kind, defect_kinds> kinds_;
    std::optional<std::uint8_t> dscp_;
    std::uint64_t next_ = never;
};

}  // namespace evenhand::router
