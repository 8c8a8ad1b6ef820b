// SPDX-License-Identifier: Apache-2.0
// Stations 1, 2 and 5: plans whose sides differ in IP version, and what comes out of a translator (RFC 7915).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "fault.hpp"
#include "frame/checksum.hpp"
#include "frame/traffic.hpp"
#include "frame/translation.hpp"
#include "octets.hpp"
#include "plan/host_set.hpp"
#include "plans.hpp"
#include "rig.hpp"

namespace translation_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::big;
using frame::IpVersion;
using frame::Layout;
using frame::load;
using frame::store;
using frame::TranslationFault;
using plan::Direction;

namespace {

using L4 = Layout<IpVersion::v4>;
using L6 = Layout<IpVersion::v6>;
constexpr std::size_t difference = 20;  // octets between both headers
constexpr std::uint64_t seed = 7;

std::uint16_t udp_sum(const Octets& frame, std::size_t source, std::size_t udp) {
    return frame::udp_checksum(frame::sum_octets(frame.data() + source, frame.size() - source) +
                               frame::pseudo_header_sum(frame::protocol_udp, frame.size() - udp));
}

/// Lengths in bits of a prefix (RFC 6052, 2.2).
constexpr std::array prefix_lengths{32U, 40U, 48U, 56U, 64U, 96U};

/// As RFC 7915 has it, written without the engine's templates; the addresses are those of siit_behind().
Octets translate(const Octets& frame, unsigned length) {
    const auto octets_at = embedded_at(length);
    auto prefix = ip("2001:db8:122:344::");
    std::fill(prefix.octets.begin() + length / 8, prefix.octets.end(), std::uint8_t{0});
    const bool is_v6 = big(load<std::uint16_t>(frame.data() + 12)) == frame::ethertype_ipv6;
    Octets out(is_v6 ? frame.size() - difference : frame.size() + difference);
    std::byte* const ip = out.data() + frame::ethernet_octets;
    const std::byte* const from = frame.data() + frame::ethernet_octets;
    const std::size_t udp = is_v6 ? L6::udp : L4::udp;
    std::copy(frame.begin() + static_cast<std::ptrdiff_t>(udp), frame.end(),
              out.begin() + static_cast<std::ptrdiff_t>(is_v6 ? L4::udp : L6::udp));
    const auto embed = [&](std::size_t to, const std::byte* address) {
        std::memcpy(out.data() + to, prefix.octets.data(), prefix.octets.size());
        for (std::size_t i = 0; i < octets_at.size(); ++i) out[to + octets_at[i]] = address[i];
    };
    const auto extract = [&](std::size_t to, const std::byte* address) {
        auto rest = prefix.octets;
        std::memcpy(rest.data(), address, rest.size());
        for (std::size_t i = 0; i < octets_at.size(); ++i) {
            out[to + i] = address[octets_at[i]];
            rest[octets_at[i]] = 0;
        }
        REQUIRE(rest == prefix.octets);
    };
    if (is_v6) {
        store(out.data() + 12, big(frame::ethertype_ipv4));
        ip[0] = std::byte{0x45};
        store(ip + 2, big(static_cast<std::uint16_t>(out.size() - frame::ethernet_octets)));
        ip[8] = static_cast<std::byte>(static_cast<int>(from[7]) - 1);
        ip[9] = std::byte{frame::protocol_udp};
        extract(L4::source, frame.data() + L6::source);
        extract(L4::destination, frame.data() + L6::destination);
        store(ip + 10, frame::ip_checksum(frame::sum_octets(ip, L4::ip_octets)));
        store(out.data() + L4::udp_checksum, std::uint16_t{0});
        store(out.data() + L4::udp_checksum, udp_sum(out, L4::source, L4::udp));
    } else {
        store(out.data() + 12, big(frame::ethertype_ipv6));
        ip[0] = std::byte{0x60};
        store(ip + 4, big(static_cast<std::uint16_t>(out.size() - L6::udp)));
        ip[6] = std::byte{frame::protocol_udp};
        ip[7] = static_cast<std::byte>(static_cast<int>(from[8]) - 1);
        embed(L6::source, frame.data() + L4::source);
        embed(L6::destination, frame.data() + L4::destination);
        store(out.data() + L6::udp_checksum, std::uint16_t{0});
        store(out.data() + L6::udp_checksum, udp_sum(out, L6::source, L6::udp));
    }
    return out;
}

/// One direction through a translator, in memory.
struct Way {
    unsigned prefix_length = 96;
    plan::AddressPlan plan = siit_behind(prefix_length);
    Direction direction = Direction::forward;
    std::size_t frame_size = 64;  // of the request: of IPv4
    std::uint64_t streams = 1;

