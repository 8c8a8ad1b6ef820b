// SPDX-License-Identifier: Apache-2.0
// Station 2: R2544-31, R2544-32, R2544-33, R5180-10, R5180-11, SEED-47, R2544-40.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <span>
#include <vector>

#include "fault.hpp"
#include "frame/reader.hpp"
#include "frame/source.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace frame_test {

using namespace evenhand;
using frame::IpVersion;
using plan::Direction;
using tests::hex;
using tests::slow_sum;

namespace {

constexpr plan::MacAddress tester_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 2};

/// Frame k of a plan, as it is sent at `ticks`.
std::vector<std::byte> frame_of(const plan::AddressPlan& p, std::size_t size, frame::StreamIdentity id, std::uint64_t k,
                                std::uint64_t ticks, std::uint64_t seed = 1) {
    std::vector<std::byte> octets(size - frame::fcs_octets);
    frame::write_pattern(p.version(), octets);
    const auto shape = frame::make_template(p, size, id, tester_mac, dut_mac);
    const plan::FlowDraw draw{p, id.direction, seed};
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, draw, {.first = k, .stride = 1}}.write_next({&at, 1}, ticks);
    return octets;
}

bool checksums_hold(const std::vector<std::byte>& f, IpVersion version) {
    const bool v4 = version == IpVersion::v4;
    const std::size_t addresses = v4 ? 26 : 22;
    const std::size_t udp = v4 ? 34 : 54;
    const auto all = std::span<const std::byte>{f};
    const bool ip_right = !v4 || slow_sum(all.subspan(14, 20)) == 0xFFFF;
    return ip_right && slow_sum(all.subspan(addresses), static_cast<std::uint32_t>(17 + f.size() - udp)) == 0xFFFF;
}

}  // namespace

// SEED-22: from the tester's MAC to the DUT's.
TEST_CASE("an IPv4 frame of 64 octets looks like RFC 2544 C.2.6.4") {
    auto p = tests::gateway_v4(1);
    p.source_ports = {.first = 0xC020, .count = 1, .mode = plan::Mode::fixed};
    p.destination_ports = {.first = 7, .count = 1, .mode = plan::Mode::fixed};
    const auto f = frame_of(p, 64, {.direction = Direction::forward, .stream = 5, .trial = 0x0102}, 0x030405060708,
                            0xAABB0A0B0C0D0E0F);
    CHECK(hex(f) ==
          "020000000002020000000001"
          "0800"
          "4500002e000000000a11"
          "2498"  // 4500 + 002e + 0a11 + c612 + 0001 + c613 + 0001 = 1db66, folded db67, its complement
          "c6120001c6130001"
          "c0200007001a" +
              hex(std::span{f}.subspan(40, 2)) +
              "e5e401"
              "0102"
              "1c"  // the stream, 5, with the check of the time

              "030405060708"
              "0a0b0c0d0e0f");
    CHECK(checksums_hold(f, IpVersion::v4));
}

// SEED-22
TEST_CASE("an IPv6 frame of 84 octets has room for the same 18 octets") {
    const auto f = frame_of(tests::gateway_v6(1), 84, {.direction = Direction::reverse, .stream = 1, .trial = 9}, 2, 3);
    REQUIRE(f.size() == 80);
    CHECK(hex(f).substr(0, 44) ==
          "020000000002020000000001"
          "86dd6000000000"
          "1a110a");
    CHECK(hex(std::span{f}.subspan(22, 32)) ==
          "20010002000080000000000000000002"
          "20010002000000000000000000000002");
    CHECK(hex(std::span{f}.subspan(62)) ==
          "e5e401"
          "0009"
          "82"  // the stream, 1, with the check of the time, 3, and the direction

          "000000000002"
          "000000000003");
    CHECK(checksums_hold(f, IpVersion::v6));
}

