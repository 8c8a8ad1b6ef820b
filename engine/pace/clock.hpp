// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: the tick counter of the CPU, and how long its ticks really are.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace evenhand::pace {

using Ticks = std::uint64_t;

/// The CPU's constant-rate counter. One type in the loops, so that a test can drive time by hand.
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

/// Reads all, keeping the closest of several tries, so that an interrupt between the readings does no harm.
[[nodiscard]] ClockSample sample_clocks() noexcept;

/// Ticks per second between two samples; the later must be later.
[[nodiscard]] double ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept;

/// The same by CLOCK_MONOTONIC.
[[nodiscard]] double steered_ticks_per_second(const ClockSample& earlier, const ClockSample& later) noexcept;

/// When the time of day is `time_ns`, as the sample has it; not far from it.
[[nodiscard]] Ticks ticks_at(std::int64_t time_ns, const ClockSample& sample, double ticks_per_second) noexcept;

/// The other way round.
[[nodiscard]] std::int64_t time_at(Ticks ticks, const ClockSample& sample, double ticks_per_second) noexcept;

/// Whether NTP steers CLOCK_MONOTONIC and calls it right. Where the kernel's clock is the tick counter itself,
/// CLOCK_MONOTONIC_RAW is only that counter, scaled: it cannot tell that the counter is wrong.
[[nodiscard]] bool is_steered_clock_right() noexcept;

/// Measure from `earlier` on, for `milliseconds` at least (D6: not taken from rte_get_tsc_hz(), which rounds to 10 MHz
/// in DPDK 22.11). 200 ms give about 0.3 ppm.
[[nodiscard]] double calibrate_ticks_per_second(const ClockSample& earlier = sample_clocks(), int milliseconds = 200);

}  // namespace evenhand::pace
