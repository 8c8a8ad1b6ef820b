// SPDX-License-Identifier: Apache-2.0
// Station 4, port: memory that a burst may be reading is not unmapped. The libraries of a program that has this file
// call this munmap instead of the C library's; port/bursts.hpp says what it waits for, and why.
//
// The bug is DPDK's: memif_disconnect() (drivers/net/memif/memif_socket.c) unmaps the rings through
// memif_free_regions() without waiting for bursts. It came with the driver in 19.08. 22.11.11 has it, and so has DPDK's
// main branch after 26.03: no version is known in which it is mended. With the first that waits there, and is the
// oldest that is supported, this file goes, and with it port/bursts.hpp, what workers say by it, and
// tests/wire/test_other_end.py's test of the binding.
//
// Nothing smaller protects a burst when a memif's peer goes (memif_disconnect() in DPDK's drivers/net/memif):
// - The driver clears its flag "connected" and unmaps the rings in one function, on DPDK's interrupt thread. In between
//   it calls nothing that could be ours: no link event, no callback, no function of the ethdev layer.
// - A worker that asks for the link, or takes a lock of ours, before each burst is not helped: the driver takes no such
//   lock, and the flag may be cleared right after the question. It would cost every burst besides.
// - Nor can the interrupt thread be kept away meanwhile: it notices the closed socket by itself, and a trial needs it
//   to see the link go.
// - A wrapper for memif's library alone (--wrap, or its relocations patched) reaches no plug-in that is loaded at run
//   time, or depends on how the distribution linked it.
// So it is the call itself that has to wait. It does so on the interrupt thread alone, and only while workers are
// there; every other call goes straight to the kernel.
#include <rte_interrupts.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "port/bursts.hpp"

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): those of the C library are reserved
extern "C" [[gnu::visibility("default")]] int munmap(void* address, std::size_t octets) noexcept {
    // No other thread may wait: vhost's, for one, unmaps while it holds a lock that bursts take.
    if (rte_thread_is_intr() != 0) evenhand::port::bursts.wait_until_all_were_between();
    return static_cast<int>(syscall(SYS_munmap, address, octets));
}
