// SPDX-License-Identifier: Apache-2.0
// Station 4, port: which of the kernel's groups the packet sockets of a port are in, where DPDK's net_af_packet has
// them share the port's frames. The libraries of a program that has this file call this setsockopt instead of the C
// library's.
//
// The driver makes the number of a port's group of the process's id and the interface's index, one XOR the other. The
// groups of a network namespace are one set, and the kernel refuses (EINVAL) a group that has sockets of another
// interface. Two engines that are started one after the other have ids that differ in a bit or two, and so have the
// indexes of their interfaces: one port in a few would not open. The kernel itself can choose a number that nobody
// has; the driver cannot ask it to.
//
// The driver asks besides that the kernel put fragments together (PACKET_FANOUT_FLAG_DEFRAG), so that all of a datagram
// come to one queue: a DUT that fragments would look as if it did not. The engine judges what is on the wire, so that
// is not asked for. port/packet_sockets.hpp sees whether the kernel does it all the same.
//
// Both are DPDK's (drivers/net/af_packet/rte_eth_af_packet.c, rte_pmd_init_internals(), later get_fanout()). 22.11.11
// has both, whatever the number of queues; DPDK's main branch after 26.03 has both with two queues or more. The
// argument fanout_mode, which 25.07 has, changes neither; an argument `defrag` was proposed in 2024 (Gur Stavi,
// dev@dpdk.org), and is not in. So no version is known in which either is mended. With the first that takes both as
// arguments of the device, and is the oldest that is supported, this file goes.
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

namespace {

constexpr unsigned id_mask = 0xffff;
constexpr unsigned mode_shift = 16;
constexpr unsigned joins_fragments = unsigned{PACKET_FANOUT_FLAG_DEFRAG} << mode_shift;

/// The group of one port.
struct Group {
    unsigned asked;  // the number that the driver computed, which only one port in this process has
    unsigned given;
};

std::mutex mutex;
std::vector<Group> groups;

int set_option(int socket, int level, int option, const void* value, socklen_t octets) {
    return static_cast<int>(syscall(SYS_setsockopt, socket, level, option, value, octets));
}

int join(int socket, unsigned group_and_mode) {
    return set_option(socket, SOL_PACKET, PACKET_FANOUT, &group_and_mode, sizeof group_and_mode);
}

/// Joins the group of the port whose sockets the driver puts into group `asked`.
int join_own(int socket, unsigned asked) {
    const unsigned mode = asked & ~id_mask;
    const std::scoped_lock lock{mutex};
    const auto known = std::ranges::find(groups, asked & id_mask, &Group::asked);
    if (known != groups.end()) {
        // When a port is opened again, its previous group no longer exists, and another one may have its number.
        if (join(socket, mode | known->given) == 0) return 0;
        if (errno != EINVAL) return -1;
        groups.erase(known);
    }
    // Linux before 4.12 does not know this flag.
    if (join(socket, mode | (PACKET_FANOUT_FLAG_UNIQUEID << mode_shift)) != 0) return join(socket, asked);
    unsigned given = 0;
    socklen_t octets = sizeof given;
    if (getsockopt(socket, SOL_PACKET, PACKET_FANOUT, &given, &octets) != 0) return -1;
    groups.push_back({asked & id_mask, given & id_mask});
    return 0;
}

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): those of the C library are reserved
extern "C" [[gnu::visibility("default")]] int setsockopt(int socket, int level, int option, const void* value,
                                                         socklen_t octets) noexcept {
    if (level != SOL_PACKET || option != PACKET_FANOUT || octets != sizeof(unsigned))
        return set_option(socket, level, option, value, octets);
    return join_own(socket, *static_cast<const unsigned*>(value) & ~joins_fragments);
}
