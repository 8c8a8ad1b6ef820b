// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of several sizes and of both IP versions in one direction. R6985-01, R5180-14.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fault.hpp"
#include "mix_rig.hpp"

namespace mix_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::FrameClass;
using frame::FrameMix;
using frame::MixedPlans;

namespace {

using Octets = std::vector<std::byte>;

/// aaafg, and nine frames of IPv4 to one of IPv6.
const std::vector<FrameClass> imix_classes{{.frame_size = 64}, {.frame_size = 1280}, {.frame_size = 1518}};
const std::vector<std::uint8_t> imix_cycle{0, 0, 0, 1, 2};
MixedPlans nine_to_one() {
    return {.mix = {{{.plan = 0, .frame_size = 84}, {.plan = 1, .frame_size = 100}}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
            .other_plan = gateway_v6()};
}

/// As a source of frames that are all alike writes frame k, into a buffer that was never used.
template <IpVersion V>
Octets lone_frame(const plan::AddressPlan& p, std::size_t size, std::uint64_t k, IpVersion pattern) {
    Octets octets(size - frame::fcs_octets);
    frame::write_pattern(pattern, octets);
    const auto shape = frame::make_template(p, size, {.direction = Direction::forward, .stream = 0, .trial = trial},
                                            left_mac, dut_mac, pattern);
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, plan::FlowDraw{p, Direction::forward, 1}, {.first = k, .stride = 1}}.write_next(
        {&at, 1}, 7);
    return octets;
}

Octets expected(const plan::AddressPlan& first, const MixedPlans& mixed, std::uint64_t k) {
    const auto& c = mixed.mix.classes()[mixed.mix.class_of(k)];
    const auto& p = mixed.plan(first, c.plan);
    const auto pattern = frame::pattern_of(first.version(), mixed.mix.has_two_plans());
    return p.version() == IpVersion::v4 ? lone_frame<IpVersion::v4>(p, c.frame_size, k, pattern)
                                        : lone_frame<IpVersion::v6>(p, c.frame_size, k, pattern);
}

/// Frames of one stream in bursts of any size, in few buffers that are used again in any order.
void check_frames(const plan::AddressPlan& first, const MixedPlans& mixed, frame::StreamShare share,
                  std::uint64_t frames, const std::vector<std::size_t>& bursts) {
    std::vector<Octets> buffers(40, Octets(mixed.mix.largest_frame_size() - frame::fcs_octets));
    for (auto& buffer : buffers)
        frame::write_pattern(frame::pattern_of(first.version(), mixed.mix.has_two_plans()), buffer);
    auto source = source_of(first, mixed, share);
    std::size_t next_buffer = 0;
    for (std::uint64_t i = 0, burst = 0; i < frames; ++burst) {
        const std::size_t n = bursts[burst % bursts.size()];
        std::vector<std::byte*> at;
        std::vector<std::size_t> lengths;
        for (std::size_t j = 0; j < n; ++j) {
            next_buffer = (next_buffer + 7) % buffers.size();
            at.push_back(buffers[next_buffer].data());
            lengths.push_back(source.frame_octets(j));
        }
        source.write_next(at, 7);
        for (std::size_t j = 0; j < n; ++j, ++i) {
            const Octets sent(at[j], at[j] + lengths[j]);
            REQUIRE(tests::hex(sent) == tests::hex(expected(first, mixed, share.sequence(i))));
            const auto look = frame::look_at(sent.data(), sent.size());
            REQUIRE(look.tag.sequence == share.sequence(i));
            REQUIRE(frame::is_intact(sent.data(), sent.size(), look.version));
        }
    }
}

FaultCode fault_of(const plan::AddressPlan& first, std::vector<FrameClass> classes, std::vector<std::uint8_t> cycle,
                   std::optional<plan::AddressPlan> other = std::nullopt) {
    try {
        const MixedPlans mixed{.mix = {std::move(classes), std::move(cycle)}, .other_plan = std::move(other)};
        frame::check_mix(first, mixed);
    } catch (const Fault& fault) {
        CHECK(fault.where.starts_with("mix."));
        CHECK_FALSE(fault.next.empty());
        return fault.code;
    }
    return FaultCode::internal;
}

}  // namespace

