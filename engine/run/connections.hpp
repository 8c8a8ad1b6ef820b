// SPDX-License-Identifier: Apache-2.0
// Trials of connections, through a DUT that keeps state (RFC 9693): what a trial needs before it, and counts after it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "fault.hpp"
#include "frame/state_table.hpp"
#include "run/request.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// What became of the connections of one direction's trial, after it: counted once, by the trial that established them.
void count_connections(tally::DirectionResult& direction, const ConnectionRequest& request, frame::StateTable& table);

/// Throws Fault{no_memory} if the state table of so many connections is larger than the memory that is left: the kernel
/// would end a program for it, ours or another one, when it is touched. `part`: of all connections that these are.
inline void check_memory(std::uint64_t connections, std::uint64_t available_octets, double part = 1) {
    constexpr std::uint64_t octets_of_one = 4;
    const std::uint64_t most = available_octets / octets_of_one;
    if (connections <= most) return;
    constexpr double mega = 1e6;
    throw Fault{
        FaultCode::no_memory,
        fmt::format("a state table of {} connections takes {:.0f} MB, but {:.0f} MB are available", connections,
                    static_cast<double>(connections * octets_of_one) / mega,
                    static_cast<double>(available_octets) / mega),
        "connections.count",
        fmt::format("Use at most {:.0f}, or end other programs.", std::floor(static_cast<double>(most) / part))};
}

}  // namespace evenhand::run
