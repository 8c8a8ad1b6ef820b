// SPDX-License-Identifier: Apache-2.0
// A port's count and that of its receivers, read in an order in which they can be compared.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <thread>

#include "tally/result.hpp"

namespace evenhand::run {

/// A port that counts frames.
template <class P>
concept CountingPort = requires(const P& port) {
    { port.counters() } -> std::same_as<tally::PortCounters>;
    { port.counts_exactly() } -> std::same_as<bool>;
};

/// `taken` returns how many frames the receivers have taken from the port so far. It is called first, so that a frame
/// that arrives between the two readings seems to have been seen by the receivers but not counted by the port, which
/// does no harm. In the other order it would seem to have been counted but not seen: a loss of the tester's, which
/// could make a loss of the DUT's INVALID.
template <CountingPort Port, class Taken>
[[nodiscard]] tally::PortCounters count_before(const Port& port, Taken taken) {
    const std::uint64_t seen = taken();
    auto counters = port.counters();
    if (port.counts_exactly()) counters.seen_frames = seen;
    return counters;
}

/// The same after a trial. Frames that the port has counted may still be in its ring: the receivers get up to
/// `patience` to take them.
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
