// SPDX-License-Identifier: Apache-2.0
#include "port/packet_sockets.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace evenhand::port {
namespace {

constexpr unsigned mode_shift = 16;

/// A socket of another family has no such option, so the answer is false.
bool joins_fragments_of(int file) {
    unsigned group = 0;
    socklen_t octets = sizeof group;
    return getsockopt(file, SOL_PACKET, PACKET_FANOUT, &group, &octets) == 0 && octets == sizeof group &&
           (group >> mode_shift & PACKET_FANOUT_FLAG_DEFRAG) != 0;
}

/// A socket's option that is a number; nothing for any other kind of file.
std::optional<int> number_of_socket(int file, int option) {
    int value = 0;
    socklen_t octets = sizeof value;
    if (getsockopt(file, SOL_SOCKET, option, &value, &octets) != 0) return std::nullopt;
    return value;
}

}  // namespace

std::vector<int> frame_sockets() {
    std::vector<int> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry{"/proc/self/fd", error}; !error && entry != end(entry);
         entry.increment(error)) {
        const int file = std::atoi(entry->path().filename().c_str());
        const auto family = number_of_socket(file, SO_DOMAIN);
        if (family == AF_PACKET || family == AF_XDP) found.push_back(file);
    }
    return found;
}

bool joins_fragments() { return std::ranges::any_of(frame_sockets(), joins_fragments_of); }

void make_room_to_send(const std::vector<int>& others) {
    constexpr int octets = 32 << 20U;
    for (const int socket : frame_sockets()) {
        if (std::ranges::find(others, socket) != others.end()) continue;
        if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &octets, sizeof octets) != 0)
            (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &octets, sizeof octets);
    }
}

}  // namespace evenhand::port
