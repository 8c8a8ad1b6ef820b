// SPDX-License-Identifier: Apache-2.0
#include "run/sum_up.hpp"

#include <algorithm>
#include <utility>

#include "frame/layout.hpp"
#include "run/load.hpp"
#include "tally/reception_counts.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::Direction;

/// The delays of this tester's own frames, without what is known from the losses.
std::shared_ptr<tally::DelayResult> sum_up_delays(const tally::DelayTracks& tracks, const frame::TesterShare& own,
                                                  const tally::Losses& losses,
                                                  const tally::VariationHistogram* variation) {
    const auto& wish = tracks.wish();
    auto result = std::make_shared<tally::DelayResult>();
    result->first_frame = wish.first;
    result->has_tags = wish.tagged != 0;
    for (std::uint64_t n = 0; n < wish.tagged; ++n) {
        const auto sequence = tracks.tag_sequence(n);
        if (!own.has(sequence)) continue;
        if (tracks.is_left_out(n)) {
            ++result->left_out_tags;
        } else {
            result->tagged.push_back({sequence, tracks.tagged(n)});
        }
    }
    if (variation != nullptr) {
        result->variation.emplace(tally::DelayResult::Variation{}).pairs = losses.pairs();
        result->variation->differences.add_all(*variation);
        result->variation->differences.sort();
    }
    return result;
}

/// The offered counts follow from what each stream offered, since it sends its frames in order.
std::vector<tally::ClassCount> count_classes(const Tester& tester, Direction direction,
                                             const std::vector<TrialLoop::Sent>& streams,
                                             const tally::ReceiverTally& received) {
    const auto* const mix = tester.mix(direction);
    if (mix == nullptr) return {};
    std::vector<tally::ClassCount> counts;
    const auto side = plan::sending_side(direction);
    for (const auto& c : mix->classes()) {
        counts.push_back({.version = tester.traffic(direction).kinds[counts.size()].sent.version,
                          .frame_size = c.frame_size + tester.plan(c.plan).side(side).added_octets,
                          .received_frames = received.received_of_class[counts.size()],
                          .name = c.name,
                          .loss_at_most = c.loss_at_most});
        if (!received.flows.empty()) counts.back().flow = received.flows[counts.size() - 1];
    }
    for (const auto& sent : streams) {
        const auto offered = mix->count(sent.stream.share, sent.tally.offered_frames);
        for (std::size_t c = 0; c < counts.size(); ++c) counts[c].offered_frames += offered[c];
    }
    return counts;
}

/// The results of a direction's senders.
std::vector<TrialLoop::Sent> sent_of(const std::vector<std::unique_ptr<WorkerTrial>>& trials, Direction direction) {
    std::vector<TrialLoop::Sent> found;
    for (const auto& trial : trials) {
        for (const auto& sent : trial->loop->sent()) {
            if (sent.stream.direction == direction) found.push_back(sent);
        }
    }
    return found;
}

}  // namespace

