// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: one value for each side or for each direction, found by the enum itself.
#pragma once

#include <array>
#include <cstddef>

#include "plan/plan.hpp"

namespace evenhand::plan {

/// Two values of one type, one for each value of `Key`, which is Side or Direction. It is an aggregate, initialized
/// like a std::array: the left side or the forward direction comes first. It has no other index than `Key`, so that a
/// value by side is never looked up by direction.
template <class Key, class T>
struct PerKey {
    std::array<T, 2> values;

    [[nodiscard]] constexpr T& operator[](Key key) noexcept { return values[static_cast<std::size_t>(key)]; }
    [[nodiscard]] constexpr const T& operator[](Key key) const noexcept {
        return values[static_cast<std::size_t>(key)];
    }

    [[nodiscard]] constexpr auto begin() noexcept { return values.begin(); }
    [[nodiscard]] constexpr auto begin() const noexcept { return values.begin(); }
    [[nodiscard]] constexpr auto end() noexcept { return values.end(); }
    [[nodiscard]] constexpr auto end() const noexcept { return values.end(); }
};

template <class T>
using PerSide = PerKey<Side, T>;
template <class T>
using PerDirection = PerKey<Direction, T>;

}  // namespace evenhand::plan
