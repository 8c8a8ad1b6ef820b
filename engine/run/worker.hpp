// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: one CPU of the tester. Between trials it answers neighbours; during a trial it runs the loops.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "frame/vlan.hpp"
#include "neighbor/responder.hpp"
#include "port/dpdk_port.hpp"
#include "run/worker_queues.hpp"
#include "run/worker_trial.hpp"

namespace evenhand::run {

class Worker {
   public:
    explicit Worker(unsigned cpu) : cpu_{cpu} {}
    ~Worker() { finish(); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// To be filled before start(); loops are made for them.
    [[nodiscard]] WorkerQueues<port::DpdkPort>& queues() noexcept { return queues_; }

    /// Starts the thread on its CPU. Throws Fault{no_cpu}.
    void start();
    /// Ends the thread; waits for it.
    void finish() noexcept;

    /// Asks for the DUT's MAC on every port whose outlet is here.
    void send_questions() noexcept { queues_.send_questions(); }

    /// Announces the hosts' MACs on the port of their responder, one by one, some 10,000 a second; false if the port's
    /// outlet is not here.
    [[nodiscard]] bool announce(Announcements& hosts) noexcept { return queues_.announce(hosts); }

    /// Sends these frames on the port of their responder; false if the port's outlet is not here.
    [[nodiscard]] bool send(OwnFrames& frames) noexcept { return queues_.send(frames); }

    /// Begins a trial, which is over when trial.is_over is set. The trial must outlive that.
    void begin(WorkerTrial& trial) noexcept { trial_.store(&trial, std::memory_order_release); }

    [[nodiscard]] unsigned cpu() const noexcept { return cpu_; }
    /// All frames that its receivers took from this port since it was opened.
    [[nodiscard]] std::uint64_t taken_frames(const port::DpdkPort& port) const noexcept {
        return queues_.taken_frames(port);
    }
    /// The id of its thread, once start() has returned.
    [[nodiscard]] int thread_id() const noexcept { return thread_id_; }

   private:
    void live();

    unsigned cpu_;
    WorkerQueues<port::DpdkPort> queues_;
    std::atomic<WorkerTrial*> trial_{nullptr};  // set by the session, cleared by the worker
    std::atomic<bool> quit_{false};
    int thread_id_ = 0;  // written by the worker before start() returns
    std::thread thread_;
};

/// Has the workers run a trial, or a round of learning, from constructor to destructor. So whatever they use outlives
/// them, even if something throws meanwhile.
class BusyWorkers {
   public:
    BusyWorkers(std::vector<std::unique_ptr<Worker>>& workers, const std::vector<std::unique_ptr<WorkerTrial>>& trials)
        : trials_{trials} {
        for (std::size_t i = 0; i < workers.size(); ++i) workers[i]->begin(*trials[i]);
    }
    ~BusyWorkers() {
        for (const auto& trial : trials_) trial->stop.store(true, std::memory_order_relaxed);
        for (const auto& trial : trials_) {
            while (!trial->is_over.load(std::memory_order_acquire))
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    BusyWorkers(const BusyWorkers&) = delete;
    BusyWorkers& operator=(const BusyWorkers&) = delete;

   private:
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
};

}  // namespace evenhand::run