TEST_CASE(
    "frame k of a mix is frame k of its class's plan and size, whatever buffers were used for before (R6985-01, "
    "R5180-14)") {
    for (const std::uint64_t stride : {1U, 2U, 5U, 7U}) {
        CAPTURE(stride);
        const frame::StreamShare share{.first = stride - 1, .stride = stride};
        check_frames(gateway_v4(), {.mix = {imix_classes, imix_cycle}, .other_plan = {}}, share, 200, {32, 1, 3, 31});
        check_frames(gateway_v4(), nine_to_one(), share, 200, {32, 5});
        check_frames(gateway_v6(),
                     {.mix = {{{.plan = 0, .frame_size = 84},
                               {.plan = 1, .frame_size = 1518},
                               {.plan = 0, .frame_size = 1001},
                               {.plan = 1, .frame_size = 65}},
                              {3, 0, 1, 2, 2}},
                      .other_plan = gateway_v4()},
                     share, 200, {7, 32});
    }
    check_frames(
        nets_v4(),
        {.mix = {{{.plan = 0, .frame_size = 300}, {.plan = 1, .frame_size = 301}}, {0, 1}}, .other_plan = nets_v6()},
        {}, 200, {32});
}

TEST_CASE("what a stream sends of each class is counted as it is sent") {
    const bool right = rc::check("count", [] {
        const auto classes = *rc::gen::inRange<std::size_t>(1, 5);
        auto cycle = *rc::gen::container<std::vector<std::uint8_t>>(
            rc::gen::inRange<std::uint8_t>(0, static_cast<std::uint8_t>(classes)));
        for (std::size_t c = 0; c < classes; ++c) cycle.push_back(static_cast<std::uint8_t>(c));
        const FrameMix mix{std::vector<FrameClass>(classes, FrameClass{.frame_size = 64}), cycle};
        const frame::StreamShare share{.first = *rc::gen::inRange<std::uint64_t>(0, 4),
                                       .stride = *rc::gen::inRange<std::uint64_t>(1, 5)};
        const auto frames = *rc::gen::inRange<std::uint64_t>(0, 300);
        std::vector<std::uint64_t> one_by_one(classes);
        for (std::uint64_t i = 0; i < frames; ++i) ++one_by_one[cycle[share.sequence(i) % cycle.size()]];
        RC_ASSERT(mix.count(share, frames) == one_by_one);
    });
    CHECK(right);
    const FrameMix imix{imix_classes, imix_cycle};
    CHECK(imix.mean_frame_size() == 598);
    CHECK(imix.largest_frame_size() == 1518);
}

TEST_CASE("everything of a mix arrives, and is counted by its class") {
    MixRig sizes{{.mix = {imix_classes, imix_cycle}, .other_plan = {}}};
    sizes.run();
    CHECK(sizes.tally->received_frames == 1000);
    CHECK(damage_of(*sizes.tally) == Damage{});
    CHECK(sizes.tally->received_of_class[0] == 600);
    CHECK(sizes.tally->received_of_class[1] == 200);
    CHECK(sizes.tally->received_of_class[2] == 200);
    MixRig versions{nine_to_one()};
    versions.run();
    CHECK(damage_of(*versions.tally) == Damage{});
    CHECK(versions.tally->received_of_class[0] == 900);
    CHECK(versions.tally->received_of_class[1] == 100);
}

TEST_CASE("what is lost of one IP version is missing from its class alone") {
    MixRig rig{nine_to_one()};
    rig.left.on_the_wire = [](MemoryPort::Frame& f) {
        return frame::look_at(f.octets.data(), f.length).version == IpVersion::v6 ? 0U : 1U;
    };
    rig.run();
    CHECK(rig.tally->received_of_class[0] == 900);
    CHECK(rig.tally->received_of_class[1] == 0);
    CHECK(damage_of(*rig.tally) == Damage{});
}

