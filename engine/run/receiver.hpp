// SPDX-License-Identifier: Apache-2.0
// Station 5: THE receiver loop. Takes received frames, determines what they are, and counts them; passes neighbours'
// questions to the responder.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "frame/connections.hpp"
#include "frame/envelope.hpp"
#include "frame/expectation.hpp"
#include "frame/mix_expectation.hpp"
#include "frame/reader.hpp"
#include "frame/share.hpp"
#include "frame/translation.hpp"
#include "pace/clock.hpp"
#include "pace/schedule.hpp"
#include "run/frame_ages.hpp"
#include "run/overdue_frames.hpp"
#include "run/receiver_expectation.hpp"
#include "run/receiver_port.hpp"
#include "run/ring_backlog.hpp"
#include "run/side_of_port.hpp"
#include "tally/burst_runs.hpp"
#include "tally/delay_burst.hpp"
#include "tally/delay_spread.hpp"
#include "tally/delays.hpp"
#include "tally/frame_capture.hpp"
#include "tally/icmp_errors.hpp"
#include "tally/sequence_map.hpp"
#include "tally/stream_order.hpp"
#include "tally/tally.hpp"

namespace evenhand::run {

/// One receive queue of one port. turn() never waits.
template <RxPort Port, NeighborAnswerer Responder>
class Receiver {
   public:
    /// `envelope`: what frames of this side must have around them; all other frames are foreign. Where that has a
    /// tunnel, `outside` answers for neighbours of the link, which are not in it.
    Receiver(Port& port, unsigned queue, Responder& responder, const frame::Envelope& envelope = {},
             tally::IcmpErrors* icmp_errors = nullptr, tally::FrameCapture* capture = nullptr,
             Responder* outside = nullptr) noexcept
        : port_{&port},
          queue_{queue},
          responder_{&responder},
          outside_{outside},
          envelope_{envelope},
          icmp_errors_{icmp_errors},
          capture_{capture} {}

    /// Both sides are on one port: of the frames that this receiver takes from it, those of the other side are passed
    /// to `other`, which takes none itself; see is_of_second(). `arrives`: the direction whose test frames are the
    /// other side's. `other` outlives this.
    void share_with(Receiver& other, plan::Direction arrives) noexcept {
        other_ = &other;
        arrives_at_other_ = arrives;
        other.is_fed_ = true;
    }
    /// Whether another receiver takes its frames from the port, so that turn() is not to be called.
    [[nodiscard]] bool is_fed() const noexcept { return is_fed_; }

    /// Begins a trial at `now`; map and tally outlive the trial. `part`: the map's part for the thread that calls
    /// turn().
    void arm(const Expectation& expectation, tally::SequenceMap& map, tally::ReceiverTally& tally, Ticks now,
             unsigned part = 0) noexcept {
        expectation_.emplace(expectation);
        slice_ = {};
        burst_checks_ = {};
        // Whole bursts are not looked at frame by frame, as a capture needs it.
        keeps_received_ = capture_ != nullptr && capture_->keeps_received();
        if (capture_ == nullptr || !capture_->is_on()) {
            const frame::StreamIdentity of{.direction = expectation.direction, .trial = expectation.trial};
            burst_checks_ = std::visit([&](const auto& frames) { return frames.burst_checks(of); }, expectation.frames);
        }
        map_ = &map;
        marks_ = map.part(part);
        tally_ = &tally;
        tally.delay_by_slice.begin(map.frames());
        backlog_ = RingBacklog{now};
        overdue_ = {};
        heard_.fill(0);
        heard_at_ = now;
        is_armed_ = true;
    }

    /// Ends the residual wait earlier than arm() said. For the thread that calls turn(), while armed.
    void end_by(Ticks residual_end) noexcept { expectation_->residual_end = residual_end; }

    /// All frames taken from the port since the beginning, armed or not. For any thread.
    [[nodiscard]] std::uint64_t taken_frames() const noexcept {
        return std::atomic_ref{taken_frames_}.load(std::memory_order_relaxed);
    }

    /// From now on test frames do not count; neighbours still get answers.
    void disarm() noexcept { is_armed_ = false; }

