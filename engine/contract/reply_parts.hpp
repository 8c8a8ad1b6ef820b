// SPDX-License-Identifier: Apache-2.0
// Contract: parts of several replies. For the files that write them: others see no JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "tally/clean_time.hpp"
#include "tally/result.hpp"

namespace evenhand::contract {

// Keys keep the order in which they are written, so that a line begins with what is most important.
using Ordered = nlohmann::ordered_json;

[[nodiscard]] inline std::string line_of(const Ordered& json) {
    return json.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

/// null if there is no value.
[[nodiscard]] inline Ordered optional_number(std::optional<double> value) {
    return value ? Ordered(*value) : Ordered(nullptr);
}

[[nodiscard]] Ordered port_counters(const tally::PortCounters& c);
[[nodiscard]] Ordered clock_offsets(const std::vector<tally::ClockOffset>& offsets);
[[nodiscard]] Ordered left_out_parts(std::span<const tally::LeftOut> left_out);

}  // namespace evenhand::contract
