// SPDX-License-Identifier: Apache-2.0
#include "witness/cpu_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "fault.hpp"
#include "units.hpp"

namespace evenhand::witness {
namespace {

constexpr double period_s = 1e-3;
constexpr long period_ns = 1'000'000;
/// Shorter absences happen all the time, because of interrupts and entering and leaving the kernel.
constexpr double least_absence_s = 5e-4;
/// How often the watched threads' times are read, besides whenever the sleeper was late; that takes some microseconds.
constexpr int sleeps_between_looks = 8;

std::int64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * whole_ns_per_second + t.tv_nsec;
}

void sleep_until(std::int64_t at_ns) {
    const timespec at{.tv_sec = at_ns / whole_ns_per_second, .tv_nsec = at_ns % whole_ns_per_second};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
}

/// The next number of a text of numbers and blanks; nothing at its end.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

}  // namespace

ProcFile::ProcFile(const std::string& path) noexcept : descriptor_{open(path.c_str(), O_RDONLY | O_CLOEXEC)} {}

ProcFile::ProcFile(ProcFile&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}

ProcFile::~ProcFile() {
    if (descriptor_ >= 0) close(descriptor_);
}

std::string ProcFile::read() const {
    std::string text;
    if (descriptor_ < 0) return text;
    std::array<char, 4096> part;
    // The CPUs' lines come first in /proc/stat; the rest may be long.
    constexpr std::size_t enough = 64U << 10U;
    while (text.size() < enough) {
        const auto n = pread(descriptor_, part.data(), part.size(), static_cast<off_t>(text.size()));
        if (n <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(n));
    }
    return text;
}

std::optional<ThreadTimes> read_thread_times(const std::string& schedstat) {
    std::string_view text{schedstat};
    const auto ran = take_number(text);
    const auto waited = take_number(text);
    if (!ran || !waited) return std::nullopt;
    return ThreadTimes{.ran_ns = *ran, .waited_ns = *waited};
}

double read_stolen_s(const std::string& stat, unsigned cpu) {
    const auto at = stat.find(fmt::format("cpu{} ", cpu));
    if (at == std::string::npos) return 0;
    std::string_view text{stat};
    text = text.substr(at, text.find('\n', at) - at);
    text.remove_prefix(text.find(' '));
    constexpr int steal = 7;  // after user, nice, system, idle, iowait, irq, softirq
    std::optional<std::uint64_t> value;
    for (int i = 0; i <= steal; ++i) value = take_number(text);
    static const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    return static_cast<double>(value.value_or(0)) / ticks_per_second;
}

CpuWatch::CpuWatch(unsigned cpu, const std::vector<int>& threads) : cpu_{cpu} {
    for (const int thread : threads) schedstats_.emplace_back(fmt::format("/proc/{}/schedstat", thread));
    int failure = -1;  // not known yet
    std::condition_variable ready;
    thread_ = std::thread{[&] { live(failure, ready); }};
    std::unique_lock held{lock_};
    ready.wait(held, [&] { return failure >= 0; });
    if (failure == 0) return;
    held.unlock();
    thread_.join();
    throw Fault{FaultCode::no_cpu, fmt::format("CPU {} cannot be watched: this process may not use it", cpu),
                "dut.cpus", "Name the CPU that the DUT runs on, on this machine."};
}