    /// `now`: the time of this turn of the worker's loop. Received frames are given a time read after receive(), since
    /// one read before could be earlier than the sending of a frame that arrived in between. Returns how many frames
    /// had arrived. `Frames`: the type of the expectation, which is known where the loop is compiled, so that no other
    /// trial pays for what a mix needs.
    template <FrameExpectation Frames = frame::TestFrameExpectation, class Clock>
    unsigned turn(Ticks now, Clock& clock) noexcept {
        const Ticks before = now;
        const unsigned n = port_->receive(queue_, frames_.data(), receive_burst);
        if (n != 0) now = clock.now();
        if (other_ == nullptr) [[likely]] {
            look_at<Frames>(before, now, n, n, clock);
        } else {
            const unsigned own = pass_on(n);
            look_at<Frames>(before, now, own, n, clock);
            other_->template look_at<Frames>(before, now, n - own, n, clock);
        }
        return n;
    }

   private:
    /// Looks at the first `n` of frames_, of a poll that brought `polled` at `now` and began at `before` or later.
    template <FrameExpectation Frames, class Clock>
    [[gnu::always_inline]] void look_at(Ticks before, Ticks now, unsigned n, unsigned polled, Clock& clock) noexcept {
        if (n != 0) std::atomic_ref{taken_frames_}.store(taken_frames_ + n, std::memory_order_relaxed);
        if (is_armed_) backlog_.note_poll(now, polled, *expectation_, *tally_);
        if (!is_armed_) show_all<Port>(*responder_, std::span{frames_}.first(n));
        if (n != 0) take<Frames>(n, now);
        if (is_armed_ && expectation_->order != nullptr) share_order(before, polled, clock);
    }

    /// Gives the other side those of the first `n` of frames_ that are its own, each side in their order. Returns how
    /// many are left here.
    [[gnu::noinline]] unsigned pass_on(unsigned n) noexcept {
        unsigned own = 0;
        unsigned others = 0;
        for (unsigned i = 0; i < n; ++i) {
            typename Port::Frame* const frame = frames_[i];
            if (is_of_other(Port::octets(frame), Port::length(frame)))
                other_->frames_[others++] = frame;
            else
                frames_[own++] = frame;
        }
        return own;
    }

    [[nodiscard]] SideOfPort<Responder> side() const noexcept { return {envelope_, responder_, outside_}; }

    /// A frame that belongs to neither side is counted by a side that counts.
    [[nodiscard]] bool is_of_other(const std::byte* octets, std::size_t length) const noexcept {
        return is_of_second(side(), other_->side(), arrives_at_other_, octets, length)
            .value_or(!is_armed_ && other_->is_armed_);
    }

    // A function of its own. Otherwise the compiler inlines it into every loop but not the checks of a frame, not even
    // in the two copies for frames that are all alike. So tags are checked for each frame, at hardly any cost.
    template <FrameExpectation Frames>
    [[gnu::noinline]] void take(unsigned n, Ticks now) noexcept {
        const std::size_t around = envelope_.octets();
        const std::uint64_t tagged = around != 0 ? take_tags<Frames>(n) : 0;
        frame::FoundBurst found;
        std::uint64_t unwrapped = 0;
        if (is_armed_ && burst_checks_) {
            if constexpr (Frames::has_classes) unwrapped = unwrap_all<Frames>(n, tagged);
            find_known<Frames>(n, tagged, found);
            if (found.known == frame::first_bits(n)) [[likely]] {
                count_known<Frames>(found, 0, n, now);
                port_->release(frames_.data(), n);
                return;
            }
        }
        unsigned kept = 0;
        for (unsigned i = 0; i < n; ++i) {
            typename Port::Frame* const frame = frames_[i];
            if ((found.known >> i & 1U) != 0) {
                const unsigned end = i + static_cast<unsigned>(std::countr_one(found.known >> i));
                count_known<Frames>(found, i, end, now);
                while (i < end) frames_[kept++] = frames_[i++];
                --i;
                continue;
            }
            std::byte* octets = Port::octets(frame);
            std::size_t length = Port::length(frame);
            looked_at_.begin(frame, now);
            if (around != 0) [[unlikely]] {
                if ((tagged >> i & 1U) == 0) {
                    if (!is_answered_outside(frame)) frames_[kept++] = frame;
                    continue;
                }
                looked_at_.is_taken = true;
                octets += around;
                length -= around;
            }
            if constexpr (Frames::has_classes) {
                if ((unwrapped >> i & 1U) == 0) unwrap_this<Frames>(octets, length);
            }
            const frame::FirstLook look = frame::look_at(octets, length);
            if (look.kind == frame::FrameKind::test) {
                if (is_armed_) {
                    const std::uint64_t before = tally_->received_frames;
                    count_test_frame<Frames>(octets, length, look, now);
                    if (keeps_received_ && tally_->received_frames != before) [[unlikely]]
                        keep(tally::Kept::received, look.tag.sequence);
                } else {
                    keep(tally::Kept::returned, look.tag.sequence);
                }
            } else if (look.kind == frame::FrameKind::neighbor) {
                if (is_armed_) ++tally_->neighbor_frames;
                const std::size_t answer = responder_->answer({octets, Port::room(frame) - around}, length);
                if (answer != 0) {
                    post(frame, answer + around, envelope_);
                    continue;
                }
            } else if (icmp_errors_ != nullptr && icmp_errors_->note(octets, length)) {
                keep(tally::Kept::icmp_error);
            } else {
                if (is_armed_) ++tally_->foreign_frames;
                keep(tally::Kept::foreign);
            }
            frames_[kept++] = frame;
        }
        if (kept != 0) port_->release(frames_.data(), kept);
    }

