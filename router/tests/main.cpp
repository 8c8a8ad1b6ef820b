// SPDX-License-Identifier: Apache-2.0
// Tests of the router. DPDK's route tables need its memory: it is started once, without hugepages, devices or rights.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

bool start_dpdk() {
    // Two tables of 64 MB, and what a build of a second one at the same time takes.
    std::vector<std::string> arguments{"evenhand-router-tests",
                                       "--no-huge",
                                       "--no-shconf",
                                       "--no-pci",
                                       "--no-telemetry",
                                       "-m",
                                       "320",
                                       "--log-level=4",
                                       "--file-prefix=evenhand-tests-" + std::to_string(getpid())};
    std::vector<char*> argv;
    argv.reserve(arguments.size());
    for (auto& argument : arguments) argv.push_back(argument.data());
    return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (!start_dpdk()) {
        std::fprintf(stderr, "DPDK did not start: %s\n", rte_strerror(rte_errno));
        return 1;
    }
    const int result = doctest::Context{argc, argv}.run();
    const std::string left_behind = rte_eal_get_runtime_dir();
    rte_eal_cleanup();
    (void)rmdir(left_behind.c_str());
    return result;
}
