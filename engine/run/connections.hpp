// SPDX-License-Identifier: Apache-2.0
// Trials of connections, through a DUT that keeps state (RFC 9693): what a trial needs before it, and counts after it.
#pragma once

#include <cstdint>

#include "frame/state_table.hpp"
#include "run/request.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

/// What became of the connections of one direction's trial, after it: counted once, by the trial that established them.
void count_connections(tally::DirectionResult& direction, const ConnectionRequest& request, frame::StateTable& table);

/// Throws Fault{no_memory} if the state table of so many connections is larger than the memory that is left: the kernel
/// would end a program for it, ours or another one, when it is touched.
void check_memory(std::uint64_t connections, std::uint64_t available_octets);

}  // namespace evenhand::run
