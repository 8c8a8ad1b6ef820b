// SPDX-License-Identifier: Apache-2.0
#include "elements/defects.hpp"

#include <cmath>
#include <utility>

#include "split_mix.hpp"

namespace evenhand::router {

Defects::Defects(DefectOptions options) : dscp_{options.dscp} {
    for (std::size_t i = 0; i < defect_kinds; ++i) {
        Kind& kind = kinds_[i];
        kind.ratio = options.ratios[i];
        kind.at = std::move(options.at[i]);
        std::ranges::sort(kind.at);
        kind.state = options.seed * defect_kinds + i;
        if (kind.ratio > 0) kind.drawn = kind.draw_gap();
        next_ = std::min(next_, kind.next());
    }
}

std::uint64_t Defects::Kind::draw_gap() noexcept {
    if (ratio >= 1) return 0;
    constexpr double to_unit = 0x1p-53;
    const double u = (static_cast<double>(next_split_mix(state) >> 11U) + 0.5) * to_unit;  // in (0, 1)
    return static_cast<std::uint64_t>(std::log(u) / std::log1p(-ratio));
}

void Defects::Kind::pass(std::uint64_t frame) noexcept {
    while (at_next < at.size() && at[at_next] <= frame) ++at_next;
    while (drawn <= frame) drawn += 1 + draw_gap();
}

unsigned Defects::look_up(std::uint64_t frame) noexcept {
    unsigned set = 0;
    next_ = never;
    for (std::size_t i = 0; i < defect_kinds; ++i) {
        if (kinds_[i].next() == frame) set |= 1U << i;
        kinds_[i].pass(frame);
        next_ = std::min(next_, kinds_[i].next());
    }
    return set;
}

}  // namespace evenhand::router
