// SPDX-License-Identifier: Apache-2.0
// The bench for the loops: ports in memory, and time driven by hand.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frame/source.hpp"
#include "neighbor/responder.hpp"
#include "octets.hpp"
#include "plans.hpp"
#include "port/memory_port.hpp"
#include "run/receiver.hpp"
#include "run/sender.hpp"

namespace evenhand::tests {

using frame::IpVersion;
using pace::Ticks;
using plan::Direction;
using port::MemoryPort;

constexpr plan::MacAddress left_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress right_mac{2, 0, 0, 0, 0, 2};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 3};
constexpr Ticks us = 1000;  // a tick is 1 ns here
constexpr Ticks second = 1'000'000 * us;
constexpr Ticks start = 5 * second;

struct HandClock {
    Ticks time = 0;
    [[nodiscard]] Ticks now() const noexcept { return time; }
};

struct Options {
    std::uint64_t frames = 1000;
    std::uint64_t streams = 1;
    std::size_t frame_size = 0;  // 0: the smallest
    Ticks start = tests::start;
    Ticks turn = us;
    Ticks ring_lasts = 50 * us;
    std::size_t buffers = 2048;
    std::uint64_t held = tally::SequenceMap::most_held;  // by the map
    bool is_known = true;                                // what each frame must be
};

/// Where the counter of a CPU may stand when something begins, besides the usual: this much before one of its upper
/// bits changes, and before it begins anew. 2^56 is 321 days at 2.6 GHz.
[[nodiscard]] inline std::array<Ticks, 5> starts_before_overflow(Ticks before) {
    return {(Ticks{1} << 48U) - before, (Ticks{1} << 56U) - before, (Ticks{1} << 63U) - before, ~Ticks{0},
            Ticks{0} - before};
}

constexpr double rate_fps = 1e6;  // a frame each microsecond
constexpr std::uint16_t trial = 77;

/// What arrives of frames of this size, with FCS, if each host of the receiving side has the same MAC, or none is told.
[[nodiscard]] inline frame::TestFrameExpectation expected(const plan::AddressPlan& plan, std::size_t frame_size,
                                                          Direction direction = Direction::forward,
                                                          const std::optional<plan::MacAddress>& own_mac = right_mac) {
    return {frame::traffic_of(plan, direction, frame_size).arrives, own_mac, dut_mac};
}

/// One direction, left to right: senders, a cable, a receiver with its responder.
template <IpVersion V>
class Rig {
   public:
    using TestSender = run::Sender<MemoryPort, frame::TestFrameSource>;

