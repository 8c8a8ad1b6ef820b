// SPDX-License-Identifier: Apache-2.0
// Proof: the statistics are right, the draw passes them, and generators with known faults do not. SEED-33, SEED-40,
// SEED-43, R4814-01 .. R4814-04.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "plans.hpp"
#include "proof/contrast.hpp"
#include "proof/probability.hpp"
#include "proof/proof.hpp"
#include "slow.hpp"

namespace proof_test {

using namespace evenhand;
using plan::Direction;
using proof::Generator;
using proof::ProofRequest;
using tests::gateway_v4;
using tests::gateway_v6;
using tests::is_slow;

namespace {

/// At least ten hits for each of 65,536 values (SEED-43).
constexpr std::uint64_t enough = is_slow ? 700'000 : 4'000'000;

struct Patient : proof::ProofObserver {
    bool goes_on(std::uint64_t /*drawn_frames*/) override { return true; }
};

struct StopsAt : proof::ProofObserver {
    explicit StopsAt(std::uint64_t at) : at{at} {}
    bool goes_on(std::uint64_t drawn_frames) override { return drawn_frames < at; }
    std::uint64_t at;
};

proof::ProofResult prove(const ProofRequest& request) {
    Patient patient;
    return proof::prove(request, patient);
}

/// Draws by a function of the frame's number, in the ranges of a plan.
struct ByHand {
    std::function<std::array<std::uint64_t, 4>(std::uint64_t)> flow;
    void draw_block(std::uint64_t first, std::uint64_t stride, plan::FlowBlock& block) const {
        for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
            const auto values = flow(first + j * stride);
            for (std::size_t i = 0; i < values.size(); ++i)
                block.lanes.field[i][j] = static_cast<std::uint32_t>(values[i]);
        }
    }
};

/// Both addresses from `hosts` values, both ports from two.
plan::AddressPlan small_plan(std::uint32_t hosts) {
    auto p = gateway_v4(hosts);
    p.source_ports = p.destination_ports = {.first = 1, .count = 2};
    return p;
}

proof::ProofResult prove_by_hand(const plan::AddressPlan& p, std::uint64_t frames, const ByHand& source) {
    Patient patient;
    const ProofRequest request{.plan = p, .frames = frames};
    return proof::prove(source, proof::FlowCounts{proof::fields_of(p, request.direction), frames}, request, patient);
}

/// Every probability that the statistics gave; chi-square at both ends, since a draw can be too even.
std::vector<double> probabilities(const proof::ProofResult& result) {
    std::vector<double> all;
    const auto add_pair = [&](const proof::PairProof& pair) {
        REQUIRE(pair.chi_square.has_value());
        REQUIRE(pair.correlation.has_value());
        all.insert(all.end(), {pair.chi_square->p, 1 - pair.chi_square->p, pair.correlation->p});
        if (pair.coverage) all.push_back(pair.coverage->p);
    };
    for (const auto& field : result.fields) {
        if (!field.is_proven) continue;
        REQUIRE(field.chi_square.has_value());
        all.insert(all.end(), {field.coverage.p, field.chi_square->p, 1 - field.chi_square->p});
        add_pair(field.serial.value());
    }
    for (const auto& pair : result.pairs) add_pair(pair);
    return all;
}

void check_sane(const proof::ProofResult& result) {
    constexpr double bound = 1e-5;  // some 500 probabilities in this file, of seeds that are fixed
    for (const double p : probabilities(result)) CHECK(p > bound);
}

}  // namespace

TEST_CASE("chi-square has the probabilities of its tables") {
    CHECK(proof::chi_square_tail(3.841458820694124, 1) == doctest::Approx(0.05).epsilon(1e-10));
    CHECK(proof::chi_square_tail(9.210340371976182, 2) == doctest::Approx(0.01).epsilon(1e-10));
    CHECK(proof::chi_square_tail(18.307038053275146, 10) == doctest::Approx(0.05).epsilon(1e-10));
    CHECK(proof::chi_square_tail(124.34211340400408, 100) == doctest::Approx(0.05).epsilon(1e-10));
    CHECK(proof::chi_square_tail(0, 7) == 1);
    CHECK(proof::chi_square_tail(1e7, 65533) == 0);
    CHECK(proof::chi_square_tail(1000, 65533) == 1);
    for (const double x : {0.001, 0.5, 1.0, 2.9, 8.0, 30.0, 100.0}) {
        CHECK(proof::chi_square_tail(x, 1) == doctest::Approx(std::erfc(std::sqrt(x / 2))).epsilon(1e-10));
        CHECK(proof::chi_square_tail(x, 2) == doctest::Approx(std::exp(-x / 2)).epsilon(1e-10));
        CHECK(proof::chi_square_tail(x, 3) ==
              doctest::Approx(std::erfc(std::sqrt(x / 2)) + std::sqrt(2 * x / std::numbers::pi) * std::exp(-x / 2))
                  .epsilon(1e-10));
    }
}

