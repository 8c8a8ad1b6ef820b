// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the folder that DPDK creates for each process under /run/dpdk (XDG_RUNTIME_DIR/dpdk, /tmp/dpdk) and
// never removes.
#pragma once

#include <string>

namespace evenhand::port {

/// Takes this process's own folder, and removes what our processes that have ended left beside it: empty folders of
/// this user that are called evenhand-PID, where no living process has that id. Anything else stays. Best effort:
/// nothing depends on it.
void take_runtime_folder(const std::string& folder);

/// Removes the folder that was taken, if it is empty.
void drop_runtime_folder();

}  // namespace evenhand::port
