// SPDX-License-Identifier: Apache-2.0
#include "pace/clock.hpp"

#include <chrono>
#include <ctime>
#include <limits>
#include <thread>

namespace evenhand::pace {
namespace {

std::int64_t raw_now_ns() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

ClockSample sample_clocks() noexcept {
    constexpr int tries = 32;
    ClockSample best;
    Ticks best_width = std::numeric_limits<Ticks>::max();
    for (int i = 0; i < tries; ++i) {
        const Ticks before = TickClock::now();
        const std::int64_t raw = raw_now_ns();
        const Ticks width = TickClock::now() - before;
        if (width < best_width) {
            best_width = width;
            best = {.ticks = before + width / 2, .raw_ns = raw};
        }
    }
    return best;
}

double ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept {
    constexpr double ns_per_second = 1e9;
    return static_cast<double>(later.ticks - earlier.ticks) * ns_per_second / static_cast<double>(later.raw_ns - earlier.raw_ns);
}

double calibrate_ticks_per_second(const ClockSample& earlier, int milliseconds) {
    const std::chrono::nanoseconds passed{raw_now_ns() - earlier.raw_ns};
    std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds} - passed);
    return ticks_per_second(earlier, sample_clocks());
}

}  // namespace evenhand::pace
