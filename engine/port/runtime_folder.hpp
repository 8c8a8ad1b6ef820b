// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the folder that DPDK makes for each process under /run/dpdk (XDG_RUNTIME_DIR/dpdk, /tmp/dpdk) and
// never removes.
#pragma once

#include <string>

namespace evenhand::port {

/// Take this process's own folder, and remove what processes of ours that are gone have left beside it: empty folders
/// called evenhand-PID of this user, which no living process has. Anything else there stays. Best effort: nothing
/// depends on it.
void take_runtime_folder(const std::string& folder);

/// Remove the folder that was taken, if it is empty.
void drop_runtime_folder();

}  // namespace evenhand::port
