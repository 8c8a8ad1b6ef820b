// SPDX-License-Identifier: Apache-2.0
#include "port/numa.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace evenhand::port {

namespace fs = std::filesystem;

std::optional<unsigned> node_of_cpu(unsigned cpu, const fs::path& root) {
    constexpr std::string_view prefix = "node";  // a link to the node's folder, such as node1
    std::error_code error;
    for (fs::directory_iterator entry{root / fmt::format("sys/devices/system/cpu/cpu{}", cpu), error};
         !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        unsigned node = 0;
        if (!name.starts_with(prefix)) continue;
        const char* const end = name.data() + name.size();
        const auto read = std::from_chars(name.data() + prefix.size(), end, node);
        if (read.ec == std::errc{} && read.ptr == end) return node;
    }
    return std::nullopt;
}

}  // namespace evenhand::port