TEST_CASE("with an even number of degrees of freedom chi-square is a sum of Poisson terms, however many there are") {
    for (const std::uint64_t half : {1UL, 4UL, 15UL, 16UL, 17UL, 100UL, 5000UL, 32767UL, 524288UL}) {
        for (const int sigmas : {-7, -3, -1, 0, 1, 3, 7, 20}) {
            const auto a = static_cast<long double>(half);
            const long double mean = a + static_cast<long double>(sigmas) * std::sqrt(a);
            if (mean <= 0) continue;
            long double upper = 0;  // fewer than `half`
            long double lower = 0;  // `half` or more
            // Terms further away than 40 standard deviations are too small to count.
            const auto reach = static_cast<std::uint64_t>(40 * std::sqrt(a)) + 100;
            for (std::uint64_t i = half < reach ? 0 : half - reach; i < half + reach; ++i) {
                const auto n = static_cast<long double>(i);
                (i < half ? upper : lower) += std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
            }
            CAPTURE(half);
            CAPTURE(sigmas);
            CHECK(proof::chi_square_tail(static_cast<double>(2 * mean), 2 * half) ==
                  doctest::Approx(static_cast<double>(upper)).epsilon(1e-9).scale(0));
            CHECK(proof::poisson_tail(half, static_cast<double>(mean)) ==
                  doctest::Approx(static_cast<double>(lower)).epsilon(1e-9).scale(0));
        }
    }
}

TEST_CASE("probabilities of nothing and of the normal distribution") {
    CHECK(proof::poisson_tail(0, 3) == 1);
    CHECK(proof::poisson_tail(1, 0) == 0);
    CHECK(proof::poisson_tail(1, 1e-9) == doctest::Approx(1e-9));
    CHECK(proof::normal_tails(0) == 1);
    CHECK(proof::normal_tails(-1.959963984540054) == doctest::Approx(0.05).epsilon(1e-10));
}

