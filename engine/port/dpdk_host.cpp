// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fault.hpp"
#include "port/bursts.hpp"
#include "port/device_reason.hpp"
#include "port/runtime_folder.hpp"

namespace evenhand::port {
namespace {

// Read and written only by the session's thread.
bool started = false;
std::optional<Fault> refusal;  // DPDK can be started only once in a process

std::vector<unsigned> read_allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<unsigned> cpus;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
}

std::uint64_t physical_memory_mb() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) >>
           20U;
}

/// Best effort, where the process has the right to do so: the host's other work should not delay the loops. Where it
/// still does, trials are INVALID.
void become_urgent() noexcept {
    constexpr int most_urgent = -20;
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), most_urgent);
    // With autogroups, a nice value counts only within its session, so the session needs one, too, if this process has
    // it to itself (lead_session).
    if (getsid(0) != getpid()) return;
    const int file = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    constexpr std::string_view text = "-20";
    if (write(file, text.data(), text.size()) < 0) errno = 0;
    close(file);
}

}  // namespace

std::string dpdk_version() {
    std::string version = rte_version();  // "DPDK 22.11.11"
    const auto space = version.find(' ');
    return space == std::string::npos ? version : version.substr(space + 1);
}

const std::vector<unsigned>& allowed_cpus() {
    static const std::vector<unsigned> cpus = read_allowed_cpus();
    return cpus;
}

void lead_session() noexcept { (void)setsid(); }

bool may_run_on(unsigned cpu) noexcept {
    cpu_set_t before;
    if (cpu >= CPU_SETSIZE || pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0) return false;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) return false;
    (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return true;
}

bool is_pci_device(const std::string& device) {
    const std::string name = device.substr(0, device.find(','));
    return name.size() >= 7 && name.find(':') != std::string::npos &&
           std::isxdigit(static_cast<unsigned char>(name.front())) != 0;
}

void start_dpdk(const HostOptions& options, const std::vector<std::string>& pci_devices) {
    if (started) return;
    if (refusal) throw Fault{*refusal};
    // DPDK reserves addresses for all of it, and crashes if there is not enough memory. With hugepages it checks first.
    if (const auto host_mb = physical_memory_mb(); !options.hugepages && options.memory_mb > host_mb) {
        throw Fault{FaultCode::no_memory,
                    fmt::format("this machine has {} MB of memory, and memory_mb is {}", host_mb, options.memory_mb),
                    "host.memory_mb", "Lower it, or leave it out of the testbed file: it is what the ports need then."};
    }
    // The main thread only reads requests and reports: it may run wherever the process may, and the scheduler keeps it
    // off busy CPUs.
    std::vector<std::string> arguments{"evenhand-engine",
                                       fmt::format("--lcores=0@({})", fmt::join(allowed_cpus(), ",")),
                                       "-m",
                                       fmt::format("{}", options.memory_mb),
                                       fmt::format("--file-prefix=evenhand-{}", getpid()),
                                       "--no-telemetry",
                                       "--log-level=5"};
    if (options.hugepages) {
        arguments.emplace_back("--in-memory");
    } else {
        arguments.insert(arguments.end(), {"--no-huge", "--no-shconf"});
    }
    if (pci_devices.empty()) {
        arguments.emplace_back("--no-pci");
    } else {
        for (const auto& device : pci_devices) arguments.insert(arguments.end(), {"-a", device});
    }
    arguments.insert(arguments.end(), options.extra_eal_arguments.begin(), options.extra_eal_arguments.end());

    std::vector<char*> argv;
    argv.reserve(arguments.size());
    for (auto& argument : arguments) argv.push_back(argument.data());
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
        const int error = rte_errno;
        // DPDK returns EACCES if there are too few hugepages.
        if (const auto reason = options.hugepages ? explain_hugepages(options.memory_mb) : std::nullopt) {
            refusal.emplace(FaultCode::no_memory, reason->what, "host.memory_mb", reason->next);
            throw Fault{*refusal};
        }
        const bool denied = error == EACCES || error == EPERM;
        refusal.emplace(denied ? FaultCode::no_permission : FaultCode::no_memory,
                        fmt::format("DPDK did not start: {}", rte_strerror(error)), "host",
                        options.hugepages
                            ? "Reserve hugepages (dpdk-hugepages.py --setup 2G), or set hugepages to false; then start "
                              "another engine."
                            : "Lower memory_mb, or leave out extra_eal_arguments; then start another engine.");
        throw Fault{*refusal};
    }
    started = true;
    take_runtime_folder(rte_eal_get_runtime_dir());
}

void keep_off(const std::vector<unsigned>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const unsigned cpu : allowed_cpus()) {
        if (std::ranges::find(cpus, cpu) == cpus.end()) CPU_SET(cpu, &set);
    }
    if (CPU_COUNT(&set) != 0) (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void stop_dpdk() {
    if (!started) return;
    // No rte_eal_cleanup(): it unmaps DPDK's memory while DPDK's interrupt thread, which lives as long as the process,
    // may be reading what the closing of the last port has changed. On a busy host one exit in some hundred was a
    // SIGSEGV there. All that it would release is anonymous memory (--in-memory, --no-huge), which the end of the
    // process releases, too.
    drop_runtime_folder();
    started = false;
}

WorkerThread::WorkerThread(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    become_urgent();
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0 || rte_thread_register() != 0) {
        throw Fault{FaultCode::no_cpu, fmt::format("a worker cannot run on CPU {}", cpu), "workers",
                    "Use CPUs that are online and in the cpuset of this process; evenhand check shows them."};
    }
    static_assert(RTE_MAX_LCORE <= Bursts::most_workers);
    bursts.enter(rte_lcore_id());
}

WorkerThread::~WorkerThread() {
    bursts.leave();
    rte_thread_unregister();
}

}  // namespace evenhand::port
