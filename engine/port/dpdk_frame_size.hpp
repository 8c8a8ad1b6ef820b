// SPDX-License-Identifier: Apache-2.0
// Station 4, port: room for the largest frames of a trial.
#pragma once

#include <cstdint>
#include <string>

#include "port/dpdk_port.hpp"

namespace evenhand::port {

/// Sets the MTU that the frames need on a port that has an MTU of its own. A kernel interface keeps the MTU that its
/// host has set.
///
/// Throws Fault{bad_frame_size} if the port does not accept frames as large as the options require.
void let_large_frames_in(std::uint16_t id, const std::string& driver, const PortOptions& options);

}  // namespace evenhand::port
