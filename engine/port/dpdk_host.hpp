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

/// Version of the DPDK libraries in use, such as "22.11.11".
[[nodiscard]] std::string dpdk_version();

/// CPUs that this process may use, as they were when it started; starting DPDK moves the main thread.
[[nodiscard]] const std::vector<unsigned>& allowed_cpus();

/// Whether a thread of this process may be put on this CPU. A CPU that the kernel keeps its own work off (isolcpus) is
/// not among `allowed_cpus`, and is the best one for a worker. Moves the calling thread there and back.
[[nodiscard]] bool may_run_on(unsigned cpu) noexcept;

/// Call first, before there are threads: a process that leads its session can be made urgent where the kernel groups
/// processes by session. A shell that is between (`sh -c` over ssh) would lead it otherwise, and beside another engine
/// this one would have next to no CPU. A process that leads a group, as each job of an interactive shell does, stays
/// in its session.
void lead_session() noexcept;

/// Start DPDK without touching any device but `pci_devices`. Later calls do nothing. Throws Fault{no_memory,
/// no_permission, internal}.
void start_dpdk(const HostOptions& options, const std::vector<std::string>& pci_devices);

/// Keep the calling thread, which reads requests and reports, off these CPUs if that leaves it any.
void keep_off(const std::vector<unsigned>& cpus);

/// Leave DPDK, if it was started, and what it keeps in the file system. The process has to end next: DPDK's own threads
/// live until then.
void stop_dpdk();

/// Whether this names a PCI device (0000:01:00.0 with or without arguments).
[[nodiscard]] bool is_pci_device(const std::string& device);

/// The calling thread gets the per-core caches of DPDK's pools for as long as this lives, and the CPU for itself. In a
/// program that has port/munmap.cpp it has to say now and then that it is between two bursts (port/bursts.hpp).
class WorkerThread {
   public:
    /// Throws Fault{no_cpu}.
    explicit WorkerThread(unsigned cpu);
    ~WorkerThread();
    WorkerThread(const WorkerThread&) = delete;
    WorkerThread& operator=(const WorkerThread&) = delete;
};

}  // namespace evenhand::port
