// SPDX-License-Identifier: Apache-2.0
// Station 1: hosts by number and by address, and their pseudorandom MACs. SEED-20, R4814-05, R4814-06, R4814-08.
#include "plan/host_set.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "direct_plans.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/source.hpp"
#include "octets.hpp"
#include "plan/host_macs.hpp"
#include "slow.hpp"

namespace host_set_test {

using namespace evenhand;
using plan::HostMacs;
using plan::HostSet;
using plan::Side;
using tests::ip;

namespace {

struct Named {
    const char* name;
    HostSet set;
    std::uint32_t size;
    std::vector<std::pair<std::uint32_t, const char*>> members;
    std::vector<const char*> others;
};

std::vector<Named> sets() {
    return {
        {"direct_v4_net24",
         HostSet{tests::direct_v4(253).left.hosts},
         253,
         {{0, "198.18.0.2"}, {252, "198.18.0.254"}},
         {"198.18.0.0", "198.18.0.1", "198.18.0.255", "198.18.1.2", "198.19.0.2", "198.17.0.2", "10.0.0.2",
          "::c612:2"}},
        {"direct_v4_net16",
         HostSet{tests::direct_v4().right.hosts},
         65533,
         {{0, "198.19.0.2"}, {253, "198.19.0.255"}, {254, "198.19.1.0"}, {65532, "198.19.255.254"}},
         {"198.19.0.0", "198.19.0.1", "198.19.255.255", "198.18.0.2", "199.19.0.2"}},
        {"direct_v6",
         HostSet{tests::direct_v6().left.hosts},
         65536,
         {{0, "2001:2::2"}, {1, "2001:2::1:2"}, {0xabcd, "2001:2::abcd:2"}, {65535, "2001:2::ffff:2"}},
         {"2001:2::1", "2001:2::3", "2001:2::1:1", "2001:2:0:1::2", "2001:2:0:8000::2", "2001:2::1:0:2",
          "::", "198.18.0.2"}},
        {"nets_v4_multi_host",
         tests::networks_v4(),
         64768,
         {{0, "198.18.0.2"}, {252, "198.18.0.254"}, {253, "198.18.1.2"}, {64767, "198.18.255.254"}},
         {"198.18.0.0", "198.18.0.1", "198.18.0.255", "198.18.1.0", "198.18.1.1", "198.18.255.255", "198.18.255.1",
          "198.19.0.2"}},
        {"nets_v4_single_host",
         tests::networks_v4(1),
         256,
         {{0, "198.18.0.2"}, {255, "198.18.255.2"}},
         {"198.18.0.1", "198.18.0.3", "198.18.255.3", "198.19.0.2"}},
        {"nets_v6_direct",
         tests::networks_v6(),
         16777216,
         {{0, "2001:2:0:8000::2"},
          {65536, "2001:2:0:8001::2"},
          {65537, "2001:2:0:8001::1:2"},
          {16777215, "2001:2:0:80ff::ffff:2"}},
         {"2001:2:0:8100::2", "2001:2:0:7fff::2", "2001:2::2", "2001:2:0:8001::1", "2001:2:0:80ff::ffff:3"}},
    };
}

}  // namespace

TEST_CASE("hosts have the addresses of their plan, and no other address is one of theirs (SEED-20)") {
    for (const auto& [name, set, size, members, others] : sets()) {
        CAPTURE(name);
        CHECK(set.size() == size);
        for (const auto& [host, address] : members) {
            CHECK(plan::to_string(set.address(host)) == address);
            CHECK(set.find(ip(address)) == host);
        }
        for (const char* const address : others) CHECK_MESSAGE(!set.find(ip(address)).has_value(), address);
    }
}

TEST_CASE("every host is found by its address") {
    for (const auto& named : sets()) {
        const std::uint32_t step = std::max(1U, named.size / 70'000);
        for (std::uint32_t host = 0; host < named.size; host += step)
            REQUIRE(named.set.find(named.set.address(host)) == host);
    }
}

TEST_CASE("an address that is found is that of the host that was found") {
    const auto all = sets();
    const bool holds = rc::check("near misses", [&] {
        const auto& set = all[*rc::gen::inRange<std::size_t>(0, all.size())].set;
        auto address = set.address(*rc::gen::inRange<std::uint32_t>(0, set.size()));
        address.octets[*rc::gen::inRange<std::size_t>(0, plan::address_octets(address.version))] =
            *rc::gen::arbitrary<std::uint8_t>();
        const auto found = set.find(address);
        if (found) RC_ASSERT(set.address(*found) == address);
        // Found or not: a search through the same network by hand says the same.
        if (!found && set.size() < (tests::is_slow ? 2'000 : 70'000)) {
            for (std::uint32_t host = 0; host < set.size(); ++host) RC_ASSERT(!(set.address(host) == address));
        }
    });
    CHECK(holds);
}

TEST_CASE("pseudorandom MACs are unicast, global and tell the interface (R4814-05)") {
    for (const auto& [side, number] : {std::pair{Side::left, 1}, {Side::right, 2}}) {
        const HostMacs macs{7, side};
        for (std::uint32_t host = 0; host < 65536; ++host) {
            const auto mac = macs.mac(host);
            REQUIRE((mac[0] & 0x03U) == 0);
            REQUIRE(mac[1] == 0);
            REQUIRE(mac[2] == number);
        }
    }
}

TEST_CASE("no two hosts of a side have the same MAC, and all 30 bits vary (R4814-05, R4814-07)") {
    const HostMacs macs{7, Side::left};
    std::set<plan::MacAddress> seen;
    std::array<int, 48> ones{};
    constexpr std::uint32_t hosts = 65536;
    for (std::uint32_t host = 0; host < hosts; ++host) {
        const auto mac = macs.mac(host);
        seen.insert(mac);
        for (std::size_t bit = 0; bit < ones.size(); ++bit) ones[bit] += mac[bit / 8] >> (bit % 8) & 1;
    }
    CHECK(seen.size() == hosts);
    for (std::size_t bit = 0; bit < ones.size(); ++bit) {
        const bool is_fixed = bit < 2 || (bit >= 8 && bit < 24);
        // Five sigma of 65,536 coins: 640.
        if (!is_fixed) CHECK_MESSAGE(std::abs(ones[bit] - static_cast<int>(hosts / 2)) < 640, bit);
    }
    // No constant stride: the differences of neighbours are nearly all different.
    std::set<std::uint32_t> strides;
    const auto low = [&](std::uint32_t host) {
        const auto m = macs.mac(host);
        return std::uint32_t{m[0]} << 22U | std::uint32_t{m[3]} << 16U | std::uint32_t{m[4]} << 8U | m[5];
    };
    for (std::uint32_t host = 0; host < 1000; ++host) strides.insert(low(host + 1) - low(host));
    CHECK(strides.size() > 990);
}

TEST_CASE("the set of MACs depends on seed and side alone, so all trials have the same (R4814-08)") {
    const auto set_of = [](std::uint64_t seed, Side side) {
        std::vector<plan::MacAddress> set;
        set.reserve(1000);
        const HostMacs macs{seed, side};
        for (std::uint32_t host = 0; host < 1000; ++host) set.push_back(macs.mac(host));
        return set;
    };
    CHECK(set_of(7, Side::left) == set_of(7, Side::left));
    const auto differs = [](const auto& a, const auto& b) {
        std::size_t alike = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            alike += static_cast<std::size_t>(std::equal(a[i].begin() + 3, a[i].end(), b[i].begin() + 3));
        return alike < 3;
    };
    CHECK(differs(set_of(7, Side::left), set_of(8, Side::left)));
    CHECK(differs(set_of(7, Side::left), set_of(7 + (std::uint64_t{1} << 32U), Side::left)));
    CHECK(differs(set_of(7, Side::left), set_of(7, Side::right)));
}

namespace {

template <frame::IpVersion V>
void check_source_macs(const plan::AddressPlan& plan, plan::Direction direction) {
    using Plain = frame::TestFrameSource;
    const auto side = plan::sending_side(direction);
    const HostSet hosts{plan.side(side).hosts};
    const HostMacs macs{5, side};
    const plan::MacAddress port_mac{2, 0, 0, 0, 0, 1};
    const plan::MacAddress dut_mac{2, 0, 0, 0, 0, 3};
    const auto shape =
        frame::make_template(plan, 128, {.direction = direction, .stream = 0, .trial = 1}, port_mac, dut_mac);
    const plan::FlowDraw draw{plan, direction, 5};
    Plain plain{shape, draw, {}};
    frame::HostMacSource<Plain, V> with_macs{Plain{shape, draw, {}}, hosts, macs};
    CHECK(with_macs.frame_octets(0) == plain.frame_octets(0));
    for (std::uint64_t k = 0; k < 500; ++k) {
        tests::Octets a(124, std::byte{});
        tests::Octets b(124, std::byte{});
        frame::write_pattern(V, a);
        frame::write_pattern(V, b);
        std::byte* const at_a = a.data();
        std::byte* const at_b = b.data();
        plain.write_next({&at_a, 1}, 99);
        with_macs.write_next({&at_b, 1}, 99);
        const auto source = plan.side(side).hosts.address(draw.draw(k).source);
        const auto mac = macs.mac(hosts.find(source).value());
        REQUIRE(tests::hex(std::span{b}.first(12)) ==
                tests::hex(std::as_bytes(std::span{dut_mac})) + tests::hex(std::as_bytes(std::span{mac})));
        REQUIRE(tests::hex(std::span{a}.subspan(12)) == tests::hex(std::span{b}.subspan(12)));
    }
}

}  // namespace

TEST_CASE("a frame carries the MAC of the host it comes from, and is the plan's frame in all else (R4814-06)") {
    for (const auto direction : {plan::Direction::forward, plan::Direction::reverse}) {
        check_source_macs<frame::IpVersion::v4>(tests::direct_v4(1000), direction);
        check_source_macs<frame::IpVersion::v6>(tests::direct_v6(1000), direction);
    }
}

}  // namespace host_set_test
