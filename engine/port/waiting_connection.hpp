// SPDX-License-Identifier: Apache-2.0
// Station 4, port: whether a port that connects to a socket file waits there for an answer. Does not include DPDK.
#pragma once

#include <string>
#include <vector>

namespace evenhand::port {

/// Sockets of this process that are connected to the one at `path` (a file, or a name of the abstract kind), and whose
/// other end has not closed them. An end that has not accepted them yet, because it hangs, has not.
[[nodiscard]] std::vector<int> connections_to(const std::string& path);

/// Of `now`, those that are not in `before`: the process that listened where the first of them leads, as
/// "process 12 (testpmd)". Empty if there is none.
[[nodiscard]] std::string other_end_of_new(const std::vector<int>& now, const std::vector<int>& before);

/// "process 12 (testpmd)", or "another process" if its name cannot be seen from here.
[[nodiscard]] std::string name_of_process(int process);

}  // namespace evenhand::port