    /// Looks at a frame that has not the envelope of this side: foreign, unless it is a neighbour's outside a tunnel.
    /// Returns whether it has become an answer, which belongs to the port now.
    [[nodiscard]] bool is_answered_outside(typename Port::Frame* frame) noexcept {
        const frame::Envelope link = envelope_.outside();
        const std::size_t around = link.octets();
        std::byte* const octets = Port::octets(frame);
        const std::size_t length = Port::length(frame);
        if (outside_ != nullptr && link.take(octets, length)) {
            if (frame::look_at(octets + around, length - around).kind == frame::FrameKind::neighbor) {
                if (is_armed_) ++tally_->neighbor_frames;
                const std::size_t answer =
                    outside_->answer({octets + around, Port::room(frame) - around}, length - around);
                if (answer != 0) post(frame, answer + around, link);
                return answer != 0;
            }
            link.put_back(octets);
        }
        if (is_armed_) ++tally_->foreign_frames;
        keep(tally::Kept::foreign);
        return false;
    }

    /// Sends an answer of so many octets in the place of a received frame, with what was around that.
    void post(typename Port::Frame* frame, std::size_t octets, const frame::Envelope& envelope) noexcept {
        if (envelope.octets() != 0) envelope.answering(Port::octets(frame)).put(Port::octets(frame), octets);
        Port::set_length(frame, octets);
        port_->post_answer(frame);
    }

    /// Takes the tags of a test frame in the VLAN in which its flow is sent. A DUT that moves frames by their VLANs
    /// leaves them there; one that routes sends them in that of this side.
    template <FrameExpectation Frames>
    [[nodiscard]] bool take_in_vlan(std::byte* octets, std::size_t length) noexcept {
        if constexpr (requires(const Frames& frames) { frames.has_vlans(); }) {
            if (!is_armed_) return false;
            const Frames& expected = expectation_->template of<Frames>();
            if (!expected.has_vlans()) return false;
            const auto vlan = envelope_.innermost_vlan(octets, length);
            if (vlan == 0) return false;
            const auto number = frame::number_of(octets + envelope_.octets(), length - envelope_.octets(),
                                                 expected.mix(), expectation_->trial);
            if (!number || !expected.is_in_vlan(*number, vlan)) return false;
            envelope_.take_innermost(octets);
            return true;
        }
        return false;
    }

