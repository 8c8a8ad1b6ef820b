// SPDX-License-Identifier: Apache-2.0
// A port's count and that of its receivers, taken so that they can be held against each other.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <thread>

#include "tally/result.hpp"

namespace evenhand::run {

/// A port that counts.
template <class P>
concept CountingPort = requires(const P& port) {
    { port.counters() } -> std::same_as<tally::PortCounters>;
    { port.counts_exactly() } -> std::same_as<bool>;
};

/// `taken` says how many frames the receivers have taken from the port so far. It is asked first: a frame that comes
/// between the two readings is then one that the receivers seem to have seen beyond the port's count, which charges
/// nobody. The other way round it would be one that the port had and the receivers did not see: a loss of the tester's,
/// which could make a loss of the DUT's INVALID.
template <CountingPort Port, class Taken>
[[nodiscard]] tally::PortCounters count_before(const Port& port, Taken taken) {
    const std::uint64_t seen = taken();
    auto counters = port.counters();
    if (port.counts_exactly()) counters.seen_frames = seen;
    return counters;
}

/// The same after a trial. What the port has counted may still wait in its ring: the receivers have up to `patience` to
/// take it.
template <CountingPort Port, class Taken>
[[nodiscard]] tally::PortCounters count_after(const Port& port, const tally::PortCounters& before, Taken taken,
                                              std::chrono::milliseconds patience = std::chrono::milliseconds{100}) {
    auto counters = port.counters();
    if (!before.seen_frames) return counters;
    const auto give_up = std::chrono::steady_clock::now() + patience;
    std::uint64_t seen = taken();
    while (seen - *before.seen_frames < counters.received_frames - before.received_frames &&
           std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        seen = taken();
    }
    counters.seen_frames = seen;
    return counters;
}

}  // namespace evenhand::run
