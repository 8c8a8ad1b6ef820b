// SPDX-License-Identifier: Apache-2.0
// Station 4, port: a client that is gone before it was greeted does not end this process. The libraries of a program
// that has this file call this sendmsg instead of the C library's.
//
// The bug is DPDK's: memif_listener_handler() (drivers/net/memif/memif_socket.c) accepts a connection, has the
// interrupt thread watch it, and greets it. If the client has closed it by then, it closes the socket and frees what
// belongs to it while the thread still watches it, and the thread ends the process ("Error adding fd"). A tester that
// is killed while it opens its ports, one that tries again because the server hangs, or any process that connects and
// closes ends a server in this way. 22.11.11 has it, as the driver has had from its beginning (19.08). With the first
// that stops watching, and is the oldest that is supported, this file goes.
//
// So what cannot be sent because the other end of a local socket is gone counts as sent there, as it does when the
// other end goes a moment later: the interrupt thread sees the end of the connection next, and tidies up in order. Only
// calls of that thread are concerned. DPDK's other drivers talk on it to the kernel, which does not go.
#include <rte_interrupts.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace {

ssize_t octets_of(const msghdr& message) {
    std::size_t octets = 0;
    for (std::size_t part = 0; part < message.msg_iovlen; ++part) octets += message.msg_iov[part].iov_len;
    return static_cast<ssize_t>(octets);
}

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): those of the C library are reserved
extern "C" [[gnu::visibility("default")]] ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    const bool is_of_driver = rte_thread_is_intr() != 0;
    const ssize_t sent = syscall(SYS_sendmsg, socket, message, is_of_driver ? flags | MSG_NOSIGNAL : flags);
    if (sent < 0 && is_of_driver && (errno == EPIPE || errno == ECONNRESET)) return octets_of(*message);
    return sent;
}
