// SPDX-License-Identifier: Apache-2.0
// The witness of the host: what is read, what is counted as an absence, and what a real CPU shows. D5, SEED-07.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "fault.hpp"
#include "witness/cpu_watch.hpp"

namespace witness_test {

using namespace evenhand;
using namespace std::chrono_literals;
using witness::Absence;
using witness::CpuRecord;

namespace {

constexpr double ticks_per_second = 1e9;
constexpr pace::Ticks start = 1'000'000'000'000;
constexpr pace::Ticks second = 1'000'000'000;
constexpr double rate_fps = 1000;
constexpr double ring_s = 0.0625;  // may be overrun from 50 ms on

/// One absence that was over so many milliseconds after the start, and lasted so many.
CpuRecord away(long over_ms, double lasted_ms) {
    constexpr double ms_per_second = 1e3;
    constexpr long ticks_per_ms = 1'000'000;
    return {.cpu = 0,
            .absences = {{.end = start + static_cast<pace::Ticks>(over_ms * ticks_per_ms),
                          .longest_s = lasted_ms / ms_per_second,
                          .at_least_s = lasted_ms / ms_per_second}}};
}

std::uint64_t frames(const std::vector<CpuRecord>& cpus) {
    return witness::frames_while_away(cpus, ring_s, rate_fps, start, start + second, ticks_per_second);
}

int first_cpu() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) return cpu;
    }
    return -1;
}

/// Busy on a CPU until it goes.
class BusyThread {
   public:
    explicit BusyThread(int cpu)
        : thread_{[this, cpu] {
              cpu_set_t set;
              CPU_ZERO(&set);
              CPU_SET(cpu, &set);
              (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
              id_ = gettid();
              while (!quits_) {}
          }} {
        while (id_ == 0) std::this_thread::sleep_for(1ms);
    }
    ~BusyThread() {
        quits_ = true;
        thread_.join();
    }
    BusyThread(const BusyThread&) = delete;
    BusyThread& operator=(const BusyThread&) = delete;

    [[nodiscard]] int id() const { return id_; }
    /// False if this user may not change that.
    bool be_scheduled(int policy, int urgency) {
        const sched_param param{.sched_priority = urgency};
        return pthread_setschedparam(thread_.native_handle(), policy, &param) == 0;
    }

    /// The waits that have ended.
    [[nodiscard]] std::uint64_t waited_ns() const {
        const witness::ProcFile times{"/proc/self/task/" + std::to_string(id()) + "/schedstat"};
        return witness::read_thread_times(times.read()).value().waited_ns;
    }
    /// On a CPU that others keep busy that can take seconds.
    void wait_until_it_waited(std::uint64_t wait_ns) const {
        while (waited_ns() < wait_ns) std::this_thread::sleep_for(1ms);
    }

   private:
    std::atomic<int> id_{0};
    std::atomic<bool> quits_{false};
    std::thread thread_;
};

}  // namespace

TEST_CASE("frames that came while the CPU was away count if the ring cannot have held them") {
    CHECK(frames({}) == 0);
    CHECK(frames({away(500, 49)}) == 0);
    CHECK(frames({away(500, 51)}) == 51);
    CHECK(frames({away(500, 100), away(900, 20)}) == 100);
    CHECK(frames({away(500, 100), away(900, 200)}) == 300);
}

TEST_CASE("a ring that an absence nearly filled may have been overrun: what the DUT had in it before is not known") {
    const auto of_256_frames = [](double lasted_ms) {
        return witness::frames_while_away({away(500, lasted_ms)}, 256 / 5e3, 5e3, start, start + second,
                                          ticks_per_second);
    };
    CHECK(of_256_frames(48.7) == 244);  // seen: 243 frames came, and three of them were lost
    CHECK(of_256_frames(41) == 205);
    CHECK(of_256_frames(40.9) == 0);
}

TEST_CASE("only what of an absence lies in the sending phase counts") {
    CHECK(frames({away(60, 100)}) == 60);
    CHECK(frames({away(-10, 100)}) == 0);
    CHECK(frames({away(1040, 100)}) == 60);
    CHECK(frames({away(1200, 100)}) == 0);
    CHECK(frames({away(1500, 2000)}) == 1000);
}

