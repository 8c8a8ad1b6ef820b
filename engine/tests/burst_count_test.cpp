// SPDX-License-Identifier: Apache-2.0
// Station 5: a burst is counted as its frames are one after the other, whatever is in it. R2544-06, R2544-40.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "slow.hpp"
#include "tally/delay_spread.hpp"
#include "tally/delays.hpp"

namespace burst_count_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr std::uint64_t frames_of_trial = 5000;

template <IpVersion V>
MemoryPort::Frame make_frame(const plan::AddressPlan& plan, std::uint8_t stream, std::uint64_t sequence, Ticks time) {
    const std::size_t size = frame::Layout<V>::smallest_frame_size;
    MemoryPort::Frame made;
    made.length = size - frame::fcs_octets;
    frame::write_pattern(V, std::span{made.octets}.first(made.length));
    const auto shape = frame::make_template(
        plan, size, {.direction = Direction::forward, .stream = stream, .trial = trial}, left_mac, right_mac);
    std::array<std::byte*, 1> at{made.octets.data()};
    frame::TestFrameSource{shape, plan::FlowDraw{plan, Direction::forward, 1}, {.first = sequence}}.write_next(at,
                                                                                                               time);
    return made;
}

/// What came, and what must be counted of it, by the book.
struct Mixture {
    std::vector<MemoryPort::Frame> frames;
    std::uint64_t received = 0;
    std::uint64_t reordered = 0;
    std::uint64_t wrong_time = 0;
    Damage damage{};
};

/// Streams in turns, of several frames each; now and then a number again, one left out, one from long before or beyond
/// the trial, a time from before it, a damaged frame, one that is not ours, a question for a MAC.
template <IpVersion V>
Mixture make_mixture(const plan::AddressPlan& plan, std::uint64_t seed, unsigned oddities_of_1000, Ticks now) {
    std::mt19937_64 random{seed};
    Mixture mixture;
    std::array<std::uint64_t, 3> next{};
    std::map<std::uint64_t, std::uint64_t> highest;
    std::set<std::uint64_t> seen;
    Ticks time = now - 900 * us;
    for (std::uint64_t sequence = 0, first = 0; mixture.frames.size() < 3000 && first < frames_of_trial - 100;) {
        const auto stream = static_cast<std::uint8_t>(random() % next.size());
        const std::uint64_t together = 1 + random() % 40;
        for (std::uint64_t i = 0; i < together; ++i) {
            sequence = next.at(stream)++ * next.size() + stream;
            first = std::max(first, sequence);
            if (random() % 4 == 0) time += random() % 100;
            Ticks sent = time;
            bool is_damaged = false;
            if (random() % 1000 < oddities_of_1000) {
                switch (random() % 8) {
                    case 0: sequence -= 3 * std::min(sequence / 3, random() % 5); break;
                    case 1: sequence -= 3 * std::min(sequence / 3, random() % 500); break;
                    case 2: continue;
                    case 3: sequence = frames_of_trial / 3 * 3 + 3 * (1 + random() % 300) + stream; break;
                    case 4: sent = start - 10 * us; break;
                    case 5: sent = now + 10 * us; break;
                    case 6: is_damaged = true; break;
                    default:
                        mixture.frames.push_back(frame_of("020000000002 020000000009 88b5 00000000"));
                        ++mixture.damage.foreign;
                        continue;
                }
            }
            auto made = make_frame<V>(plan, stream, sequence, sent);
            if (is_damaged) made.octets.at(frame::Layout<V>::tag + 16) ^= std::byte{1};
            mixture.frames.push_back(made);
            if (sent != time) {
                ++mixture.damage.wrong_time;
            } else if (is_damaged || sequence >= frames_of_trial) {
                ++mixture.damage.corrupted;
            } else if (!seen.insert(sequence).second) {
                ++mixture.damage.duplicated;
            } else {
                ++mixture.received;
                if (sequence < highest[stream]) ++mixture.damage.reordered;
                highest[stream] = std::max(highest[stream], sequence + 1);
            }
        }
    }
    return mixture;
}

/// What is noted of the delay of each frame by itself.
struct Noted {
    tally::DelayTracks tracks{{.first = 100, .tag_first = 100, .tag_every = 7, .tagged = 400, .has_variation = true},
                              false};
    tally::VariationHistogram variation;
    tally::DelaySpread spread;

    template <IpVersion V>
    void listen_to(Rig<V>& rig, Ticks overdue_after) {
        auto& expected = *rig.expectation;
        expected.delays = &tracks;
        expected.variation = &variation;
        expected.spread = &spread;
        expected.overdue_after = overdue_after;
        rig.receiver.arm(expected, rig.map, *rig.tally, rig.clock.now());
    }

    [[nodiscard]] std::vector<std::int64_t> all() {
        spread.settle();
        std::vector<std::int64_t> found;
        const auto keep = [&](auto lowest, auto highest, auto count) {
            for (const auto each : {lowest, highest}) found.push_back(static_cast<std::int64_t>(each));
            found.push_back(static_cast<std::int64_t>(count));
        };
        spread.for_each_bucket(keep);
        variation.for_each_bucket(keep);
        for (std::size_t n = 0; n < tracks.wish().tagged; ++n) {
            found.push_back(static_cast<std::int64_t>(tracks.is_left_out(n)));
            if (!tracks.is_left_out(n)) found.push_back(static_cast<std::int64_t>(tracks.tagged(n).value_or(0)));
        }
        return found;
    }
};