tally::DirectionResult sum_up(const Tester& tester, const TrialRequest& request, Direction direction,
                              const std::vector<std::unique_ptr<WorkerTrial>>& trials, DirectionRecord& record,
                              Ticks start, double ticks_per_second, double sending_s, unsigned ring_frames) {
    const auto& own = record.share;
    auto& map = record.map;
    auto& losses = record.losses;
    const tally::DelayTracks* const tracks = record.delays ? &*record.delays : nullptr;
    tally::DirectionResult d{.direction = direction, .ring_frames = ring_frames};
    const auto frames_in = [&](std::uint64_t tenths) { return own.count(frames_in_tenths(request, tenths)); };
    Ticks last_send = start;
    Ticks max_overdue = 0;
    tally::ReceiverTally sum;
    const bool has_variation = tracks != nullptr && tracks->wish().has_variation;
    auto variation = has_variation ? std::make_unique<tally::VariationHistogram>() : nullptr;
    std::vector<tally::QueueGaps> gaps;
    for (const auto& trial : trials) {
        for (const auto& reception : trial->receptions) {
            if (reception.direction != direction) continue;
            sum.add(*reception.tally);
            d.received_by_queue.push_back(reception.tally->received_frames);
            auto& queue = gaps.emplace_back(
                tally::QueueGaps{.received_frames = reception.tally->received_frames, .excess_frames = {}});
            for (std::size_t i = 0; i < queue.excess_frames.size(); ++i) {
                queue.excess_frames[i] =
                    static_cast<std::uint64_t>(static_cast<double>(reception.tally->gap_excess[i]) / ticks_per_second *
                                               own.part() * peak_fps(request));
            }
            if (variation) variation->add(*reception.variation);
        }
    }
    losses.take_arrivals(map, map.end());
    std::shared_ptr<tally::DelayResult> delays;
    if (tracks != nullptr) {
        delays = sum_up_delays(*tracks, own, losses, variation.get());
        for (const auto& trial : trials) {
            for (const auto& reception : trial->receptions) {
                if (reception.direction != direction) continue;
                reception.spread->settle();
                delays->delays.add_all(*reception.spread);
            }
        }
        delays->delays.sort();
    }
    std::uint64_t end = 0;       // one more than the last frame that was to be sent
    std::uint64_t sent_end = 0;  // one more than the last frame that was sent
    const auto streams = sent_of(trials, direction);
    for (const auto& sent : streams) {
        const auto share = own.own_stream(sent.stream.share);
        d.intended_frames += sent.frames;
        if (sent.frames != 0) end = std::max(end, share.sequence(sent.frames - 1) + 1);
        if (const auto offered = sent.tally.offered_frames; offered != 0)
            sent_end = std::max(sent_end, share.sequence(offered - 1) + 1);
    }
    for (const auto& sent : streams) {
        const auto& t = sent.tally;
        const auto share = own.own_stream(sent.stream.share);
        d.offered_frames += t.offered_frames;
        d.overdue_frames += t.overdue_frames;
        d.refusals += t.refusals;
        d.largest_burst = std::max(d.largest_burst, t.largest_burst);
        max_overdue = std::max(max_overdue, t.max_overdue);
        if (t.offered_frames != 0 && static_cast<std::int64_t>(t.last_send - last_send) > 0) last_send = t.last_send;
        // Frames that never left are not lost and must not look so. If a stream is so far behind another one that the
        // map has settled frames it did not send, the trial is INVALID because of its offered load.
        for (std::uint64_t unsent = std::max(t.offered_frames, share.count(map.settled()));
             unsent < share.count(sent_end); ++unsent) {
            if (map.holds(share.sequence(unsent))) map.mark(share.sequence(unsent));
        }
    }
    losses.take_missing(map, sent_end, frames_in);
    losses.take_unsent(end, frames_in);
    if (delays) {
        delays->lost_frames = losses.missing_of_counted();
        delays->left_out_frames = sum.left_out_frames;
        delays->offered_frames = losses.came_of_counted() + delays->lost_frames;
        d.delays = delays;
    }
    d.offered_fps = static_cast<double>(d.offered_frames) /
                    std::max(sending_s, static_cast<double>(last_send - start) / ticks_per_second);
    // A moment in which a late sender caught up is no overload on purpose.
    if (!request.burst && !request.then)
        d.overload = tester.overload(direction, std::min(d.offered_fps, mean_fps(request)));
    d.max_overdue_us = static_cast<double>(max_overdue) * us_per_second / ticks_per_second;
    for (const auto& count : tally::reception_counts) d.*count.result = sum.*count.tally;
    d.corrupted_by = sum.corrupted_by;
    d.hop_limit_was_lowered = sum.first_hop_limit < frame::sent_ttl;
    if (tester.plan(0).is_translated() || (tester.plans() > 1 && tester.plan(1).is_translated()))
        d.mistranslated_frames = sum.mistranslated_frames;
    if (sum.mistranslated_frames[static_cast<std::size_t>(frame::TranslationFault::address_or_port)] != 0)
        d.first_mistranslated = sum.first_mistranslated;
    d.ahead_us = static_cast<double>(sum.max_ahead) * us_per_second / ticks_per_second;
    d.before_start_us = static_cast<double>(sum.max_before_start) * us_per_second / ticks_per_second;
    d.max_poll_gap_us = static_cast<double>(sum.max_poll_gap) * us_per_second / ticks_per_second;
    // At most the frames that exceed the ring's size: a burst that fits into the ring cannot overrun it, however long
    // it is not polled.
    d.gap_frames = std::min(tally::frames_lost_in_gaps(gaps, d.offered_frames, d.lost_frames()),
                            d.offered_frames > d.ring_frames ? d.offered_frames - d.ring_frames : 0);
    d.latency = sum.latency;
    d.delay_by_slice = sum.delay_by_slice;
    d.classes = count_classes(tester, direction, streams, sum);
    d.lost_by_tenth = losses.by_tenth();
    for (const auto place : losses.first()) d.first_lost.push_back(own.sequence(place));
    if (request.then && losses.last()) {
        const auto sequence = own.sequence(*losses.last());
        d.last_lost = {.sequence = sequence, .due_s = due_s(request, sequence)};
    }
    return d;
}

}  // namespace evenhand::run
