// SPDX-License-Identifier: Apache-2.0
// Station 1: one answer to what a plan sends: the preview shows, and the proof counts, the frames that a trial sends,
// also where the DUT keeps state. SEED-40, SEED-43, R9693-02, R9693-04, R9693-05.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "contract/reply.hpp"
#include "contract/request.hpp"
#include "direct_plans.hpp"
#include "fault.hpp"
#include "frame/connections.hpp"
#include "frame/repeats.hpp"
#include "octets.hpp"
#include "plan/sent_flows.hpp"
#include "plans.hpp"
#include "proof/contrast.hpp"
#include "proof/proof.hpp"

namespace sent_flows_test {

using namespace evenhand;
using namespace evenhand::tests;
using plan::AddressPlan;
using plan::Direction;
using plan::SentFlows;
using Json = nlohmann::json;

namespace {

constexpr std::uint64_t seed = 11;
constexpr std::array both{Direction::forward, Direction::reverse};

AddressPlan with_state(AddressPlan p, std::uint32_t source_ports = 40'000, std::uint32_t destination_ports = 100) {
    p.source_ports = {.first = 10'000, .count = source_ports};
    p.destination_ports = {.first = 1, .count = destination_ports};
    p.has_state = true;
    return p;
}

AddressPlan nat44(std::uint32_t hosts = 65534) {
    auto p = gateway_v4(hosts);
    p.left.hosts.base = ip("10.16.0.0");
    p.right.peers = plan::HostRange{.base = ip("198.18.0.0"), .offset = 2, .host = {.first = 1, .count = 50}};
    return with_state(p);
}
AddressPlan nat66(std::uint32_t hosts = 65536) {
    auto p = gateway_v6(hosts);
    p.right.peers = plan::HostRange{.base = ip("2001:2:0:4000::"), .offset = 14, .host = {.first = 1, .count = 50}};
    return with_state(p);
}
AddressPlan nat64(std::uint32_t hosts = 65534) {
    auto p = siit(hosts);
    p.left.hosts = {.base = ip("2001:2:0:5000::"), .offset = 14, .host = {.first = 0, .count = hosts}};
    p.right.peers->host = {.first = 1, .count = 50};
    return with_state(p);
}

/// Every kind of plan that there is.
std::vector<AddressPlan> all_plans() {
    auto fixed = gateway_v4();
    fixed.fixed_source = true;
    auto nets_of_one = nets_v4();
    nets_of_one.fixed_source_network = true;
    auto common = nets_v6();
    common.common_network = true;
    auto rising = gateway_v6();
    rising.left.hosts.host.mode = plan::Mode::increment;
    rising.source_ports.mode = plan::Mode::decrement;
    return {gateway_v4(), gateway_v6(), direct_v4(), direct_v6(),   nets_v4(), nets_v6(),         siit(),
            fixed,        nets_of_one,  common,      rising,        nat44(),   nat66(),           nat64(),
            nat44(1),     nat66(7),     nat64(3),    gateway_v4(1), siit(5),   siit_behind(40, 9)};
}

struct Patient : proof::ProofObserver {
    bool goes_on(std::uint64_t /*drawn_frames*/) override { return true; }
};

proof::ProofResult prove(const AddressPlan& plan, Direction direction, std::uint64_t frames,
                         proof::Generator generator = proof::Generator::philox) {
    Patient patient;
    return proof::prove({.plan = plan, .seed = seed, .direction = direction, .frames = frames, .generator = generator},
                        patient);
}

/// All probabilities of the fields and pairs that were judged, chi-square at both ends.
std::vector<double> probabilities(const proof::ProofResult& result) {
    std::vector<double> all;
    const auto add = [&](const std::optional<proof::ChiSquare>& c) {
        if (c) all.insert(all.end(), {c->p, c->degrees_of_freedom < 8 ? 1 : 1 - c->p});
    };
    const auto add_pair = [&](const proof::PairProof& pair) {
        add(pair.chi_square);
        if (pair.correlation) all.push_back(pair.correlation->p);
        if (pair.coverage) all.push_back(pair.coverage->p);
    };
    for (const auto& field : result.fields) {
        if (!field.is_proven) continue;
        all.push_back(field.coverage.p);
        add(field.chi_square);
        if (field.serial) add_pair(*field.serial);
    }
    for (const auto& pair : result.pairs) add_pair(pair);
    return all;
}

std::vector<plan::Flow> first_flows(const AddressPlan& plan, Direction direction, std::uint64_t frames) {
    std::vector<plan::Flow> flows;
    flows.reserve(frames);
    SentFlows sent{plan, direction, seed};
    for (std::uint64_t k = 0; k < frames; ++k) flows.push_back(sent.draw(k));
    return flows;
}

std::string hexadecimal(const Octets& octets) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const auto octet : octets) {
        text += digits[static_cast<unsigned>(octet) >> 4U];
        text += digits[static_cast<unsigned>(octet) & 15U];
    }
    return text;
}

std::optional<Fault> fault_of(const Json& request) {
    try {
        (void)contract::read_request(request.dump());
        return std::nullopt;
    } catch (const Fault& fault) {
        return fault;
    }
}

}  // namespace

