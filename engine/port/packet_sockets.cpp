// SPDX-License-Identifier: Apache-2.0
#include "port/packet_sockets.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
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

}  // namespace

bool joins_fragments() {
    std::error_code error;
    for (std::filesystem::directory_iterator file{"/proc/self/fd", error}; !error && file != end(file);
         file.increment(error)) {
        if (joins_fragments_of(std::atoi(file->path().filename().c_str()))) return true;
    }
    return false;
}

}  // namespace evenhand::port
