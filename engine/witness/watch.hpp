// SPDX-License-Identifier: Apache-2.0
// Beside the stations: looks at CPUs and clocks of this host for a while, before anybody relies on them.
#pragma once

#include <functional>
#include <vector>

#include "witness/absence.hpp"

namespace evenhand::witness {

struct WatchResult {
    double seconds = 0;  // really watched
    std::vector<CpuRecord> cpus;
    double ticks_per_second = 0;     // against CLOCK_MONOTONIC_RAW, over all of it
    double error_ppm_raw = 0;        // of a calibration as at the start of a test (a fifth of a second) against that
    double error_ppm_monotonic = 0;  // of CLOCK_MONOTONIC_RAW against CLOCK_MONOTONIC, which NTP steers
};

/// Watch these CPUs for so long, or until `goes_on` says no. Throws Fault{no_cpu}.
[[nodiscard]] WatchResult watch(const std::vector<unsigned>& cpus, double seconds,
                                const std::function<bool()>& goes_on);

}  // namespace evenhand::witness
