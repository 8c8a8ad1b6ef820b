// SPDX-License-Identifier: Apache-2.0
// The way through the DUT before the first trial: whether frames get through at all, and if not, what the tester has
// seen that explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "neighbor/sightings.hpp"
#include "plan/per_direction.hpp"
#include "plan/plan.hpp"

namespace evenhand::run {

/// What is probably wrong, in the form of a fault.
struct Hint {
    const char* code = "";  // other_vlan, sides_swapped, other_side, not_forwarded
    std::string what;
    std::string next;
};

/// The result of a few test frames in one direction.
struct Tried {
    std::uint64_t sent = 0;
    std::uint64_t came = 0;
};

struct WayFacts {
    std::vector<const plan::AddressPlan*> plans;  // one, or both of a mix
    plan::PerSide<neighbor::Tags> tags;           // that all frames there should have
    plan::PerSide<bool> is_resolved{};            // the DUT has told its MAC there
    plan::PerSide<neighbor::Seen> seen;
    plan::PerDirection<std::optional<Tried>> directions;  // nothing: not tried
};

/// Nothing if the DUT is known on both sides and each direction that was tried gets through.
[[nodiscard]] std::vector<Hint> hints_of(const WayFacts& facts);

/// The result of trying the way.
struct Way {
    plan::PerDirection<std::optional<Tried>> directions;
    std::vector<Hint> hints;
};

}  // namespace evenhand::run
