// SPDX-License-Identifier: Apache-2.0
#include "witness/absence.hpp"

#include <algorithm>

namespace evenhand::witness {

double CpuRecord::longest_s() const noexcept {
    double longest = 0;
    for (const auto& absence : absences) longest = std::max(longest, absence.at_least_s);
    return longest;
}

std::uint64_t frames_while_away(const std::vector<CpuRecord>& cpus, double ring_s, double rate_fps, Ticks start, Ticks end, double ticks_per_second) noexcept {
    double away_s = 0;
    for (const auto& record : cpus) {
        for (const auto& absence : record.absences) {
            if (absence.longest_s <= ring_s) continue;
            const double from_s = static_cast<double>(static_cast<std::int64_t>(absence.end - start)) / ticks_per_second - absence.longest_s;
            const double until_s = from_s + absence.longest_s;
            const double sending_s = static_cast<double>(end - start) / ticks_per_second;
            away_s += std::max(0.0, std::min(until_s, sending_s) - std::max(from_s, 0.0));
        }
    }
    return static_cast<std::uint64_t>(away_s * rate_fps);
}

}  // namespace evenhand::witness
