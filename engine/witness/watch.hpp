// SPDX-License-Identifier: Apache-2.0
// Beside the stations: watches CPUs and clocks of this machine for a while, before anything relies on them.
#pragma once

#include <functional>
#include <vector>

#include "witness/absence.hpp"

namespace evenhand::witness {

struct WatchResult {
    double seconds = 0;  // actually watched
    std::vector<CpuRecord> cpus;
    double ticks_per_second = 0;  // measured with CLOCK_MONOTONIC_RAW, over the whole time
    double error_ppm_raw = 0;     // of a calibration as at the start of a test (a fifth of a second), relative to that
    double error_ppm_monotonic = 0;  // of CLOCK_MONOTONIC_RAW relative to CLOCK_MONOTONIC, which NTP steers
};

/// Watches these CPUs for that long, or until `goes_on` returns false. Throws Fault{no_cpu}.
[[nodiscard]] WatchResult watch(const std::vector<unsigned>& cpus, double seconds,
                                const std::function<bool()>& goes_on);

}  // namespace evenhand::witness