    [[nodiscard]] frame::Traffic traffic() const { return frame::traffic_of(plan, direction, frame_size); }
    [[nodiscard]] plan::FlowDraw draw() const { return {plan, direction, seed}; }
    [[nodiscard]] Octets sent(std::uint64_t k) const {
        const auto size = traffic().sent.frame_size;
        Octets octets(size - frame::fcs_octets);
        frame::write_pattern(traffic().sent.version, octets);
        const auto stream = static_cast<std::uint8_t>(k % streams);
        const auto shape = frame::make_template(plan, size, {.direction = direction, .stream = stream, .trial = trial},
                                                left_mac, dut_mac);
        std::byte* const at = octets.data();
        frame::TranslatedSource{shape, draw(), {.first = k, .stride = streams}}.write_next({&at, 1}, 1234);
        return octets;
    }
    [[nodiscard]] Octets arrived(std::uint64_t k) const { return translate(sent(k), prefix_length); }
    [[nodiscard]] frame::TranslationExpectation expectation() const {
        const auto arrives = traffic().arrives;
        return {frame::TestFrameExpectation{arrives, std::nullopt, dut_mac}, arrives, draw(), streams};
    }
    [[nodiscard]] IpVersion arriving() const { return traffic().arrives.version; }
};

}  // namespace

TEST_CASE("each side of a translated plan has its own IP version, size and addresses (R8219-01)") {
    const auto p = siit();
    const auto forward = frame::traffic_of(p, Direction::forward, 64);
    const auto reverse = frame::traffic_of(p, Direction::reverse, 64);
    CHECK(forward.sent.version == IpVersion::v6);
    CHECK(forward.sent.frame_size == 84);
    CHECK(forward.sent.destinations.base == ip("2001:2:0:64::198.19.0.0"));
    CHECK(forward.arrives.version == IpVersion::v4);
    CHECK(forward.arrives.frame_size == 64);
    CHECK(forward.arrives.sources.base == ip("198.18.0.0"));
    CHECK(reverse.sent.version == IpVersion::v4);
    CHECK(reverse.sent.destinations.base == ip("198.18.0.0"));
    CHECK(reverse.arrives.frame_size == 84);
    CHECK(reverse.arrives.sources.base == ip("2001:2:0:64::198.19.0.0"));
}

TEST_CASE("what a translator passes on is known, in each direction, size and number of streams") {
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        for (const std::size_t size : {64U, 65U, 512U, 1498U}) {
            for (const std::uint64_t streams : {1U, 3U, 8U}) {
                const Way way{.direction = direction, .frame_size = size, .streams = streams};
                const auto expected = way.expectation();
                std::vector<std::uint64_t> order(600);
                for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
                // In order; as queues mix them; at random, where no block is ever the last one.
                for (const std::size_t span : {1U, 40U, 600U}) {
                    std::mt19937_64 random{span};
                    for (std::size_t at = 0; at < order.size(); at += span) {
                        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(at);
                        std::shuffle(begin, begin + static_cast<std::ptrdiff_t>(std::min(span, order.size() - at)),
                                     random);
                    }
                    for (const auto k : order) {
                        const Octets came = way.arrived(k);
                        REQUIRE(came.size() == expected.frame_octets(0));
                        REQUIRE(expected.holds(0, came.data(), way.arriving()));
                    }
                }
            }
        }
    }
}