TEST_CASE("absences of which the DUT may still have work are one") {
    const auto series = [](std::initializer_list<std::pair<long, double>> over_and_lasted_ms) {
        CpuRecord record;
        for (const auto& [over_ms, lasted_ms] : over_and_lasted_ms)
            record.absences.push_back(away(over_ms, lasted_ms).absences.front());
        return record;
    };
    CHECK(frames({series({{140, 40}})}) == 0);
    CHECK(frames({series({{140, 40}, {185, 40}})}) == 80);                  // 5 ms between them
    CHECK(frames({series({{140, 40}, {220, 40}})}) == 0);                   // 40 ms: it may have worked off all
    CHECK(frames({series({{130, 30}, {180, 30}, {231, 30}})}) == 0);        // 30 - 20 + 30 - 21 + 30 fit
    CHECK(frames({series({{130, 30}, {175, 30}, {220, 30}})}) == 90);       // 30 - 15 + 30 - 15 + 30 do not
    CHECK(frames({series({{140, 40}, {185, 40}, {600, 40}})}) == 80);       // the last one is by itself
    CHECK(frames({series({{140, 60}, {600, 40}, {645, 35}})}) == 60 + 75);  // two series
    CHECK(frames({series({{140, 40}}), series({{185, 40}})}) == 0);         // of two CPUs
    CHECK(frames({series({{10, 40}, {55, 40}})}) == 0);  // the first began before frames were sent: 10 - 5 + 40
    CHECK(frames({series({{20, 40}, {65, 40}})}) == 20 + 40);
    CHECK(frames({series({{950, 40}, {1035, 40}})}) == 0);    // when the second begins, no more are sent
    CHECK(frames({series({{500, 400}, {700, 10}})}) == 400);  // a ring holds no more than it holds
}

TEST_CASE("what two absences of a series have in common counts once") {
    // The second may have begun before the first was over, as far as its watcher knows.
    const auto ms = [](std::int64_t n) { return start + static_cast<pace::Ticks>(n * 1'000'000); };
    CpuRecord record;
    record.absences = {{.end = ms(140), .longest_s = 0.06, .at_least_s = 0.06},
                       {.end = ms(180), .longest_s = 0.07, .at_least_s = 0.035}};
    CHECK(frames({record}) == 60 + 40);
}

TEST_CASE("short absences in which a DUT keeps up explain nothing") {
    const auto regular = [](double every_ms, double lasted_ms, double seen_late_ms) {
        CpuRecord record;
        for (double over_ms = every_ms; over_ms < 1000; over_ms += every_ms) {
            record.absences.push_back({.end = start + static_cast<pace::Ticks>(over_ms * 1e6),
                                       .longest_s = (lasted_ms + seen_late_ms) / 1e3,
                                       .at_least_s = lasted_ms / 1e3});
        }
        return record;
    };
    const auto of_ring = [](const CpuRecord& record, double ring_ms) {
        return witness::frames_while_away({record}, ring_ms / 1e3, rate_fps, start, start + second, ticks_per_second);
    };
    CHECK(of_ring(regular(2.9, 0.5, 1), 2.56) == 0);
    CHECK(of_ring(regular(1.5, 0.6, 1), 16.4) == 0);
    CHECK(of_ring(regular(3.9, 1, 1), 2.56) == 0);
    // Another program has the CPU for most of the time: its time is counted once.
    CHECK(of_ring(regular(4, 3, 1), 16.4) == doctest::Approx(1000).epsilon(0.01));
}

TEST_CASE("the longest absence is what was seen of it") {
    CpuRecord record;
    CHECK(record.longest_s() == 0);
    record.absences = {{.longest_s = 0.02, .at_least_s = 0.019}, {.longest_s = 0.01, .at_least_s = 0.009}};
    CHECK(record.longest_s() == 0.019);
}

TEST_CASE("the scheduler's times of a thread") {
    const auto times = witness::read_thread_times("123456789 4711 42\n");
    REQUIRE(times);
    CHECK(times->ran_ns == 123456789);
    CHECK(times->waited_ns == 4711);
    for (const auto* const text : {"", "\n", "12", "x 1 2", "1 x 2"}) CHECK_FALSE(witness::read_thread_times(text));
    CHECK(witness::ProcFile{"/proc/0/schedstat"}.read().empty());
}

