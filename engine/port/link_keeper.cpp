// SPDX-License-Identifier: Apache-2.0
#include "port/link_keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "fault.hpp"
#include "port/kernel_interface.hpp"

namespace evenhand::port {
namespace {

constexpr const char* own_program = "/proc/self/exe";
constexpr char dismissal = 'd';

/// Starts the process with `input` as its stdin, in a session of its own: what is sent to this process's group does not
/// reach it. Returns 0 or an error number.
int start(pid_t& process, int input, const std::string& interface) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    std::string name = "evenhand-engine";
    std::string option = keep_link_option;
    std::string of = interface;
    const std::array<char*, 4> arguments{name.data(), option.data(), of.data(), nullptr};
    const int result = posix_spawn(&process, own_program, &files, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return result;
}

}  // namespace

LinkKeeper::LinkKeeper(const std::string& interface) {
    std::array<int, 2> ends{-1, -1};
    int error = pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0) {
        error = start(process_, ends[0], interface);
        close(ends[0]);
    }
    if (error == 0) {
        pipe_ = ends[1];
        return;
    }
    if (ends[1] >= 0) close(ends[1]);
    throw Fault{
        FaultCode::no_device,
        fmt::format("the process that would switch {} on again does not start: {}", interface, std::strerror(error)),
        "", "Check that /proc is mounted, and that processes can be started. Its link was not changed."};
}

LinkKeeper::~LinkKeeper() {
    (void)!write(pipe_, &dismissal, 1);
    close(pipe_);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
}

int keep_link(const std::string& interface) {
    // The ports' sockets must not stay open here. Signals that end a whole set of processes end this one too early.
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
    const auto before = read_kernel_link(interface);
    char said = 0;
    ssize_t n = 0;
    do {
        n = read(STDIN_FILENO, &said, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1 && said == dismissal) return 0;
    // Another interface that has the name by now is none of our business.
    if (read_kernel_link(interface).index != before.index) return 0;
    return switch_kernel_link(interface, true) == 0 ? 0 : 1;
}

}  // namespace evenhand::port
