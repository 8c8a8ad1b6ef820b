// SPDX-License-Identifier: Apache-2.0
// Local: writes the questions of the router's own neighbour table.
#pragma once

#include <cstddef>
#include <span>

#include "neighbor/messages.hpp"
#include "tables/interface.hpp"
#include "tables/neighbor_table.hpp"

namespace evenhand::router {

constexpr std::size_t question_octets = neighbor::solicitation_octets;  // the larger of the two kinds

/// Writes an ARP request or a neighbour solicitation, to everyone or as a unicast probe, from Interface::source_for().
/// `interface` is the one that the question names. Returns the octets written; 0 if the interface has no address of the
/// family to ask from, or if `room` is below question_octets.
[[nodiscard]] std::size_t write_question(std::span<std::byte> room, const Interface& interface,
                                         const NeighborQuestion& question) noexcept;

}  // namespace evenhand::router
