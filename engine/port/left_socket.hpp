// SPDX-License-Identifier: Apache-2.0
// Station 4, port: removes a socket file that blocks a port which wants to listen there. Does not include DPDK.
#pragma once

#include <string>

namespace evenhand::port {

/// Makes room for a socket that is to listen at `path`; `argument` is the device's argument with that path, such as
/// socket=/run/x. Removes a socket on which nobody listens, as a killed process leaves it behind (DPDK's drivers do not
/// bind to it, and give no reason). Other files stay. `type`: SOCK_SEQPACKET or SOCK_STREAM; `where`: the place in the
/// request. Throws Fault{bad_request} if another process listens; Fault{no_permission, no_device} if the socket cannot
/// be removed.
void make_room_to_listen(const std::string& path, int type, const std::string& argument, const std::string& where);

}  // namespace evenhand::port
