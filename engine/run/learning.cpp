// SPDX-License-Identifier: Apache-2.0
#include "run/learning.hpp"

namespace evenhand::run {

HostsToReach::HostsToReach(const plan::AddressPlan& plan, plan::Direction direction, bool shared)
    : direction_{direction},
      from_{plan.sent(direction).sources},
      to_{plan.sent(direction).destinations, plan::numbered_of(plan.side(plan::receiving_side(direction)))},
      found_{plan.arriving(direction).destinations, plan::numbered_of(plan.side(plan::receiving_side(direction)))},
      map_{to_.size(), shared} {}

bool HostsToReach::begin_round() {
    pending_.clear();
    for (std::uint32_t host = 0; host < to_.size(); ++host) {
        if (!map_.has(host)) pending_.push_back(host);
    }
    rounds_ += static_cast<unsigned>(!pending_.empty());
    return !pending_.empty();
}

frame::LearningSource HostsToReach::make_source(const plan::AddressPlan& plan, std::uint8_t stream,
                                                frame::StreamShare share, const plan::MacAddress& source_mac,
                                                const plan::MacAddress& destination_mac) const {
    return {plan,           {.direction = direction_, .stream = stream}, from_, to_, pending_, share, source_mac,
            destination_mac};
}

LearningResult::OfSide HostsToReach::result() const {
    LearningResult::OfSide side{.hosts = hosts(), .reachable = reachable(), .rounds = rounds_};
    for (const auto host : map_.first_missing(hosts(), most_unreachable_listed))
        side.unreachable.push_back(found_.address(static_cast<std::uint32_t>(host)));
    return side;
}

LearningResult learn_in_rounds(std::vector<HostsToReach>& directions, unsigned most_rounds,
                               const std::function<bool(const LearningProgress&)>& run_round) {
    const auto side_of = [](const HostsToReach& hosts) { return plan::receiving_side(hosts.direction()); };
    LearningResult result;
    std::uint64_t reached_before = 0;
    for (unsigned round = 1; round <= most_rounds && !result.stopped; ++round) {
        LearningProgress progress{.round = round, .sides = {}};
        bool is_any_pending = false;
        std::uint64_t reached = 0;
        for (auto& hosts : directions) {
            is_any_pending = hosts.begin_round() || is_any_pending;
            progress.sides[side_of(hosts)] = {.hosts = hosts.hosts(), .reachable = hosts.reachable()};
            reached += hosts.reachable();
        }
        if (!is_any_pending) break;
        if (reached > reached_before) result.rate_share /= 2;
        reached_before = reached;
        progress.rate_share = result.rate_share;
        result.stopped = !run_round(progress);
    }
    for (const auto& hosts : directions) result.sides[side_of(hosts)] = hosts.result();
    return result;
}

}  // namespace evenhand::run
