// SPDX-License-Identifier: Apache-2.0
// How much memory is left: what is larger is refused before it is touched, as the kernel would end a program for it,
// ours or another one.
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace evenhand::run {

/// What the kernel can give without swapping; everything if it does not say.
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

}  // namespace evenhand::run