TEST_CASE("bursts of a translator are checked at once as their frames are one after the other (R8219-01)") {
    std::mt19937_64 random{20261129};
    const auto any = [&](std::size_t below) { return random() % below; };
    for (const auto length : prefix_lengths) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            for (const std::size_t size : {64U, 65U, 512U}) {
                const Way way{
                    .prefix_length = length, .direction = direction, .frame_size = size, .streams = 1 + random() % 3};
                const auto expected = way.expectation();
                auto check = expected.burst_checks({.direction = direction, .trial = trial});
                if (!check) return;  // this CPU cannot
                CAPTURE(length);
                const std::uint64_t first = random() % 1'000'000;
                std::vector<Octets> frames;
                frames.reserve(64);
                for (std::uint64_t k = 0; k < 64; ++k) frames.push_back(way.arrived(first + k));
                const auto known = [&] {
                    std::vector<const std::byte*> at(frames.size());
                    std::ranges::transform(frames, at.begin(), [](const Octets& one) { return one.data(); });
                    frame::FoundBurst found;
                    check.find(at.data(), 64, found);
                    return found.known;
                };
                REQUIRE(known() == ~std::uint64_t{0});
                const auto whole = frames;
                const bool is_v4 = way.arriving() == IpVersion::v4;
                // A translator chooses the identification, and whether routers may cut the packet (RFC 7915, 5.1).
                const auto set_fragment = [&](Octets& octets, std::uint32_t word) {
                    std::byte* const ip_header = octets.data() + frame::ethernet_octets;
                    store(ip_header + 4, big(word));
                    store(ip_header + 10, std::uint16_t{0});
                    store(ip_header + 10, frame::ip_checksum(frame::sum_octets(ip_header, L4::ip_octets)));
                };
                if (is_v4) {
                    for (auto& one : frames) {
                        const auto identification = static_cast<std::uint32_t>(any(65536)) << 16U;
                        set_fragment(one, identification | (any(2) == 0 ? 0x4000U : 0U));
                    }
                    REQUIRE(known() == ~std::uint64_t{0});
                    frames = whole;
                    for (auto& one : frames) set_fragment(one, 1U << any(14) | (any(2) == 0 ? 0x8000U : 0U));
                    REQUIRE(known() == 0);
                    frames = whole;
                }
                for (unsigned round = 0; round < 20; ++round) {
                    std::uint64_t untouched = 0;
                    for (unsigned i = 0; i < 64; ++i) {
                        frames[i] = whole[i];
                        auto& octets = frames[i];
                        switch (any(4)) {
                            case 0: octets[any(60)] ^= static_cast<std::byte>(1U << any(8)); break;
                            case 1: octets[any(octets.size())] = static_cast<std::byte>(random()); break;
                            case 2: octets = way.arrived(first + any(1000)); break;  // another one, as it must be
                            default: untouched |= std::uint64_t{1} << i;
                        }
                    }
                    const auto found = known();
                    REQUIRE((found & untouched) == untouched);
                    for (unsigned i = 0; i < 64; ++i) {
                        if ((found >> i & 1U) != 0) REQUIRE(expected.holds(0, frames[i].data(), way.arriving()));
                    }
                    // What belongs to another frame's number is found in both ways or in none.
                    frames[0] = whole[0];
                    const std::size_t port = is_v4 ? L4::udp : L6::udp;
                    std::swap_ranges(frames[0].data() + port, frames[0].data() + port + 4, frames[1].data() + port);
                    const bool is_same = std::equal(frames[0].begin(), frames[0].end(), whole[0].begin());
                    REQUIRE((known() & 1U) == static_cast<std::uint64_t>(is_same));
                }
            }
        }
    }
}

TEST_CASE("prefixes of all lengths, in which a host number stands at even or odd octets or around octet 8 (R8219-01)") {
    for (const auto length : prefix_lengths) {
        CAPTURE(length);
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const Way way{.prefix_length = length, .direction = direction, .streams = 3};
            plan::check_plan(way.plan);
            const auto expected = way.expectation();
            for (std::uint64_t k = 0; k < 300; ++k) {
                const Octets sent = way.sent(k);
                REQUIRE(frame::is_intact(sent.data(), sent.size(), way.traffic().sent.version));
                Octets came = way.arrived(k);
                REQUIRE(expected.holds(0, came.data(), way.arriving()));
                // The octet that is zero, and all others that no host number has.
                const std::size_t source = way.arriving() == IpVersion::v6 ? L6::source : L4::source;
                came[source + k % plan::address_octets(way.arriving())] ^= std::byte{1};
                REQUIRE_FALSE(expected.holds(0, came.data(), way.arriving()));
            }
        }
    }
}