TEST_CASE("each value of a flow is one of its field's, in every plan and both directions") {
    for (const auto& plan : all_plans()) {
        for (const auto direction : both) {
            CAPTURE(plan.name);
            CAPTURE(plan.has_state);
            const auto fields = proof::fields_of(plan, direction);
            SentFlows sent{plan, direction, seed};
            plan::FlowBlock block;
            for (std::uint64_t k = 0; k < 3200; k += plan::FlowBlock::size) {
                sent.draw_block(k, 1, block);
                for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
                    for (const auto& field : fields) {
                        CAPTURE(field.name);
                        REQUIRE(field.value_in(block.lanes.field[field.lane][j]) < field.range.count);
                    }
                }
            }
        }
    }
}

TEST_CASE("every plan can be proven in both directions, and none is suspicious (SEED-43, R9693-05)") {
    constexpr std::uint64_t frames = 40'000;
    constexpr double bound = 1e-6;  // some 500 probabilities, of a seed that is fixed
    for (const auto& plan : all_plans()) {
        for (const auto direction : both) {
            CAPTURE(plan.name);
            CAPTURE(plan.has_state);
            const auto result = prove(plan, direction, frames);
            CHECK(result.frames == frames);
            for (const double p : probabilities(result)) CHECK(p > bound);
            for (const auto generator : {proof::Generator::fifteen_bit, proof::Generator::modulo})
                CHECK(prove(plan, direction, 4096, generator).frames == 4096);
        }
    }
}

TEST_CASE("without state the flows are those that FlowDraw draws") {
    for (const auto& plan : all_plans()) {
        if (plan.has_state) continue;
        for (const auto direction : both) {
            const plan::FlowDraw draw{plan, direction, seed};
            SentFlows sent{plan, direction, seed};
            for (const std::uint64_t k : {0U, 1U, 31U, 32U, 999U, 1'000'000U}) CHECK(sent.draw(k) == draw.draw(k));
        }
    }
}

TEST_CASE("the preview of a plan with state shows the frames that open its connections, octet for octet (R9693-05)") {
    for (const auto& plan : {nat44(), nat66(), nat64()}) {
        CAPTURE(static_cast<int>(plan.version()));
        constexpr std::uint64_t connections = 500;  // a trial opens as many as it wants: the first ones are the same
        const frame::StateTable table{plan::FourTuples{plan, connections, plan::TupleOrder::pseudorandom, seed}};
        const std::size_t size = plan.version() == plan::IpVersion::v4 ? 64 : 84;
        contract::FramesRequest request{.plan = plan, .frame_size = size, .seed = seed, .first = 90, .count = 70};
        request.frame_size = size;
        const std::size_t sent_size = size + plan.left.added_octets;
        const auto reply = Json::parse(contract::write_frames(1, request));
        const auto shape = frame::make_template(plan, sent_size, {.direction = Direction::forward}, {}, {});
        frame::ConnectionSource source{
            shape,
            frame::ConnectionFlows{table,
                                   {plan::ConnectionUse::each_once, Direction::forward, connections, seed},
                                   Direction::forward,
                                   frame::LinkEnd::sent},
            {}};
        Octets octets(sent_size - frame::fcs_octets);
        frame::write_pattern(plan.version(), octets);
        for (std::uint64_t k = 0; k < request.first + request.count; ++k) {
            std::byte* const at = octets.data();
            source.write_next({&at, 1}, 0);
            if (k < request.first) continue;
            const auto& shown = reply["frames"][k - request.first];
            REQUIRE(shown["sequence"] == k);
            REQUIRE(shown["octets"] == hexadecimal(octets));
            const auto flow = table.tuples().flow(static_cast<std::uint32_t>(k));
            CHECK(shown["source"] == plan::to_string(plan.left.hosts.address(flow.source)));
            CHECK(shown["destination_port"] == flow.destination_port);
        }
    }
}

TEST_CASE("no two connections of a plan have the same flow, and an answer's is that of its connection (R9693-05)") {
    for (const auto& plan : {with_state(nat44(2), 20, 5), with_state(nat66(3), 10, 7), with_state(nat64(2), 15, 6)}) {
        const auto most = SentFlows::most_frames(plan).value();
        CHECK(most == plan::FourTuples::count(plan));
        std::set<std::array<std::uint32_t, 4>> seen;
        const auto forward = first_flows(plan, Direction::forward, most);
        const auto reverse = first_flows(plan, Direction::reverse, most);
        for (std::uint64_t k = 0; k < most; ++k) {
            const auto& f = forward[k];
            CHECK(seen.insert({f.source, f.destination, f.source_port, f.destination_port}).second);
            CHECK(reverse[k] == plan::Flow{f.destination, f.source, f.destination_port, f.source_port});
        }
    }
}

