// SPDX-License-Identifier: Apache-2.0
// Bench: established connections, as a responder knows them.
#pragma once

#include <algorithm>
#include <memory>

#include "frame/state_table.hpp"
#include "gateway_plan.hpp"

namespace evenhand::bench {

/// Enough that the table, 40 MB, fits into no cache.
constexpr std::uint64_t connections = 10'000'000;

/// Both sides' hosts, and 4,000,000 pairs of ports, through a DUT whose pool is the hosts' own addresses.
[[nodiscard]] inline plan::AddressPlan plan_with_state(plan::IpVersion version) {
    auto plan = gateway_plan(version);
    plan.source_ports = {.first = 10000, .count = 40000};
    plan.destination_ports = {.first = 1, .count = 100};
    plan.right.peers = plan.left.hosts;
    plan.has_state = true;
    return plan;
}

/// `is_established`: each connection was translated to its own addresses; otherwise nothing is known yet.
[[nodiscard]] inline std::unique_ptr<frame::StateTable> state_table(const plan::AddressPlan& plan, std::uint64_t count,
                                                                    std::uint64_t seed, bool is_established) {
    auto table =
        std::make_unique<frame::StateTable>(plan::FourTuples{plan, count, plan::TupleOrder::pseudorandom, seed});
    for (std::uint64_t first = 0; is_established && first < count; first += plan::FlowBlock::size) {
        plan::FourTuples::Numbers numbers;
        plan::FlowBlock flows;
        for (std::size_t j = 0; j < numbers.size(); ++j)
            numbers[j] = static_cast<std::uint32_t>(std::min(first + j, count - 1));
        table->tuples().flows(numbers, flows);
        for (std::size_t j = 0; j < numbers.size(); ++j) {
            table->record(numbers[j], {.host = static_cast<std::uint16_t>(flows.source(j)),
                                       .port = static_cast<std::uint16_t>(flows.source_port(j))});
        }
    }
    return table;
}

}  // namespace evenhand::bench