TEST_CASE("the hosts behind a prefix of any length are those that the plan says") {
    for (const auto length : prefix_lengths) {
        CAPTURE(length);
        const auto range = siit_behind(length, 700).left.hosts;
        const auto at = embedded_at(length);
        const frame::HostCheck<IpVersion::v6> check{range};
        const plan::HostSet set{range};
        for (std::uint32_t number = 0; number < 65536; ++number) {
            auto address = range.base;
            address.octets[at[2]] = static_cast<std::uint8_t>(number >> 8U);
            address.octets[at[3]] = static_cast<std::uint8_t>(number);
            const bool is_host = number >= 1 && number <= 700;
            REQUIRE(range.contains(address) == is_host);
            REQUIRE(check.holds(std::as_bytes(address.bytes()).data()) == is_host);
            REQUIRE(set.find(address) == (is_host ? std::optional{number - 1} : std::nullopt));
            if (!is_host) continue;
            REQUIRE(range.address(range.value({.host = number - 1})) == address);
            for (auto& octet : address.octets) {
                octet ^= 0x10U;
                REQUIRE(check.holds(std::as_bytes(address.bytes()).data()) == range.contains(address));
                REQUIRE(set.find(address).has_value() == range.contains(address));
                octet ^= 0x10U;
            }
        }
    }
}

TEST_CASE("a host number is found at any octets of an address, side by side or with one in between") {
    constexpr std::array<std::uint32_t, 12> numbers{0, 1, 2, 255, 256, 257, 511, 512, 700, 701, 0x8001, 0xFFFF};
    for (std::uint32_t gap = 0; gap <= 1; ++gap) {
        for (std::uint32_t offset = 0; offset + 1 + gap < 16; ++offset) {
            CAPTURE(gap);
            CAPTURE(offset);
            const plan::HostRange range{.base = tests::ip("2001:db8:1234:5678:9abc:def0:1234:5678"),
                                        .offset = offset,
                                        .host = {.first = 2, .count = 699},
                                        .gap = gap};
            const frame::HostCheck<IpVersion::v6> check{range};
            for (const std::uint32_t number : numbers) {
                auto address = range.base;
                address.octets[offset] = static_cast<std::uint8_t>(number >> 8U);
                address.octets[offset + 1 + gap] = static_cast<std::uint8_t>(number);
                REQUIRE(check.holds(std::as_bytes(address.bytes()).data()) == (number >= 2 && number <= 700));
                if (gap == 0) continue;
                address.octets[offset + 1] ^= 1U;  // none of the number's
                REQUIRE_FALSE(check.holds(std::as_bytes(address.bytes()).data()));
            }
        }
    }
}

TEST_CASE("IPv4 frames to a translator may not be fragmented") {
    const Way way{.direction = Direction::reverse};
    const Octets frame = way.sent(0);
    CHECK(big(load<std::uint16_t>(frame.data() + L4::ip + 6)) == frame::dont_fragment);
    CHECK(frame::is_intact(frame.data(), frame.size(), IpVersion::v4));
}

TEST_CASE("another frame's address or port is a fault of the translator, though the plan has it") {
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        const Way way{.direction = direction};
        const auto expected = way.expectation();
        const bool is_v6 = way.arriving() == IpVersion::v6;
        const std::size_t source = is_v6 ? L6::source : L4::source;
        const std::size_t udp = is_v6 ? L6::udp : L4::udp;
        const std::size_t address = plan::address_octets(way.arriving());
        const Octets other = way.arrived(77);
        const auto check = [&](std::size_t at, std::size_t octets) {
            Octets came = way.arrived(5);
            std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), octets,
                        came.begin() + static_cast<std::ptrdiff_t>(at));
            const std::size_t checksum = udp + 6;
            store(came.data() + checksum, std::uint16_t{0});
            store(came.data() + checksum, udp_sum(came, source, udp));
            if (!is_v6) {
                store(came.data() + L4::ipv4_checksum, std::uint16_t{0});
                store(came.data() + L4::ipv4_checksum,
                      frame::ip_checksum(frame::sum_octets(came.data() + L4::ip, L4::ip_octets)));
            }
            CHECK(frame::is_intact(came.data(), came.size(), way.arriving()));
            CHECK_FALSE(expected.holds(0, came.data(), way.arriving()));
            CHECK(expected.fault_of(0, came.data(), way.arriving()) == TranslationFault::address_or_port);
        };
        check(source, address);
        check(source + address, address);
        check(udp, 2);
        check(udp + 2, 2);
    }
}