TEST_CASE("lengths are computed, not copied from the misprints of RFC 2544") {
    for (const auto& [size, udp_length] : {std::pair{64, 0x001A},
                                           {128, 0x005A},
                                           {256, 0x00DA},
                                           {512, 0x01DA},
                                           {768, 0x02DA},
                                           {1024, 0x03DA},
                                           {1280, 0x04DA},
                                           {1518, 0x05C8},
                                           {2048, 0x07DA},
                                           {9216, 0x23DA}}) {
        const auto f = frame_of(tests::gateway_v4(), static_cast<std::size_t>(size), {}, 0, 0);
        CHECK(static_cast<int>(f[38]) * 256 + static_cast<int>(f[39]) == udp_length);
        CHECK(static_cast<int>(f[16]) * 256 + static_cast<int>(f[17]) == size - 18);
        CHECK(f.size() == static_cast<std::size_t>(size - 4));
        for (std::size_t i = 60; i < f.size(); ++i) REQUIRE(f[i] == static_cast<std::byte>(i - 60));
    }
}

TEST_CASE("every frame has right checksums, and UDP over IPv6 never 0") {
    const bool right = rc::check("checksums", [](std::uint64_t seed, std::uint64_t ticks, std::uint16_t trial,
                                                 std::uint8_t stream, bool reverse, bool v6) {
        const bool networks = *rc::gen::arbitrary<bool>();
        const auto p = v6         ? networks ? tests::nets_v6() : tests::gateway_v6()
                               : networks ? tests::nets_v4()
                                  : tests::gateway_v4();
        const auto size = *rc::gen::oneOf(rc::gen::inRange<std::size_t>(v6 ? 84 : 64, 1519),
                                          rc::gen::inRange<std::size_t>(1519, 9217));
        const auto k = *rc::gen::inRange<std::uint64_t>(0, frame::sequence_mask);
        const auto f = frame_of(p, size,
                                {.direction = reverse ? Direction::reverse : Direction::forward,
                                 .stream = static_cast<std::uint8_t>(stream & 0x7FU),
                                 .trial = trial},
                                k, ticks, seed);
        RC_ASSERT(checksums_hold(f, p.version()));
        RC_ASSERT(frame::is_intact(f.data(), f.size(), p.version()));
        const std::size_t at = v6 ? 60 : 40;
        RC_ASSERT(f[at] != std::byte{0} || f[at + 1] != std::byte{0});
        const auto look = frame::look_at(f.data(), f.size());
        RC_ASSERT(look.kind == frame::FrameKind::test);
        RC_ASSERT(look.tag.sequence == k);
        RC_ASSERT(look.tag.trial == trial);
        RC_ASSERT(look.tag.time_ticks == (ticks & frame::time_mask));
        RC_ASSERT(look.tag.stream == (stream & 0x7FU));
        RC_ASSERT(look.tag.direction == (reverse ? Direction::reverse : Direction::forward));
    });
    CHECK(right);
}

TEST_CASE("networks stand in the frame where their addresses have them (SEED-31, SEED-32)") {
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        for (const auto& p : {tests::nets_v4(), tests::nets_v6(), tests::nets_v4(3, 7), tests::nets_v6(3, 7)}) {
            const plan::FlowDraw draw{p, direction, 1};
            const auto& from = p.side(plan::sending_side(direction)).hosts;
            const auto& to = p.side(plan::receiving_side(direction)).hosts;
            const std::size_t length = plan::address_octets(p.version());
            const std::size_t at = p.version() == IpVersion::v4 ? 26 : 22;
            for (std::uint64_t k = 0; k < 200; ++k) {
                const auto flow = draw.draw(k);
                const auto f = frame_of(p, 100, {.direction = direction}, k, 12345);
                CHECK(hex(std::span{f}.subspan(at, length)) == hex(std::as_bytes(from.address(flow.source).bytes())));
                CHECK(hex(std::span{f}.subspan(at + length, length)) ==
                      hex(std::as_bytes(to.address(flow.destination).bytes())));
                CHECK(checksums_hold(f, p.version()));
            }
        }
    }
}

TEST_CASE("a burst of a plan with networks holds the same frames as one by one") {
    const auto p = tests::nets_v6(100, 1000);
    const auto shape = frame::make_template(p, 84, {}, tester_mac, dut_mac);
    const plan::FlowDraw draw{p, Direction::forward, 1};
    std::vector<std::vector<std::byte>> burst(100, std::vector<std::byte>(80));
    std::vector<std::byte*> at;
    for (auto& f : burst) {
        frame::write_pattern(p.version(), f);
        at.push_back(f.data());
    }
    frame::TestFrameSource source{shape, draw, {.first = 3, .stride = 2}};
    source.write_next(std::span{at}.first(33), 7);
    source.write_next(std::span{at}.subspan(33), 7);
    for (std::uint64_t i = 0; i < burst.size(); ++i) CHECK(hex(burst[i]) == hex(frame_of(p, 84, {}, 3 + 2 * i, 7)));
}