    explicit Rig(const Options& o = {})
        : options{o},
          left{o.buffers},
          right{o.buffers},
          map{o.frames, false, o.held},
          clock{o.start - 10 * us},
          deadline{o.start + o.frames * us + 10'000 * us},
          residual_end{deadline + 2 * second} {
        const auto size = o.frame_size != 0 ? o.frame_size : frame::Layout<V>::smallest_frame_size;
        fill_buffers(size - frame::fcs_octets);
        left.connect(right);
        right.connect(left);
        const pace::EvenSchedule whole{o.start, second, rate_fps};
        for (std::uint64_t s = 0; s < o.streams; ++s) {
            const frame::StreamShare share{.first = s, .stride = o.streams};
            const auto shape = frame::make_template(
                plan, size, {.direction = Direction::forward, .stream = static_cast<std::uint8_t>(s), .trial = trial},
                left_mac, dut_mac);
            senders.emplace_back(left, static_cast<unsigned>(s),
                                 frame::TestFrameSource{shape, plan::FlowDraw{plan, Direction::forward, 1}, share},
                                 whole.stream(share.first, share.stride), share.count(o.frames),
                                 run::Punctuality{.overdue_after = 100 * us}, deadline);
        }
        auto arriving = expected(plan, size);
        if (o.is_known) arriving.know(plan::FlowDraw{plan, Direction::forward, 1}, o.streams);
        expectation = {.trial = trial,
                       .direction = Direction::forward,
                       .frames = std::move(arriving),
                       .start = o.start,
                       .clock_skew = us,
                       .residual_end = residual_end,
                       .ring_lasts = o.ring_lasts,
                       .burst_lasts = run::receive_burst * us,
                       .schedule = whole};
        receiver.arm(*expectation, map, *tally, clock.now());
    }
    /// The port of the receiver has other queues, or not.
    void expect_one_of_many(bool is_one) {
        expectation->is_one_of_many = is_one;
        receiver.arm(*expectation, map, *tally, clock.now());
    }
    /// The whole sending phase, with a receiver whose clock is so much behind that of the senders.
    void run_behind(Ticks behind) {
        for (const Ticks end = options.start + (options.frames + 100) * us;
             static_cast<std::int64_t>(end - clock.time) > 0; clock.time += options.turn) {
            send();
            HandClock late{clock.time - behind};
            receiver.turn(late.now(), late);
        }
    }
    Rig(const Rig&) = delete;
    Rig& operator=(const Rig&) = delete;

    void send() {
        for (auto& sender : senders) sender.turn(clock.now());
    }
    void receive() { receiver.turn(clock.now(), clock); }
    /// As a worker does, turn by turn, up to `end`.
    void run_until(Ticks end) {
        for (; static_cast<std::int64_t>(end - clock.time) > 0; clock.time += options.turn) {
            send();
            receive();
        }
    }
    /// The whole sending phase and a little more.
    void run() { run_until(options.start + (options.frames + 100) * us); }

    [[nodiscard]] std::uint64_t offered() const {
        std::uint64_t sum = 0;
        for (const auto& sender : senders) sum += sender.tally().offered_frames;
        return sum;
    }
    [[nodiscard]] const tally::SenderTally& sent() const { return senders.front().tally(); }
    [[nodiscard]] const tally::ReceiverTally& got() const { return *tally; }

    Options options;
    plan::AddressPlan plan = V == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
    MemoryPort left;
    MemoryPort right;
    neighbor::Responder responder{right_mac, plan.right.gateway.value(), plan.right.dut_address};
    std::vector<TestSender> senders;
    run::Receiver<MemoryPort, neighbor::Responder> receiver{right, 0, responder};
    tally::SequenceMap map;
    std::unique_ptr<tally::ReceiverTally> tally = std::make_unique<tally::ReceiverTally>();
    HandClock clock;
    Ticks deadline;
    Ticks residual_end;
    std::optional<run::Expectation> expectation;

   private:
    /// As a port does when it opens: every transmit buffer holds the pattern.
    void fill_buffers(std::size_t octets) {
        std::vector<MemoryPort::Frame*> all(options.buffers);
        const auto n = left.reserve(0, all.data(), static_cast<unsigned>(all.size()));
        for (auto* const f : all) frame::write_pattern(V, std::span{f->octets}.first(octets));
        left.give_back(all.data(), n);
    }
};

using Rig4 = Rig<IpVersion::v4>;
using Rig6 = Rig<IpVersion::v6>;

inline std::uint64_t number_of(MemoryPort::Frame& f) { return frame::look_at(f.octets.data(), f.length).tag.sequence; }

inline MemoryPort::Frame frame_of(std::string_view digits) {
    MemoryPort::Frame f;
    const auto octets = tests::octets_of(digits);
    std::ranges::copy(octets, f.octets.begin());
    f.length = octets.size();
    return f;
}

/// Counts of damage; everything not named must be 0.
struct Damage {
    std::uint64_t duplicated = 0, reordered = 0, late = 0, corrupted = 0, wrong_length = 0, foreign = 0, stale = 0,
                  wrong_time = 0, neighbor = 0, wrong_address = 0, wrong_port = 0, wrong_payload = 0;
    friend bool operator==(const Damage&, const Damage&) = default;
};
inline Damage damage_of(const tally::ReceiverTally& t) {
    return {.duplicated = t.duplicated_frames,
            .reordered = t.reordered_frames,
            .late = t.late_frames,
            .corrupted = t.corrupted_frames,
            .wrong_length = t.wrong_length_frames,
            .foreign = t.foreign_frames,
            .stale = t.stale_frames,
            .wrong_time = t.wrong_time_frames,
            .neighbor = t.neighbor_frames,
            .wrong_address = t.wrong_address_frames,
            .wrong_port = t.wrong_port_frames,
            .wrong_payload = t.wrong_payload_frames};
}

}  // namespace evenhand::tests
