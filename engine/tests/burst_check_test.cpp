// SPDX-License-Identifier: Apache-2.0
// A burst is checked at once as its frames are one after the other.
#include "frame/burst_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "direct_plans.hpp"
#include "frame/expectation.hpp"
#include "frame/reader.hpp"
#include "frame/source.hpp"
#include "frame/template.hpp"
#include "plans.hpp"

namespace burst_check_test {
using namespace evenhand;
using frame::BurstChecks;
using frame::StreamIdentity;
using plan::Direction;
using plan::IpVersion;

namespace {

constexpr plan::MacAddress tester_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 2};
using Octets = std::vector<std::byte>;

template <IpVersion V>
std::vector<Octets> frames_of(const plan::AddressPlan& p, std::size_t size, StreamIdentity id, std::uint64_t first,
                              unsigned n) {
    std::vector<Octets> frames(n, Octets(size - frame::fcs_octets));
    std::vector<std::byte*> at;
    at.reserve(n);
    for (auto& one : frames) {
        frame::write_pattern(V, one);
        at.push_back(one.data());
    }
    const auto shape = frame::make_template(p, size, id, tester_mac, dut_mac);
    frame::TestFrameSource{shape, plan::FlowDraw{p, id.direction, 7}, {.first = first}}.write_next(at, 0x123456789A);
    return frames;
}

std::vector<Octets> frames_of(const plan::AddressPlan& p, std::size_t size, StreamIdentity id, std::uint64_t first,
                              unsigned n) {
    return p.version() == IpVersion::v4 ? frames_of<IpVersion::v4>(p, size, id, first, n)
                                        : frames_of<IpVersion::v6>(p, size, id, first, n);
}

/// As the receiver asks one after the other.
bool is_known(const Octets& octets, const frame::TestFrameExpectation& expected, StreamIdentity id) {
    const auto look = frame::look_at(octets.data(), octets.size());
    return look.kind == frame::FrameKind::test && look.tag.trial == id.trial && look.tag.direction == id.direction &&
           expected.holds(0, octets.data(), look.version);
}

std::uint64_t find(BurstChecks& check, const std::vector<Octets>& frames) {
    std::vector<const std::byte*> at(frames.size());
    std::ranges::transform(frames, at.begin(), [](const Octets& one) { return one.data(); });
    frame::FoundBurst found;
    check.find(at.data(), static_cast<unsigned>(at.size()), found);
    return found.known;
}

/// One word more, another one as much less: no checksum over both notices.
void exchange(Octets& octets, std::size_t a, std::size_t b, std::uint16_t by) {
    const auto at = [&](std::size_t i) { return octets.data() + i; };
    const std::uint32_t more = std::uint32_t{frame::big(frame::load<std::uint16_t>(at(a)))} + by;
    const std::uint32_t less = std::uint32_t{frame::big(frame::load<std::uint16_t>(at(b)))} + 0xFFFFU - by;
    frame::store(at(a), frame::big(static_cast<std::uint16_t>((more & 0xFFFFU) + (more >> 16U))));
    frame::store(at(b), frame::big(static_cast<std::uint16_t>((less & 0xFFFFU) + (less >> 16U))));
}

const std::array plans{tests::gateway_v4(),   tests::gateway_v4(1), tests::gateway_v6(), tests::gateway_v6(1),
                       tests::direct_v4(),    tests::direct_v6(),   tests::nets_v6(),    tests::nets_v6(16, 100),
                       tests::gateway_v4(17), tests::gateway_v6(65)};

}  // namespace

