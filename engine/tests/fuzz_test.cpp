// SPDX-License-Identifier: Apache-2.0
// Station 5: whatever comes, the receiver lives, and counts as received only what an independent reading of the octets
// calls a test frame.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "rig.hpp"

namespace fuzz_test {

using namespace evenhand;
using namespace evenhand::tests;

namespace {

constexpr std::size_t default_frames = 50'000;  // `make prove` asks for 10^7

std::uint64_t number(std::span<const std::byte> octets) {
    std::uint64_t value = 0;
    for (const auto octet : octets) value = value << 8U | static_cast<std::uint64_t>(octet);
    return value;
}

/// By the book (RFC 768, 791, 8200), octet by octet: the sequence number of a test frame of this trial and direction.
template <IpVersion V>
std::optional<std::uint64_t> slow_sequence(std::span<const std::byte> f, std::size_t octets) {
    constexpr bool v4 = V == IpVersion::v4;
    constexpr std::size_t udp = v4 ? 34 : 54;
    if (f.size() != octets || number(f.subspan(12, 2)) != (v4 ? 0x0800U : 0x86DDU)) return std::nullopt;
    if (const auto mac = number(f.first(6)); mac != 0x020000000002 && mac != 0x020000000003) return std::nullopt;
    if (v4 && (slow_sum(f.subspan(14, 20)) != 0xFFFF || number(f.subspan(14, 1)) != 0x45 ||
               number(f.subspan(16, 2)) != octets - 14))
        return std::nullopt;
    if (v4 && ((number(f.subspan(20, 2)) & 0x3FFFU) != 0 || number(f.subspan(23, 1)) != 17)) return std::nullopt;
    if (!v4 && (number(f.subspan(14, 1)) >> 4U != 6 || number(f.subspan(18, 2)) != octets - udp ||
                number(f.subspan(20, 1)) != 17))
        return std::nullopt;
    if (const auto hops = number(f.subspan(v4 ? 22 : 21, 1)); hops == 0 || hops > 10) return std::nullopt;
    if (number(f.subspan(udp + 4, 2)) != octets - udp || number(f.subspan(udp, 2)) < 1024) return std::nullopt;
    if (const auto port = number(f.subspan(udp + 2, 2)); port == 0 || port > 49151) return std::nullopt;
    // From a host on the left to one on the right.
    constexpr auto host_number = [](std::uint64_t word) { return v4 ? word >= 1 && word <= 65534 : true; };
    const auto source = f.subspan(v4 ? 26 : 22, v4 ? 4 : 16);
    const auto destination = f.subspan(v4 ? 30 : 38, v4 ? 4 : 16);
    if (v4 && (number(source.first(2)) != 0xC612 || number(destination.first(2)) != 0xC613)) return std::nullopt;
    if (!v4 && (number(source.first(8)) != 0x2001000200000000 || number(source.subspan(8, 4)) != 0 ||
                number(source.subspan(14, 2)) != 2))
        return std::nullopt;
    if (!v4 && (number(destination.first(8)) != 0x2001000200008000 || number(destination.subspan(8, 4)) != 0 ||
                number(destination.subspan(14, 2)) != 2))
        return std::nullopt;
    if (!host_number(number(source.subspan(v4 ? 2 : 12, 2))) ||
        !host_number(number(destination.subspan(v4 ? 2 : 12, 2))))
        return std::nullopt;
    if (slow_sum(f.subspan(v4 ? 26 : 22), static_cast<std::uint32_t>(17 + octets - udp)) != 0xFFFF) return std::nullopt;
    const auto tag = f.subspan(udp + 8, 18);
    // Sent in this trial: a nanosecond a tick, and less than an hour since the start.
    if (const auto time = number(tag.subspan(12, 6)); time + us < start || time > start + 3600 * second)
        return std::nullopt;
    if (number(tag.first(3)) != 0xE5E401 || number(tag.subspan(3, 2)) != trial ||
        (number(tag.subspan(5, 1)) & 0x80U) != 0)
        return std::nullopt;
    return number(tag.subspan(6, 6));
}

template <IpVersion V>
void throw_at_receiver(std::size_t count) {
    Rig<V> rig{{.frames = 4096, .buffers = 8192}};
    rig.run_until(rig.options.start + 4200 * us);
    REQUIRE(rig.got().received_frames == 4096);  // once for real, and what was sent is the seed of what follows
    Rig<V> target{{.frames = 1'000'000, .is_known = false}};
    std::vector<MemoryPort::Frame> seeds;
    target.left.connect(target.left);  // what it sends does not reach the receiver by itself
    target.run_until(target.options.start + 2000 * us);
    for (auto& f : target.left.arrived()) seeds.push_back(f);
    REQUIRE(seeds.size() >= 1000);
    const std::size_t octets = seeds.front().length;

    std::mt19937_64 random{20261121};
    std::set<std::uint64_t> expected;
    for (std::size_t i = 0; i < count; ++i) {
        MemoryPort::Frame f = seeds[random() % seeds.size()];
        switch (i % 4) {
            case 0:  // noise of any length
                f.length = random() % 200;
                for (std::size_t j = 0; j < f.length; ++j) f.octets[j] = static_cast<std::byte>(random());
                break;
            case 1:  // one to three octets changed
                for (auto n = 1 + random() % 3; n-- > 0;)
                    f.octets[random() % f.length] ^= static_cast<std::byte>(1U + random() % 255);
                break;
            case 2:  // cut or lengthened
                f.length = random() % (f.length + 20);
                break;
            default:  // two bits of one column: a checksum may miss that
                for (int n = 0; n < 2; ++n) f.octets[12 + 2 * (random() % 20)] ^= std::byte{4};
                break;
        }
        if (const auto sequence = slow_sequence<V>(std::span{f.octets}.first(f.length), octets);
            sequence && *sequence < 1'000'000)
            expected.insert(*sequence);
        target.right.inject(f);
        if (i % 32 == 31) target.receive();
    }
    for (int i = 0; i < 4; ++i) target.receive();
    CHECK(target.got().received_frames == expected.size());
    // Two bits that cancel out in the tag make another number of the trial now and then, which a checksum cannot tell.
    CHECK(expected.size() < seeds.size() + count / 1'000'000);
    CHECK(target.got().corrupted_frames > 0);
}

}  // namespace

TEST_CASE("random and mutated frames never count as test frames, and break nothing (R2544-05, R2544-40)") {
    const char* const wanted = std::getenv("EVENHAND_FUZZ_FRAMES");
    const std::size_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : default_frames;
    SUBCASE("IPv4") { throw_at_receiver<IpVersion::v4>(count); }
    SUBCASE("IPv6") { throw_at_receiver<IpVersion::v6>(count); }
}

}  // namespace fuzz_test