TEST_CASE("statistics of flows that can be reckoned by hand") {
    const auto p = small_plan(2);
    SUBCASE("uneven: 90 and 30 of 120") {
        const auto r = prove_by_hand(p, 120, {[](std::uint64_t k) {
                                         return std::array<std::uint64_t, 4>{k % 4 == 0 ? 2U : 1U, 1 + k % 2,
                                                                             1 + k / 2 % 2, 1 + k % 2};
                                     }});
        const auto& source = r.fields[0];
        CHECK(source.name == "source");
        CHECK(source.most_hits == 90);
        CHECK(source.least_hits == 30);
        CHECK(source.expected_per_value == 60);
        CHECK(source.chi_square->value == doctest::Approx(30));
        CHECK(source.chi_square->degrees_of_freedom == 1);
        CHECK(source.chi_square->p == doctest::Approx(std::erfc(std::sqrt(15))));
    }
    SUBCASE("tied and alternating") {
        const auto r = prove_by_hand(p, 121, {[](std::uint64_t k) {
                                         return std::array<std::uint64_t, 4>{1 + k % 2, 1 + k % 2, 1 + k / 2 % 2, 1};
                                     }});
        const auto& tied = r.pairs[0];
        CHECK(tied.first == "source");
        CHECK(tied.second == "destination");
        CHECK(tied.is_exact);
        CHECK(tied.coverage->occurred == 2);
        CHECK(tied.coverage->p < 1e-10);
        CHECK(tied.chi_square->value == doctest::Approx(121));
        CHECK(tied.chi_square->degrees_of_freedom == 1);
        CHECK(tied.correlation->value == doctest::Approx(1));
        const auto& untied = r.pairs[1];
        CHECK(untied.second == "source_port");
        CHECK(untied.coverage->occurred == 4);
        CHECK(untied.chi_square->value < 0.1);
        CHECK(std::abs(untied.correlation->value) < 0.01);
        const auto& serial = r.fields[0].serial.value();
        CHECK(serial.chi_square->value == doctest::Approx(120));  // 121 frames have 120 successors
        CHECK(serial.correlation->value == doctest::Approx(-1).epsilon(1e-3));
        CHECK(serial.correlation->spread == doctest::Approx(1 / std::sqrt(120)));
        SUBCASE("a value that never comes leaves nothing to compare") {
            CHECK(r.fields[3].coverage.occurred == 1);
            CHECK(r.fields[3].chi_square->value == doctest::Approx(121));
            CHECK_FALSE(r.pairs[2].chi_square.has_value());
            CHECK_FALSE(r.pairs[2].correlation.has_value());
        }
    }
    SUBCASE("a pair over the seam of two batches is counted") {
        // Only one frame in 4,096 is another one: its successor begins the next batch.
        const auto r =
            prove_by_hand(p, std::uint64_t{5} * 4096, {[](std::uint64_t k) {
                              return std::array<std::uint64_t, 4>{k % 4096 == 4095 ? 2U : 1U, 1 + k % 2, 1, 1};
                          }});
        CHECK(r.fields[0].serial->coverage->occurred == 3);  // 1 1, 1 2, 2 1
        CHECK(r.fields[0].serial->correlation->value == doctest::Approx(-1.0 / 4096).epsilon(0.1));
    }
}

TEST_CASE("cells of a grid are values beside each other, all of them") {
    // Every value of both addresses once: each row must then hold as many as it has values.
    const auto p = small_plan(1000);
    const auto r = prove_by_hand(p, 1000UL * 1000, {[](std::uint64_t k) {
                                     return std::array<std::uint64_t, 4>{1 + k % 1000, 1 + k / 1000, 1 + k % 2, 1};
                                 }});
    CHECK(r.pairs[0].rows == 256);  // a million pairs need ten million draws for cells of their own
    CHECK_FALSE(r.pairs[0].is_exact);
    CHECK_FALSE(r.pairs[0].coverage.has_value());
    CHECK(r.pairs[0].chi_square->value == doctest::Approx(0).epsilon(1e-6));
    CHECK(r.fields[0].chi_square->value == 0);
    CHECK(r.fields[0].chi_square->p == 1);  // too even for chance
}

TEST_CASE(
    "every field of the draw is uniform, unlike its successor, and independent of the others, in both directions") {
    std::vector<plan::AddressPlan> plans{gateway_v4(65534), gateway_v6(65536)};
    if (!is_slow) plans.insert(plans.end(), {gateway_v4(253), gateway_v4(65533), gateway_v6(1000)});
    for (const auto& p : plans) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const auto r = prove({.plan = p, .seed = 20261121, .direction = direction, .frames = enough});
            CAPTURE(p.left.hosts.host.count);
            CHECK(r.frames == enough);
            CHECK(r.fields.size() == 4);
            CHECK(r.pairs.size() == 6);
            check_sane(r);
        }
    }
}

// SEED-30, SEED-31, SEED-33
TEST_CASE("network and host are uniform and independent, of each other and between the sides") {
    const auto v4 = prove({.plan = tests::nets_v4(256, 254), .seed = 11, .frames = enough});
    REQUIRE(v4.fields.size() == 6);
    CHECK(v4.fields[0].name == "source_network");
    CHECK(v4.fields[1].name == "source_host");
    CHECK(v4.fields[2].name == "destination_network");
    CHECK(v4.fields[0].coverage.occurred == 256);
    CHECK(v4.pairs.size() == 15);
    check_sane(v4);
    const auto& whole_address = v4.pairs[0];
    CHECK(whole_address.second == "source_host");
    CHECK(whole_address.is_exact);
    CHECK(static_cast<double>(whole_address.coverage->occurred) == doctest::Approx(256 * 254).epsilon(1e-3));
    if (is_slow) return;
    check_sane(prove({.plan = tests::nets_v4(190, 1), .seed = 12, .direction = Direction::reverse, .frames = enough}));
    check_sane(
        prove({.plan = tests::nets_v6(256, 65536), .seed = 13, .direction = Direction::reverse, .frames = enough}));
}

