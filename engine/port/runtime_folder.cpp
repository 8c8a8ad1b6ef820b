// SPDX-License-Identifier: Apache-2.0
#include "port/runtime_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace evenhand::port {
namespace {

namespace fs = std::filesystem;

struct OwnFolder {
    fs::path path;
    int lock =
        -1;  // held as long as the process lives: a sweeper in another PID namespace sees no process, but it sees this
};
OwnFolder own;  // read and written by the session's thread only

int open_folder(const fs::path& path) { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

/// Whether this is the folder of an engine or router that has ended: its name is evenhand-PID.
bool names_a_dead_process(std::string_view name) {
    constexpr std::string_view prefix = "evenhand-";
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return error == std::errc{} && end == name.data() + name.size() && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

void remove_left_behind(const fs::path& path) {
    const int folder = open_folder(path);
    if (folder < 0) return;
    struct stat facts{};
    if (fstat(folder, &facts) == 0 && facts.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0)
        (void)rmdir(path.c_str());
    close(folder);
}

}  // namespace

void take_runtime_folder(const std::string& folder) {
    own.path = folder;
    own.lock = open_folder(own.path);
    if (own.lock < 0) return;
    (void)flock(own.lock, LOCK_EX | LOCK_NB);
    std::error_code error;
    for (fs::directory_iterator entries{own.path.parent_path(), error}, end; !error && entries != end;
         entries.increment(error)) {
        if (names_a_dead_process(entries->path().filename().string())) remove_left_behind(entries->path());
    }
}

void drop_runtime_folder() {
    if (own.lock < 0) return;
    (void)rmdir(own.path.c_str());
    close(own.lock);
    own = {};
}

}  // namespace evenhand::port
