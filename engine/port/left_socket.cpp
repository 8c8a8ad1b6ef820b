// SPDX-License-Identifier: Apache-2.0
#include "port/left_socket.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "fault.hpp"
#include "port/waiting_connection.hpp"

namespace evenhand::port {
namespace {

using namespace std::chrono_literals;

/// The process that listens at an address.
struct Listener {
    int error = 0;  // of connect()
    pid_t process = 0;
};

Listener find_listener(const sockaddr_un& address, int type) {
    const int file = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    Listener found;
    if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        found.error = errno;
    } else {
        ucred credentials{};
        socklen_t octets = sizeof credentials;
        if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &credentials, &octets) == 0) found.process = credentials.pid;
    }
    // A memif's server greets every client, and DPDK ends the server's process if the client has gone before that
    // (port/sendmsg.cpp). The server need not be one of ours, so wait for the greeting.
    pollfd greeting{.fd = file, .events = POLLIN, .revents = 0};
    constexpr int patience_ms = 300;
    if (found.error == 0) (void)poll(&greeting, 1, patience_ms);
    if (file >= 0) close(file);
    return found;
}

}  // namespace

void make_room_to_listen(const std::string& path, int type, const std::string& argument, const std::string& where) {
    sockaddr_un address{};
    struct stat facts{};
    if (path.size() >= sizeof address.sun_path || lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
    address.sun_family = AF_UNIX;
    path.copy(std::begin(address.sun_path), path.size());
    auto found = find_listener(address, type);
    if (found.error == ECONNREFUSED) {  // nobody listens, or a process is about to
        std::this_thread::sleep_for(100ms);
        found = find_listener(address, type);
    }
    // Several ports of one process may share a memif's socket.
    if (found.error == ENOENT || (found.error == 0 && found.process == getpid())) return;
    if (found.error == 0 || found.error == EAGAIN || found.error == EPROTOTYPE) {
        throw Fault{FaultCode::bad_request,
                    fmt::format("{}: {} listens there already", argument,
                                found.error == 0 ? name_of_process(found.process) : "another process"),
                    where, "End that process, name another socket, or take the other role."};
    }
    if (found.error == ECONNREFUSED && unlink(path.c_str()) == 0) return;
    const int error = found.error == ECONNREFUSED ? errno : found.error;
    const bool is_denied = error == EACCES || error == EPERM;
    throw Fault{is_denied ? FaultCode::no_permission : FaultCode::no_device,
                fmt::format("{} is there already, and {}: {}", argument,
                            found.error == ECONNREFUSED ? "cannot be removed, though nobody listens on it"
                                                        : "whether somebody listens on it cannot be seen",
                            std::strerror(error)),
                where, fmt::format("Remove it if nobody needs it (rm {}), or name another socket.", path)};
}

}  // namespace evenhand::port