    /// Makes UDP frames of those that a class has with another header or a payload: see frame::unwrap(). Returns which.
    template <FrameExpectation Frames>
    [[nodiscard]] std::uint64_t unwrap_all(unsigned n, std::uint64_t tagged) noexcept {
        const Frames& expected = expectation_->template of<Frames>();
        if (!expected.has_transports()) [[likely]]
            return 0;
        std::uint64_t unwrapped = 0;
        const std::size_t around = envelope_.octets();
        for (unsigned i = 0; i < n; ++i) {
            if (around != 0 && (tagged >> i & 1U) == 0) continue;
            const bool is_changed =
                frame::unwrap(octets_at(i), Port::length(frames_[i]) - around, expected.mix(), expectation_->trial);
            unwrapped |= std::uint64_t{is_changed} << i;
        }
        return unwrapped;
    }
    /// The same for the frame that is looked at now.
    template <FrameExpectation Frames>
    void unwrap_this(std::byte* octets, std::size_t length) noexcept {
        if (!is_armed_) return;
        const Frames& expected = expectation_->template of<Frames>();
        if (!expected.has_transports()) [[likely]]
            return;
        looked_at_.is_unwrapped = frame::unwrap(octets, length, expected.mix(), expectation_->trial, &looked_at_.had);
    }
    /// The same frame as it came.
    void wrap_this() noexcept {
        if (!looked_at_.is_unwrapped) return;
        std::byte* const octets = Port::octets(looked_at_.frame) + envelope_.octets();
        const std::size_t length = Port::length(looked_at_.frame) - envelope_.octets();
        if (frame::is_ipv4(octets))
            frame::wrap<frame::IpVersion::v4>(octets, length, looked_at_.had);
        else
            frame::wrap<frame::IpVersion::v6>(octets, length, looked_at_.had);
        looked_at_.is_unwrapped = false;
    }

    /// Keeps the frame that is looked at now, if frames are kept at all.
    void keep(tally::Kept kind, std::optional<std::uint64_t> number = std::nullopt,
              std::optional<frame::FrameFault> fault = std::nullopt) noexcept {
        if (capture_ == nullptr || !capture_->is_on()) [[likely]]
            return;
        wrap_this();
        if (looked_at_.is_taken) envelope_.put_back(Port::octets(looked_at_.frame));
        const std::size_t length = Port::length(looked_at_.frame);
        capture_->keep({.kind = kind,
                        .fault = fault,
                        .number = number,
                        .received = looked_at_.at,
                        .length = length,
                        .octets = {Port::octets(looked_at_.frame), length}});
    }

    /// Takes the tags of this side from those frames of the burst that have them. Returns which do: bit i is of frame
    /// i.
    template <FrameExpectation Frames>
    [[gnu::noinline]] std::uint64_t take_tags(unsigned n) noexcept {
        std::uint64_t tagged = 0;
        for (unsigned i = 0; i < n; ++i) {
            std::byte* const octets = Port::octets(frames_[i]);
            const std::size_t length = Port::length(frames_[i]);
            const bool is_tagged = envelope_.take(octets, length) || take_in_vlan<Frames>(octets, length);
            tagged |= std::uint64_t{is_tagged} << i;
        }
        return tagged;
    }

    /// Where frame i of the burst begins, behind its tags.
    [[nodiscard]] std::byte* octets_at(unsigned i) const noexcept {
        return Port::octets(frames_[i]) + envelope_.octets();
    }

    /// Determines which frames of this burst belong to the trial and are as they were sent. `tagged`: as take_tags()
    /// returns it; of no meaning where this side has no tags.
    template <FrameExpectation Frames>
    void find_known(unsigned n, std::uint64_t tagged, frame::FoundBurst& found) noexcept {
        std::array<const std::byte*, receive_burst> at;
        const std::size_t most = burst_checks_.octets();
        const std::size_t around = envelope_.octets();
        if constexpr (Frames::has_classes) {
            std::array<std::uint16_t, receive_burst> lengths;
            const std::size_t least = burst_checks_.least_octets();
            for (unsigned i = 0; i < n; ++i) {
                const std::size_t length = Port::length(frames_[i]) - around;
                const bool can_be = length - least <= most - least && (around == 0 || (tagged >> i & 1U) != 0);
                at[i] = can_be ? octets_at(i) : frame::no_frame.data();
                lengths[i] = can_be ? static_cast<std::uint16_t>(length) : std::uint16_t{0};
            }
            burst_checks_.find(at.data(), n, found, lengths.data());
            return;
        }
        if (around == 0) [[likely]] {
            for (unsigned i = 0; i < n; ++i)
                at[i] = Port::length(frames_[i]) == most ? Port::octets(frames_[i]) : frame::no_frame.data();
        } else {
            for (unsigned i = 0; i < n; ++i) {
                const bool can_be = (tagged >> i & 1U) != 0 && Port::length(frames_[i]) == most + around;
                at[i] = can_be ? octets_at(i) : frame::no_frame.data();
            }
        }
        burst_checks_.find(at.data(), n, found);
    }