TEST_CASE("a burst is checked at once as its frames are one after the other (R2544-06, R2544-40)") {
    std::mt19937_64 random{20261125};
    for (const auto& p : plans) {
        const std::size_t smallest = frame::smallest_frame_size(p.version());
        for (const std::size_t size : {smallest, smallest + 1, smallest + 2, std::size_t{128}, std::size_t{333},
                                       std::size_t{1518}, std::size_t{9216}}) {
            for (const auto direction : {Direction::forward, Direction::reverse}) {
                const StreamIdentity id{
                    .direction = direction, .stream = static_cast<std::uint8_t>(random() % 128), .trial = 0xA1B2};
                const bool checks_mac = random() % 4 != 0;
                const auto mac = checks_mac ? std::optional{dut_mac} : std::nullopt;
                const frame::TestFrameExpectation expected{frame::traffic_of(p, direction, size).arrives, mac, dut_mac};
                auto check = expected.burst_checks(id);
                if (!check) return;  // this CPU cannot
                CAPTURE(p.name);
                CAPTURE(size);
                CHECK(check.octets() == size - frame::fcs_octets);
                for (const unsigned n : {1U, 2U, 3U, 4U, 5U, 31U, 63U, 64U}) {
                    auto frames = frames_of(p, size, id, random() % 1'000'000'000, n);
                    const std::uint64_t all = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
                    REQUIRE(find(check, frames) == all);
                    // Damage of every kind: a bit, an octet, two words whose sum stays, a whole field.
                    std::uint64_t right = 0;
                    for (unsigned i = 0; i < n; ++i) {
                        auto& octets = frames[i];
                        const std::size_t head = std::min<std::size_t>(octets.size(), 80);
                        const auto any = [&](std::size_t below) { return random() % below; };
                        switch (any(5)) {
                            case 0: octets[any(head)] ^= static_cast<std::byte>(1U << any(8)); break;
                            case 1: octets[any(octets.size())] = static_cast<std::byte>(random()); break;
                            case 2:
                                exchange(octets, 14 + 2 * any((head - 14) / 2), 14 + 2 * any((head - 14) / 2),
                                         static_cast<std::uint16_t>(any(4) == 0 ? random() : any(3)));
                                break;
                            case 3: octets[any(6)] ^= static_cast<std::byte>(any(2)); break;
                            default: break;
                        }
                        right |= std::uint64_t{is_known(octets, expected, id)} << i;
                    }
                    REQUIRE(find(check, frames) == right);
                }
            }
        }
    }
}

TEST_CASE("frames whose host numbers are no words of the sums are left to the check of one after the other") {
    const auto has_one = [](const plan::AddressPlan& p, Direction direction) {
        const frame::TestFrameExpectation expected{frame::traffic_of(p, direction, 100).arrives, dut_mac, dut_mac};
        return static_cast<bool>(expected.burst_checks({.direction = direction, .trial = 1}));
    };
    const auto words = tests::gateway_v6(100);
    if (!has_one(words, Direction::forward)) return;  // this CPU cannot
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        for (const bool is_left : {false, true}) {
            auto p = words;
            auto& hosts = is_left ? p.left.hosts : p.right.hosts;
            hosts.offset = 11;
            CHECK_FALSE(has_one(p, direction));
            hosts.offset = 10;
            hosts.gap = 1;
            CHECK_FALSE(has_one(p, direction));
        }
    }
}

TEST_CASE("each field of a frame is asked for where the checksums hold all the same (R2544-40)") {
    // Both checksums are made anew after one octet was changed, so that nothing but the field itself can tell.
    for (const auto& p : plans) {
        const std::size_t size = frame::smallest_frame_size(p.version());
        const StreamIdentity id{.trial = 0x0102};
        const frame::TestFrameExpectation expected{frame::traffic_of(p, Direction::forward, size).arrives, dut_mac,
                                                   dut_mac};
        auto check = expected.burst_checks(id);
        if (!check) return;
        const auto sent = frames_of(p, size, id, 4711, 1).front();
        const bool is_v4 = p.version() == IpVersion::v4;
        const std::size_t addresses = is_v4 ? 26 : 22;
        const std::size_t udp = is_v4 ? 34 : 54;
        unsigned refused = 0;
        for (std::size_t at = 0; at < sent.size(); ++at) {
            for (unsigned value = 0; value < 256; ++value) {
                Octets octets = sent;
                octets[at] = static_cast<std::byte>(value);
                const bool is_sum = at == udp + 6 || at == udp + 7 || (is_v4 && (at == 24 || at == 25));
                if (!is_sum) {
                    frame::store(octets.data() + udp + 6, std::uint16_t{0});
                    frame::store(
                        octets.data() + udp + 6,
                        frame::udp_checksum(frame::sum_octets(octets.data() + addresses, octets.size() - addresses) +
                                            frame::pseudo_header_sum(frame::protocol_udp, octets.size() - udp)));
                    if (is_v4) {
                        frame::store(octets.data() + 24, std::uint16_t{0});
                        frame::store(octets.data() + 24, frame::ip_checksum(frame::sum_octets(octets.data() + 14, 20)));
                    }
                }
                CAPTURE(at);
                CAPTURE(value);
                const bool is_right = is_known(octets, expected, id);
                refused += static_cast<unsigned>(!is_right);
                REQUIRE(find(check, {octets}) == std::uint64_t{is_right});
            }
        }
        CHECK(refused > 1000);
    }
}