TEST_CASE("flows that are chosen once each are judged as such, however many of them are drawn") {
    // Half of all flows: counts are evener than independent draws would make them, and are to be.
    const auto plan = with_state(nat44(10), 20, 10);
    const auto all = SentFlows::most_frames(plan).value();
    CHECK(all == 20'000);
    for (const auto direction : both) {
        for (const std::uint64_t frames : {all / 20, all / 2, all - all / 10}) {
            CAPTURE(frames);
            const auto result = prove(plan, direction, frames);
            const auto found = probabilities(result);
            CHECK(found.size() > 10);
            for (const double p : found) CHECK(p > 1e-5);
        }
        const auto whole = prove(plan, direction, all);
        for (const auto& field : whole.fields) {
            CHECK(field.least_hits == field.most_hits);
            CHECK_FALSE(field.chi_square);  // there is nothing left to chance
        }
        // As independent draws they would be called suspicious.
        Patient patient;
        const proof::ProofRequest request{.plan = plan, .seed = seed, .direction = direction, .frames = all / 2};
        const auto naive =
            proof::prove(SentFlows{plan, direction, seed},
                         proof::FlowCounts{proof::fields_of(plan, direction), all / 2}, request, patient);
        double least = 1;
        for (const double p : probabilities(naive)) least = std::min(least, p);
        CHECK(least < 1e-4);
    }
}

TEST_CASE("what is drawn of another plan than what is counted ends the proof, and harms no memory") {
    Patient patient;
    const auto counted = gateway_v4(10);
    const proof::ProofRequest request{.plan = counted, .seed = seed, .frames = 1000};
    const auto prove_other = [&](const AddressPlan& drawn) {
        return proof::prove(SentFlows{drawn, Direction::forward, seed},
                            proof::FlowCounts{proof::fields_of(counted, Direction::forward), 1000}, request, patient);
    };
    CHECK(prove_other(counted).frames == 1000);
    CHECK_THROWS_AS((void)prove_other(gateway_v4(11)), Fault);
    auto from_zero = gateway_v4(10);
    from_zero.right.hosts.host.first = 0;
    CHECK_THROWS_AS((void)prove_other(from_zero), Fault);
}

TEST_CASE("equal numbers are found wherever they are, in however many shares they are looked for (R9693-02)") {
    // 3,000 numbers of which each third comes again 2,000 later.
    std::vector<std::uint64_t> numbers;
    numbers.reserve(3000);
    for (std::uint64_t i = 0; i < 3000; ++i) numbers.push_back(i >= 2000 && i % 3 == 0 ? numbers[i - 2000] : i << 20U);
    for (const std::uint64_t shares : {1U, 2U, 5U, 64U}) {
        CAPTURE(shares);
        std::uint64_t asked = 0;
        const auto repeats = frame::count_repeats(shares, [&](auto take) {
            ++asked;
            for (const auto number : numbers) take(number);
        });
        CHECK(repeats == 333);
        CHECK(asked == shares);
    }
}

TEST_CASE(
    "frames that no connection is left for, and answers that only a trial can know, are refused with the reason") {
    Json plan = Json::parse(R"({"name":"nat44","ip_version":4,"stateful":true,
        "left":{"gateway":"10.0.0.2","dut_address":"10.0.0.1","hosts":{"base":"10.16.0.0",
            "host":{"offset":2,"first":1,"count":2}}},
        "right":{"gateway":"10.0.1.2","dut_address":"10.0.1.1","hosts":{"base":"198.19.0.0",
            "host":{"offset":2,"first":1,"count":2}},"peers":{"base":"198.18.0.0",
            "host":{"offset":2,"first":1,"count":2}}},
        "udp_ports":{"source":{"first":1,"last":5},"destination":{"first":1,"last":5}}})");
    Json frames{{"id", 1},   {"request", "frames"},    {"plan", plan}, {"frame_size", 64},
                {"seed", 1}, {"direction", "forward"}, {"count", 100}};
    CHECK_FALSE(fault_of(frames));
    frames["first"] = 1;
    REQUIRE(fault_of(frames));
    CHECK(
        fault_of(frames)->what_text ==
        "frames 1 to 100 are each of a connection of its own, but the plan's addresses and ports make 100 connections");
    frames["first"] = 0;
    frames["direction"] = "reverse";
    REQUIRE(fault_of(frames));
    CHECK(fault_of(frames)->where == "direction");
    Json proof{{"id", 1},      {"request", "prove"}, {"plan", plan}, {"seed", 1}, {"direction", "reverse"},
               {"frames", 50}, {"streams", 2}};
    CHECK_FALSE(fault_of(proof));
    proof["frames"] = 51;
    REQUIRE(fault_of(proof));
    CHECK(fault_of(proof)->where == "frames");
}

}  // namespace sent_flows_test
