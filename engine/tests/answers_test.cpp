// SPDX-License-Identifier: Apache-2.0
// Station 2: each frame of connections is that of its connection's four tuple, turned around and translated where it is
// an answer, whatever burst it is written in (R9693-01, R9693-02).
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "frame/connections.hpp"
#include "frame/writer.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace answers_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::IpVersion;
using frame::LinkEnd;
using frame::StateTable;
using frame::TesterShare;
using plan::ConnectionUse;
using plan::Direction;

namespace {

constexpr std::uint64_t seed = 11;
constexpr std::uint64_t frames = 1500;
constexpr std::uint64_t time_ticks = 12345;
constexpr plan::MacAddress own_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 2};

plan::AddressPlan plan_of(IpVersion version) {
    auto p = version == IpVersion::v4 ? gateway_v4(100) : gateway_v6(100);
    p.right.peers = p.left.hosts;
    p.source_ports = {.first = 10000, .count = 40000};
    p.destination_ports = {.first = 1, .count = 100};
    p.has_state = true;
    return p;
}

struct Traffic {
    IpVersion version;
    Direction direction;
    ConnectionUse use;
    plan::TupleOrder order;
    TesterShare own;
};

/// The flow of the frame with this number, found alone.
plan::Flow flow_of(const StateTable& table, plan::ConnectionDraw draw, const Traffic& of, std::uint64_t number) {
    std::uint64_t place = of.own.place(number);
    if (of.use == ConnectionUse::drawn) {
        plan::FourTuples::FrameNumbers numbers;
        numbers.fill(number);
        plan::FourTuples::Numbers drawn;
        draw.numbers_listed(numbers, drawn);
        place = drawn[0];
    }
    place = std::min(place, table.connections() - 1);
    const auto tuple = table.tuples().flow(static_cast<std::uint32_t>(of.own.sequence(place)));
    if (of.direction == Direction::forward) return tuple;
    const auto translated = table.entry(place);
    return {.source = tuple.destination,
            .destination = translated.host,
            .source_port = tuple.destination_port,
            .destination_port = translated.port};
}

void check(const Traffic& of) {
    const auto plan = plan_of(of.version);
    const auto size = frame::smallest_frame_size(of.version);
    StateTable table{plan::FourTuples{plan, 4000, of.order, seed}, of.own};
    std::mt19937_64 random{seed};
    for (std::uint64_t place = 0; place < table.connections(); ++place) {
        if (random() % 4 == 0) continue;  // not established: its answers go to 0
        const auto drawn = static_cast<std::uint32_t>(random());
        table.record(place,
                     {.host = static_cast<std::uint16_t>(drawn), .port = static_cast<std::uint16_t>(drawn >> 16U)});
    }
    const plan::ConnectionDraw draw{of.use, of.direction, table.connections(), seed};
    const auto share = of.own.stream(0);
    const auto shape = frame::make_template(plan, size, {.direction = of.direction, .trial = 77}, own_mac, dut_mac);
    frame::ConnectionSource source{shape, frame::ConnectionFlows{table, draw, of.direction, LinkEnd::sent}, share};
    const frame::FrameShape slow_shape{shape};
    const auto write = frame::frame_writer("plain", shape);
    plan::FlowBlock block;
    for (std::uint64_t i = 0; i < frames;) {
        const std::uint64_t n = 1 + random() % 64;
        std::vector<Octets> fast(n, Octets(size - frame::fcs_octets));
        std::vector<std::byte*> at;
        for (auto& one : fast) {
            frame::write_pattern(of.version, one);
            at.push_back(one.data());
        }
        source.write_next(at, time_ticks);
        for (std::uint64_t j = 0; j < n; ++j, ++i) {
            const auto flow = flow_of(table, draw, of, share.sequence(i));
            block.lanes.field[0][0] = flow.source;
            block.lanes.field[1][0] = flow.destination;
            block.lanes.field[2][0] = flow.source_port;
            block.lanes.field[3][0] = flow.destination_port;
            Octets slow(size - frame::fcs_octets);
            frame::write_pattern(of.version, slow);
            std::byte* const one = slow.data();
            write(slow_shape, block, 0, {&one, 1}, {.sequence = share.sequence(i), .time = time_ticks});
            REQUIRE((fast[j] == slow));
        }
    }
}

}  // namespace

TEST_CASE("answers in bursts are, frame by frame, what each is alone (R9693-01, R9693-02)") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            for (const auto use : {ConnectionUse::each_once, ConnectionUse::drawn}) {
                for (const auto order : {plan::TupleOrder::pseudorandom, plan::TupleOrder::decreasing}) {
                    for (const auto& own : {TesterShare{}, TesterShare{1, 1, 2}, TesterShare{1, 2, 4}})
                        check({version, direction, use, order, own});
                }
            }
        }
    }
}

}  // namespace answers_test
