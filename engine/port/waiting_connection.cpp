// SPDX-License-Identifier: Apache-2.0
#include "port/waiting_connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace evenhand::port {
namespace {

namespace fs = std::filesystem;

/// What a socket of this process is connected to; empty if the file is no connected socket, or if the other end has no
/// name.
std::string peer_of(int file) {
    sockaddr_un address{};
    socklen_t octets = sizeof address;
    if (getpeername(file, reinterpret_cast<sockaddr*>(&address), &octets) != 0 || address.sun_family != AF_UNIX)
        return {};
    const std::size_t begin = offsetof(sockaddr_un, sun_path);
    std::string_view path{std::begin(address.sun_path), octets > begin ? octets - begin : 0};
    if (path.starts_with('\0')) path.remove_prefix(1);  // the abstract kind
    return std::string{path.substr(0, path.find('\0'))};
}

bool is_closed(int file) {
    pollfd asked{.fd = file, .events = 0, .revents = 0};
    return poll(&asked, 1, 0) == 1;  // POLLHUP, POLLERR
}

}  // namespace

std::vector<int> connections_to(const std::string& path) {
    std::vector<int> found;
    std::error_code error;
    for (fs::directory_iterator entry{"/proc/self/fd", error}; !error && entry != fs::directory_iterator{};
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        int file = -1;
        std::from_chars(name.data(), name.data() + name.size(), file);
        if (file >= 0 && !path.empty() && peer_of(file) == path && !is_closed(file)) found.push_back(file);
    }
    std::ranges::sort(found);
    return found;
}

std::string other_end_of_new(const std::vector<int>& now, const std::vector<int>& before) {
    for (const int file : now) {
        if (std::ranges::find(before, file) != before.end()) continue;
        ucred credentials{};
        socklen_t octets = sizeof credentials;
        const bool is_known = getsockopt(file, SOL_SOCKET, SO_PEERCRED, &credentials, &octets) == 0;
        return name_of_process(is_known ? credentials.pid : 0);
    }
    return {};
}

std::string name_of_process(int process) {
    std::string name;
    std::getline(std::ifstream{fmt::format("/proc/{}/comm", process)}, name);
    return name.empty() ? "another process" : fmt::format("process {} ({})", process, name);
}

}  // namespace evenhand::port
