// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what the kernel does to frames before the packet sockets of this process see them.
#pragma once

namespace evenhand::port {

/// Whether the kernel reassembles fragments for one of the packet sockets of this process. Asks the kernel about each
/// of its open files, so that the answer is right whether or not port/packet_fanout.cpp had its effect.
[[nodiscard]] bool joins_fragments();

}  // namespace evenhand::port