    /// Counts the frames first .. end-1 of the burst, all of which belong to the trial and are as they were sent: what
    /// remains to be checked is their time and their number. Counts like count_known_frame() for one after the other,
    /// but checks what they have in common only once.
    template <FrameExpectation Frames>
    [[gnu::always_inline]] void count_known(const frame::FoundBurst& found, unsigned first, unsigned end,
                                            Ticks now) noexcept {
        const tally::BurstRuns times{found.new_time, first, end};
        bool is_odd = !expectation_->share.is_whole() || is_after(now, expectation_->residual_end);
        const FrameAges ages = ages_at(now);
        times.for_each([&](unsigned from, unsigned) __attribute__((always_inline)) {
            is_odd |= ages.is_of_another_time(sent_at(now, found.times[from]));
        });
        tally::DelayBurst delays{&tally_->delay_by_slice, &tally_->latency, slice_};
        if (is_odd) [[unlikely]] {
            for (unsigned i = first; i < end; ++i) count_known_frame<Frames>(found, i, now, delays);
            return;
        }
        std::uint64_t taken = 0;  // bit i: frame i counts as received, and its delay is not yet noted
        std::uint64_t lowest_taken = frame::sequence_mask;
        std::uint64_t highest_taken = 0;
        tally::BurstRuns{found.new_rise, first, end}.for_each([&](unsigned from, unsigned until) {
            const std::uint64_t lowest = found.sequence(from);
            const std::uint64_t highest = found.sequence(until - 1);
            if (highest >= map_->frames() || !map_->holds(lowest) || !map_->holds(highest)) [[unlikely]] {
                for (unsigned i = from; i < until; ++i) count_known_frame<Frames>(found, i, now, delays);
                return;
            }
            const unsigned count = until - from;
            const std::uint64_t all = frame::first_bits(count);
            const std::uint64_t fresh = all & ~marks_.mark_rising(&found.numbers[from], count, frame::sequence_mask);
            count_fresh(found, from, fresh, fresh == all ? count : static_cast<unsigned>(std::popcount(fresh)), count);
            if constexpr (LearningExpectation<Frames>) learn_fresh<Frames>(found, from, fresh);
            if constexpr (Frames::has_classes) count_classes(found, from, fresh, count, now);
            if (expectation_->delays != nullptr) [[unlikely]] {
                note_delays(found, from, fresh, now);
                return;
            }
            taken |= fresh << from;
            lowest_taken = std::min(lowest_taken, lowest);
            highest_taken = std::max(highest_taken, highest);
        });
        if (taken == frame::first_bits(end - first) << first && delays.is_one_slice(lowest_taken, highest_taken))
            [[likely]] {
            delays.note_runs(times, end - first,
                             [&](unsigned i) __attribute__((always_inline)) { return latency(now, found.times[i]); });
        } else {
            for (; taken != 0; taken &= taken - 1) {
                const auto i = static_cast<unsigned>(std::countr_zero(taken));
                delays.note(found.sequence(i), latency(now, found.times[i]));
            }
        }
    }

    /// Records what an expectation wants to know of frames: of those whose bit is set in `fresh`, from frame `from` on.
    template <FrameExpectation Frames>
    void learn_fresh(const frame::FoundBurst& found, unsigned from, std::uint64_t fresh) noexcept {
        const Frames& expected = expectation_->template of<Frames>();
        if (!expected.learns()) return;
        for (std::uint64_t left = fresh; left != 0; left &= left - 1) {
            const unsigned i = from + static_cast<unsigned>(std::countr_zero(left));
            expected.learn(octets_at(i), found.sequence(i));
        }
    }

    /// Counts the same frames as count_fresh() by their classes.
    void count_classes(const frame::FoundBurst& found, unsigned from, std::uint64_t fresh, unsigned count,
                       Ticks now) noexcept {
        tally::ReceiverTally& t = *tally_;
        for (unsigned i = 0; i < count; ++i) {
            const unsigned at = from + i;
            const std::size_t c = found.classes[at];
            const bool is_fresh = (fresh >> i & 1U) != 0;
            t.received_of_class[c] += static_cast<std::uint64_t>(is_fresh);
            if (t.flows.empty()) continue;
            if (is_fresh) [[likely]]
                t.flows[c].note(found.stream(at), found.sequence(at), latency(now, found.times[at]));
            else
                ++t.flows[c].duplicated_frames;
        }
    }

