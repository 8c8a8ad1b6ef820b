// SPDX-License-Identifier: Apache-2.0
// Conversion factors between units: each factor that more than one place needs is defined here, once.
#pragma once

#include <cstdint>

namespace evenhand {

constexpr double ms_per_second = 1e3;
constexpr double us_per_second = 1e6;
constexpr double ns_per_second = 1e9;
constexpr double us_per_ms = 1e3;
constexpr double ns_per_us = 1e3;
constexpr double per_million = 1e6;

/// For nanoseconds that are counted as integers.
constexpr std::int64_t whole_ns_per_second = 1'000'000'000;

}  // namespace evenhand
