// SPDX-License-Identifier: Apache-2.0
// Station 4, port: DPDK's environment. One per process, started by the first open and never again.
#pragma once

#include <string>
#include <vector>

namespace evenhand::port {

struct HostOptions {
    unsigned memory_mb = 512;
    bool hugepages = false;
    std::vector<std::string> extra_eal_arguments;
};

/// The version of the DPDK libraries in use, such as "22.11.11".
[[nodiscard]] std::string dpdk_version();

/// The CPUs that this process might use when it was started; starting DPDK moves the main thread.
[[nodiscard]] const std::vector<unsigned>& allowed_cpus();

/// Whether a thread of this process may run on this CPU. A CPU that the kernel keeps free of its own work (isolcpus) is
/// not among `allowed_cpus`, and is the best one for a worker. Moves the calling thread there and back.
[[nodiscard]] bool may_run_on(unsigned cpu) noexcept;

/// To be called first, before there are threads. A process that leads its session can be given priority where the
/// kernel groups processes by session. Otherwise a shell in between (`sh -c` over ssh) would lead it, and this engine
/// would get next to no CPU beside another one. A process that leads a process group, as each job of an interactive
/// shell does, stays in its session.
void lead_session() noexcept;

/// Starts DPDK without touching any device but `pci_devices`. Later calls do nothing. Throws Fault{no_memory,
/// no_permission, internal}.
void start_dpdk(const HostOptions& options, const std::vector<std::string>& pci_devices);

/// Keeps the calling thread, which reads requests and reports, off these CPUs if any others are left.
void keep_off(const std::vector<unsigned>& cpus);

/// Leaves DPDK, if it was started, and removes what it keeps in the file system. The process must end next, since
/// DPDK's own threads live until then.
void stop_dpdk();

/// Whether this names a PCI device (0000:01:00.0 with or without arguments).
[[nodiscard]] bool is_pci_device(const std::string& device);

/// While this object lives, the calling thread has the per-core caches of DPDK's pools, and the CPU to itself. In a
/// program that has port/munmap.cpp it must report from time to time that it is between two bursts (port/bursts.hpp).
class WorkerThread {
   public:
    /// Throws Fault{no_cpu}.
    explicit WorkerThread(unsigned cpu);
    ~WorkerThread();
    WorkerThread(const WorkerThread&) = delete;
    WorkerThread& operator=(const WorkerThread&) = delete;
};

}  // namespace evenhand::port