TEST_CASE("a frame of a mix must have the size and the IP version of its own number") {
    for (const auto& mixed : {MixedPlans{.mix = {imix_classes, imix_cycle}, .other_plan = {}}, nine_to_one()}) {
        const bool has_versions = mixed.mix.has_two_plans();
        MixRig rig{mixed};
        // In the place of frame 0 comes one that another order of the same classes would have there.
        std::vector<std::uint8_t> turned(mixed.mix.period());
        for (std::size_t i = 0; i < turned.size(); ++i)
            turned[i] = static_cast<std::uint8_t>(mixed.mix.class_of(turned.size() - 1 - i));
        const MixedPlans other{.mix = {mixed.mix.classes(), turned}, .other_plan = mixed.other_plan};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            if (number_of(f) != 0) return 1U;
            const auto time = frame::look_at(f.octets.data(), f.length).tag.time_ticks;
            auto source = source_of(rig.first, other, {});
            MemoryPort::Frame wrong;
            frame::write_pattern(frame::pattern_of(rig.first.version(), has_versions),
                                 std::span{wrong.octets}.first(1514));
            wrong.length = source.frame_octets(0);
            std::byte* const at = wrong.octets.data();
            source.write_next({&at, 1}, time);
            rig.right.inject(wrong);
            return 0U;
        };
        rig.run();
        CHECK(rig.tally->received_frames == 999);
        CHECK(damage_of(*rig.tally) == Damage{.wrong_length = 1});
    }
}

TEST_CASE("mixes that cannot be are refused") {
    const auto v4 = gateway_v4();
    CHECK(fault_of(v4, {}, {}) == FaultCode::bad_request);
    CHECK(fault_of(v4, imix_classes, {}) == FaultCode::bad_request);
    CHECK(fault_of(v4, imix_classes, {0, 1, 2, 3}) == FaultCode::bad_request);
    CHECK(fault_of(v4, imix_classes, {0, 1}) == FaultCode::bad_request);
    CHECK(fault_of(v4, std::vector<FrameClass>(FrameMix::most_classes + 1), {0}) == FaultCode::bad_request);
    CHECK(fault_of(v4, {{.plan = 1, .frame_size = 84}}, {0}) == FaultCode::bad_request);
    CHECK(fault_of(v4, {{.plan = 0, .frame_size = 84}}, {0}, gateway_v6()) == FaultCode::bad_request);
    CHECK(fault_of(gateway_v6(), imix_classes, imix_cycle) ==
          FaultCode::bad_frame_size);  // 64 octets hold no IPv6 frame
    CHECK(fault_of(v4, {{.frame_size = 9217}}, {0}) == FaultCode::bad_frame_size);
    CHECK(fault_of(v4, {{.plan = 0, .frame_size = 84}, {.plan = 1, .frame_size = 64}}, {0, 1}, gateway_v6()) ==
          FaultCode::bad_frame_size);
    CHECK(fault_of(v4, {{.plan = 0, .frame_size = 84}, {.plan = 1, .frame_size = 84}}, {0, 1}, gateway_v4()) ==
          FaultCode::bad_plan);
    auto direct = gateway_v6();
    direct.left.gateway = direct.right.gateway = std::nullopt;
    CHECK(fault_of(v4, {{.plan = 0, .frame_size = 84}, {.plan = 1, .frame_size = 84}}, {0, 1}, direct) ==
          FaultCode::bad_plan);
}

TEST_CASE("a side of both IP versions answers for both, and learns the DUT's MAC of each") {
    const auto v4 = gateway_v4();
    const auto v6 = gateway_v6();
    neighbor::Responder first{right_mac, v4.right.gateway.value(), v4.right.dut_address};
    neighbor::Responder other{right_mac, v6.right.gateway.value(), v6.right.dut_address};
    first.set_other(other);
    const neighbor::Party dut_v4{.mac = dut_mac, .ip = v4.right.dut_address};
    const neighbor::Party dut_v6{.mac = left_mac, .ip = v6.right.dut_address};
    std::array<std::byte, 128> room{};
    CHECK(first.answer(room, neighbor::write_arp_request(room, dut_v4, v4.right.gateway.value())) != 0);
    CHECK(first.answer(room, neighbor::write_neighbor_solicitation(room, dut_v6, v6.right.gateway.value())) != 0);
    CHECK(first.answer(room, neighbor::write_neighbor_solicitation(room, dut_v6, v6.left.gateway.value())) == 0);
    CHECK(first.dut_mac() == dut_mac);
    CHECK(other.dut_mac() == left_mac);
    CHECK(first.answers() == 1);
    CHECK(other.answers() == 1);
    CHECK(other.questions() == 2);
}

}  // namespace mix_test
