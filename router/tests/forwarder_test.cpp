// SPDX-License-Identifier: Apache-2.0
// Forward: a router between two ports in memory, with time driven by hand.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "bench.hpp"
#include "forward/forwarder.hpp"
#include "frame/reader.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace forwarder_test {

using namespace evenhand;
using namespace evenhand::router;
using namespace evenhand::tests::forwarding;
using frame::IpVersion;
using tests::ip;

TEST_CASE_TEMPLATE("a frame goes on with one hop less, other MACs and right checksums", Version,
                   std::integral_constant<IpVersion, IpVersion::v4>, std::integral_constant<IpVersion, IpVersion::v6>) {
    constexpr IpVersion version = Version::value;
    Bench bench;
    bench.introduce();
    const auto plan = version == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
    for (const auto direction : {plan::Direction::forward, plan::Direction::reverse}) {
        const unsigned in = direction == plan::Direction::forward ? 0 : 1;
        const auto sent = test_frames<version>(plan, direction, 2000);
        for (const auto& f : sent) bench.send(in, f);
        bench.run(20 * us);
        const auto came = bench.take_test_frames(1 - in);
        REQUIRE(came.size() == sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            tests::Octets expected = sent[i];
            const auto& to = in == 0 ? right_tester : left_tester;
            const auto& from = in == 0 ? right_dut : left_dut;
            for (std::size_t j = 0; j < 6; ++j)
                expected[j] = static_cast<std::byte>(to[j]), expected[6 + j] = static_cast<std::byte>(from[j]);
            const std::size_t hops = version == IpVersion::v4 ? 22 : 21;
            expected[hops] = std::byte{9};  // R2544-40
            if constexpr (version == IpVersion::v4) {
                expected[24] = expected[25] = std::byte{0};
                const auto sum = static_cast<std::uint16_t>(~tests::slow_sum(std::span{expected}.subspan(14, 20)));
                expected[24] = static_cast<std::byte>(sum >> 8U);
                expected[25] = static_cast<std::byte>(sum);
            }
            REQUIRE(came[i] == expected);
        }
    }
    CHECK(bench.neighbors().size() == 4);  // two for each family: SEED-19
}

TEST_CASE("a frame whose next hop is unknown waits for the answer to the router's question") {
    for (const bool v6 : {false, true}) {
        CAPTURE(v6);
        Bench bench;
        const auto frames = v6 ? test_frames<IpVersion::v6>(tests::gateway_v6(), plan::Direction::forward, 40)
                               : test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 40);
        for (const auto& f : frames) bench.send(0, f);
        bench.run(3000 * us);
        const auto asked = bench.take(1);
        REQUIRE(asked.size() == 1);
        const auto question = neighbor::read_question(asked[0]);
        REQUIRE(question);
        CHECK(question->target == ip(v6 ? "2001:2:0:9000::2" : "10.0.1.2"));
        tests::Octets answer = asked[0];
        answer.resize(128);
        answer.resize(neighbor::write_answer(answer, asked[0].size(), *question, right_tester));
        bench.send(1, answer);
        bench.run(10 * us);
        const auto came = bench.take_test_frames(1);
        REQUIRE(came.size() == 16);  // the bounded queue: the first that came
        for (std::size_t i = 0; i < came.size(); ++i) CHECK(number_of(came[i]) == i);
        CHECK(bench.counters().interfaces[0].unresolved_frames == 24);
    }
}

TEST_CASE("what a router must not forward is dropped and counted") {
    Bench bench;
    bench.introduce();
    auto expired = test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 1)[0];
    expired[22] = std::byte{1};
    expired[24] = expired[25] = std::byte{0};
    const auto sum = static_cast<std::uint16_t>(~tests::slow_sum(std::span{expired}.subspan(14, 20)));
    expired[24] = static_cast<std::byte>(sum >> 8U);
    expired[25] = static_cast<std::byte>(sum);
    auto expired6 = test_frames<IpVersion::v6>(tests::gateway_v6(), plan::Direction::forward, 1)[0];
    expired6[21] = std::byte{1};
    auto elsewhere = test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 1)[0];
    elsewhere[5] ^= std::byte{0x40};
    auto bad_checksum = test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 1)[0];
    bad_checksum[24] ^= std::byte{1};
    auto no_route = test_frames<IpVersion::v6>(tests::gateway_v6(), plan::Direction::forward, 1)[0];
    no_route[14 + 24 + 3] = std::byte{7};  // 2001:7::
    auto short6 = test_frames<IpVersion::v6>(tests::gateway_v6(), plan::Direction::forward, 1)[0];
    short6.resize(60);
    for (const auto& f : {expired, expired6, elsewhere, bad_checksum, no_route, short6}) bench.send(0, f);
    bench.run(10 * us);
    CHECK(bench.take(1).empty());
    const auto& c = bench.counters().interfaces[0];
    CHECK(c.expired_frames == 2);
    CHECK(c.other_mac_frames == 1);
    CHECK(c.malformed_frames == 2);
    CHECK(c.no_route_frames == 1);
}