// SEED-35
TEST_CASE("a network that is fixed or counted up is no draw, and disturbs no other") {
    auto p = tests::nets_v6(256, 1000);
    p.left.hosts.network->mode = plan::Mode::fixed;
    p.right.hosts.network->mode = plan::Mode::increment;
    const auto r = prove({.plan = p, .seed = 4, .frames = enough});
    CHECK_FALSE(r.fields[0].is_proven);
    CHECK(r.fields[0].coverage.occurred == 1);
    CHECK_FALSE(r.fields[2].is_proven);
    CHECK(r.fields[2].coverage.occurred == 256);
    CHECK(r.fields[2].most_hits - r.fields[2].least_hits <= 1);
    CHECK(r.fields[1].chi_square->p > 1e-5);
    CHECK(r.fields[3].chi_square->p > 1e-5);
    CHECK(r.pairs.size() == 6);
}

TEST_CASE("the proof sees the faults in plans with networks too") {
    const auto fifteen =
        prove({.plan = tests::nets_v6(), .seed = 1, .frames = enough, .generator = Generator::fifteen_bit});
    CHECK(fifteen.fields[1].coverage.occurred == 32768);
    CHECK(fifteen.fields[0].coverage.occurred == 256);
    const auto modulo =
        prove({.plan = tests::nets_v4(255, 254), .seed = 1, .frames = enough, .generator = Generator::modulo});
    CHECK(modulo.fields[0].coverage.occurred == 255);
    CHECK(modulo.fields[4].chi_square->p < 1e-10);
}

// SEED-44: each sender thread has a stream of its own.
TEST_CASE("the frames of one stream of three are as good as all") {
    check_sane(prove(
        {.plan = gateway_v4(), .seed = 5, .frames = enough, .first = 1'000'000'000'000, .streams = 3, .stream = 2}));
}