    /// Counts `count` frames of one stream with rising numbers, from frame `from` of the burst on. The frames whose bit
    /// is set in `fresh` are the first of their number.
    void count_fresh(const frame::FoundBurst& found, unsigned from, std::uint64_t fresh, unsigned received,
                     unsigned count) noexcept {
        tally::ReceiverTally& t = *tally_;
        t.duplicated_frames += count - received;
        if (received == 0) return;
        if (t.received_frames == 0) [[unlikely]] {
            const std::byte* const first = octets_at(from + static_cast<unsigned>(std::countr_zero(fresh)));
            t.first_hop_limit = frame::hop_limit_of(first, burst_checks_.version_of(first));
        }
        t.received_frames += received;
        const auto last = from + static_cast<unsigned>(std::bit_width(fresh)) - 1;
        std::uint64_t& next = t.next_in_order[found.stream(from)];
        if (found.sequence(from + static_cast<unsigned>(std::countr_zero(fresh))) < next) [[unlikely]] {
            for (std::uint64_t left = fresh; left != 0; left &= left - 1)
                t.reordered_frames += static_cast<std::uint64_t>(
                    found.sequence(from + static_cast<unsigned>(std::countr_zero(left))) < next);
        }
        next = std::max(next, found.sequence(last) + 1);
    }

    /// Notes the delays of the same frames as count_fresh(), each by itself and before those of the next run, which may
    /// be counted one by one.
    [[gnu::noinline]] void note_delays(const frame::FoundBurst& found, unsigned from, std::uint64_t fresh,
                                       Ticks now) noexcept {
        for (std::uint64_t left = fresh; left != 0; left &= left - 1) {
            const unsigned i = from + static_cast<unsigned>(std::countr_zero(left));
            const frame::TagNumbers tag{
                .stream = found.stream(i), .sequence = found.sequence(i), .time_ticks = found.times[i]};
            note_delay(tag, tag.sequence, now, latency(now, tag.time_ticks));
        }
    }

    /// Counts one frame of count_known().
    template <FrameExpectation Frames>
    void count_known_frame(const frame::FoundBurst& found, unsigned i, Ticks now, tally::DelayBurst& delays) noexcept {
        const frame::TagNumbers tag{
            .stream = found.stream(i), .sequence = found.sequence(i), .time_ticks = found.times[i]};
        // The time of another tester's clock means nothing here.
        if (!expectation_->share.has(tag.sequence)) [[unlikely]] {
            ++tally_->strayed_frames;
        } else if (const Ticks sent = sent_at(now, tag.time_ticks); ages_at(now).is_of_another_time(sent))
            [[unlikely]] {
            note_wrong_time(*tally_, now, expectation_->start, sent);
        } else if (const std::uint64_t place = expectation_->share.place(tag.sequence); place >= map_->frames())
            [[unlikely]] {
            tally_->note(frame::FrameFault::number);
        } else {
            std::size_t frame_class = 0;
            if constexpr (Frames::has_classes) frame_class = found.classes[i];
            const std::byte* const octets = octets_at(i);
            count_intact_frame<Frames>(octets, frame_class, burst_checks_.version_of(octets), tag, place, now,
                                       [&](Ticks delay) {
                                           if (expectation_->delays != nullptr)
                                               note_delay(tag, place, now, delay);
                                           else
                                               delays.note(place, delay);
                                       });
        }
    }

    /// Called after a poll that began at `before` or later and brought `n` frames; a poll that brings few frames has
    /// emptied the queue.
    template <class Clock>
    void share_order(Ticks before, unsigned n, Clock& clock) noexcept {
        tally::StreamOrder& order = *expectation_->order;
        if (static_cast<std::int64_t>(before - heard_at_) < static_cast<std::int64_t>(order.settles_after())) return;
        const bool is_empty = n < more_may_wait;
        if (is_empty) order.settle(heard_, tally_->next_in_order);
        order.tell(queue_, tally_->next_in_order);
        if (!is_empty) return;
        order.hear(queue_, heard_);
        heard_at_ = clock.now();
    }

    [[nodiscard]] FrameAges ages_at(Ticks now) const noexcept {
        return FrameAges::at(now, expectation_->start, expectation_->clock_skew);
    }