TEST_CASE("one address pair meets one element, many meet all (SEED-71)") {
    for (const std::uint32_t hosts : {1U, 65534U}) {
        Bench bench{model_of(16, 1e6, 64)};
        bench.introduce();
        for (const auto& f : test_frames<IpVersion::v4>(tests::gateway_v4(hosts), plan::Direction::forward, 2000)) {
            bench.send(0, f);
            bench.run(2 * us);
        }
        bench.run(1000 * us);
        std::set<std::size_t> busy;
        for (std::size_t i = 0; i < 16; ++i) {
            if (bench.forwarder().model()->elements.counters(i).served_frames != 0) busy.insert(i);
        }
        CHECK(busy.size() == (hosts == 1 ? 1 : 16));
        CHECK(bench.take_test_frames(1).size() == 2000);
    }
}

TEST_CASE(
    "frames found after an absence of the router are taken to have come evenly over it, and no queue overflows by it") {
    Bench bench{model_of(1, 1e6, 8)};
    bench.introduce();
    const auto frames = test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 500);
    // 500 frames in 1 ms are half of what the element serves.
    for (int ms = 0; ms < 25; ++ms) {
        for (const auto& f : frames) {
            bench.send(0, f);
            bench.run(2 * us, 2 * us);
        }
    }
    CHECK(bench.take_test_frames(1).size() >= 12'499);
    CHECK(bench.counters().model.overdue_frames == 0);
    // The router is away for 3 ms: it finds 1500.
    for (int ms = 0; ms < 3; ++ms) {
        for (const auto& f : frames) bench.send(0, f);
    }
    bench.now += 3000 * us;
    bench.run(20 * us);
    CHECK(bench.take_test_frames(1).size() >= 1500);
    CHECK(bench.counters().interfaces[0].element_dropped_frames == 0);
    CHECK(bench.counters().model.longest_gap >= 3000 * us);
    CHECK(bench.counters().model.overdue_frames > 1400);  // and it says so
    // Four times as many in 1 ms are twice what the element serves: not all of them fit.
    for (int i = 0; i < 4; ++i) {
        for (const auto& f : frames) bench.send(0, f);
    }
    bench.now += 1000 * us;
    bench.run(1100 * us);
    CHECK(bench.counters().interfaces[0].element_dropped_frames > 900);
}

TEST_CASE("absences that follow each other, or come with the first frames, fill no queue either") {
    // Half of what the element serves, in spans of half a millisecond. After 9 ms of it, or at once, the router is
    // away, comes back for a moment, and is away again.
    const auto frames = test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 500);
    for (const int first_ms : {0, 1, 9, 15}) {
        for (const int present_us : {0, 20, 200, 2000}) {
            CAPTURE(first_ms);
            CAPTURE(present_us);
            Bench bench{model_of(1, 1e6, 8)};
            bench.introduce();
            bench.run(30'000 * us, 20 * us);  // nothing comes
            std::size_t sent = 0;
            const auto be_there = [&](int span_us) {
                for (int passed = 0; passed < span_us; passed += 2, ++sent) {
                    bench.send(0, frames[sent % frames.size()]);
                    bench.run(2 * us, 2 * us);
                }
            };
            const auto be_away = [&](int span_us) {
                for (int passed = 0; passed < span_us; passed += 2, ++sent) bench.send(0, frames[sent % frames.size()]);
                bench.now += static_cast<Ticks>(span_us) * us;
            };
            be_there(first_ms * 1000);
            be_away(3000);
            be_there(present_us);
            be_away(5000);
            be_there(present_us);
            be_away(2000);
            bench.run(100 * us, us);
            CHECK(bench.counters().interfaces[0].element_dropped_frames == 0);
            CHECK(bench.take_test_frames(1).size() == sent);
        }
    }
}