// SEED-44, D3: frames with the same number, of streams that differ in one thing only.
TEST_CASE("directions, seeds beside each other and frames far apart know nothing of each other") {
    auto p = gateway_v4(60'000);
    p.source_ports = p.destination_ports = p.left.hosts.host;
    const plan::FlowDraw forward{p, Direction::forward, 7};
    const plan::FlowDraw reverse{p, Direction::reverse, 7};
    const plan::FlowDraw next_seed{p, Direction::forward, 8};
    const auto draw = [&](std::uint64_t k) {
        return std::array<std::uint64_t, 4>{forward.draw(k).source, reverse.draw(k).source, next_seed.draw(k).source,
                                            forward.draw(k + (std::uint64_t{1} << 32U)).source};
    };
    check_sane(prove_by_hand(p, enough, {draw}));
}

// SEED-41, SEED-42
TEST_CASE("all pairs of 16 hosts occur, equally often") {
    const auto few = prove({.plan = gateway_v4(16), .seed = 3, .frames = enough});
    CHECK(few.pairs[0].is_exact);
    CHECK(few.pairs[0].rows == 16);
    CHECK(few.pairs[0].coverage->occurred == 256);
    check_sane(few);
}

TEST_CASE("ports stay within the ranges of RFC 4814, the same in both directions (R4814-02, R4814-03)") {
    const auto r = prove({.plan = gateway_v4(7), .seed = 1, .direction = Direction::reverse, .frames = enough});
    CHECK(r.fields[2].range == plan::FieldRange{.first = 1024, .count = 64512});
    CHECK(r.fields[3].range == plan::FieldRange{.first = 1, .count = 49151});
    CHECK(r.fields[2].coverage.expected ==
          doctest::Approx(64512 - 64512 * std::exp(-static_cast<double>(enough) / 64512)).epsilon(1e-6));
    CHECK(static_cast<double>(r.fields[2].coverage.occurred) ==
          doctest::Approx(r.fields[2].coverage.expected).epsilon(1e-3));
}

TEST_CASE("over many seeds the probabilities are even themselves") {
    // Else the bounds that people compare with would mean nothing. 20 bins, each field and pair of its own.
    constexpr std::uint64_t seeds = is_slow ? 100 : 400;
    std::vector<std::vector<std::uint64_t>> bins(3, std::vector<std::uint64_t>(20));
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const auto r = prove({.plan = small_plan(100), .seed = seed, .frames = 20'000});
        const auto put = [&](std::size_t which, double p) {
            ++bins[which].at(std::min<std::size_t>(19, static_cast<std::size_t>(p * 20)));
        };
        put(0, r.fields[0].chi_square->p);
        put(1, r.pairs[0].chi_square->p);
        put(2, r.fields[1].serial->correlation->p);
    }
    for (const auto& counts : bins) {
        double chi_square = 0;
        for (const auto count : counts)
            chi_square += std::pow(static_cast<double>(count) - seeds / 20.0, 2) / (seeds / 20.0);
        CHECK(proof::chi_square_tail(chi_square, 19) > 1e-4);
    }
}

// What the proof is for: testers have drawn addresses like this.
TEST_CASE("the proof sees a generator of 15 bits") {
    const auto all =
        prove({.plan = gateway_v6(65536), .seed = 1, .frames = enough, .generator = Generator::fifteen_bit});
    CHECK(all.fields[0].coverage.occurred == 32768);
    CHECK(all.fields[1].coverage.occurred == 32768);
    CHECK(all.fields[2].coverage.occurred <= 32768);  // of 64,512 source ports
    CHECK(all.fields[3].coverage.occurred <= 32768);  // of 49,151 destination ports
    for (const auto& field : all.fields) {
        CHECK(field.coverage.p == 0);
        CHECK(field.chi_square->p == 0);
    }
    const auto odd =
        prove({.plan = gateway_v4(65533), .seed = 1, .frames = enough, .generator = Generator::fifteen_bit});
    CHECK(odd.fields[0].coverage.occurred > 65000);  // all occur, and unevenly
    CHECK(odd.fields[0].chi_square->p < 1e-100);
}

TEST_CASE("the proof sees the bias of a modulo") {
    const auto r = prove({.plan = gateway_v6(65536), .seed = 1, .frames = enough, .generator = Generator::modulo});
    CHECK(r.fields[0].chi_square->p > 1e-5);   // 65,536 divides 2^16: no bias there
    CHECK(r.fields[2].chi_square->p < 1e-10);  // 1,024 source ports come twice as often
    CHECK(r.fields[3].chi_square->p < 1e-100);
    CHECK(r.pairs[0].chi_square->p > 1e-5);
}

// SEED-41
TEST_CASE("the proof sees source and destination with the same index") {
    const auto p = gateway_v4(16);
    const plan::FlowDraw draw{p, Direction::forward, 1};
    const auto r = prove_by_hand(p, 100'000, {[&](std::uint64_t k) {
                                     const auto flow = draw.draw(k);
                                     return std::array<std::uint64_t, 4>{flow.source, flow.source, flow.source_port,
                                                                         flow.destination_port};
                                 }});
    CHECK(r.fields[1].chi_square->p > 1e-5);  // alone it looks well
    CHECK(r.pairs[0].coverage->occurred == 16);
    CHECK(r.pairs[0].chi_square->p == 0);
    CHECK(r.pairs[0].correlation->p == 0);
}

// R4814-07: no constant stride.
TEST_CASE("the proof sees addresses that are counted up") {
    const auto p = gateway_v4(1000);
    const plan::FlowDraw draw{p, Direction::forward, 1};
    const auto r = prove_by_hand(p, enough, {[&](std::uint64_t k) {
                                     const auto flow = draw.draw(k);
                                     return std::array<std::uint64_t, 4>{1 + k % 1000, flow.destination,
                                                                         flow.source_port, flow.destination_port};
                                 }});
    CHECK(1 - r.fields[0].chi_square->p == 0);  // too even
    CHECK(r.fields[0].serial->chi_square->p == 0);
    CHECK(r.fields[0].serial->correlation->value > 0.99);
}

