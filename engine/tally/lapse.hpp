// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: when the tester or its host was not what a trial needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace evenhand::tally {

/// Who was away, or late. Also the index in `lapse_names`.
enum class LapseKind : std::uint8_t {
    sender_late,    // frames left overdue: a pause, and then a burst
    receiver_away,  // nobody took frames from a receive ring for so long that it may have been full
    dut_away,       // the host kept a CPU from the DUT
};
inline constexpr std::array<const char*, 3> lapse_names{"sender_late", "receiver_away", "dut_away"};

/// In seconds since frame 0 was due. What was in flight, or waited, at any time in it may have suffered from it.
struct Lapse {
    LapseKind kind = LapseKind::sender_late;
    double from_s = 0;
    double until_s = 0;
};

}  // namespace evenhand::tally