    /// Counts a frame that the map has given up, or does not hold yet.
    void note_not_held(std::uint64_t sequence, std::uint64_t place, Ticks now) noexcept {
        if (place < map_->begin()) {
            ++tally_->late_frames;
        } else if (is_after(expectation_->schedule.due(sequence), now + expectation_->clock_skew)) {
            tally_->note(frame::FrameFault::number);  // not sent yet: damaged or forged
        } else {
            ++tally_->unrecorded_frames;
        }
    }

    template <FrameExpectation Frames>
    void count_test_frame(const std::byte* octets, std::size_t length, const frame::FirstLook& look,
                          Ticks now) noexcept {
        tally::ReceiverTally& t = *tally_;
        const frame::Tag& tag = look.tag;
        const Frames& expected = expectation_->template of<Frames>();
        const std::size_t frame_class = expected.class_of(tag.sequence);
        const std::uint64_t place = expectation_->share.place(tag.sequence);
        if (tag.trial != expectation_->trial) {
            ++t.stale_frames;
            keep(tally::Kept::stale, tag.sequence);
        } else if (!expectation_->share.has(tag.sequence)) [[unlikely]] {
            ++t.strayed_frames;
            keep(tally::Kept::strayed, tag.sequence);
        } else if (const Ticks sent = sent_at(now, tag.time_ticks); ages_at(now).is_of_another_time(sent))
            [[unlikely]] {
            note_wrong_time(*tally_, now, expectation_->start, sent);
            keep(tally::Kept::wrong_time, tag.sequence);
        } else if (tag.direction != expectation_->direction) {
            ++t.foreign_frames;
            ++t.returned_frames;
            keep(tally::Kept::returned, tag.sequence);
        } else if (length != expected.frame_octets(frame_class)) {
            ++t.wrong_length_frames;
            keep(tally::Kept::wrong_length, tag.sequence);
        } else if (place >= map_->frames() || !expected.holds(frame_class, octets, look.version)) {
            note_not_as_sent(expected, octets, look, place);
        } else {
            count_intact_frame<Frames>(octets, frame_class, look.version, tag.numbers(), place, now,
                                       [&](Ticks delay) { note_delay(tag.numbers(), place, now, delay); });
        }
    }

    [[nodiscard]] static tally::Kept kind_of(frame::FrameFault fault) noexcept {
        switch (fault) {
            case frame::FrameFault::address: return tally::Kept::wrong_address;
            case frame::FrameFault::port: return tally::Kept::wrong_port;
            case frame::FrameFault::payload: return tally::Kept::wrong_payload;
            default: return tally::Kept::corrupted;
        }
    }

    template <FrameExpectation Frames>
    void note_not_as_sent(const Frames& expected, const std::byte* octets, const frame::FirstLook& look,
                          std::uint64_t place) noexcept {
        const std::size_t frame_class = expected.class_of(look.tag.sequence);
        if constexpr (requires { expected.fault_of(std::size_t{}, octets, look.version); }) {
            if (const auto fault = expected.fault_of(frame_class, octets, look.version);
                fault && place < map_->frames()) {
                tally_->note(*fault, octets, look.version, look.tag.sequence);
                keep(tally::Kept::mistranslated, look.tag.sequence);
                return;
            }
        }
        const auto fault = expected.frame_fault(frame_class, octets, look.version).value_or(frame::FrameFault::number);
        tally_->note(fault);
        keep(kind_of(fault), look.tag.sequence, fault);
    }

