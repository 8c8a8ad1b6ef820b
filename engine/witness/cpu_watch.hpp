// SPDX-License-Identifier: Apache-2.0
// Beside the stations: watches one CPU of this machine by sleeping on it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "witness/absence.hpp"

namespace evenhand::witness {

/// A file under /proc that is read repeatedly. Empty if there is no such file.
class ProcFile {
   public:
    explicit ProcFile(const std::string& path) noexcept;
    ~ProcFile();
    ProcFile(ProcFile&& other) noexcept;
    ProcFile& operator=(ProcFile&&) = delete;
    ProcFile(const ProcFile&) = delete;
    ProcFile& operator=(const ProcFile&) = delete;

    /// Its present text; empty if it cannot be read any more.
    [[nodiscard]] std::string read() const;

   private:
    int descriptor_ = -1;
};

/// The times in a thread's schedstat text; nothing if the text is not valid.
[[nodiscard]] std::optional<ThreadTimes> read_thread_times(const std::string& schedstat);
/// The time that the hypervisor took from this CPU since the start, in seconds, from the text of /proc/stat; 0 if it
/// does not report this.
[[nodiscard]] double read_stolen_s(const std::string& stat, unsigned cpu);

/// Between begin() and end(), a thread of ours sleeps on the CPU for a millisecond at a time, which takes about two
/// thousandths of the CPU's time.
///
/// Two things show an absence. If the sleeper wakes late although no other thread ran in its place, nothing ran on this
/// CPU: a hypervisor took it away. And if a watched thread was ready while neither it nor another watched thread ran,
/// somebody else had the CPU. What the watched threads do to each other, and to the sleeper, is no absence. Without
/// watched threads, whatever makes the sleeper late is an absence.
class CpuWatch {
   public:
    /// `threads`: the DUT's threads on this CPU, by process or thread id. A thread that ends meanwhile is no longer
    /// watched. Throws Fault{no_cpu} if this process may not use the CPU.
    CpuWatch(unsigned cpu, const std::vector<int>& threads);
    ~CpuWatch();
    CpuWatch(const CpuWatch&) = delete;
    CpuWatch& operator=(const CpuWatch&) = delete;

    /// Forgets what was seen before, even if there was no end().
    void begin();
    /// What has been seen since begin() until some milliseconds ago, in no order; what was seen twice is in it twice.
    [[nodiscard]] std::vector<Absence> so_far() const;
    /// Waits some milliseconds until everything up to now is known.
    [[nodiscard]] CpuRecord end(double ticks_per_second);

   private:
    void end_duty(std::unique_lock<std::mutex>& held);
    void live(int& failure, std::condition_variable& ready);
    void sleep_and_look();
    void look(double late_s);
    [[nodiscard]] std::vector<ThreadTimes> times_of_threads();
    [[nodiscard]] double stolen_so_far() const { return read_stolen_s(stat_.read(), cpu_); }

    unsigned cpu_;
    std::vector<ProcFile> schedstats_;  // of the watched threads
    ProcFile stat_{"/proc/stat"};
    // Used by the sleeper alone while it is on duty, otherwise by begin() and end().
    std::int64_t begin_ns_ = 0;
    std::int64_t looked_at_ns_ = 0;
    std::optional<ProcFile> own_schedstat_;
    ThreadTimes own_before_;
    double stolen_before_s_ = 0;
    std::vector<ThreadTimes> times_;
    WaitLedger ledger_{{}};
    // Shared; protected by the lock.
    std::vector<Absence> stolen_;
    std::vector<Absence> waited_;
    mutable std::mutex lock_;
    std::condition_variable changed_;
    bool is_on_duty_ = false;
    bool quits_ = false;
    bool is_end_wanted_ = false;
    std::thread thread_;
};

}  // namespace evenhand::witness
