// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what the kernel does to the frames of this process's sockets, before these receive them and after
// they have sent them.
#pragma once

#include <vector>

namespace evenhand::port {

/// The sockets of this process that send and receive frames (AF_PACKET, AF_XDP), found among its open files.
[[nodiscard]] std::vector<int> frame_sockets();

/// Whether the kernel reassembles fragments for one of the packet sockets of this process. Asks the kernel about each
/// of them, so that the answer is right whether or not port/packet_fanout.cpp had its effect.
[[nodiscard]] bool joins_fragments();

/// Lets each socket of this process but `others` have 32 MiB of frames on the way, or as many as this process may.
///
/// A frame in the ring of a veth counts as its sender's until the other end has taken it. The kernel's default, 208
/// KiB, is 277 frames of 64 octets, but only 166 of 218: fewer than such a ring has. Then a DUT at its limit would hold
/// up the tester, whose lateness would hide the DUT's loss.
void make_room_to_send(const std::vector<int>& others);

}  // namespace evenhand::port