TEST_CASE("a UDP sum that folds to 0xFFFF is sent as 0xFFFF, not as 0") {
    // Among 2^18 frames about four have that sum.
    int found = 0;
    for (std::uint64_t k = 0; k < 1U << 18U; ++k) {
        const auto f = frame_of(tests::gateway_v6(1), 84, {}, k, 7);
        REQUIRE((f[60] != std::byte{0} || f[61] != std::byte{0}));
        if (f[60] == std::byte{0xFF} && f[61] == std::byte{0xFF}) {
            ++found;
            CHECK(checksums_hold(f, IpVersion::v6));
        }
    }
    CHECK(found > 0);
}

TEST_CASE("a frame is known by its tag, whatever a router changed") {
    auto f = frame_of(tests::gateway_v4(), 64, {.trial = 4}, 17, 0);
    f[0] = f[6] = std::byte{0xEE};  // MACs
    f[22] = std::byte{9};           // TTL, and the header checksum with it (RFC 1624)
    f[24] = static_cast<std::byte>(static_cast<int>(f[24]) + 1);
    CHECK(frame::look_at(f.data(), f.size()).kind == frame::FrameKind::test);
    CHECK(frame::is_intact(f.data(), f.size(), IpVersion::v4));
}

TEST_CASE("any changed octet behind the tag or in the headers is seen") {
    for (const auto& p : {tests::gateway_v4(), tests::gateway_v6()}) {
        const std::size_t size = 128;
        const auto good = frame_of(p, size, {.trial = 4}, 17, 99);
        const bool v4 = p.version() == IpVersion::v4;
        for (std::size_t i = v4 ? 14 : 22; i < good.size(); ++i) {
            auto f = good;
            f[i] ^= std::byte{0x10};
            const auto look = frame::look_at(f.data(), f.size());
            CHECK((look.kind != frame::FrameKind::test || !frame::is_intact(f.data(), f.size(), look.version)));
        }
    }
}

TEST_CASE("frames of any octets and length are looked at without reading beyond them") {
    const bool safe = rc::check("look_at", [](const std::vector<std::uint8_t>& octets) {
        const auto bytes = std::as_bytes(std::span{octets});
        const std::vector<std::byte> f(bytes.begin(), bytes.end());
        RC_ASSERT(frame::look_at(f.data(), f.size()).kind != frame::FrameKind::test);
    });
    CHECK(safe);
    auto f = frame_of(tests::gateway_v4(), 64, {.trial = 4}, 17, 0);
    for (std::size_t length = 0; length < f.size(); ++length) {
        const std::vector<std::byte> cut(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(length));
        CHECK(frame::look_at(cut.data(), cut.size()).kind != frame::FrameKind::test);
    }
}

TEST_CASE("frame sizes that cannot be are refused") {
    CHECK_THROWS_AS(frame::check_frame_size(IpVersion::v4, 63), Fault);
    CHECK_NOTHROW(frame::check_frame_size(IpVersion::v4, 64));
    CHECK_THROWS_AS(frame::check_frame_size(IpVersion::v6, 83), Fault);
    CHECK_NOTHROW(frame::check_frame_size(IpVersion::v6, 84));
    CHECK_THROWS_AS(frame::check_frame_size(IpVersion::v4, 9217), Fault);
    CHECK_NOTHROW(frame::check_frame_size(IpVersion::v6, 9216));
}

TEST_CASE("streams share the frames of a direction without gap or overlap") {
    for (const std::uint64_t streams : {1U, 2U, 3U, 7U}) {
        for (const std::uint64_t frames : {0U, 1U, 6U, 7U, 100U}) {
            std::vector<int> sent(frames);
            std::uint64_t total = 0;
            for (std::uint64_t s = 0; s < streams; ++s) {
                const frame::StreamShare share{.first = s, .stride = streams};
                total += share.count(frames);
                for (std::uint64_t i = 0; i < share.count(frames); ++i) ++sent.at(share.sequence(i));
            }
            CHECK(total == frames);
            for (const int n : sent) CHECK(n == 1);
        }
    }
}

}  // namespace frame_test
