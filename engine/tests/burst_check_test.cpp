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
#include "lists.hpp"
#include "plans.hpp"
#include "slow.hpp"

namespace burst_check_test {
using namespace evenhand;
using frame::BurstChecks;
using frame::StreamIdentity;
using plan::Direction;
using plan::IpVersion;

namespace {

constexpr plan::MacAddress tester_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 2};
constexpr std::uint64_t seed = 7;
using Octets = std::vector<std::byte>;

template <IpVersion V>
std::vector<Octets> frames_of(const plan::AddressPlan& p, std::size_t size, StreamIdentity id, std::uint64_t first,
                              unsigned n, std::uint64_t streams) {
    std::vector<Octets> frames(n, Octets(size - frame::fcs_octets));
    std::vector<std::byte*> at;
    at.reserve(n);
    for (auto& one : frames) {
        frame::write_pattern(V, one);
        at.push_back(one.data());
    }
    const auto shape = frame::make_template(p, size, id, tester_mac, dut_mac);
    frame::TestFrameSource{shape, plan::FlowDraw{p, id.direction, seed}, {.first = first, .stride = streams}}
        .write_next(at, 0x123456789A);
    return frames;
}

std::vector<Octets> frames_of(const plan::AddressPlan& p, std::size_t size, StreamIdentity id, std::uint64_t first,
                              unsigned n, std::uint64_t streams = 1) {
    return p.version() == IpVersion::v4 ? frames_of<IpVersion::v4>(p, size, id, first, n, streams)
                                        : frames_of<IpVersion::v6>(p, size, id, first, n, streams);
}

frame::TestFrameExpectation expected_of(const plan::AddressPlan& p, Direction direction, std::size_t size,
                                        const std::optional<plan::MacAddress>& mac, std::uint64_t streams = 1,
                                        const plan::MacAddress& cable = dut_mac) {
    frame::TestFrameExpectation expected{frame::traffic_of(p, direction, size).arrives, mac, cable};
    expected.know(plan::FlowDraw{p, direction, seed}, streams);
    return expected;
}

/// As the receiver asks one after the other; a frame with another traffic class or flow label is left to it.
bool is_known(const Octets& octets, const frame::TestFrameExpectation& expected, StreamIdentity id) {
    const auto look = frame::look_at(octets.data(), octets.size());
    if (look.kind != frame::FrameKind::test || look.tag.trial != id.trial || look.tag.direction != id.direction)
        return false;
    const bool holds = expected.holds(0, octets.data(), look.version);
    CHECK(holds == !expected.frame_fault(0, octets.data(), look.version).has_value());
    return holds && !frame::is_remarked(octets.data(), look.version);
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

/// Host numbers behind a prefix whose octets are no words.
plan::AddressPlan odd_v6(std::uint32_t offset, std::uint32_t gap) {
    auto p = tests::gateway_v6(100);
    p.left.hosts.offset = offset;
    p.left.hosts.gap = gap;
    return p;
}

const std::array plans{tests::gateway_v4(),
                       tests::gateway_v4(1),
                       tests::gateway_v6(),
                       tests::gateway_v6(1),
                       tests::direct_v4(),
                       tests::direct_v6(),
                       tests::nets_v6(),
                       tests::nets_v6(16, 100),
                       tests::gateway_v4(17),
                       tests::gateway_v6(65),
                       tests::nets_v4(),
                       odd_v6(11, 0),
                       odd_v6(10, 1),
                       tests::listed(IpVersion::v4, 100),
                       tests::listed(IpVersion::v6, 100),
                       tests::both_listed_v4(),
                       tests::both_listed_v6()};

}  // namespace

TEST_CASE("a burst is checked at once as its frames are one after the other (R2544-06, R2544-40)") {
    std::mt19937_64 random{20261125};
    for (const auto& p : plans) {
        const std::size_t smallest = frame::smallest_frame_size(p.version());
        for (const std::size_t size : {smallest, smallest + 1, smallest + 2, std::size_t{128}, std::size_t{333},
                                       std::size_t{1518}, std::size_t{9216}}) {
            for (const auto direction : {Direction::forward, Direction::reverse}) {
                const std::uint64_t streams = random() % 2 == 0 ? 1 : 1 + random() % 128;
                const StreamIdentity id{
                    .direction = direction, .stream = static_cast<std::uint8_t>(random() % streams), .trial = 0xA1B2};
                const bool checks_mac = random() % 4 != 0;
                const auto mac = checks_mac ? std::optional{dut_mac} : std::nullopt;
                const auto expected = expected_of(p, direction, size, mac, streams);
                auto check = expected.burst_checks(id);
                if (!check) return;  // this CPU cannot
                CAPTURE(p.name);
                CAPTURE(size);
                CHECK(check.octets() == size - frame::fcs_octets);
                for (const unsigned n : {1U, 2U, 3U, 4U, 5U, 31U, 63U, 64U}) {
                    const std::uint64_t most = random() % 2 == 0 ? 1'000'000 : (std::uint64_t{1} << 47U) / streams;
                    auto frames = frames_of(p, size, id, random() % most * streams + id.stream, n, streams);
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

TEST_CASE(
    "no octet that a router keeps can change unnoticed, even if all checksums are made anew (R2544-06, R2544-40)") {
    for (const auto& p : plans) {
        const std::size_t smallest = frame::smallest_frame_size(p.version());
        for (const std::size_t size : {smallest, smallest + 1, smallest + 71}) {
            if (tests::is_slow && size > smallest + 1) continue;
            const StreamIdentity id{.trial = 0x0102};
            const auto expected = expected_of(p, Direction::forward, size, dut_mac);
            auto check = expected.burst_checks(id);
            if (!check) return;
            const auto sent = frames_of(p, size, id, 4711, 1).front();
            const bool is_v4 = p.version() == IpVersion::v4;
            const std::size_t addresses = is_v4 ? 26 : 22;
            const std::size_t udp = is_v4 ? 34 : 54;
            const std::size_t hop_limit = is_v4 ? 22 : 21;
            const std::size_t time = udp + 8 + frame::tag_time;
            for (std::size_t at = 0; at < sent.size(); ++at) {
                const bool is_mark = is_v4 ? at == 15 : at > 14 && at < 18;
                unsigned taken = 0;
                for (unsigned value = 0; value < 256; ++value) {
                    Octets octets = sent;
                    octets[at] = static_cast<std::byte>(value);
                    const bool is_sum = at == udp + 6 || at == udp + 7 || (is_v4 && (at == 24 || at == 25));
                    if (!is_sum) {
                        frame::store(octets.data() + udp + 6, std::uint16_t{0});
                        frame::store(octets.data() + udp + 6,
                                     frame::udp_checksum(
                                         frame::sum_octets(octets.data() + addresses, octets.size() - addresses) +
                                         frame::pseudo_header_sum(frame::protocol_udp, octets.size() - udp)));
                        if (is_v4) {
                            frame::store(octets.data() + 24, std::uint16_t{0});
                            frame::store(octets.data() + 24,
                                         frame::ip_checksum(frame::sum_octets(octets.data() + 14, 20)));
                        }
                    }
                    CAPTURE(p.name);
                    CAPTURE(at);
                    CAPTURE(value);
                    const bool is_right = is_known(octets, expected, id);
                    REQUIRE(find(check, {octets}) == std::uint64_t{is_right});
                    const auto look = frame::look_at(octets.data(), octets.size());
                    taken += static_cast<unsigned>(is_right);
                    if (is_mark && look.kind == frame::FrameKind::test && octets != sent)
                        CHECK(expected.holds(0, octets.data(), look.version) ==
                              (is_v4 || (at != 14 && at != 15) || value >> 4U == 6 || at == 15));
                }
                CAPTURE(at);
                // Source MAC: any. Hop limit: 1 .. 10. Seven bits check the six octets of the time, of each of which
                // one of 255 changes leaves them as they were.
                const unsigned most = at >= 6 && at < 12            ? 256U
                                      : at == hop_limit             ? 10U
                                      : at >= time && at < time + 6 ? 2U
                                                                    : 1U;
                CHECK(taken == most);
            }
        }
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
                const std::uint64_t streams = 1 + random() % 3;
                std::vector<Octets> frames;
                // Few streams, numbers and times, so that they repeat; numbers up to the largest there can be.
                const std::uint64_t last = random() % 2 == 0 ? frame::sequence_mask - 3 : 1000;
                std::uint64_t time = 1;
                for (unsigned i = 0; i < n; ++i) {
                    if (random() % 3 == 0) time = random() & frame::time_mask;
                    const std::uint64_t first = i % 4 == 0 ? random() % 4 + last : last + i / 16 % 4;
                    const auto stream = static_cast<std::uint8_t>(first % streams);
                    Octets one(size - frame::fcs_octets);
                    const auto write = [&]<IpVersion V>() {
                        frame::write_pattern(V, one);
                        const auto shape = frame::make_template(
                            p, size, {.direction = direction, .stream = stream, .trial = 9}, tester_mac, dut_mac);
                        std::array<std::byte*, 1> at{one.data()};
                        frame::TestFrameSource{shape, plan::FlowDraw{p, direction, seed}, {.first = first}}.write_next(
                            at, time);
                    };
                    is_v4 ? write.operator()<IpVersion::v4>() : write.operator()<IpVersion::v6>();
                    frames.push_back(one);
                }
                const auto expected = expected_of(p, direction, size, dut_mac, streams);
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
        // The frames are sent to `dut_mac`: a cable brings them to the tester as they are.
        const auto by_cable = expected_of(p, Direction::forward, size, tester_mac);
        const auto by_dut = expected_of(p, Direction::forward, size, dut_mac, 1, tester_mac);
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

TEST_CASE("bursts are checked at once only where it is known what was sent") {
    const auto p = tests::gateway_v4();
    const frame::TestFrameExpectation expected{frame::traffic_of(p, Direction::forward, 64).arrives, dut_mac, dut_mac};
    CHECK_FALSE(static_cast<bool>(expected.burst_checks({.trial = 1})));
}

TEST_CASE("a frame that is not what was sent is said to be so by what differs first (R2544-06)") {
    using frame::FrameFault;
    for (const auto& p : {tests::gateway_v4(), tests::gateway_v6()}) {
        const bool is_v4 = p.version() == IpVersion::v4;
        const std::size_t size = 128;
        const auto expected = expected_of(p, Direction::forward, size, dut_mac);
        const auto sent = frames_of(p, size, {.trial = 1}, 4711, 1).front();
        const std::size_t addresses = is_v4 ? 26 : 22;
        const std::size_t address_octets = is_v4 ? 4 : 16;
        const std::size_t udp = is_v4 ? 34 : 54;
        const auto fault = [&](std::size_t at, unsigned by, bool is_anew = true) {
            Octets octets = sent;
            octets[at] ^= static_cast<std::byte>(by);
            if (is_anew) {
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
            return expected.frame_fault(0, octets.data(), p.version());
        };
        CHECK(fault(0, 0) == std::nullopt);
        CHECK(fault(addresses + address_octets - 1, 1) == FrameFault::address);
        CHECK(fault(addresses + 2 * address_octets - 3, 1) == FrameFault::address);
        CHECK(fault(udp + 1, 1) == FrameFault::port);
        CHECK(fault(udp + 3, 1) == FrameFault::port);
        CHECK(fault(sent.size() - 1, 0xFF) == FrameFault::payload);
        CHECK(fault(udp + 8 + 17, 0xFF) == FrameFault::payload);  // of the time
        CHECK(fault(udp + 8 + 5, 1) == FrameFault::payload);      // the stream
        CHECK(fault(udp + 8 + 11, 1) == FrameFault::address);     // the number: the flow is another one's
        CHECK(fault(sent.size() - 1, 0xFF, false) == FrameFault::udp_checksum);
        CHECK(fault(5, 1) == FrameFault::destination_mac);
        CHECK(fault(is_v4 ? 22 : 21, 0x10) == FrameFault::hop_limit);
        CHECK(fault(is_v4 ? 17 : 19, 1) == FrameFault::length);
        CHECK(fault(udp + 5, 1) == FrameFault::length);
        CHECK(fault(20, is_v4 ? 0x20 : frame::protocol_udp ^ 44U) == FrameFault::fragment);
        CHECK(fault(is_v4 ? 19 : 14, is_v4 ? 1 : 0x10) == FrameFault::header);
        if (is_v4) CHECK(fault(25, 1, false) == FrameFault::header_checksum);
    }
}

}  // namespace burst_check_test
