// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <vector>

namespace evenhand::tests {

/// Under sanitizers code is not optimized either: the same tests over less.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_slow = true;
#else
constexpr bool is_slow = false;
#endif

/// All of these, or under sanitizers the first and the last.
template <typename Value>
std::vector<Value> few(std::initializer_list<Value> all) {
    return is_slow ? std::vector<Value>{*all.begin(), *(all.end() - 1)} : std::vector<Value>{all};
}

}  // namespace evenhand::tests
