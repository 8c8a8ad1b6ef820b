// SPDX-License-Identifier: Apache-2.0
// Station 4, port: DPDK's interrupt thread, on which drivers connect and disconnect. Without DPDK's headers.
#pragma once

namespace evenhand::port {

/// Returns when DPDK's interrupt thread has done what it had to do.
void wait_for_interrupt_thread();

}  // namespace evenhand::port