TEST_CASE(
    "the model is the same wherever the counter of the CPU stands: at 2^56 ticks, 321 days at 2.6 GHz, and where it "
    "begins anew") {
    struct Course {
        std::vector<std::pair<Ticks, std::uint64_t>> came;  // when, since the start; which frame
        std::uint64_t served = 0, dropped = 0, most_waiting = 0, late = 0, questions = 0;
        Ticks longest_gap = 0;
        bool operator==(const Course&) const = default;
    };
    const auto frames = test_frames<IpVersion::v4>(tests::gateway_v4(1), plan::Direction::forward, 3000);
    const auto course = [&](Ticks start) {
        Bench bench{model_of(1, 0.75e6, 8), {.seed = 1, .ratios = {}, .at = {{{}, {}, {1000}, {}}}}, 250 * us, start};
        bench.introduce();
        Course c;
        const auto run = [&](Ticks duration, Ticks step) {
            for (Ticks passed = 0; passed < duration; passed += step) {
                bench.run(step, step);
                for (const auto& f : bench.take_test_frames(1)) c.came.emplace_back(bench.now - start, number_of(f));
            }
        };
        for (std::size_t i = 0; i < frames.size(); ++i) {
            bench.send(0, frames[i]);
            if (i % 1000 == 900) bench.now += 20 * us;  // the router is away
            run(i < 1500 ? 2 * us : us, us);            // first less than the element serves, then more
        }
        run(1000 * us, us);
        run(100 * second, 10'000 * us);  // neighbours grow old, are asked, and given up
        bench.send(0, frames[0]);        // and the next frame has to ask again
        run(5 * second, 10'000 * us);
        const auto& element = bench.forwarder().model()->elements.counters(0);
        c.served = element.served_frames, c.dropped = element.dropped_frames, c.most_waiting = element.most_waiting;
        c.late = bench.counters().model.overdue_frames, c.longest_gap = bench.counters().model.longest_gap;
        c.questions = bench.neighbors().counters().questions.value() + bench.neighbors().counters().probes.value();
        CHECK(bench.forwarder().is_idle(second / 2));
        return c;
    };
    const Course usual = course(100 * second);
    CHECK(usual.came.size() > 2500);
    CHECK(usual.came.size() == usual.served);
    CHECK(usual.came.front().first > 250 * us);
    CHECK(usual.dropped > 300);
    CHECK(usual.questions > 0);
    const Ticks top = 0;  // 2^64
    for (const Ticks place : {Ticks{1} << 48U, Ticks{1} << 56U, Ticks{1} << 63U, top}) {
        for (const Ticks before : {Ticks{0}, Ticks{1}, 2000 * us, 4000 * us, 50 * second}) {
            CAPTURE(place);
            CAPTURE(before);
            CHECK((course(place - before) == usual));
        }
    }
    CHECK((course((Ticks{1} << 56U) + second) == usual));
}

TEST_CASE("one loss, one duplicate, one swap and one corrupted octet among many are just that") {
    constexpr std::size_t count = 4000;
    Bench bench{std::nullopt, {.seed = 1, .ratios = {}, .at = {{{1000}, {2000}, {3000}, {3500}}}}};
    bench.introduce();
    for (const auto& f : test_frames<IpVersion::v6>(tests::gateway_v6(), plan::Direction::reverse, count))
        bench.send(1, f);
    bench.run(20 * us);
    const auto came = bench.take_test_frames(0);
    REQUIRE(came.size() == count);
    std::map<std::uint64_t, int> seen;
    std::uint64_t corrupted = 0;
    std::vector<std::uint64_t> order;
    for (const auto& f : came) {
        ++seen[number_of(f)];
        order.push_back(number_of(f));
        if (!frame::is_intact(f.data(), f.size(), IpVersion::v6)) ++corrupted;
    }
    CHECK(seen.count(1000) == 0);
    CHECK(seen[2000] == 2);
    CHECK(seen.size() == count - 1);
    CHECK(corrupted == 1);
    const auto at = std::ranges::find(order, 3001);
    CHECK(*(at + 1) == 3000);
    CHECK(*(at + 2) == 3002);
    CHECK(bench.counters().defects.lost_frames == 1);
    CHECK(bench.counters().defects.duplicated_frames == 1);
    CHECK(bench.counters().defects.reordered_frames == 1);
    CHECK(bench.counters().defects.corrupted_frames == 1);
}

TEST_CASE("the last frame does not stay behind because it has nobody to be exchanged with") {
    Bench bench{std::nullopt, {.seed = 1, .ratios = {}, .at = {{{}, {}, {0}, {}}}}};
    bench.introduce();
    bench.send(0, test_frames<IpVersion::v4>(tests::gateway_v4(), plan::Direction::forward, 1)[0]);
    bench.run(11'000 * us, 10 * us);
    CHECK(bench.take_test_frames(1).size() == 1);
    CHECK(bench.counters().defects.reordered_frames == 0);
}

TEST_CASE("nothing that comes breaks the router, and each frame is accounted for") {
    const char* const wanted = std::getenv("EVENHAND_FUZZ_FRAMES");
    const std::size_t rounds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 50'000;
    Bench bench{model_of(4, 50e6, 64, HashType::addresses_and_ports)};
    bench.introduce();
    std::mt19937_64 random{20261121};
    // In both directions alike, since a port in memory gets back the buffers of the frames that it sends, not of those
    // that it receives.
    std::array<std::vector<tests::Octets>, 2> seeds;
    for (const auto direction : {plan::Direction::forward, plan::Direction::reverse}) {
        auto& of_side = seeds[direction == plan::Direction::forward ? 0 : 1];
        of_side = test_frames<IpVersion::v4>(tests::gateway_v4(), direction, 8);
        for (auto& f : test_frames<IpVersion::v6>(tests::gateway_v6(), direction, 8, 128)) of_side.push_back(f);
    }
    seeds[0].push_back(Bench::question(false, left_tester, "10.0.0.2", "10.0.0.1"));
    seeds[0].push_back(Bench::question(true, left_tester, "2001:2:0:1000::2", "2001:2:0:1000::1"));
    seeds[1].push_back(Bench::question(false, right_tester, "10.0.1.2", "10.0.1.1"));
    seeds[1].push_back(Bench::question(true, right_tester, "2001:2:0:9000::2", "2001:2:0:9000::1"));
    std::uint64_t sent = 4;  // the introductions
    for (std::size_t i = 0; i < rounds; ++i) {
        tests::Octets f;
        if (i / 2 % 4 == 0) {
            f.resize(random() % 200);
            for (auto& octet : f) octet = static_cast<std::byte>(random());
            constexpr std::array<std::uint16_t, 4> types{0x0800, 0x86DD, 0x0806, 0x8100};
            if (f.size() >= 14 && i / 2 % 8 == 0)
                frame::store(f.data() + 12, frame::big(types[random() % types.size()]));
        } else {
            const auto& of_side = seeds[i % 2];
            f = of_side[random() % of_side.size()];
            for (auto n = 1 + random() % 4; n-- > 0;)
                f[random() % f.size()] ^= static_cast<std::byte>(1U << random() % 8);
            if (i % 5 == 0) f.resize(random() % (f.size() + 1));
        }
        bench.send(i % 2, f);
        ++sent;
        if (i % 32 == 31) bench.run(2 * us), (void)bench.take(0), (void)bench.take(1);
    }
    bench.run(5 * second, 1000 * us);  // what waits for a next hop that never answers is given up after three seconds
    std::uint64_t accounted = bench.counters().model.departed_frames + bench.counters().model.overflow_frames +
                              bench.neighbors().counters().dropped_frames.value();
    std::uint64_t received = 0;
    for (const auto& c : bench.counters().interfaces) {
        received += c.received_frames;
        accounted += c.local_frames + c.other_mac_frames + c.ignored_frames + c.malformed_frames + c.martian_frames +
                     c.expired_frames + c.no_route_frames + c.unresolved_frames + c.element_dropped_frames +
                     c.stalled_frames;
    }
    CHECK(received == sent);
    CHECK(accounted == received);
}

}  // namespace forwarder_test
