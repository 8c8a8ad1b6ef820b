// SPDX-License-Identifier: Apache-2.0
// Learning: which hosts have been reached, and which to send to next. It uses the ordinary loops.
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

/// The hosts that one direction sends to. Between rounds it belongs to the session; during a round the receivers use
/// its map and the senders its list.
class HostsToReach {
   public:
    /// `shared`: several receivers mark at once. Throws std::bad_alloc.
    HostsToReach(const plan::AddressPlan& plan, plan::Direction direction, bool shared);

    /// Lists the hosts that have not been reached; false if there is none.
    bool begin_round();

    /// The source of this round's frames for one stream. Both MACs as in run_trial().
    [[nodiscard]] frame::LearningSource make_source(const plan::AddressPlan& plan, std::uint8_t stream,
                                                    frame::StreamShare share, const plan::MacAddress& source_mac,
                                                    const plan::MacAddress& destination_mac) const;

    /// Whether the hosts' MACs should be announced before the round: the DUT may have other MACs for them from an
    /// earlier session. That is done before each round but the first.
    [[nodiscard]] bool wants_announcements() const noexcept { return rounds_ > 1 && !pending_.empty(); }

    [[nodiscard]] plan::Direction direction() const noexcept { return direction_; }
    [[nodiscard]] std::span<const std::uint32_t> pending() const noexcept { return pending_; }
    /// One bit for each host, whose number is the sequence number of its frame.
    [[nodiscard]] tally::SequenceMap& map() noexcept { return map_; }
    [[nodiscard]] std::uint64_t hosts() const noexcept { return map_.frames(); }
    [[nodiscard]] std::uint64_t reachable() const noexcept { return hosts() - map_.missing(0, hosts()); }
    [[nodiscard]] unsigned rounds() const noexcept { return rounds_; }
    [[nodiscard]] LearningResult::OfSide result() const;

   private:
    plan::Direction direction_;
    plan::HostSet from_;
    plan::HostSet to_;     // by the addresses that frames are sent to
    plan::HostSet found_;  // the same hosts by the addresses that they have on their own side
    tally::SequenceMap map_;
    std::vector<std::uint32_t> pending_;
    unsigned rounds_ = 0;
};

/// Runs rounds, at most `most_rounds`, until every host has been reached. `run_round` sends to all pending hosts and
/// marks those that were reached; it is given the progress before the round, and returns false to end learning. A round
/// that reached some hosts but missed others may have been too fast for the DUT: the next one has half its rate. A
/// round that reached no host says nothing about the rate.
[[nodiscard]] LearningResult learn_in_rounds(std::vector<HostsToReach>& directions, unsigned most_rounds,
                                             const std::function<bool(const LearningProgress&)>& run_round);

}  // namespace evenhand::run
