// SPDX-License-Identifier: Apache-2.0
#include "port/packet_sockets.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace evenhand::port {
namespace {

constexpr unsigned mode_shift = 16;

/// Any other kind of file has no such option, so the answer is false.
bool joins_fragments_of(int file) {
    unsigned group = 0;
    socklen_t octets = sizeof group;
    return getsockopt(file, SOL_PACKET, PACKET_FANOUT, &group, &octets) == 0 && octets == sizeof group &&
           (group >> mode_shift & PACKET_FANOUT_FLAG_DEFRAG) != 0;
}

/// Calls `see` for each open file of this process, until it returns true; false if it never did.
template <class See>
bool any_open_file(See see) {
    std::error_code error;
    for (std::filesystem::directory_iterator file{"/proc/self/fd", error}; !error && file != end(file);
         file.increment(error)) {
        if (see(std::atoi(file->path().filename().c_str()))) return true;
    }
    return false;
}

/// A socket's option that is a number; nothing for any other kind of file.
std::optional<int> number_of_socket(int file, int option) {
    int value = 0;
    socklen_t octets = sizeof value;
    if (getsockopt(file, SOL_SOCKET, option, &value, &octets) != 0) return std::nullopt;
    return value;
}

}  // namespace

bool joins_fragments() { return any_open_file(joins_fragments_of); }

void make_room_to_send() {
    static constexpr int octets = 32 << 20U;
    (void)any_open_file([](int file) {
        const auto family = number_of_socket(file, SO_DOMAIN);
        if (family != AF_PACKET && family != AF_XDP) return false;
        if (number_of_socket(file, SO_SNDBUF).value_or(octets) >= octets) return false;
        if (setsockopt(file, SOL_SOCKET, SO_SNDBUFFORCE, &octets, sizeof octets) != 0)
            (void)setsockopt(file, SOL_SOCKET, SO_SNDBUF, &octets, sizeof octets);
        return false;
    });
}

}  // namespace evenhand::port
