// SPDX-License-Identifier: Apache-2.0
// Station 4, port: a socket file that is in the way of a port which wants to listen there. Does not include DPDK.
#pragma once

#include <string>

namespace evenhand::port {

/// Makes room for a socket that is to listen at `path`, of which `argument` is the argument of the device, such as
/// socket=/run/x. Removes a socket on which nobody listens, as a process leaves it that was killed (DPDK's drivers do
/// not bind to it, and give no reason). What is no socket stays. `type`: SOCK_SEQPACKET or SOCK_STREAM; `where`: place
/// in the request. Throws Fault{bad_request} where another process listens; Fault{no_permission, no_device} where what
/// is left cannot be removed.
void make_room_to_listen(const std::string& path, int type, const std::string& argument, const std::string& where);

}  // namespace evenhand::port
