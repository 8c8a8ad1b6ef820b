// SPDX-License-Identifier: Apache-2.0
// Station 4, port: whether a port that connects to a socket file is still waiting there for an answer. Does not include
// DPDK.
#pragma once

#include <string>
#include <vector>

namespace evenhand::port {

/// Sockets of this process that are connected to the socket at `path` (a file, or an abstract name), and whose other
/// end has not closed them. This includes connections that the other end has not accepted, because it hangs.
[[nodiscard]] std::vector<int> connections_to(const std::string& path);

/// The process that listens where the first connection leads that is in `now` but not in `before`, as "process 12
/// (testpmd)". Empty if there is no new connection.
[[nodiscard]] std::string other_end_of_new(const std::vector<int>& now, const std::vector<int>& before);

/// "process 12 (testpmd)", or "another process" if its name cannot be seen from here.
[[nodiscard]] std::string name_of_process(int process);

}  // namespace evenhand::port
