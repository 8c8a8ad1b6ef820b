// SPDX-License-Identifier: Apache-2.0
#include "pace/clock.hpp"

#include <sys/timex.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <thread>

#include "units.hpp"

namespace evenhand::pace {
namespace {

std::int64_t read_ns(clockid_t clock) noexcept {
    timespec t{};
    clock_gettime(clock, &t);
    return std::int64_t{t.tv_sec} * whole_ns_per_second + t.tv_nsec;
}

}  // namespace

ClockSample sample_clocks() noexcept {
    constexpr int tries = 32;
    ClockSample best;
    Ticks best_width = std::numeric_limits<Ticks>::max();
    for (int i = 0; i < tries; ++i) {
        const Ticks before = TickClock::now();
        const std::int64_t raw = read_ns(CLOCK_MONOTONIC_RAW);
        const std::int64_t steered = read_ns(CLOCK_MONOTONIC);
        const std::int64_t time = read_ns(CLOCK_REALTIME);
        const Ticks width = TickClock::now() - before;
        if (width < best_width) {
            best_width = width;
            best = {.ticks = before + width / 2, .raw_ns = raw, .steered_ns = steered, .time_ns = time};
        }
    }
    return best;
}

double ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept {
    return static_cast<double>(later.ticks - earlier.ticks) * ns_per_second /
           static_cast<double>(later.raw_ns - earlier.raw_ns);
}

double steered_ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept {
    return static_cast<double>(later.ticks - earlier.ticks) * ns_per_second /
           static_cast<double>(later.steered_ns - earlier.steered_ns);
}

Ticks ticks_at(std::int64_t steered_ns, const ClockSample& sample, double ticks_per_second) noexcept {
    const double ticks = static_cast<double>(steered_ns - sample.steered_ns) * ticks_per_second / ns_per_second;
    return sample.ticks + static_cast<Ticks>(std::llround(ticks));
}

std::int64_t time_at(Ticks ticks, const ClockSample& sample, double ticks_per_second) noexcept {
    const auto passed = static_cast<std::int64_t>(ticks - sample.ticks);
    return sample.time_ns + std::llround(static_cast<double>(passed) * ns_per_second / ticks_per_second);
}

bool is_steered_clock_right() noexcept {
    timex state{};
    const int result = adjtimex(&state);
    return result >= 0 && result != TIME_ERROR &&
           (static_cast<unsigned>(state.status) & static_cast<unsigned>(STA_UNSYNC)) == 0;
}

double calibrate_ticks_per_second(const ClockSample& earlier, int milliseconds) {
    const std::chrono::nanoseconds passed{read_ns(CLOCK_MONOTONIC_RAW) - earlier.raw_ns};
    std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds} - passed);
    return ticks_per_second(earlier, sample_clocks());
}

}  // namespace evenhand::pace
