// SPDX-License-Identifier: Apache-2.0
// Station 4, port: DPDK's interrupt thread, on which drivers connect and disconnect. Without DPDK's headers.
#pragma once

namespace evenhand::port {

/// Returns when DPDK's interrupt thread has handled everything that was pending.
void wait_for_interrupt_thread();

}  // namespace evenhand::port
