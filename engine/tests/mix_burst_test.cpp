// SPDX-License-Identifier: Apache-2.0
// Station 5: a burst of frames that are not all alike is counted as its frames are one after the other: sizes, flows,
// both IP versions, behind a translator, behind VLAN tags. R2544-06, R2544-40, R6985-01, R5180-14.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "direct_plans.hpp"
#include "frame/checksum.hpp"
#include "frame/vlan.hpp"
#include "lists.hpp"
#include "mix_rig.hpp"
#include "slow.hpp"
#include "tally/frame_capture.hpp"

namespace mix_burst_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::FrameClass;
using frame::MixedPlans;

namespace {

using Frame = MemoryPort::Frame;

constexpr Ticks arrival = start + 3000 * us;
constexpr Ticks residual_end = arrival + 10 * us;

/// Frames of one trial.
struct Traffic {
    std::string name;
    plan::AddressPlan first;
    MixedPlans mixed;
    bool is_translated = false;
    frame::VlanTags tags;
    bool is_alike = false;  // received by the loop for frames that are all alike
};

MixedPlans sizes(const std::vector<std::size_t>& all, std::vector<std::uint8_t> cycle) {
    std::vector<FrameClass> classes;
    classes.reserve(all.size());
    for (const auto size : all) classes.push_back({.frame_size = size});
    return {.mix = {std::move(classes), std::move(cycle)}, .other_plan = {}};
}

/// Flows with marks, ports of their own, and perhaps sizes of their own or marks that vary.
MixedPlans flows(std::size_t count, std::size_t frame_size, IpVersion version, std::size_t more_each = 0,
                 bool has_patterns = false) {
    std::vector<FrameClass> classes;
    std::vector<std::uint8_t> cycle;
    for (std::size_t c = 0; c < count; ++c) {
        FrameClass of{.frame_size = frame_size + more_each * c, .name = "flow " + std::to_string(c)};
        if (has_patterns)
            of.fields.patterns[plan::FlowField::traffic_class] = plan::FieldPattern{
                .addresses = {}, .list = {}, .first = static_cast<std::uint32_t>(c % 32), .count = 7};
        else
            of.fields.traffic_class = static_cast<std::uint8_t>(4 * c);
        if (version == IpVersion::v6) of.fields.flow_label = static_cast<std::uint32_t>(0xFFFFF - c);
        of.fields.vlan_priority = static_cast<std::uint8_t>(c % 8);
        if (c % 2 == 1) of.fields.destination_port = static_cast<std::uint16_t>(2000 + c);
        classes.push_back(of);
        for (std::size_t n = 0; n <= c % 3; ++n) cycle.push_back(static_cast<std::uint8_t>(c));
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

MixedPlans versions(const plan::AddressPlan& other, std::vector<FrameClass> classes, std::vector<std::uint8_t> cycle) {
    return {.mix = {std::move(classes), std::move(cycle)}, .other_plan = other};
}

frame::VlanTags tags(const std::vector<std::uint16_t>& vlans) { return frame::VlanTags{vlans}; }

std::vector<Traffic> all_traffic() {
    const auto v4 = gateway_v4();
    const auto v6 = gateway_v6();
    const MixedPlans imix_v4 = sizes({64, 594, 1518}, {0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1});
    const MixedPlans imix_v6 = sizes({84, 594, 1518}, {0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1});
    const std::vector<FrameClass> of_both{{.plan = 0, .frame_size = 90},
                                          {.plan = 1, .frame_size = 90},
                                          {.plan = 0, .frame_size = 1000},
                                          {.plan = 1, .frame_size = 333}};
    return {
        {"sizes, IPv4", v4, imix_v4},
        {"sizes, IPv6", v6, imix_v6},
        {"sizes of any remainder, IPv4", v4,
         sizes({64, 65, 66, 95, 96, 97, 127, 128, 129}, {8, 0, 1, 2, 3, 4, 5, 6, 7})},
        {"sizes of any remainder, IPv6", v6, sizes({84, 85, 115, 116, 117, 148, 149}, {6, 0, 1, 2, 3, 4, 5})},
        {"sizes, networks, IPv4", nets_v4(), imix_v4},
        {"sizes, networks, IPv6", nets_v6(), imix_v6},
        {"sizes, lists, IPv4", both_listed_v4(), imix_v4},
        {"sizes, lists, IPv6", both_listed_v6(), imix_v6},
        {"sizes, translated to IPv4", v4, imix_v4, true},
        {"sizes, translated to IPv6", v6, imix_v6, true},
        {"one size, translated to IPv4", v4, sizes({100, 100}, {0, 1}), true},
        {"nine to one", v4,
         versions(v6, {{.plan = 0, .frame_size = 84}, {.plan = 1, .frame_size = 84}}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1})},
        {"both versions and sizes, IPv4 first", v4, versions(v6, of_both, {0, 1, 2, 3, 0, 0, 1})},
        {"both versions and sizes, IPv6 first", v6, versions(v4, of_both, {3, 2, 0, 1, 0, 0, 1})},
        {"flows, IPv4", v4, flows(64, 100, IpVersion::v4)},
        {"flows, IPv6", v6, flows(64, 100, IpVersion::v6)},
        {"flows of unlike sizes, IPv4", v4, flows(64, 64, IpVersion::v4, 3)},
        {"flows of unlike sizes, IPv6", v6, flows(64, 84, IpVersion::v6, 5)},
        {"flows whose marks vary, of unlike sizes, IPv4", v4, flows(5, 64, IpVersion::v4, 31, true)},
        {"flows whose marks vary, of unlike sizes, IPv6", v6, flows(5, 84, IpVersion::v6, 31, true)},
        {"flows of unlike sizes behind a tag, IPv4", v4, flows(9, 64, IpVersion::v4, 40), false, tags({100})},
        {"flows of unlike sizes behind two tags, IPv6", v6, flows(9, 84, IpVersion::v6, 40), false, tags({200, 100})},
        {"both versions behind a tag", v4, versions(v6, of_both, {0, 1, 2, 3, 0, 0, 1}), false, tags({7})},
        {"all alike behind a tag, IPv4", v4, sizes({64}, {0}), false, tags({100}), true},
        {"all alike behind two tags, IPv6", v6, sizes({84}, {0}), false, tags({200, 100}), true},
    };
}

/// The frames of a trial in their order, sent at rising times.
std::vector<Frame> sent(const Traffic& traffic, std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const auto pattern = frame::pattern_of(traffic.first.version(), traffic.mixed.mix.has_two_plans());
    const std::size_t around = traffic.tags.octets();
    auto source = source_of(traffic.first, traffic.mixed, {});
    std::vector<Frame> frames(count);
    Ticks time = arrival - 900 * us;
    for (auto& f : frames) {
        if (random() % 4 == 0) time += random() % 100;
        frame::write_pattern(pattern, std::span{f.octets}.subspan(around).first(1514));
        f.length = source.frame_octets(0) + around;
        const auto tag = source.flow_tag(0);
        std::byte* const at = f.octets.data() + around;
        source.write_next({&at, 1}, time);
        if (around != 0) traffic.tags.put(f.octets.data(), tag);
    }
    return frames;
}

/// Puts the checksum of a changed IPv4 header right.
void correct_header(std::byte* ip) {
    ip[10] = ip[11] = std::byte{0};
    frame::store(ip + 10, frame::ip_checksum(frame::sum_octets(ip, 20)));
}

/// What arrives of them: some altered, cut, lengthened, lost, doubled or too late in order; and frames of others.
std::vector<Frame> arriving(const Traffic& traffic, const std::vector<Frame>& frames, std::uint64_t seed,
                            unsigned oddities_of_1000) {
    std::mt19937_64 random{seed};
    const std::size_t around = traffic.tags.octets();
    std::vector<Frame> arrives;
    std::deque<Frame> held;
    for (std::size_t k = 0; k < frames.size(); ++k) {
        Frame f = frames[k];
        if (!held.empty() && random() % 20 == 0) {
            arrives.push_back(held.front());
            held.pop_front();
        }
        if (random() % 1000 >= oddities_of_1000) {
            arrives.push_back(f);
            continue;
        }
        std::byte* const ip = f.octets.data() + around + frame::ethernet_octets;
        const bool is_v4 = static_cast<unsigned>(ip[0]) >> 4U == 4;
        switch (random() % 12) {
            case 0: continue;
            case 1: held.push_back(f); continue;
            case 2: arrives.push_back(f); break;
            case 3: arrives.push_back(frames[k - random() % std::min<std::size_t>(k + 1, 200)]); break;
            case 4: f.octets.at(random() % f.length) ^= static_cast<std::byte>(1U << random() % 8); break;
            case 5:
                f.octets.at(random() % std::min<std::size_t>(f.length, 80)) = static_cast<std::byte>(random());
                break;
            case 6: f.length -= random() % std::min<std::size_t>(f.length, 70); break;
            case 7: f.length += 1 + random() % 70; break;
            case 8: f.length = frames[random() % frames.size()].length; break;
            case 9: {  // of another class, by what is in front of its tag
                const Frame& other = frames[random() % frames.size()];
                std::copy_n(other.octets.begin(), 54 + around, f.octets.begin());
                break;
            }
            case 10:
                if (is_v4) {
                    ip[1] ^= std::byte{0xB8};
                    correct_header(ip);
                } else {
                    ip[0] ^= std::byte{0x0B};
                }
                break;
            default:
                if (is_v4 && random() % 2 == 0) {
                    // As a translator may choose them.
                    frame::store(ip + 4, static_cast<std::uint32_t>(random() & 0x0040FFFFU));
                    correct_header(ip);
                } else {
                    Frame foreign = frame_of("020000000002 020000000009 88b5 00000000");
                    foreign.length = 14 + random() % 1500;
                    arrives.push_back(foreign);
                }
        }
        arrives.push_back(f);
    }
    arrives.insert(arrives.end(), held.begin(), held.end());
    return arrives;
}

/// A receiver, and what it counted.
struct Reception {
    Reception(const Traffic& traffic, std::uint64_t frames, bool is_one_by_one)
        : is_alike{traffic.is_alike},
          responder{right_mac, traffic.first.right.gateway.value_or(plan::IpAddress{}),
                    traffic.first.right.dut_address},
          receiver{port, 0, responder, traffic.tags, nullptr, &capture},
          map{frames, false} {
        // Where frames may be kept, each is looked at by itself.
        if (is_one_by_one) capture.begin(1);
        if (traffic.mixed.mix.has_flows()) tally->flows.resize(traffic.mixed.mix.classes().size());
        run::Expectation expected{.trial = trial,
                                  .direction = Direction::forward,
                                  .frames = expectation_of(traffic.first, traffic.mixed, traffic.is_translated),
                                  .start = start,
                                  .clock_skew = us,
                                  .residual_end = residual_end,
                                  .ring_lasts = second,
                                  .burst_lasts = run::receive_burst * us};
        if (is_alike) {
            frame::TestFrameExpectation alike = tests::expected(
                traffic.first, traffic.mixed.mix.classes().front().frame_size, Direction::forward, right_mac);
            alike.know({traffic.first, Direction::forward, 1}, 1);
            expected.frames = alike;
        }
        receiver.arm(expected, map, *tally, clock.time);
    }

    void receive(std::span<const Frame> frames) {
        for (const auto& f : frames) port.inject(f);
        while (!port.arrived().empty()) {
            if (is_alike)
                receiver.turn(clock.now(), clock);
            else
                receiver.turn<frame::MixExpectation>(clock.now(), clock);
        }
    }

    bool is_alike;
    MemoryPort port{512};
    neighbor::Responder responder;
    tally::FrameCapture capture;
    run::Receiver<MemoryPort, neighbor::Responder> receiver;
    tally::SequenceMap map;
    std::unique_ptr<tally::ReceiverTally> tally = std::make_unique<tally::ReceiverTally>();
    HandClock clock{arrival};
};

std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets_of(const auto& histogram) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    histogram.for_each_bucket([&](auto value, auto count) { all.emplace_back(value, count); });
    return all;
}

void check_alike(const Reception& one, const Reception& many, std::uint64_t frames) {
    const auto& a = *one.tally;
    const auto& b = *many.tally;
    CHECK(a.received_frames == b.received_frames);
    CHECK(damage_of(a) == damage_of(b));
    CHECK(a.corrupted_by == b.corrupted_by);
    CHECK(a.mistranslated_frames == b.mistranslated_frames);
    CHECK(a.remarked_frames == b.remarked_frames);
    CHECK(a.received_of_class == b.received_of_class);
    CHECK(a.first_hop_limit == b.first_hop_limit);
    CHECK(a.next_in_order == b.next_in_order);
    CHECK(a.latency.sum() == b.latency.sum());
    CHECK(buckets_of(a.latency) == buckets_of(b.latency));
    CHECK(one.map.missing(0, frames) == many.map.missing(0, frames));
    CHECK(one.map.missing(0, frames) == frames - a.received_frames);
    REQUIRE(a.flows.size() == b.flows.size());
    for (std::size_t c = 0; c < a.flows.size(); ++c) {
        CAPTURE(c);
        const auto& of = a.flows[c];
        const auto& in_bursts = b.flows[c];
        CHECK(of.duplicated_frames == in_bursts.duplicated_frames);
        CHECK(of.reordered_frames == in_bursts.reordered_frames);
        CHECK(of.late_frames == in_bursts.late_frames);
        CHECK(of.remarked_frames == in_bursts.remarked_frames);
        CHECK(of.next_in_order == in_bursts.next_in_order);
        CHECK(of.delays.count() == in_bursts.delays.count());
        CHECK(buckets_of(of.delays) == buckets_of(in_bursts.delays));
    }
}

/// Received in bursts of 1 to 64 frames, of which the last arrive too late.
void check_traffic(const Traffic& traffic, std::uint64_t seed, unsigned oddities) {
    const std::size_t count = is_slow ? 700 : 2500;
    const auto arrives = arriving(traffic, sent(traffic, count, seed), seed, oddities);
    Reception one{traffic, count, true};
    Reception many{traffic, count, false};
    const auto late = std::span{arrives}.last(arrives.size() / 10);
    auto in_time = std::span{std::as_const(arrives)}.first(arrives.size() - late.size());
    std::mt19937_64 random{seed};
    while (!in_time.empty()) {
        const auto burst = in_time.first(std::min<std::size_t>(in_time.size(), 1 + random() % run::receive_burst));
        in_time = in_time.subspan(burst.size());
        for (auto* const reception : {&one, &many}) reception->receive(burst);
    }
    for (auto* const reception : {&one, &many}) {
        reception->clock.time = residual_end + us;
        reception->receive(late);
    }
    CHECK(one.tally->late_frames > 0);
    CHECK(one.tally->received_frames > arrives.size() / 4);
    check_alike(one, many, count);
}

}  // namespace

