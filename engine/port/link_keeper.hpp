// SPDX-License-Identifier: Apache-2.0
// Station 4, port: an interface of the kernel that this process has switched off is switched on again, even if this
// process is killed. Without DPDK.
#pragma once

#include <sys/types.h>

#include <string>

namespace evenhand::port {

/// The option with which main() calls keep_link(); the interface's name follows it.
constexpr const char* keep_link_option = "--switch-on-at-end";

/// A process of this same program that waits for the end of this one and then switches the interface on, in the same
/// network namespace. It is dismissed by the destructor.
class LinkKeeper {
   public:
    /// Throws Fault{no_device} if the process cannot be started.
    explicit LinkKeeper(const std::string& interface);
    ~LinkKeeper();
    LinkKeeper(const LinkKeeper&) = delete;
    LinkKeeper& operator=(const LinkKeeper&) = delete;

   private:
    int pipe_ = -1;
    pid_t process_ = -1;
};

/// The work of that process: waits for the end of its stdin. Returns the exit code.
[[nodiscard]] int keep_link(const std::string& interface);

}  // namespace evenhand::port
