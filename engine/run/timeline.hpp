// SPDX-License-Identifier: Apache-2.0
// Station 3, pace: when the parts of a trial begin and end.
#pragma once

#include <cstdint>
#include <optional>

#include "pace/clock.hpp"
#include "pace/schedule.hpp"
#include "run/load.hpp"
#include "run/request.hpp"

namespace evenhand::run {

using pace::Ticks;

/// When the parts of phases (c) to (e) begin and end.
struct Timeline {
    Ticks start;          // frame 0 is due
    Ticks send_deadline;  // frames that could not be sent by then are not offered
    Ticks residual_end;   // later frames are late
    Ticks finish;

    static constexpr double lead_s = 0.05;  // time for the workers to wake from their idle sleep

    Timeline(const TrialRequest& request, std::optional<std::int64_t> steered_start_ns, double ticks_per_second) {
        start = steered_start_ns ? pace::ticks_at(*steered_start_ns, pace::sample_clocks(), ticks_per_second)
                                 : pace::TickClock::now() + static_cast<Ticks>(lead_s * ticks_per_second);
        end_sending_after(run::sending_s(request), request.waits, ticks_per_second);
    }

    void end_sending_after(double duration_s, const Waits& waits, double ticks_per_second) {
        constexpr double grace_s = 0.01;  // how long a stalled sender may take to catch up; the offered load shows it
        constexpr double grace_share = 1e-3;
        const auto ticks = [=](double seconds) { return static_cast<Ticks>(seconds * ticks_per_second); };
        send_deadline = start + ticks(duration_s * (1 + grace_share) + grace_s);
        residual_end = send_deadline + ticks(waits.residual_s);
        finish = residual_end + ticks(waits.restabilize_s);
    }
};

}  // namespace evenhand::run