TEST_CASE("frames that are not all alike are known in whole bursts (R6985-01, R5180-14)") {
    for (const auto& traffic : all_traffic()) {
        CAPTURE(traffic.name);
        auto checks = expectation_of(traffic.first, traffic.mixed, traffic.is_translated)
                          .burst_checks({.direction = Direction::forward, .trial = trial});
        if (!checks) return;  // this CPU cannot
        const auto frames = sent(traffic, run::receive_burst, 1);
        std::vector<const std::byte*> at;
        std::vector<std::uint16_t> lengths;
        const std::size_t around = traffic.tags.octets();
        auto untagged = frames;
        for (auto& f : untagged) {
            if (around != 0) REQUIRE(traffic.tags.take(f.octets.data(), f.length));
            at.push_back(f.octets.data() + around);
            lengths.push_back(static_cast<std::uint16_t>(f.length - around));
        }
        frame::FoundBurst found;
        // A cable leaves the MAC of the DUT there, for which they are looked at second.
        checks.find(at.data(), run::receive_burst, found, lengths.data());
        checks.find(at.data(), run::receive_burst, found, lengths.data());
        CHECK(found.known == frame::first_bits(run::receive_burst));
        for (unsigned i = 0; i < run::receive_burst; ++i) {
            CHECK(found.sequence(i) == i);
            CHECK(found.classes[i] == traffic.mixed.mix.class_of(i));
        }
    }
}

TEST_CASE("a burst of frames that are not all alike is counted as its frames are one after the other (R2544-06)") {
    for (const auto& traffic : all_traffic()) {
        CAPTURE(traffic.name);
        for (std::uint64_t seed = 1; seed <= (is_slow ? 1 : 4); ++seed) {
            for (const unsigned oddities : {0U, 20U, 500U}) {
                CAPTURE(seed);
                CAPTURE(oddities);
                check_traffic(traffic, seed, oddities);
            }
        }
    }
}

}  // namespace mix_burst_test
