// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace evenhand::tests {

/// Under sanitizers code is not optimized either: the same tests over less.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_slow = true;
#else
constexpr bool is_slow = false;
#endif

}  // namespace evenhand::tests
