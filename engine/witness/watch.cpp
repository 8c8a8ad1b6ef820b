// SPDX-License-Identifier: Apache-2.0
#include "witness/watch.hpp"

#include <chrono>
#include <memory>
#include <thread>

#include "pace/clock.hpp"
#include "units.hpp"
#include "witness/cpu_watch.hpp"

namespace evenhand::witness {

WatchResult watch(const std::vector<unsigned>& cpus, double seconds, const std::function<bool()>& goes_on) {
    using Steady = std::chrono::steady_clock;
    constexpr auto interval = std::chrono::milliseconds{20};
    std::vector<std::unique_ptr<CpuWatch>> watches;
    watches.reserve(cpus.size());
    for (const auto cpu : cpus) watches.push_back(std::make_unique<CpuWatch>(cpu, std::vector<int>{}));
    const auto first = pace::sample_clocks();
    const auto begin = Steady::now();
    const std::chrono::duration<double> wanted{seconds};
    for (auto& one : watches) one->begin();
    const double calibrated = pace::calibrate_ticks_per_second(first);
    while (Steady::now() - begin < wanted && goes_on())
        std::this_thread::sleep_for(
            std::min<std::chrono::duration<double>>(interval, wanted - (Steady::now() - begin)));
    WatchResult result;
    const auto last = pace::sample_clocks();
    result.seconds = std::chrono::duration<double>{Steady::now() - begin}.count();
    result.ticks_per_second = pace::ticks_per_second(first, last);
    for (auto& one : watches) result.cpus.push_back(one->end(result.ticks_per_second));
    result.error_ppm_raw = (calibrated / result.ticks_per_second - 1) * per_million;
    result.error_ppm_monotonic =
        (static_cast<double>(last.raw_ns - first.raw_ns) / static_cast<double>(last.steered_ns - first.steered_ns) -
         1) *
        per_million;
    return result;
}

}  // namespace evenhand::witness
