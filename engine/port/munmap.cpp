// SPDX-License-Identifier: Apache-2.0
// The libraries of a program that has this file call it instead of the C library's; see port/bursts.hpp for the reason.
#include <rte_interrupts.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "port/bursts.hpp"

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): those of the C library are reserved
extern "C" [[gnu::visibility("default")]] int munmap(void* address, std::size_t octets) noexcept {
    // No other thread waits: vhost's, for one, unmaps while it holds a lock that bursts take, and DPDK itself while no
    // worker is there.
    if (rte_thread_is_intr() != 0) evenhand::port::bursts.wait_until_all_were_between();
    return static_cast<int>(syscall(SYS_munmap, address, octets));
}
