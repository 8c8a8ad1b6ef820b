// SPDX-License-Identifier: Apache-2.0
// Contract: how much text is read before anything is known about it.
#pragma once

#include <cstddef>

namespace evenhand::contract {

/// The longest line of stdin, in octets without its end. The longest useful request has what several testers counted:
/// some 10,000 buckets of delays, and as many of their differences, for each tester and direction.
constexpr std::size_t longest_line = std::size_t{16} << 20U;

/// The longest configuration of the router, in octets. All neighbours of the largest direct plan, listed one by one,
/// take 10 MB.
constexpr std::size_t longest_configuration = std::size_t{64} << 20U;

/// How deeply brackets may be nested; the deepest request has 6 levels. A JSON parser calls itself for each level, and
/// overflows its stack at 200,000.
constexpr std::size_t deepest_nesting = 32;

}  // namespace evenhand::contract