TEST_CASE("stolen time of a CPU, and of no other") {
    const std::string stat =
        "cpu  1 1 1 1 1 1 1 999 0 0\ncpu1 1 2 3 4 5 6 7 100 0 0\ncpu11 1 2 3 4 5 6 7 300 0 0\nintr 8\n";
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    CHECK(witness::read_stolen_s(stat, 1) == doctest::Approx(100 / ticks));
    CHECK(witness::read_stolen_s(stat, 11) == doctest::Approx(300 / ticks));
    CHECK(witness::read_stolen_s(stat, 2) == 0);
    CHECK(witness::read_stolen_s("", 0) == 0);
    CHECK(witness::read_stolen_s("cpu0 1 2", 0) == 0);
}

TEST_CASE("a wait for others counts, a wait for watched threads does not") {
    constexpr std::uint64_t ms = 1'000'000;
    witness::WaitLedger ledger{{{}, {}}};
    CHECK(ledger.look({{}, {}}, 0.001) == 0);
    // The first ran while the second waited for it.
    CHECK(ledger.look({{.ran_ns = 20 * ms}, {.ran_ns = 1 * ms, .waited_ns = 20 * ms}}, 0.021) == doctest::Approx(0));
    // Both waited for a stranger, the second for the first as well.
    CHECK(ledger.look({{.ran_ns = 25 * ms, .waited_ns = 100 * ms}, {.ran_ns = 2 * ms, .waited_ns = 125 * ms}}, 0.106) ==
          doctest::Approx(0.1).epsilon(0.02));
    CHECK(ledger.look({{.ran_ns = 25 * ms, .waited_ns = 100 * ms}, {.ran_ns = 2 * ms, .waited_ns = 125 * ms}}, 0.106) ==
          0);
}

TEST_CASE("a wait is counted when it is over, and what others ran since it began is taken off then") {
    constexpr std::uint64_t ms = 1'000'000;
    witness::WaitLedger ledger{{{}, {}}};
    // The second waits all the time, but the scheduler tells so only when it runs.
    for (std::uint64_t ran = 8; ran <= 40; ran += 8) CHECK(ledger.look({{.ran_ns = ran * ms}, {}}, 0.008) == 0);
    CHECK(ledger.look({{.ran_ns = 40 * ms}, {.ran_ns = 1 * ms, .waited_ns = 55 * ms}}, 0.017) ==
          doctest::Approx(0.015).epsilon(0.03));
}

TEST_CASE("threads that take turns on a CPU wait for each other, whenever somebody looks") {
    // The scheduler counts a wait when it ends, so that at each look one of them has a wait that is not counted yet.
    constexpr double turn_s = 0.003;
    constexpr double look_s = 0.008;
    double absences_s = 0;
    double looked_at_s = 0;
    witness::WaitLedger ledger{{{}, {}}};
    std::array<witness::ThreadTimes, 2> times{};
    double at_s = 0;
    int looks = 0;
    for (double next_look_s = look_s; at_s < 10; at_s += turn_s) {
        const auto turn = static_cast<std::size_t>(std::llround(at_s / turn_s)) % 2;
        auto& runs = times.at(turn);
        runs.waited_ns += static_cast<std::uint64_t>(turn_s * 1e9);  // through the turn of the other
        // A stranger has the CPU once, for 20 ms.
        if (at_s > 5 && at_s < 5 + turn_s) {
            runs.waited_ns += 20'000'000;
            next_look_s += 0.02;
            const double found_s = ledger.look({times[0], times[1]}, at_s - looked_at_s + 0.02);
            looked_at_s = at_s;
            CHECK(found_s > 0.015);
            CHECK(found_s < 0.03);
            continue;
        }
        runs.ran_ns += static_cast<std::uint64_t>(turn_s * 1e9);
        if (at_s < next_look_s) continue;
        next_look_s = at_s + look_s;
        ++looks;
        absences_s += ledger.look({times[0], times[1]}, at_s - looked_at_s);
        looked_at_s = at_s;
    }
    CHECK(looks > 500);
    CHECK(absences_s < 0.001);
}

