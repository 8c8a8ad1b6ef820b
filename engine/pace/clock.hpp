// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: the tick counter of the CPU, and how long its ticks are.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace evenhand::pace {

using Ticks = std::uint64_t;

/// The CPU's constant-rate counter. The loops take the clock as a type, so that a test can control the time.
struct TickClock {
    [[nodiscard]] static Ticks now() noexcept {
#if defined(__x86_64__)
        return __rdtsc();
#elif defined(__aarch64__)
        Ticks ticks;
        asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
#else
#error "no tick counter known for this CPU"
#endif
    }
};

/// The tick counter and three clocks of the kernel read at one moment.
struct ClockSample {
    Ticks ticks = 0;
    std::int64_t raw_ns = 0;      // CLOCK_MONOTONIC_RAW
    std::int64_t steered_ns = 0;  // CLOCK_MONOTONIC, whose rate NTP adjusts
    std::int64_t time_ns = 0;     // CLOCK_REALTIME, the time of day, by which testers start together
};

/// Reads all of them several times and keeps the reading that took least time, so that an interrupt in between does no
/// harm.
[[nodiscard]] ClockSample sample_clocks() noexcept;

/// Ticks per second between two samples; `later` must have been taken later.
[[nodiscard]] double ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept;

/// The same, measured with CLOCK_MONOTONIC.
[[nodiscard]] double steered_ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept;

/// The tick count at which CLOCK_MONOTONIC shows `steered_ns`, calculated from the sample, which must be close to it.
[[nodiscard]] Ticks ticks_at(std::int64_t steered_ns, const ClockSample& sample, double ticks_per_second) noexcept;

/// The time of day at this tick count, calculated in the same way.
[[nodiscard]] std::int64_t time_at(Ticks ticks, const ClockSample& sample, double ticks_per_second) noexcept;

/// Whether NTP steers CLOCK_MONOTONIC and reports that it is right. Where the kernel's clock source is the tick counter
/// itself, CLOCK_MONOTONIC_RAW is only that counter, scaled, and cannot show that the counter is wrong.
[[nodiscard]] bool is_steered_clock_right() noexcept;

/// Measures from `earlier` on, for at least `milliseconds` (D6: not taken from rte_get_tsc_hz(), which rounds to 10 MHz
/// in DPDK 22.11). 200 ms give about 0.3 ppm.
[[nodiscard]] double calibrate_ticks_per_second(const ClockSample& earlier = sample_clocks(), int milliseconds = 200);

}  // namespace evenhand::pace