TEST_CASE("a missing checksum and another traffic class are told apart from damage") {
    const Way up{.direction = Direction::reverse};  // to IPv6
    const auto expected = up.expectation();
    Octets came = up.arrived(1);
    store(came.data() + L6::udp_checksum, std::uint16_t{0});
    CHECK_FALSE(expected.holds(0, came.data(), IpVersion::v6));
    CHECK(expected.fault_of(0, came.data(), IpVersion::v6) == TranslationFault::no_checksum);
    came = up.arrived(1);
    came[L6::ip] = std::byte{0x6B};  // DSCP
    CHECK_FALSE(expected.holds(0, came.data(), IpVersion::v6));
    CHECK(expected.fault_of(0, came.data(), IpVersion::v6) == TranslationFault::traffic_class);
    came = up.arrived(1);
    came[L6::ip + 1] = std::byte{0x30};  // ECN
    CHECK(expected.fault_of(0, came.data(), IpVersion::v6) == TranslationFault::traffic_class);
    came[L6::ip + 1] = std::byte{0x05};  // the flow label is the translator's business
    CHECK(expected.holds(0, came.data(), IpVersion::v6));
    came = up.arrived(1);
    came.back() ^= std::byte{1};
    CHECK_FALSE(expected.holds(0, came.data(), IpVersion::v6));
    CHECK(expected.fault_of(0, came.data(), IpVersion::v6) == std::nullopt);
    came = up.arrived(1);
    came[L6::ip + 7] = std::byte{0};  // hop limit
    CHECK_FALSE(expected.holds(0, came.data(), IpVersion::v6));
    CHECK(expected.fault_of(0, came.data(), IpVersion::v6) == std::nullopt);

    const Way down{.direction = Direction::forward};  // to IPv4
    Octets tos = down.arrived(1);
    tos[L4::ip + 1] = std::byte{0x08};
    store(tos.data() + L4::ipv4_checksum, std::uint16_t{0});
    store(tos.data() + L4::ipv4_checksum, frame::ip_checksum(frame::sum_octets(tos.data() + L4::ip, L4::ip_octets)));
    CHECK(down.expectation().fault_of(0, tos.data(), IpVersion::v4) == TranslationFault::traffic_class);
    // A frame that was not translated at all.
    const Octets untouched = down.sent(1);
    CHECK_FALSE(down.expectation().holds(0, untouched.data(), IpVersion::v6));
    CHECK(down.expectation().fault_of(0, untouched.data(), IpVersion::v6) == std::nullopt);
}

TEST_CASE("a translated plan is checked") {
    plan::check_plan(siit());
    const auto refuses = [](const plan::AddressPlan& p, const char* where) {
        try {
            plan::check_plan(p);
        } catch (const Fault& fault) {
            CHECK(fault.where == where);
            return;
        }
        FAIL("accepted");
    };
    auto p = siit();
    p.left.peers.reset();
    refuses(p, "plan.right.hosts.base");
    p = siit();
    p.left.peers->host.count = 3;
    refuses(p, "plan.left.peers.host");
    p = siit();
    p.right.peers->base = ip("2001:2::");
    refuses(p, "plan.right.peers.base");
    p = siit();
    p.left.peers->base = p.left.hosts.base;
    refuses(p, "plan");
    p = siit();
    p.left.peers->offset = 15;
    refuses(p, "plan.left.peers.host.offset");
    p.left.peers->offset = 14;
    p.left.peers->gap = 1;
    refuses(p, "plan.left.peers.host.offset");
    p = siit();
    p.right.peers->offset = 1;
    refuses(p, "plan.right.peers.host.offset");
    p = siit();
    p.right.peers->offset = 0;
    p.right.peers->gap = 1;
    refuses(p, "plan.right.peers.host.offset");
    // Where the octets of a host number do not make a word, the sides' hosts are compared one by one.
    for (const auto length : prefix_lengths) {
        p = siit_behind(length, 300);
        p.left.peers->base = p.left.hosts.base;
        p.left.peers->host.first = p.right.hosts.host.first = 300;  // host 300 is the last of the other side
        refuses(p, "plan");
        p.left.peers->host.first = p.right.hosts.host.first = 301;
        plan::check_plan(p);
    }
    p = nets_v6(2, 10);
    p.left.hosts.offset = 13;
    refuses(p, "plan.left.hosts.network");
}

}  // namespace translation_test
