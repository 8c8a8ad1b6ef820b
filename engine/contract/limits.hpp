// SPDX-License-Identifier: Apache-2.0
// Contract: how much of a text is looked at before anything else is known of it.
#pragma once

#include <cstddef>

namespace evenhand::contract {

/// Of a line of stdin, in octets without its end. The longest request that means something is what several testers
/// counted: of each and of each direction, some 10,000 buckets of delays and as many of their differences.
constexpr std::size_t longest_line = std::size_t{16} << 20U;

/// Of the router's configuration, in octets. All neighbours of the largest direct plan, written down one by one, take
/// 10 MB.
constexpr std::size_t longest_configuration = std::size_t{64} << 20U;

/// Brackets within brackets; the deepest request has 6. A reader of JSON calls itself for each, and 200,000 are the end
/// of its stack.
constexpr std::size_t deepest_nesting = 32;

}  // namespace evenhand::contract
