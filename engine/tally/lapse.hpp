// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: periods in which the tester or its machine did not do what a trial needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evenhand::tally {

/// What was late or away. Also the index in `lapse_names`.
enum class LapseKind : std::uint8_t {
    sender_overdue,  // frames left overdue: a pause, and then a burst
    receiver_away,   // nobody took frames from a receive ring for so long that it may have been full
    dut_away,        // the host kept a CPU from the DUT
};
inline constexpr std::array<const char*, 3> lapse_names{"sender_overdue", "receiver_away", "dut_away"};

/// In seconds since frame 0 was due. All frames that were in flight or in a queue at any time in it may be affected.
struct Lapse {
    LapseKind kind = LapseKind::sender_overdue;
    double from_s = 0;
    double until_s = 0;
};

}  // namespace evenhand::tally
