// SPDX-License-Identifier: Apache-2.0
// How much memory is available. A request for more is refused before the memory is touched, since the kernel would kill
// a program, ours or another one.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "fault.hpp"

namespace evenhand::run {

/// What the kernel can provide without swapping; the maximum if it does not say.
[[nodiscard]] inline std::uint64_t available_octets() {
    std::ifstream lines{"/proc/meminfo"};
    std::string key;
    std::uint64_t kilobytes = 0;
    std::string unit;
    while (lines >> key >> kilobytes) {
        if (key == "MemAvailable:") return kilobytes * 1024;
        std::getline(lines, unit);
    }
    return std::numeric_limits<std::uint64_t>::max();
}

/// Throws Fault{no_memory} if `what` needs more than the available memory; `where` and `next` as in a Fault.
inline void check_fits(const std::string& what, std::uint64_t octets, std::uint64_t available, std::string where,
                       std::string next) {
    if (octets <= available) return;
    constexpr double mega = 1e6;
    throw Fault{FaultCode::no_memory,
                fmt::format("{} takes {:.0f} MB, but {:.0f} MB are available", what, static_cast<double>(octets) / mega,
                            static_cast<double>(available) / mega),
                std::move(where), std::move(next)};
}

}  // namespace evenhand::run