TEST_CASE("absences that overlap are one") {
    const auto ends_at = [](long ms, double lasted_s) {
        return Absence{.end = start + static_cast<pace::Ticks>(ms * 1'000'000),
                       .longest_s = lasted_s + 0.001,
                       .at_least_s = lasted_s};
    };
    CHECK(witness::merge({}, ticks_per_second).empty());
    CHECK(witness::merge({ends_at(100, 0.01), ends_at(200, 0.01)}, ticks_per_second).size() == 2);
    const auto one = witness::merge({ends_at(110, 0.1), ends_at(100, 0.1)}, ticks_per_second);
    REQUIRE(one.size() == 1);
    CHECK(one[0].end == start + 110'000'000);
    CHECK(one[0].at_least_s == doctest::Approx(0.11));
    CHECK(one[0].longest_s == doctest::Approx(0.111));
    CHECK(witness::merge({ends_at(50, 0.01), ends_at(70, 0.01), ends_at(100, 0.1)}, ticks_per_second).size() == 1);
    // Also where the counter begins anew between them.
    const auto around = witness::merge({{.end = 5'000'000, .longest_s = 0.1, .at_least_s = 0.1},
                                        {.end = 0ULL - 5'000'000, .longest_s = 0.1, .at_least_s = 0.1}},
                                       ticks_per_second);
    REQUIRE(around.size() == 1);
    CHECK(around[0].end == 5'000'000);
    CHECK(around[0].at_least_s == doctest::Approx(0.11));
}

TEST_CASE("a thread that waits for its CPU is seen") {
    const BusyThread ours{first_cpu()};
    const BusyThread theirs{first_cpu()};
    witness::CpuWatch watch{static_cast<unsigned>(first_cpu()), {ours.id()}};
    witness::CpuRecord record{};
    // The watch has a thread of its own, which a busy host may start late: then it sees a part only.
    for (int attempt = 0; attempt < 20 && record.waited_s <= 0.05; ++attempt) {
        const auto begin = pace::sample_clocks();
        const auto before_ns = ours.waited_ns();
        watch.begin();
        ours.wait_until_it_waited(before_ns + 100'000'000);
        record = watch.end(pace::ticks_per_second(begin, pace::sample_clocks()));
    }
    CHECK(record.waited_s > 0.05);
    CHECK_FALSE(record.absences.empty());
    CHECK(record.longest_s() <= record.waited_s + record.stolen_s);
}

TEST_CASE("a wait that is over before the watch has had its first turn is seen") {
    BusyThread ours{first_cpu()};
    std::optional<BusyThread> other{std::in_place, first_cpu()};
    witness::CpuWatch watch{static_cast<unsigned>(first_cpu()), {ours.id()}};
    // Both keep the CPU from the watch, and the other keeps it from ours as well.
    if (!other->be_scheduled(SCHED_FIFO, 2)) return;
    ours.be_scheduled(SCHED_FIFO, 1);
    const auto before_ns = ours.waited_ns();
    const auto begin = pace::sample_clocks();
    watch.begin();
    std::this_thread::sleep_for(150ms);
    other.reset();
    ours.wait_until_it_waited(before_ns + 100'000'000);
    ours.be_scheduled(SCHED_OTHER, 0);
    CHECK(watch.end(pace::ticks_per_second(begin, pace::sample_clocks())).waited_s > 0.05);
}

TEST_CASE("a watch begins anew although what it began before has no end") {
    const BusyThread ours{first_cpu()};
    witness::CpuWatch watch{static_cast<unsigned>(first_cpu()), {ours.id()}};
    const auto until = std::chrono::steady_clock::now() + 300ms;
    do {
        watch.begin();
    } while (std::chrono::steady_clock::now() < until);
    const auto record = watch.end(ticks_per_second);
    CHECK(record.longest_s() <= record.waited_s + record.stolen_s);
}

TEST_CASE("threads that are gone are not watched") {
    int gone = 0;
    {
        const BusyThread thread{first_cpu()};
        gone = thread.id();
    }
    witness::CpuWatch watch{static_cast<unsigned>(first_cpu()), {gone}};
    watch.begin();
    std::this_thread::sleep_for(20ms);
    CHECK(watch.end(ticks_per_second).waited_s == 0);
}

TEST_CASE("a CPU that is not there cannot be watched") {
    try {
        const witness::CpuWatch watch{100'000, {}};
        FAIL("no fault");
    } catch (const Fault& fault) {
        CHECK(fault.code == FaultCode::no_cpu);
        CHECK(fault.where == "dut.cpus");
    }
}

}  // namespace witness_test
