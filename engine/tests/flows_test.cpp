// SPDX-License-Identifier: Apache-2.0
// Stations 2, 5 and 6: flows, which are classes of a mix with fields, a share and a limit of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fault.hpp"
#include "flow_frames.hpp"
#include "lists.hpp"
#include "mix_rig.hpp"
#include "results.hpp"
#include "run/flow_limits.hpp"
#include "slow.hpp"
#include "tally/together.hpp"

namespace flows_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::FrameClass;
using frame::MixedPlans;

namespace {

template <IpVersion V>
void check_frames(const plan::AddressPlan& p, const MixedPlans& mixed, frame::StreamShare share) {
    std::vector<Octets> buffers(40, Octets(mixed.mix.largest_frame_size() - frame::fcs_octets));
    for (auto& buffer : buffers) frame::write_pattern(V, buffer);
    auto source = source_of(p, mixed, share);
    const std::vector<std::size_t> bursts{32, 1, 3, 31, 7};
    std::uint64_t i = 0;
    for (std::size_t burst = 0; i < 3000; ++burst) {
        const std::size_t n = bursts[burst % bursts.size()];
        std::vector<std::byte*> at;
        std::vector<std::size_t> lengths;
        for (std::size_t j = 0; j < n; ++j) {
            at.push_back(buffers[j].data());
            lengths.push_back(source.frame_octets(j));
            REQUIRE(source.flow_tag(j).priority ==
                    mixed.mix.classes()[mixed.mix.class_of(share.sequence(i + j))].fields.vlan_priority);
        }
        source.write_next(at, 7);
        for (std::size_t j = 0; j < n; ++j, ++i) {
            Octets sent(at[j], at[j] + lengths[j]);
            REQUIRE(tests::hex(sent) == tests::hex(by_hand<V>(p, mixed, share.sequence(i))));
        }
    }
}

FaultCode fault_of(const plan::AddressPlan& p, std::vector<FrameClass> classes, std::vector<std::uint8_t> cycle,
                   std::optional<plan::AddressPlan> other = std::nullopt) {
    try {
        frame::check_mix(p, {.mix = {std::move(classes), std::move(cycle)}, .other_plan = std::move(other)});
    } catch (const Fault& fault) {
        CHECK(fault.where.starts_with("mix.classes"));
        CHECK_FALSE(fault.next.empty());
        return fault.code;
    }
    return FaultCode::internal;
}

std::size_t class_of(const MixedPlans& mixed, const MemoryPort::Frame& f) {
    return mixed.mix.class_of(frame::look_at(f.octets.data(), f.length).tag.sequence);
}

}  // namespace

TEST_CASE("frame k of flows is that of the plan with the fields of its flow, and right sums") {
    for (const std::uint64_t stride : {1U, 5U}) {
        if (tests::is_slow && stride == 1) continue;
        CAPTURE(stride);
        const frame::StreamShare share{.first = stride - 1, .stride = stride};
        for (const bool has_sizes : {false, true}) {
            if (tests::is_slow && !has_sizes) continue;
            check_frames<IpVersion::v4>(gateway_v4(), flows_of(64, 64, IpVersion::v4, has_sizes), share);
            check_frames<IpVersion::v4>(nets_v4(), flows_of(5, 300, IpVersion::v4, has_sizes), share);
            check_frames<IpVersion::v6>(gateway_v6(), flows_of(64, 84, IpVersion::v6, has_sizes), share);
            check_frames<IpVersion::v6>(nets_v6(), flows_of(7, 200, IpVersion::v6, has_sizes), share);
        }
    }
}