/// The first frames of a mixture leave 2.1 ms late, and all are then in such frames' wake.
constexpr Ticks all_left_out = 500 * us;
constexpr Ticks none_left_out = 3000 * us;

template <IpVersion V>
struct ReceivedBothWays {
    Mixture mixture;
    std::array<std::unique_ptr<Rig<V>>, 2> rigs;  // one by one, and in bursts
};

/// The same frames received one by one, and in bursts. `prepare` gets each rig before.
template <IpVersion V>
ReceivedBothWays<V> received_both_ways(std::uint64_t seed, unsigned oddities, const auto& prepare) {
    const Ticks now = start + 3000 * us;
    std::optional<Mixture> mixture;
    std::array<std::unique_ptr<Rig<V>>, 2> rigs;
    for (std::size_t i = 0; i < rigs.size(); ++i) {
        auto& rig = rigs.at(i);
        rig = std::make_unique<Rig<V>>(Options{.frames = frames_of_trial, .streams = 3, .buffers = 8192});
        if (!mixture) mixture = make_mixture<V>(rig->plan, seed, oddities, now);
        rig->clock.time = now;
        prepare(*rig, i);
        for (const auto& f : mixture->frames) rig->right.inject(f);
    }
    rigs[0]->right.hand_over_at_most = 1;
    for (auto& rig : rigs) {
        while (!rig->right.arrived().empty()) rig->receive();
        CHECK(rig->got().received_frames == mixture->received);
        CHECK(damage_of(rig->got()) == mixture->damage);
    }
    return {std::move(*mixture), std::move(rigs)};
}

template <IpVersion V>
void check_delays_of_every_frame(Ticks overdue_after) {
    for (std::uint64_t seed = 1; seed <= (is_slow ? 2 : 6); ++seed) {
        for (const unsigned oddities : {0U, 20U, 500U}) {
            std::array<Noted, 2> noted;
            const auto [mixture, rigs] = received_both_ways<V>(
                seed, oddities, [&](Rig<V>& rig, std::size_t i) { noted.at(i).listen_to(rig, overdue_after); });
            const auto& one = rigs[0]->got();
            const auto& many = rigs[1]->got();
            CHECK(one.left_out_frames == many.left_out_frames);
            CHECK(one.latency.count() == many.latency.count());
            CHECK(one.latency.sum() == many.latency.sum());
            CHECK(noted[1].spread.count() == many.latency.count());
            CHECK((noted[1].variation.count() > 0) == (overdue_after == none_left_out));
            CHECK((many.left_out_frames > 0) == (overdue_after == all_left_out));
            CHECK(noted[0].all() == noted[1].all());
        }
    }
}

template <IpVersion V>
void check_mixtures() {
    for (std::uint64_t seed = 1; seed <= (is_slow ? 3 : 12); ++seed) {
        for (const unsigned oddities : {0U, 20U, 500U}) {
            const auto [mixture, rigs] = received_both_ways<V>(seed, oddities, [](Rig<V>&, std::size_t) {});
            for (const auto& rig : rigs) {
                CHECK(rig->map.missing(0, frames_of_trial) == frames_of_trial - mixture.received);
                CHECK(rig->got().latency.count() == mixture.received);
            }
            const auto& one = rigs[0]->got();
            const auto& many = rigs[1]->got();
            CHECK(one.first_hop_limit == many.first_hop_limit);
            CHECK(one.next_in_order == many.next_in_order);
            CHECK(one.max_ahead == many.max_ahead);
            CHECK(one.max_before_start == many.max_before_start);
            CHECK(one.latency.sum() == many.latency.sum());
            CHECK(one.latency.min() == many.latency.min());
            CHECK(one.latency.max() == many.latency.max());
            std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;
            one.latency.for_each_bucket([&](auto value, auto count) { buckets.emplace_back(value, count); });
            std::size_t same = 0;
            many.latency.for_each_bucket([&](auto value, auto count) {
                same += static_cast<std::size_t>(same < buckets.size() && buckets[same] == std::pair{value, count});
            });
            CHECK(same == buckets.size());
            for (std::size_t i = 0; i < tally::SliceDelays::slices; ++i) {
                const auto& a = one.delay_by_slice.all()[i];
                const auto& b = many.delay_by_slice.all()[i];
                CHECK(a.frames == b.frames);
                CHECK(a.sum == b.sum);
                CHECK(a.min == b.min);
                CHECK(a.max == b.max);
            }
        }
    }
}

}  // namespace

TEST_CASE("a burst is counted as its frames are one after the other: IPv4 (R2544-06, R2544-40)") {
    check_mixtures<IpVersion::v4>();
}

TEST_CASE("a burst is counted as its frames are one after the other: IPv6 (R2544-06, R2544-40)") {
    check_mixtures<IpVersion::v6>();
}

TEST_CASE("the delays of a burst's frames are noted as those of frames one after the other (R8219-12)") {
    for (const Ticks overdue_after : {all_left_out, none_left_out}) {
        check_delays_of_every_frame<IpVersion::v4>(overdue_after);
        check_delays_of_every_frame<IpVersion::v6>(overdue_after);
    }
}

}  // namespace burst_count_test
