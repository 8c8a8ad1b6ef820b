// SPDX-License-Identifier: Apache-2.0
// Bench: parts of a loop, each measured in many rounds, and how the results are written.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "units.hpp"

namespace evenhand::bench {

struct Part {
    std::string name;
    std::vector<double> ticks_per_frame;  // one for each round
};

/// Writes a line of JSON: nanoseconds a frame, by part.
inline void print(std::span<Part> parts, double ticks_per_second) {
    std::vector<std::string> texts;
    for (auto& part : parts) {
        std::ranges::sort(part.ticks_per_frame);
        const auto ns = [&](double ticks) { return ticks * ns_per_second / ticks_per_second; };
        texts.push_back(fmt::format(R"("{}":{{"least":{:.3f},"median":{:.3f}}})", part.name,
                                    ns(part.ticks_per_frame.front()),
                                    ns(part.ticks_per_frame[part.ticks_per_frame.size() / 2])));
    }
    fmt::print("{{{}}}\n", fmt::join(texts, ","));
}

}  // namespace evenhand::bench
