// SPDX-License-Identifier: Apache-2.0
// Who unmaps memory waits for the bursts that may be reading it, and for nothing else.
#include "port/bursts.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace bursts_test {

using namespace std::chrono_literals;
using evenhand::port::Bursts;

TEST_SUITE_BEGIN("bursts");

TEST_CASE("where nobody is, nobody is waited for") {
    const Bursts bursts;
    bursts.wait_until_all_were_between();
}

TEST_CASE("a worker does not wait for itself") {
    Bursts bursts;
    bursts.enter(3);
    bursts.wait_until_all_were_between();
    bursts.leave();
}

TEST_CASE("a burst is waited for") {
    bool says_so = false;
    SUBCASE("until its worker says that it is between two") { says_so = true; }
    SUBCASE("until its worker leaves") {}
    Bursts bursts;
    std::atomic<bool> is_in_burst{false};
    std::atomic<bool> is_waiting{false};
    std::atomic<bool> is_over{false};
    std::atomic<bool> quit{false};
    std::thread worker{[&] {
        bursts.enter(0);
        is_in_burst = true;
        while (!is_waiting) std::this_thread::yield();
        std::this_thread::sleep_for(20ms);  // who does not wait is through by then
        is_over = true;
        while (says_so && !quit) {
            Bursts::is_between();
            std::this_thread::yield();
        }
        bursts.leave();
    }};
    while (!is_in_burst) std::this_thread::yield();
    is_waiting = true;
    bursts.wait_until_all_were_between();
    CHECK(is_over);
    quit = true;
    worker.join();
}

// What DPDK's memif does to its workers: it says "not connected", and unmaps.
TEST_CASE("memory is not unmapped while a burst reads it") {
    constexpr std::size_t octets = 4096;
    constexpr int rounds = 300;
    Bursts bursts;
    std::atomic<const int*> connected{nullptr};
    std::atomic<bool> quit{false};
    std::array<std::atomic<std::uint64_t>, 2> reads{};
    std::array<std::thread, 2> workers;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        workers[i] = std::thread{[&, i] {
            bursts.enter(i);
            while (!quit.load(std::memory_order_relaxed)) {
                Bursts::is_between();
                for (int turn = 0; turn < 16; ++turn) {
                    const int* const memory = connected.load(std::memory_order_relaxed);
                    if (memory == nullptr) continue;
                    for (std::size_t j = 0; j < octets / sizeof(int); ++j)
                        reads[i].fetch_add(static_cast<const volatile int*>(memory)[j] == 7 ? 1 : 0,
                                           std::memory_order_relaxed);
                }
            }
            bursts.leave();
        }};
    }
    for (int round = 0; round < rounds; ++round) {
        int* const memory =
            static_cast<int*>(mmap(nullptr, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(memory != MAP_FAILED);
        memory[0] = 7;
        connected.store(memory, std::memory_order_release);
        const std::uint64_t before = reads[0].load() + reads[1].load();
        while (reads[0].load() + reads[1].load() == before) std::this_thread::yield();
        connected.store(nullptr, std::memory_order_relaxed);
        bursts.wait_until_all_were_between();
        REQUIRE(munmap(memory, octets) == 0);
    }
    quit = true;
    for (auto& worker : workers) worker.join();
}

TEST_SUITE_END();

}  // namespace bursts_test