TEST_CASE("what the tags of a burst say, and where its runs begin, is told with it (R2544-06)") {
    std::mt19937_64 random{4711};
    for (const auto& p : {tests::gateway_v4(), tests::gateway_v6()}) {
        const bool is_v4 = p.version() == IpVersion::v4;
        const std::size_t size = frame::smallest_frame_size(p.version());
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            for (unsigned round = 0; round < 200; ++round) {
                const unsigned n = 1 + static_cast<unsigned>(random() % 64);
                std::vector<Octets> frames;
                // Few streams, numbers and times, so that they repeat; numbers up to the largest there can be.
                const std::uint64_t last = random() % 2 == 0 ? frame::sequence_mask - 3 : 1000;
                std::uint64_t time = 1;
                for (unsigned i = 0; i < n; ++i) {
                    const auto stream = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 128 : 5);
                    if (random() % 3 == 0) time = random() & frame::time_mask;
                    const std::uint64_t first = i % 4 == 0 ? random() % 4 + last : last + i / 16;
                    Octets one(size - frame::fcs_octets);
                    const auto write = [&]<IpVersion V>() {
                        frame::write_pattern(V, one);
                        const auto shape = frame::make_template(
                            p, size, {.direction = direction, .stream = stream, .trial = 9}, tester_mac, dut_mac);
                        std::array<std::byte*, 1> at{one.data()};
                        frame::TestFrameSource{shape, plan::FlowDraw{p, direction, 7}, {.first = first}}.write_next(
                            at, time);
                    };
                    is_v4 ? write.operator()<IpVersion::v4>() : write.operator()<IpVersion::v6>();
                    frames.push_back(one);
                }
                const frame::TestFrameExpectation expected{frame::traffic_of(p, direction, size).arrives, dut_mac,
                                                           dut_mac};
                auto check = expected.burst_checks({.direction = direction, .trial = 9});
                if (!check) return;
                std::vector<const std::byte*> at(n);
                std::ranges::transform(frames, at.begin(), [](const Octets& one) { return one.data(); });
                frame::FoundBurst found;
                check.find(at.data(), n, found);
                REQUIRE(found.known == frame::first_bits(n));
                frame::Tag before{};
                for (unsigned i = 0; i < n; ++i) {
                    const auto tag = frame::look_at(frames[i].data(), frames[i].size()).tag;
                    CHECK(found.sequence(i) == tag.sequence);
                    CHECK(found.stream(i) == tag.stream);
                    CHECK(found.times[i] == tag.time_ticks);
                    if (i != 0) {
                        CHECK((found.new_time >> i & 1U) == (tag.time_ticks != before.time_ticks));
                        CHECK((found.new_rise >> i & 1U) ==
                              (tag.stream != before.stream || tag.sequence <= before.sequence));
                    }
                    before = tag;
                }
            }
        }
    }
}

TEST_CASE("bursts that a cable brings are found from the second one on, and those of a DUT again (HOST-05)") {
    for (const auto& p : {tests::gateway_v4(), tests::gateway_v6()}) {
        const std::size_t size = frame::smallest_frame_size(p.version());
        const StreamIdentity id{.trial = 3};
        const auto arrives = frame::traffic_of(p, Direction::forward, size).arrives;
        // The frames are sent to `dut_mac`: a cable brings them to the tester as they are.
        const frame::TestFrameExpectation by_cable{arrives, tester_mac, dut_mac};
        const frame::TestFrameExpectation by_dut{arrives, dut_mac, tester_mac};
        const auto frames = frames_of(p, size, id, 1000, 32);
        auto check = by_cable.burst_checks(id);
        if (!check) return;
        CHECK(find(check, frames) == 0);
        CHECK(find(check, frames) == frame::first_bits(32));
        CHECK(find(check, frames) == frame::first_bits(32));
        auto other = by_dut.burst_checks(id);
        CHECK(find(other, frames) == frame::first_bits(32));
        // What is none of both is so however often it comes, and the next burst but one is found at the latest.
        auto foreign = frames;
        for (auto& octets : foreign) octets[5] = std::byte{9};
        for (int bursts = 0; bursts < 3; ++bursts) CHECK(find(other, foreign) == 0);
        CHECK((find(other, frames) | find(other, frames)) == frame::first_bits(32));
    }
}

TEST_CASE("plans whose numbers share a word have no check of bursts") {
    const auto p = tests::nets_v4();
    const frame::TestFrameExpectation expected{frame::traffic_of(p, Direction::forward, 64).arrives, dut_mac, dut_mac};
    CHECK_FALSE(static_cast<bool>(expected.burst_checks({.trial = 1})));
}

}  // namespace burst_check_test
