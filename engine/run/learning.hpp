// SPDX-License-Identifier: Apache-2.0
// Learning: which hosts have been reached, and whom to send to next. Rounds of the ordinary loops; no third one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "frame/learning_source.hpp"
#include "plan/plan.hpp"
#include "run/request.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// The hosts that one direction leads to. Between rounds it belongs to the session, during a round its map to the
/// receivers and its list to the senders.
class HostsToReach {
   public:
    /// `shared`: several receivers mark at once. Throws std::bad_alloc.
    HostsToReach(const plan::AddressPlan& plan, plan::Direction direction, bool shared);

    /// Lists the hosts that have not been reached; false if there is none.
    bool begin_round();

    /// The frames of this round for one stream. Both MACs as in run_trial().
    [[nodiscard]] frame::LearningSource make_source(const plan::AddressPlan& plan, std::uint8_t stream,
                                                    frame::StreamShare share, const plan::MacAddress& source_mac,
                                                    const plan::MacAddress& destination_mac) const;

    /// They may be known to the DUT by MACs that an earlier session gave them. Whoever is asked for once more is told
    /// first.
    [[nodiscard]] bool wants_announcements() const noexcept { return rounds_ > 1 && !pending_.empty(); }

    [[nodiscard]] plan::Direction direction() const noexcept { return direction_; }
    [[nodiscard]] std::span<const std::uint32_t> pending() const noexcept { return pending_; }
    /// One bit a host: its number is the sequence number of its frame.
    [[nodiscard]] tally::SequenceMap& map() noexcept { return map_; }
    [[nodiscard]] std::uint64_t hosts() const noexcept { return map_.frames(); }
    [[nodiscard]] std::uint64_t reachable() const noexcept { return hosts() - map_.missing(0, hosts()); }
    [[nodiscard]] unsigned rounds() const noexcept { return rounds_; }
    [[nodiscard]] LearningResult::OfSide result() const;

   private:
    plan::Direction direction_;
    plan::HostSet from_;
    plan::HostSet to_;     // as frames are sent to them
    plan::HostSet found_;  // the same hosts by the addresses that they have on their own side
    tally::SequenceMap map_;
    std::vector<std::uint32_t> pending_;
    unsigned rounds_ = 0;
};

/// Round after round, `most_rounds` at most, until every host has been reached. `run_round` sends to all pending hosts
/// and marks who came; it is given what was reached before it, and returns false to end here. A round that reached some
/// hosts and missed others may have been too fast for the DUT: the next one has half its rate. One that reached nobody
/// says nothing of the rate.
[[nodiscard]] LearningResult learn_in_rounds(std::vector<HostsToReach>& directions, unsigned most_rounds,
                                             const std::function<bool(const LearningProgress&)>& run_round);

}  // namespace evenhand::run