CpuWatch::~CpuWatch() {
    {
        const std::lock_guard held{lock_};
        quits_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void CpuWatch::begin() {
    std::unique_lock held{lock_};
    // After a trial that was refused there was no end(), and the sleeper may still be on duty.
    end_duty(held);
    // Read here, not by the sleeper: on a busy CPU the sleeper might read it only after the wait that is to be
    // observed.
    own_before_ = read_thread_times(own_schedstat_->read()).value_or(ThreadTimes{});
    stolen_before_s_ = stolen_so_far();
    ledger_ = WaitLedger{times_of_threads()};
    stolen_.clear();
    waited_.clear();
    begin_ns_ = now_ns();
    looked_at_ns_ = begin_ns_;
    is_end_wanted_ = false;
    is_on_duty_ = true;
    changed_.notify_all();
}

std::vector<Absence> CpuWatch::so_far() const {
    const std::lock_guard held{lock_};
    auto all = stolen_;
    all.insert(all.end(), waited_.begin(), waited_.end());
    return all;
}

CpuRecord CpuWatch::end(double ticks_per_second) {
    std::unique_lock held{lock_};
    end_duty(held);
    CpuRecord record{.cpu = cpu_};
    waited_ = merge(std::move(waited_), ticks_per_second);
    for (const auto& absence : stolen_) record.stolen_s += absence.at_least_s;
    for (const auto& absence : waited_) record.waited_s += absence.at_least_s;
    waited_.insert(waited_.end(), stolen_.begin(), stolen_.end());
    record.absences = merge(std::exchange(waited_, {}), ticks_per_second);
    return record;
}

void CpuWatch::end_duty(std::unique_lock<std::mutex>& held) {
    is_end_wanted_ = true;
    changed_.wait(held, [&] { return !is_on_duty_; });
}

void CpuWatch::live(int& failure, std::condition_variable& ready) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu_, &set);
    const int result = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    {
        // Notified under the lock, because the constructor's variables are gone a moment later.
        const std::lock_guard held{lock_};
        own_schedstat_.emplace("/proc/thread-self/schedstat");
        failure = result;
        ready.notify_all();
    }
    if (result != 0) return;
    // For waking in time, where the process has the right to it. If the sleeper waits for others, that is known and
    // subtracted.
    constexpr int most_urgent = -20;
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), most_urgent);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    std::unique_lock held{lock_};
    while (!quits_) {
        changed_.wait(held, [&] { return is_on_duty_ || quits_; });
        if (quits_) return;
        held.unlock();
        sleep_and_look();
        held.lock();
        is_on_duty_ = false;
        changed_.notify_all();
    }
}

void CpuWatch::sleep_and_look() {
    std::int64_t wake_at = begin_ns_ + period_ns;
    for (int sleeps = 1;; ++sleeps) {
        sleep_until(wake_at);
        const std::int64_t now = now_ns();
        const double late_s = static_cast<double>(now - wake_at) / ns_per_second;
        bool is_last = false;
        {
            const std::lock_guard held{lock_};
            is_last = quits_ || is_end_wanted_;
        }
        // How long a thread waited is only known when it runs again, which may be a moment after the sleeper does.
        const bool was_late = late_s > least_absence_s;
        if (was_late || is_last || sleeps >= sleeps_between_looks) {
            look(late_s);
            sleeps = was_late ? sleeps_between_looks - 1 : 0;
        }
        if (is_last) return;
        wake_at = std::max(wake_at + period_ns, now + period_ns / 2);
    }
}

void CpuWatch::look(double late_s) {
    const auto own = read_thread_times(own_schedstat_->read()).value_or(own_before_);
    const double own_wait_s = static_cast<double>(own.waited_ns - own_before_.waited_ns) / ns_per_second;
    own_before_ = own;
    double stolen_s = std::max(0.0, late_s - own_wait_s);
    if (late_s > least_absence_s) {
        // The hypervisor reports hundredths of a second, which may include time in which the sleeper waited for the
        // CPU.
        const double now_s = stolen_so_far();
        stolen_s = std::max(stolen_s, std::min(late_s, now_s - stolen_before_s_));
        stolen_before_s_ = now_s;
    }

    // Without watched threads, the sleeper is watched in their place.
    const auto look_at_threads = [&] {
        const auto& times = times_of_threads();
        const std::int64_t now = now_ns();
        return ledger_.look(times, static_cast<double>(now - std::exchange(looked_at_ns_, now)) / ns_per_second);
    };
    const double waited_s = schedstats_.empty() ? std::min(late_s, own_wait_s) : look_at_threads();

    // A CPU that was taken away between two wake-ups of the sleeper may have been away for up to a period before that.
    const auto seen = [now = pace::TickClock::now()](double at_least_s) {
        return Absence{.end = now, .longest_s = at_least_s + period_s, .at_least_s = at_least_s};
    };
    const std::lock_guard held{lock_};
    if (stolen_s > least_absence_s) stolen_.push_back(seen(stolen_s));
    if (waited_s > least_absence_s) waited_.push_back(seen(waited_s));
}

std::vector<ThreadTimes> CpuWatch::times_of_threads() {
    times_.resize(schedstats_.size());
    for (std::size_t i = 0; i < schedstats_.size(); ++i)
        times_[i] = read_thread_times(schedstats_[i].read()).value_or(times_[i]);
    return times_;
}

}  // namespace evenhand::witness
