// SPDX-License-Identifier: Apache-2.0
// Station 6: judged frames by flow, while a trial runs, and whether more of them are lost than may be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frame/mix.hpp"
#include "plan/per_direction.hpp"
#include "tally/result.hpp"
#include "tally/sequence_map.hpp"

namespace evenhand::run {

/// Frames of one direction that are judged.
struct JudgedFrames {
    tally::CleanCounts all;
    std::vector<tally::CleanCounts> flows;  // by class; empty if the frames are of no flows

    void add(const JudgedFrames& more) {
        all.frames += more.all.frames;
        all.lost_frames += more.all.lost_frames;
        flows.resize(std::max(flows.size(), more.flows.size()));
        for (std::size_t f = 0; f < more.flows.size(); ++f) {
            flows[f].frames += more.flows[f].frames;
            flows[f].lost_frames += more.flows[f].lost_frames;
        }
    }
};

/// Which flows have a limit of their own, over both directions, and which are judged together with all others. For a
/// tester that sends all frames itself.
class FlowLimits {
   public:
    using Mixes = plan::PerDirection<const frame::FrameMix*>;

    /// `mixes`: of the tested directions; null where all frames are alike, or not tested. They outlive it.
    FlowLimits(const Mixes& mixes, double loss_ratio) : limits_{loss_ratio} {
        std::map<std::string, std::size_t> by_name;
        for (const auto direction : plan::both_directions) {
            const auto* const mix = mixes[direction];
            if (mix == nullptr || !mix->has_flows()) continue;
            auto& of = of_[direction];
            of.mix = mix;
            of.in_period = mix->count({}, mix->period());
            for (const auto& c : mix->classes()) {
                if (!c.loss_at_most) {
                    of.judged_as.push_back(0);
                    continue;
                }
                const auto [found, is_new] = by_name.try_emplace(c.name, limits_.size());
                if (is_new) limits_.push_back(*c.loss_at_most);
                of.judged_as.push_back(found->second);
            }
        }
    }

    /// Whether a flow has a limit of its own.
    [[nodiscard]] bool has_own() const noexcept { return limits_.size() > 1; }

    /// The frames first .. last-1, of which the map still holds what is missing.
    [[nodiscard]] JudgedFrames count(plan::Direction direction, const tally::SequenceMap& map, std::uint64_t first,
                                     std::uint64_t last) const {
        const auto& of = of_[direction];
        JudgedFrames found{.all = {.frames = last - first}, .flows = {}};
        if (of.mix == nullptr) {
            found.all.lost_frames = map.missing(first, last);
            return found;
        }
        found.flows.resize(of.in_period.size());
        const std::uint64_t periods = (last - first) / of.mix->period();
        for (std::size_t f = 0; f < found.flows.size(); ++f) found.flows[f].frames = periods * of.in_period[f];
        for (std::uint64_t k = first + periods * of.mix->period(); k < last; ++k)
            ++found.flows[of.mix->class_of(k)].frames;
        map.each_missing(first, last, [&](std::uint64_t k) {
            ++found.all.lost_frames;
            ++found.flows[of.mix->class_of(k)].lost_frames;
        });
        return found;
    }

    /// Whether more of these frames are lost than of so many may be. `frames`: of each direction; they are of flows in
    /// the shares of these. Null: of the counted ones.
    [[nodiscard]] bool are_exceeded(const plan::PerDirection<JudgedFrames>& counts,
                                    const plan::PerDirection<double>* frames = nullptr) const {
        std::vector<double> allowed(limits_.size());
        std::vector<std::uint64_t> lost(limits_.size());
        for (const auto direction : plan::both_directions) {
            const auto& of = of_[direction];
            const auto& count = counts[direction];
            const double all = frames != nullptr ? (*frames)[direction] : static_cast<double>(count.all.frames);
            if (of.mix == nullptr) {
                allowed[0] += limits_[0] * all;
                lost[0] += count.all.lost_frames;
                continue;
            }
            for (std::size_t f = 0; f < of.judged_as.size(); ++f) {
                const auto as = of.judged_as[f];
                const tally::CleanCounts flow = f < count.flows.size() ? count.flows[f] : tally::CleanCounts{};
                const double share = static_cast<double>(of.in_period[f]) / static_cast<double>(of.mix->period());
                allowed[as] += limits_[as] * (frames != nullptr ? share * all : static_cast<double>(flow.frames));
                lost[as] += flow.lost_frames;
            }
        }
        for (std::size_t as = 0; as < lost.size(); ++as) {
            if (static_cast<double>(lost[as]) > allowed[as]) return true;
        }
        return false;
    }

    /// The same of one direction alone.
    [[nodiscard]] bool are_exceeded_in(plan::Direction direction, const JudgedFrames& count) const {
        plan::PerDirection<JudgedFrames> alone{};
        alone[direction] = count;
        return are_exceeded(alone);
    }

   private:
    struct OfDirection {
        const frame::FrameMix* mix = nullptr;  // of flows
        std::vector<std::uint64_t> in_period;  // frames of each class
        std::vector<std::size_t> judged_as;    // which limit is that of each class
    };
    plan::PerDirection<OfDirection> of_{};
    std::vector<double> limits_;  // that of the trial, then those of flows
};

}  // namespace evenhand::run
