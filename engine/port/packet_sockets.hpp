// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what the kernel does to frames before the packet sockets of this process see them.
#pragma once

namespace evenhand::port {

/// Whether the kernel puts fragments together for one of the packet sockets of this process. Asks the kernel about each
/// of its open files, so it is true whatever became of what port/packet_fanout.cpp wanted.
[[nodiscard]] bool joins_fragments();

}  // namespace evenhand::port
