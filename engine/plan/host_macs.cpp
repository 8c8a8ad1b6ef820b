// SPDX-License-Identifier: Apache-2.0
#include "plan/host_macs.hpp"

#include "plan/philox.hpp"

namespace evenhand::plan {

HostMacs::HostMacs(std::uint64_t seed, Side side) noexcept
    : interface_low_{static_cast<std::uint8_t>(static_cast<unsigned>(side) + 1)} {
    // Draws of frames have direction 0 or 1 in the third word of the counter, so that no frame uses the counters of
    // these keys.
    constexpr std::uint32_t host_macs_domain = 0x4D414300;
    keys_ = philox4x32({0, 0, host_macs_domain + static_cast<std::uint32_t>(side), 0},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
}

}  // namespace evenhand::plan
