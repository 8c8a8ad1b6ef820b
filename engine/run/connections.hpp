// SPDX-License-Identifier: Apache-2.0
// Trials of connections through a DUT that keeps state (RFC 9693): what is prepared before such a trial, and counted
// after it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "frame/state_table.hpp"
#include "run/memory.hpp"
#include "run/request.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// Adds the connections' counts to the result of one direction. They are counted once, after the trial that established
/// the connections.
void count_connections(tally::DirectionResult& direction, const ConnectionRequest& request, frame::StateTable& table);

/// Throws Fault{no_memory} if the state table of that many connections is larger than the available memory: when it is
/// touched, the kernel would kill a program, ours or another one. `part`: the part of all connections that these are.
inline void check_memory(std::uint64_t connections, std::uint64_t available_octets, double part = 1) {
    constexpr std::uint64_t octets_of_one = 4;
    const std::uint64_t most = available_octets / octets_of_one;
    check_fits(fmt::format("a state table of {} connections", connections), connections * octets_of_one,
               available_octets, "connections.count",
               fmt::format("Use at most {:.0f}, or end other programs.", std::floor(static_cast<double>(most) / part)));
}

}  // namespace evenhand::run
