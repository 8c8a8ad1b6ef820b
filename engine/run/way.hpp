// SPDX-License-Identifier: Apache-2.0
// The way through the DUT before the first trial: whether frames get through at all, and if not, what was seen that
// says why.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "neighbor/sightings.hpp"
#include "plan/plan.hpp"

namespace evenhand::run {

/// What is probably wrong, as a fault says it.
struct Hint {
    const char* code = "";  // other_vlan, sides_swapped, other_side, not_forwarded
    std::string what;
    std::string next;
};

/// A few test frames of one direction.
struct Tried {
    std::uint64_t sent = 0;
    std::uint64_t came = 0;
};

struct WayFacts {
    std::vector<const plan::AddressPlan*> plans;     // one, or both of a mix
    std::array<neighbor::Tags, 2> tags;              // by side: what all frames there should have
    std::array<bool, 2> is_resolved{};               // by side
    std::array<neighbor::Seen, 2> seen;              // by side
    std::array<std::optional<Tried>, 2> directions;  // by direction; nothing: not tried
};

/// Nothing if the DUT is known on both sides and each direction that was tried gets through.
[[nodiscard]] std::vector<Hint> hints_of(const WayFacts& facts);

/// What was found on the way.
struct Way {
    std::array<std::optional<Tried>, 2> directions;  // by direction
    std::vector<Hint> hints;
};

}  // namespace evenhand::run