TEST_CASE("a proof that is stopped says what it drew, and claims nothing from too few draws") {
    StopsAt early{1};
    const auto r = proof::prove({.plan = gateway_v4(), .frames = 100'000'000}, early);
    CHECK(r.frames == 262'144);
    CHECK(r.fields[0].expected_per_value == doctest::Approx(4).epsilon(0.01));
    CHECK_FALSE(r.fields[0].chi_square.has_value());
    CHECK_FALSE(r.pairs[0].chi_square.has_value());
    CHECK(r.pairs[0].correlation.has_value());
    StopsAt never_begun{0};
    const auto none = proof::prove({.plan = gateway_v4(), .frames = 100}, never_begun);
    CHECK(none.frames == 0);
    CHECK_FALSE(none.pairs[0].correlation.has_value());
}

TEST_CASE("flows that are chosen once each leave fewer values out, and are less independent, than draws") {
    // 64 flows: 4 sources, 4 destinations, 2 x 2 ports, of which 12 are chosen. The chance that a source has none of
    // them is that of the hypergeometric distribution, C(48, 12) / C(64, 12).
    constexpr double missing = 0.0212131;
    const auto p = small_plan(4);
    const ProofRequest request{.plan = p, .frames = 12};
    Patient patient;
    const ByHand source{[](std::uint64_t k) {
        return std::array<std::uint64_t, 4>{1 + k % 4, 1 + k / 4 % 4, 1 + k / 2 % 2, 1 + k % 2};
    }};
    const auto fields = proof::fields_of(p, request.direction);
    const auto chosen = proof::prove(source, proof::FlowCounts{fields, 12, 64}, request, patient);
    CHECK((4 - chosen.fields[0].coverage.expected) / (4 * missing) == doctest::Approx(1).epsilon(0.019));
    const auto drawn = proof::prove(source, proof::FlowCounts{fields, 12}, request, patient);
    CHECK(4 - drawn.fields[0].coverage.expected == doctest::Approx(4 * std::pow(0.75, 12)).epsilon(1e-9));
    // The correlation of two values of one flow; but frames in a row are two choices.
    const double left = 1 - 12.0 / 64;
    CHECK(chosen.pairs[0].correlation.value().spread == doctest::Approx(std::sqrt(left / 12)));
    CHECK(drawn.pairs[0].correlation.value().spread == doctest::Approx(std::sqrt(1.0 / 12)));
    CHECK(chosen.fields[0].serial.value().correlation.value().spread == doctest::Approx(std::sqrt(1.0 / 11)));
}

TEST_CASE("a grid has a cell for each pair of values from ten draws of each on") {
    const ByHand even{[](std::uint64_t k) {
        return std::array<std::uint64_t, 4>{1 + k % 4, 1 + k / 4 % 4, 1 + k / 2 % 2, 1 + k % 2};
    }};
    const auto enough = prove_by_hand(small_plan(4), 160, even);
    CHECK(enough.pairs[0].is_exact);
    CHECK(enough.pairs[0].chi_square.has_value());
    CHECK_FALSE(prove_by_hand(small_plan(4), 159, even).pairs[0].is_exact);
}

TEST_CASE("of a field that is drawn and always the same no chi-square of a pair is claimed") {
    // Without a second value there is no degree of freedom left.
    const auto result = prove_by_hand(
        small_plan(4), 10'000,
        {[](std::uint64_t k) { return std::array<std::uint64_t, 4>{2, 1 + k % 4, 1 + k / 4 % 2, 1 + k / 8 % 2}; }});
    CHECK(result.fields[0].chi_square.value().p < 1e-9);
    CHECK_FALSE(result.fields[0].serial.value().chi_square.has_value());
    CHECK_FALSE(result.fields[0].serial.value().correlation.has_value());
    std::size_t found = 0;
    for (const auto& pair : result.pairs) {
        const bool has_source = pair.first == "source" || pair.second == "source";
        CHECK(pair.chi_square.has_value() == !has_source);
        found += has_source;
    }
    CHECK(found == 3);
}

TEST_CASE("of fields that are not drawn nothing is asked") {
    auto p = gateway_v6(1);
    p.source_ports.mode = plan::Mode::increment;
    const auto r = prove({.plan = p, .frames = 600'000});
    CHECK_FALSE(r.fields[0].is_proven);
    CHECK(r.fields[0].coverage.occurred == 1);
    CHECK_FALSE(r.fields[2].is_proven);
    CHECK_FALSE(r.fields[2].serial.has_value());
    CHECK(r.fields[3].is_proven);
    CHECK(r.pairs.empty());
}

}  // namespace proof_test
