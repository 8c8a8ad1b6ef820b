// SPDX-License-Identifier: Apache-2.0
// Bench: connections that are established, as far as a responder knows.
#pragma once

#include <memory>

#include "frame/state_table.hpp"
#include "gateway_plan.hpp"

namespace evenhand::bench {

/// So many that the table, 40 MB, is in no cache.
constexpr std::uint64_t connections = 10'000'000;

[[nodiscard]] inline std::unique_ptr<frame::StateTable> state_table(plan::IpVersion version, std::uint64_t seed) {
    auto plan = gateway_plan(version);
    plan.source_ports = {.first = 10000, .count = 40000};
    plan.destination_ports = {.first = 1, .count = 100};
    auto table =
        std::make_unique<frame::StateTable>(plan::FourTuples{plan, connections, plan::TupleOrder::pseudorandom, seed});
    for (std::uint64_t k = 0; k < connections; ++k)
        table->record(k, {.host = static_cast<std::uint16_t>(k), .port = static_cast<std::uint16_t>(k | 1U)});
    return table;
}

}  // namespace evenhand::bench