TEST_CASE("everything of 64 flows arrives in exact shares, in whole bursts or frame by frame") {
    for (const bool is_v4 : {true, false}) {
        for (const bool has_sizes : {false, true}) {
            CAPTURE(is_v4);
            CAPTURE(has_sizes);
            const auto version = is_v4 ? IpVersion::v4 : IpVersion::v6;
            const auto mixed = flows_of(64, 100, version, has_sizes);
            MixRig rig{mixed, 20 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
            rig.run();
            CHECK(rig.tally->received_frames == rig.frames);
            CHECK(damage_of(*rig.tally) == Damage{});
            CHECK(rig.tally->remarked_frames == 0);
            CHECK(rig.tally->reordered_frames == 0);
            for (std::size_t c = 0; c < 64; ++c) {
                const auto& flow = rig.tally->flows[c];
                CHECK(rig.tally->received_of_class[c] == 20 * (c % 3 + 1));
                CHECK(flow.delays.count() == 20 * (c % 3 + 1));
                CHECK(flow.reordered_frames + flow.duplicated_frames + flow.late_frames + flow.remarked_frames == 0);
            }
        }
    }
}

TEST_CASE("what happens to one flow is charged to it alone: loss, duplicates, another mark") {
    for (const bool is_v4 : {true, false}) {
        const auto mixed = flows_of(8, 100, is_v4 ? IpVersion::v4 : IpVersion::v6);
        MixRig rig{mixed, 20 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            const auto c = class_of(mixed, f);
            if (c == 3 || c == 4) {
                // Congestion (CE) for ECT(0), or another DSCP; and in IPv4 the sum that belongs to it.
                if (is_v4) {
                    std::byte* const ip = f.octets.data() + 14;
                    ip[1] = c == 3 ? ip[1] | std::byte{3} : std::byte{0xB8};
                    ip[10] = ip[11] = std::byte{0};
                    frame::store(ip + 10, static_cast<std::uint16_t>(~frame::fold(frame::sum_octets(ip, 20))));
                } else if (c == 3) {
                    f.octets[15] |= std::byte{0x30};
                } else {
                    f.octets[14] = std::byte{0x6B};
                }
            }
            return c == 2 ? 0U : c == 5 ? 2U : 1U;
        };
        rig.run();
        const auto& t = *rig.tally;
        const auto of_class = [](std::size_t c) { return 20 * (c % 3 + 1); };
        CHECK(t.received_frames == rig.frames - of_class(2));
        for (std::size_t c = 0; c < 8; ++c) {
            CAPTURE(c);
            CHECK(t.received_of_class[c] == (c == 2 ? 0 : of_class(c)));
            CHECK(t.flows[c].duplicated_frames == (c == 5 ? of_class(c) : 0));
            CHECK(t.flows[c].remarked_frames == (c == 3 || c == 4 ? of_class(c) : 0));
        }
        CHECK(t.duplicated_frames == of_class(5));
        CHECK(t.remarked_frames == of_class(3) + of_class(4));
    }
}

TEST_CASE("a frame with the port of another flow is not the one that was sent") {
    const auto mixed = flows_of(4, 100, IpVersion::v4);
    MixRig rig{mixed};
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (class_of(mixed, f) != 1) return 1U;
        // Both ports' sum stays the same, and so does the checksum.
        std::byte* const udp = f.octets.data() + 34;
        frame::store(udp, frame::big(static_cast<std::uint16_t>(frame::big(frame::load<std::uint16_t>(udp)) - 1)));
        frame::store(udp + 2, frame::big(static_cast<std::uint16_t>(2002)));
        return 1U;
    };
    rig.run();
    CHECK(rig.tally->received_of_class[1] == 0);
    CHECK(rig.tally->wrong_port_frames == rig.frames - rig.tally->received_frames);
}

TEST_CASE("the order of a flow is its own: what overtakes another flow overtakes nothing of its own") {
    const auto mixed = flows_of(2, 100, IpVersion::v4);  // frame 0 of the first, then two of the second
    MixRig rig{mixed, 300};
    MemoryPort::Frame held;
    bool holds = false;
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        if (class_of(mixed, f) == 0) {
            held = f;
            holds = true;
            return 0U;
        }
        if (holds && number_of(f) % 3 == 2) {
            rig.right.inject(f);
            rig.right.inject(held);
            holds = false;
            return 0U;
        }
        return 1U;
    };
    rig.run();
    CHECK(rig.tally->received_frames == 300);
    CHECK(rig.tally->reordered_frames == 100);
    CHECK(rig.tally->flows[0].reordered_frames == 0);
    CHECK(rig.tally->flows[1].reordered_frames == 0);
}