    /// Counts a frame of this trial and time that is as it was sent; `place`: its place in the map. `note` is called
    /// with its delay, if it is the first of its number.
    template <FrameExpectation Frames, class Note>
    [[gnu::always_inline]] void count_intact_frame(const std::byte* octets, [[maybe_unused]] std::size_t frame_class,
                                                   frame::IpVersion version, frame::TagNumbers tag, std::uint64_t place,
                                                   Ticks now, Note note) noexcept {
        tally::ReceiverTally& t = *tally_;
        if (is_after(now, expectation_->residual_end)) {
            ++t.late_frames;
            if constexpr (Frames::has_classes) {
                if (!t.flows.empty()) ++t.flows[frame_class].late_frames;
            }
            t.late_by_gap_frames += static_cast<std::uint64_t>(backlog_.is_catching_up());
            keep(tally::Kept::late, tag.sequence);
        } else if (!map_->holds(place)) [[unlikely]] {
            note_not_held(tag.sequence, place, now);
        } else if (marks_.mark(place)) {
            ++t.duplicated_frames;
            if constexpr (Frames::has_classes) {
                if (!t.flows.empty()) ++t.flows[frame_class].duplicated_frames;
            }
            keep(tally::Kept::duplicated, tag.sequence);
        } else {
            if (t.received_frames++ == 0) [[unlikely]]
                t.first_hop_limit = frame::hop_limit_of(octets, version);
            if constexpr (Frames::has_classes) {
                const bool is_remarked = expectation_->template of<Frames>().is_remarked(frame_class, octets, version);
                t.remarked_frames += static_cast<std::uint64_t>(is_remarked);
                ++t.received_of_class[frame_class];
                if (!t.flows.empty()) {
                    t.flows[frame_class].remarked_frames += static_cast<std::uint64_t>(is_remarked);
                    t.flows[frame_class].note(tag.stream, tag.sequence, latency(now, tag.time_ticks));
                }
            } else {
                t.remarked_frames += static_cast<std::uint64_t>(frame::is_remarked(octets, version));
            }
            if constexpr (LearningExpectation<Frames>) expectation_->template of<Frames>().learn(octets, tag.sequence);
            std::uint64_t& next = t.next_in_order[tag.stream];
            if (tag.sequence < next) {
                ++t.reordered_frames;
            } else {
                next = tag.sequence + 1;
            }
            note(latency(now, tag.time_ticks));
        }
    }

    void note_delay(frame::TagNumbers tag, std::uint64_t place, Ticks now, Ticks delay) noexcept {
        tally_->delay_by_slice.note(place, delay);
        if (tally::DelayTracks* const tracks = expectation_->delays; tracks != nullptr) {
            if (tag.sequence < tracks->wish().first) return;
            const bool has_left_late = overdue_.is_touched(tag.sequence, sent_at(now, tag.time_ticks), *expectation_);
            if (has_left_late || backlog_.is_read_late()) {
                ++tally_->left_out_frames;
                tracks->leave_out(tag.sequence);
                return;
            }
            expectation_->spread->record(delay);
            tracks->note(tag.sequence, place, delay,
                         [this](std::int64_t difference) { expectation_->variation->record(difference); });
        }
        tally_->latency.record(delay);
    }

    Port* port_;
    unsigned queue_;
    Responder* responder_;
    Responder* outside_;
    frame::Envelope envelope_;
    tally::IcmpErrors* icmp_errors_;
    tally::FrameCapture* capture_;
    struct LookedAt {
        void begin(typename Port::Frame* of, Ticks now) noexcept {
            frame = of;
            at = now;
            is_taken = is_unwrapped = false;
        }

        typename Port::Frame* frame = nullptr;
        Ticks at = 0;
        bool is_taken = false;  // whether its envelope was
        bool is_unwrapped = false;
        frame::Transport had{};  // what unwrap_this() took from it, if it did
    };
    LookedAt looked_at_;  // the frame that take() looks at, and when it was received
    bool is_armed_ = false;
    bool keeps_received_ = false;             // while armed
    std::optional<Expectation> expectation_;  // while armed
    frame::BurstChecks burst_checks_;         // made from the expectation; empty where there are none
    tally::SliceDelays::Place slice_{};       // the slice of the last known frame's delay
    tally::SequenceMap* map_ = nullptr;
    tally::SequenceMap::Part marks_;  // the part of the map where this receiver marks
    tally::ReceiverTally* tally_ = nullptr;
    RingBacklog backlog_;
    OverdueFrames overdue_;
    Receiver* other_ = nullptr;  // where both sides are on one port; see share_with()
    plan::Direction arrives_at_other_ = plan::Direction::forward;
    bool is_fed_ = false;
    mutable std::uint64_t taken_frames_ = 0;  // written by the worker, read by others
    std::array<std::uint64_t, frame::most_streams>
        heard_{};  // for each stream: what other queues had seen at heard_at_
    Ticks heard_at_ = 0;
    std::array<typename Port::Frame*, receive_burst> frames_{};
};

}  // namespace evenhand::run
