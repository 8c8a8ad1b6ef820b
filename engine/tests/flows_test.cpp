// SPDX-License-Identifier: Apache-2.0
// Stations 2, 5 and 6: flows, which are classes of a mix with fields, a share and a limit of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fault.hpp"
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

using Octets = std::vector<std::byte>;

/// 64 flows, or fewer: each DSCP once, a port of its own for every other one.
MixedPlans flows_of(std::size_t count, std::size_t frame_size, IpVersion version, bool has_sizes = false) {
    std::vector<FrameClass> classes;
    std::vector<std::uint8_t> cycle;
    for (std::size_t c = 0; c < count; ++c) {
        FrameClass of{.frame_size = frame_size + (has_sizes ? 3 * c : 0), .name = "flow " + std::to_string(c)};
        of.fields.traffic_class = static_cast<std::uint8_t>(4 * (c % 64) + (3 * c + 1) % 4);
        if (version == IpVersion::v6) of.fields.flow_label = static_cast<std::uint32_t>(0xFFFFF - c);
        of.fields.vlan_priority = static_cast<std::uint8_t>(c % 8);
        if (c % 2 == 1) of.fields.destination_port = static_cast<std::uint16_t>(2000 + c);
        if (c % 4 == 3) of.fields.source_port = static_cast<std::uint16_t>(65535 - c);
        classes.push_back(of);
        for (std::size_t n = 0; n <= c % 3; ++n) cycle.push_back(static_cast<std::uint8_t>(c));
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

/// Frame k, made without the code that is tested: as the plan has it, field after field written over, and both sums
/// computed anew.
template <IpVersion V>
Octets by_hand(const plan::AddressPlan& p, const MixedPlans& mixed, std::uint64_t k) {
    using L = frame::Layout<V>;
    const auto& c = mixed.mix.classes()[mixed.mix.class_of(k)];
    Octets octets(c.frame_size - frame::fcs_octets);
    frame::write_pattern(V, octets);
    const auto shape = frame::make_template(
        p, c.frame_size, {.direction = Direction::forward, .stream = 0, .trial = trial}, left_mac, dut_mac);
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, plan::FlowDraw{p, Direction::forward, 1}, {.first = k, .stride = 1}}.write_next(
        {&at, 1}, 7);
    if constexpr (V == IpVersion::v4) {
        octets[L::ip + 1] = std::byte{c.fields.traffic_class};
        octets[L::ip + 10] = octets[L::ip + 11] = std::byte{0};
        const auto sum = frame::fold(frame::sum_octets(at + L::ip, L::ip_octets));
        frame::store(at + L::ip + 10, static_cast<std::uint16_t>(~sum));
    } else {
        const std::uint32_t word = 6U << 28U | std::uint32_t{c.fields.traffic_class} << 20U | c.fields.flow_label;
        for (unsigned i = 0; i < 4; ++i) octets[L::ip + i] = static_cast<std::byte>(word >> (24 - 8 * i));
    }
    const auto put_port = [&](std::size_t where, std::optional<std::uint16_t> port) {
        if (port) frame::store(at + where, frame::big(*port));
    };
    put_port(L::udp, c.fields.source_port);
    put_port(L::udp + 2, c.fields.destination_port);
    octets[L::udp_checksum] = octets[L::udp_checksum + 1] = std::byte{0};
    const auto udp = frame::fold(frame::sum_octets(at + L::source, octets.size() - L::source) +
                                 frame::pseudo_header_sum(frame::protocol_udp, octets.size() - L::udp));
    const auto inverted = static_cast<std::uint16_t>(~udp);
    frame::store(at + L::udp_checksum, inverted == 0 ? std::uint16_t{0xFFFF} : inverted);
    return octets;
}

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

/// Flows whose headers are in turn those of UDP, TCP and ICMP; their sizes are equal.
MixedPlans with_transports(std::size_t count, std::size_t frame_size, IpVersion version) {
    using Kind = frame::Transport::Kind;
    const auto plain = flows_of(count, frame_size, version).mix;
    auto classes = plain.classes();
    std::vector<std::uint8_t> cycle;
    cycle.reserve(plain.period());
    for (std::size_t k = 0; k < plain.period(); ++k) cycle.push_back(static_cast<std::uint8_t>(plain.class_of(k)));
    for (std::size_t c = 0; c < count; ++c) {
        auto& transport = classes[c].fields.transport;
        transport.kind = c % 3 == 0 ? Kind::udp : c % 3 == 1 ? Kind::tcp : Kind::icmp;
        if (transport.kind == Kind::tcp) {
            for (std::size_t i = 4; i < 16; ++i) transport.header[i] = static_cast<std::byte>(16 * c + i);
            transport.header[12] = std::byte{0x50};
        } else if (transport.kind == Kind::icmp) {
            transport.header[0] = std::byte{version == IpVersion::v4 ? std::uint8_t{8} : std::uint8_t{128}};
        }
    }
    return {.mix = {classes, cycle}, .other_plan = {}};
}

/// The frame that was sent as UDP, as it is with the header of its class: put together from both, with sums anew.
template <IpVersion V>
Octets with_header(const Octets& udp, const frame::Transport& transport) {
    using L = frame::Layout<V>;
    using Kind = frame::Transport::Kind;
    if (transport.is_udp()) return udp;
    const bool is_tcp = transport.kind == Kind::tcp;
    const std::size_t length = is_tcp ? 20 : 8;
    Octets octets = udp;
    std::byte* const at = octets.data() + L::udp;
    std::copy_n(udp.data() + L::tag, frame::tag_octets, at + length);
    std::copy_n(transport.header.data(), length, at);
    std::copy_n(udp.data() + L::udp, 4, at + (is_tcp ? 0 : 4));
    const std::uint8_t protocol = is_tcp ? 6 : V == IpVersion::v4 ? 1 : 58;
    octets[L::ip + (V == IpVersion::v4 ? 9 : 6)] = std::byte{protocol};
    if constexpr (V == IpVersion::v4) {
        octets[L::ip + 10] = octets[L::ip + 11] = std::byte{0};
        frame::store(octets.data() + L::ip + 10,
                     static_cast<std::uint16_t>(~frame::fold(frame::sum_octets(octets.data() + L::ip, 20))));
    }
    const bool has_pseudo = is_tcp || V == IpVersion::v6;
    const std::size_t from = has_pseudo ? L::source : L::udp;
    std::uint64_t sum = frame::sum_octets(octets.data() + from, octets.size() - from);
    if (has_pseudo) sum += frame::pseudo_header_sum(protocol, octets.size() - L::udp);
    const auto inverted = static_cast<std::uint16_t>(~frame::fold(sum));
    frame::store(at + (is_tcp ? 16 : 2), inverted == 0 ? std::uint16_t{0xFFFF} : inverted);
    return octets;
}

template <IpVersion V>
void check_headers(const plan::AddressPlan& p, std::size_t frame_size) {
    const auto mixed = with_transports(7, frame_size, V);
    std::vector<Octets> buffers(32, Octets(frame_size - frame::fcs_octets));
    for (auto& buffer : buffers) frame::write_pattern(V, buffer);
    auto source = source_of(p, mixed, {});
    std::uint64_t k = 0;
    for (unsigned burst = 0; burst < 40; ++burst) {
        std::vector<std::byte*> at;
        at.reserve(buffers.size());
        for (unsigned j = 0; j < 1 + burst % 32; ++j) at.push_back(buffers[j].data());
        source.write_next(at, 7);
        for (std::size_t j = 0; j < at.size(); ++j, ++k) {
            const auto& transport = mixed.mix.classes()[mixed.mix.class_of(k)].fields.transport;
            REQUIRE(tests::hex(buffers[j]) == tests::hex(with_header<V>(by_hand<V>(p, mixed, k), transport)));
        }
    }
}

TEST_CASE("a flow of TCP or ICMP has that header, and right sums, whatever was in its buffer before") {
    for (const std::size_t size : {76U, 77U, 300U}) check_headers<IpVersion::v4>(gateway_v4(), size);
    for (const std::size_t size : {96U, 97U, 300U}) check_headers<IpVersion::v6>(gateway_v6(), size);
}

TEST_CASE("flows of TCP and ICMP are received as those of UDP are, and whatever is altered is found") {
    for (const bool is_v4 : {true, false}) {
        CAPTURE(is_v4);
        const auto mixed = with_transports(6, 120, is_v4 ? IpVersion::v4 : IpVersion::v6);
        const auto first_of = [&](std::size_t c) {
            std::uint64_t k = 0;
            while (mixed.mix.class_of(k) != c) ++k;
            return k;
        };
        MixRig whole{mixed, 20 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
        whole.run();
        CHECK(whole.tally->received_frames == whole.frames);
        CHECK(damage_of(*whole.tally) == Damage{});
        for (std::size_t c = 0; c < 6; ++c) CHECK(whole.tally->received_of_class[c] == 20 * (c % 3 + 1));

        // One octet of one frame of each header: in front of it, in it, and in the tag behind it.
        const std::size_t header = is_v4 ? 34 : 54;
        for (const std::size_t c : {1U, 2U}) {
            for (const std::size_t at : {header - 1, header, header + 7, header + 25}) {
                CAPTURE(c);
                CAPTURE(at);
                const auto number = first_of(c);
                std::uint64_t k = 0;
                MixRig rig{mixed, 5 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
                rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
                    if (k++ == number) f.octets[at] ^= std::byte{0x10};
                    return 1U;
                };
                rig.run();
                CHECK(rig.tally->received_frames == rig.frames - 1);
            }
        }
        // TCP's header with another flag and the sum that belongs to it: sound, but not what was sent.
        std::uint64_t k = 0;
        MixRig rig{mixed, 5 * mixed.mix.period(), is_v4 ? gateway_v4() : gateway_v6()};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (k++ == first_of(1)) {
                std::byte* const tcp = f.octets.data() + header;
                const auto before = frame::load<std::uint16_t>(tcp + 12);
                tcp[13] ^= std::byte{0x02};
                const auto after = frame::load<std::uint16_t>(tcp + 12);
                const auto inverted = static_cast<std::uint16_t>(~frame::load<std::uint16_t>(tcp + 16));
                const std::uint64_t sum = std::uint64_t{inverted} + static_cast<std::uint16_t>(~before) + after;
                frame::store(tcp + 16, static_cast<std::uint16_t>(~frame::fold(sum)));
            }
            return 1U;
        };
        rig.run();
        CHECK(rig.tally->received_frames == rig.frames - 1);
        CHECK(rig.tally->corrupted_by[static_cast<std::size_t>(frame::FrameFault::header)] == 1);
    }
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
    const frame::Transport tcp{.kind = frame::Transport::Kind::tcp};
    const auto of_octets = [&](std::size_t octets) {
        return fault_of(v4, {{.frame_size = octets, .name = "a", .fields = {.transport = tcp}}}, {0});
    };
    CHECK(of_octets(75) == FaultCode::bad_frame_size);
    CHECK(of_octets(76) == FaultCode::internal);
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