TEST_CASE("delays of a flow: exact count and mean, percentiles to 1.6 percent") {
    tally::FlowDelays delays;
    CHECK_FALSE(delays.percentile(1, 2));
    for (std::uint64_t i = 1; i <= 100'000; ++i) delays.record(10 * i);
    CHECK(delays.count() == 100'000);
    CHECK(delays.min() == 10);
    CHECK(delays.max() == 1'000'000);
    CHECK(delays.mean() == doctest::Approx(500'005));
    for (const auto& [numerator, denominator, exact] :
         {std::tuple{1ULL, 2ULL, 500'000.0}, {99ULL, 100ULL, 990'000.0}, {999ULL, 1000ULL, 999'000.0}}) {
        const auto found = static_cast<double>(delays.percentile(numerator, denominator).value());
        CHECK(found >= exact);
        CHECK(found <= 1.016 * exact);
    }
    tally::FlowDelays twice = delays;
    twice.add(delays);
    CHECK(twice.count() == 200'000);
    CHECK(twice.percentile(1, 2) == delays.percentile(1, 2));
}

TEST_CASE("flows that cannot be are refused") {
    const auto v4 = gateway_v4();
    const FrameClass a{.frame_size = 84, .name = "a"};
    const FrameClass b{.frame_size = 84, .name = "b"};
    CHECK(fault_of(v4, {a, b}, {0, 1}) == FaultCode::internal);
    CHECK(fault_of(v4, {a, a}, {0, 1}) == FaultCode::bad_request);
    CHECK(fault_of(v4, {a, {.frame_size = 84}}, {0, 1}) == FaultCode::bad_request);
    CHECK(fault_of(v4, {{.frame_size = 84, .fields = {.traffic_class = 1}}}, {0}) == FaultCode::bad_request);
    CHECK(fault_of(v4, {{.frame_size = 84, .name = "a", .fields = {.flow_label = 1}}}, {0}) == FaultCode::bad_request);
    CHECK(fault_of(siit(), {a, b}, {0, 1}) == FaultCode::bad_request);
    frame::Transport tcp{.kind = frame::Transport::Kind::tcp};
    const auto of_octets = [&](std::size_t octets) {
        return fault_of(v4, {{.frame_size = octets, .name = "a", .fields = {.transport = tcp}}}, {0});
    };
    CHECK(of_octets(75) == FaultCode::bad_frame_size);
    CHECK(of_octets(76) == FaultCode::internal);
    tcp.payload_octets = 9;
    CHECK(of_octets(84) == FaultCode::bad_frame_size);
    CHECK(of_octets(85) == FaultCode::internal);
    CHECK(fault_of(v4, {{.plan = 0, .frame_size = 84, .name = "a"}, {.plan = 1, .frame_size = 84, .name = "b"}}, {0, 1},
                   gateway_v6()) == FaultCode::bad_request);
}

TEST_CASE("a flow with a limit of its own is judged by it, all others together by the trial's") {
    constexpr std::uint64_t of_flow = 100'000;
    const auto trial_with = [&](std::uint64_t lost_voice, std::uint64_t lost_rest) {
        auto r = lossless(2 * of_flow);
        r.limits.loss_ratio = 0.05;
        for (auto& d : r.directions) {
            d.received_frames -= lost_voice + lost_rest;
            d.classes = {
                {.frame_size = 64,
                 .offered_frames = of_flow,
                 .received_frames = of_flow - lost_voice,
                 .name = "voice",
                 .loss_at_most = 0.0},
                {.frame_size = 64, .offered_frames = of_flow, .received_frames = of_flow - lost_rest, .name = "rest"}};
        }
        tally::judge(r);
        return r;
    };
    CHECK(trial_with(0, 0).verdict == tally::Verdict::pass);
    CHECK(trial_with(0, 5000).verdict == tally::Verdict::pass);
    CHECK(trial_with(0, 5001).verdict == tally::Verdict::fail);
    const auto failed = trial_with(1, 0);
    CHECK(failed.verdict == tally::Verdict::fail);
    CHECK(failed.reasons.front().text.find("1 of 100000 of voice (at most 0 %)") != std::string::npos);
}

TEST_CASE("a loss that may be the tester's is none that a flow's limit charges to the DUT") {
    auto r = lossless(200'000);
    for (auto& d : r.directions)
        d.classes = {{.frame_size = 64,
                      .offered_frames = 100'000,
                      .received_frames = 100'000,
                      .name = "voice",
                      .loss_at_most = 0.0},
                     {.frame_size = 64, .offered_frames = 100'000, .received_frames = 100'000, .name = "rest"}};
    auto& d = r.directions.front();
    d.received_frames -= 10;
    d.classes[0].received_frames -= 10;
    d.gap_frames = 10;
    tally::judge(r);
    CHECK(r.verdict == tally::Verdict::invalid);
    d.gap_frames = 9;
    tally::judge(r);
    CHECK(r.verdict == tally::Verdict::fail);
}

TEST_CASE("in clean time, a flow is judged by its own frames of it, and all others together by theirs") {
    const auto judged = [](std::uint64_t lost_voice, std::uint64_t lost_rest) {
        auto r = lossless(200'000);
        r.limits.loss_ratio = 0.05;
        r.clean.emplace();
        r.clean->wanted_s = r.clean->sent_s = r.clean->clean_s = 10;
        r.clean->left_out = {{.from_s = 1, .until_s = 1.01, .kinds = {true}}};
        for (auto& d : r.directions) {
            d.received_frames -= 50'000;  // most of it in a lapse
            d.classes = {{.frame_size = 64,
                          .offered_frames = 100'000,
                          .received_frames = 75'000,
                          .name = "voice",
                          .loss_at_most = 0.0,
                          .clean = tally::CleanCounts{.frames = 70'000, .lost_frames = lost_voice}},
                         {.frame_size = 64,
                          .offered_frames = 100'000,
                          .received_frames = 75'000,
                          .name = "rest",
                          .clean = tally::CleanCounts{.frames = 60'000, .lost_frames = lost_rest}}};
            d.clean = {.frames = 130'000, .lost_frames = lost_voice + lost_rest};
        }
        tally::judge(r);
        return r;
    };
    CHECK(judged(0, 3000).verdict == tally::Verdict::pass);
    CHECK(judged(0, 3001).verdict == tally::Verdict::fail);
    const auto failed = judged(1, 0);
    CHECK(failed.verdict == tally::Verdict::fail);
    CHECK(failed.reasons.front().text.find("in clean time: 1 of 70000 of voice (at most 0 %); 49999 of 70000 others") !=
          std::string::npos);
}

TEST_CASE("judged frames are counted by flow, and each limit is that of a name over both directions") {
    const std::vector<FrameClass> forward{{.frame_size = 64, .name = "voice", .loss_at_most = 0.1},
                                          {.frame_size = 64, .name = "rest"}};
    const std::vector<FrameClass> reverse{{.frame_size = 64, .name = "rest"},
                                          {.frame_size = 64, .name = "up"},
                                          {.frame_size = 64, .name = "voice", .loss_at_most = 0.1}};
    const frame::FrameMix there{forward, {0, 1, 1}};
    const frame::FrameMix back{reverse, {0, 1, 2, 2}};
    const run::FlowLimits limits{{{&there, &back}}, 0.5};
    CHECK(limits.has_own());

    tally::SequenceMap map{1000, false};
    auto part = map.part(0);
    for (std::uint64_t k = 0; k < 1000; ++k) {
        if (k % 100 != 0 && k % 100 != 1) (void)part.mark(k);
    }
    const auto found = limits.count(plan::Direction::forward, map, 100, 300);
    CHECK(found.all == tally::CleanCounts{.frames = 200, .lost_frames = 4});  // 100, 101, 200, 201
    REQUIRE(found.flows.size() == 2);
    CHECK(found.flows[0] == tally::CleanCounts{.frames = 66, .lost_frames = 1});  // 201 is a multiple of three
    CHECK(found.flows[1] == tally::CleanCounts{.frames = 134, .lost_frames = 3});
    auto both = found;
    both.add(limits.count(plan::Direction::forward, map, 300, 301));
    CHECK(both.all == tally::CleanCounts{.frames = 201, .lost_frames = 5});
    CHECK(both.flows[0] == tally::CleanCounts{.frames = 67, .lost_frames = 2});

    // 100 frames of voice there and 100 back may lose 20; the other 200 and 100 may lose 150.
    const auto exceeds = [&](std::uint64_t voice_there, std::uint64_t voice_back, std::uint64_t others) {
        const run::JudgedFrames of_forward{.all = {300, voice_there + others},
                                           .flows = {{100, voice_there}, {200, others}}};
        const run::JudgedFrames of_reverse{.all = {200, voice_back}, .flows = {{50, 0}, {50, 0}, {100, voice_back}}};
        const plan::PerDirection<run::JudgedFrames> counts{{of_forward, of_reverse}};
        const plan::PerDirection<double> as_many{{300, 200}};
        const bool is_exceeded = limits.are_exceeded(counts);
        CHECK(limits.are_exceeded(counts, &as_many) == is_exceeded);
        return is_exceeded;
    };
    CHECK_FALSE(exceeds(20, 0, 150));
    CHECK_FALSE(exceeds(5, 15, 0));
    CHECK(exceeds(6, 15, 0));
    CHECK(exceeds(0, 0, 151));
    CHECK(limits.are_exceeded_in(plan::Direction::forward, {.all = {300, 11}, .flows = {{100, 11}, {200, 0}}}));

    const run::FlowLimits none{{{nullptr, nullptr}}, 0.02};
    CHECK_FALSE(none.has_own());
    const auto alike = none.count(plan::Direction::reverse, map, 100, 300);
    CHECK(alike.all == tally::CleanCounts{.frames = 200, .lost_frames = 4});
    CHECK(alike.flows.empty());
    CHECK_FALSE(none.are_exceeded_in(plan::Direction::reverse, alike));
    CHECK(none.are_exceeded_in(plan::Direction::reverse, {.all = {.frames = 200, .lost_frames = 5}, .flows = {}}));
}

}  // namespace flows_test
