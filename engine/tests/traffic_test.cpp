// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: what arrives in a direction need not be what was sent there.
#include <doctest/doctest.h>

#include "frame/traffic.hpp"
#include "rig.hpp"
#include "run/rate_limit.hpp"

namespace traffic_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr std::size_t sent_size = 100;
constexpr std::size_t arriving_size = 80;  // IPv4's header is 20 octets shorter

/// The frame that a translator makes of an IPv6 test frame: the same tag, in IPv4.
void translate(MemoryPort::Frame& f, const plan::AddressPlan& to, std::size_t frame_size) {
    const auto tag = frame::look_at(f.octets.data(), f.length).tag;
    f.length = frame_size - frame::fcs_octets;
    const std::span octets = std::span{f.octets}.first(f.length);
    frame::write_pattern(IpVersion::v4, octets);
    const auto shape = frame::make_template(
        to, frame_size, {.direction = Direction::forward, .stream = 0, .trial = trial}, dut_mac, right_mac);
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, plan::FlowDraw{to, Direction::forward, 1}, {.first = tag.sequence, .stride = 1}}
        .write_next({&at, 1}, tag.time_ticks);
}

}  // namespace

TEST_CASE("a plan that is routed arrives as it was sent") {
    const auto plan = gateway_v6();
    const auto [sent, arrives, frames] = frame::traffic_of(plan, Direction::reverse, sent_size);
    CHECK(frames == 1);
    for (const auto* const link : {&sent, &arrives}) {
        CHECK(link->version == IpVersion::v6);
        CHECK(link->sources.base == plan.right.hosts.base);
        CHECK(link->destinations.base == plan.left.hosts.base);
        CHECK(link->source_ports == plan.source_ports);
        CHECK(link->destination_ports == plan.destination_ports);
        CHECK(link->frame_size == sent_size);
    }
}

TEST_CASE("a receiver expects what arrives, of another IP version, other addresses and another size than was sent") {
    constexpr std::uint64_t frames = 1000;
    Rig6 rig{{.frames = frames, .frame_size = sent_size}};
    const auto translated = gateway_v4();
    rig.expectation->frames = tests::expected(translated, arriving_size);
    rig.receiver.arm(*rig.expectation, rig.map, *rig.tally, rig.clock.now());
    rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
        translate(f, translated, arriving_size);
        return 1U;
    };
    rig.run();
    CHECK(rig.offered() == frames);
    CHECK(rig.got().received_frames == frames);
    CHECK(damage_of(rig.got()) == Damage{});
}

TEST_CASE("what was sent is not received where something else should arrive") {
    constexpr std::uint64_t frames = 100;
    Rig6 rig{{.frames = frames, .frame_size = sent_size}};
    rig.expectation->frames = tests::expected(gateway_v4(), arriving_size);
    rig.receiver.arm(*rig.expectation, rig.map, *rig.tally, rig.clock.now());
    rig.run();
    CHECK(damage_of(rig.got()) == Damage{.wrong_length = frames});
    // With the right size, it still has the wrong IP version.
    Rig6 same_size{{.frames = frames, .frame_size = sent_size}};
    same_size.expectation->frames = tests::expected(gateway_v4(), sent_size);
    same_size.receiver.arm(*same_size.expectation, same_size.map, *same_size.tally, same_size.clock.now());
    same_size.run();
    CHECK(damage_of(same_size.got()) == Damage{.corrupted = frames});
}

TEST_CASE("each line carries the frames as they are on it (R2544-16)") {
    auto shorter = frame::traffic_of(gateway_v6(), Direction::forward, sent_size);
    shorter.arrives.frame_size = arriving_size;
    const frame::DirectionTraffic traffic{.kinds = {shorter}};
    CHECK(traffic.largest_sent() == sent_size);
    CHECK(traffic.largest_arriving() == arriving_size);
    const auto octets = traffic.period_octets(4, 0);
    CHECK(octets.sent == sent_size + 4);
    CHECK(octets.arriving == arriving_size);
    CHECK(octets.frames == 1);
    constexpr double ticks_per_second = 2.6e9;
    constexpr double line_bps = 1e9;
    const auto fps = [&](std::optional<double> sending, std::optional<double> receiving, bool may_overload = false) {
        return run::rate_limit({sending, receiving}, octets, ticks_per_second, may_overload).fps;
    };
    CHECK(fps(line_bps, std::nullopt) == 1'008'064);  // 10^9 / (8 * 124)
    CHECK(fps(std::nullopt, line_bps) == 1'250'000);  // 10^9 / (8 * 100)
    CHECK(fps(line_bps, line_bps) == 1'008'064);
    CHECK(fps(10 * line_bps, line_bps) == 1'250'000);  // the line behind the DUT is the slower one
    // An overload on purpose, where the ports are of unlike speed: what the sending line carries.
    CHECK(fps(10 * line_bps, line_bps, true) == 10'080'645);
    CHECK(fps(line_bps, 10 * line_bps, true) == 1'008'064);
    CHECK(fps(std::nullopt, line_bps, true) == 1'250'000);
    CHECK(fps(line_bps, line_bps, true) == 1'008'064);
    const run::LineRates unlike{10 * line_bps, line_bps};
    CHECK_FALSE(run::line_overload(unlike, octets, 1'250'000));
    const auto overload = run::line_overload(unlike, octets, 2'500'000);
    REQUIRE(overload);
    CHECK(overload->needed_bps == doctest::Approx(2 * line_bps));
    CHECK(overload->line_bps == line_bps);
    CHECK_FALSE(run::line_overload({10 * line_bps, std::nullopt}, octets, 2'500'000));
}

TEST_CASE("of a mix as many octets count as its period has on each link") {
    frame::DirectionTraffic traffic;
    for (const auto& [size, frames] : {std::pair{64UL, 3UL}, {1518UL, 1UL}}) {
        traffic.kinds.push_back(frame::traffic_of(gateway_v4(), Direction::forward, size));
        traffic.kinds.back().frames = frames;
    }
    const auto octets = traffic.period_octets(0, 8);
    CHECK(octets.sent == 3 * 64 + 1518);
    CHECK(octets.arriving == 3 * 72 + 1526);
    CHECK(octets.frames == 4);
}

}  // namespace traffic_test
