// SPDX-License-Identifier: Apache-2.0
// Route table: longest prefix in both families, SEED-14 and SEED-17, against a search by the book.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "fault.hpp"
#include "interfaces.hpp"
#include "tables/route_table.hpp"

namespace route_table_test {

using namespace evenhand;
using plan::IpAddress;
using plan::IpVersion;
using router::Route;
using router::RouteEntry;
using router::RouteKind;
using router::RouteTable;
using tests::interface_of;
using tests::ip;

namespace {

std::string fault_of(const std::vector<RouteEntry>& entries) {
    try {
        const RouteTable table{entries};
    } catch (const Fault& fault) {
        CHECK(fault.code == FaultCode::bad_request);
        CHECK(!fault.next.empty());
        return fault.what();
    }
    return "";
}

std::string fault_of(const std::vector<router::Interface>& interfaces) {
    try {
        (void)router::routes_of(interfaces);
    } catch (const Fault& fault) {
        CHECK(fault.code == FaultCode::bad_request);
        CHECK(!fault.next.empty());
        return fault.what();
    }
    return "";
}

/// All entries are looked at, bit by bit.
const Route* find_slowly(const std::vector<RouteEntry>& entries, const IpAddress& destination) {
    const RouteEntry* best = nullptr;
    for (const auto& entry : entries) {
        bool matches = entry.network.version == destination.version;
        for (unsigned bit = 0; matches && bit < entry.prefix_length; ++bit) {
            const unsigned mask = 0x80U >> (bit % 8);
            matches = (entry.network.octets[bit / 8] & mask) == (destination.octets[bit / 8] & mask);
        }
        if (matches && (best == nullptr || entry.prefix_length > best->prefix_length)) best = &entry;
    }
    return best == nullptr ? nullptr : &best->route;
}

/// Octets of few values, so that prefixes nest and destinations meet them.
IpAddress draw_address(IpVersion version) {
    IpAddress address{.version = version};
    const auto octets = *rc::gen::container<std::vector<std::uint8_t>>(
        plan::address_octets(version), rc::gen::element<std::uint8_t>(0, 1, 0x20, 0x80, 0xFF));
    std::ranges::copy(octets, address.octets.begin());
    return address;
}

std::vector<RouteEntry> draw_entries(IpVersion version) {
    std::vector<RouteEntry> entries;
    const unsigned bits = version == IpVersion::v4 ? 32 : 128;
    for (unsigned i = 0; i < 60; ++i) {
        const auto length = *rc::gen::inRange(0U, bits + 1);
        const auto network = router::network_of(draw_address(version), length);
        const bool known = std::ranges::any_of(
            entries, [&](const RouteEntry& e) { return e.network == network && e.prefix_length == length; });
        if (!known) entries.push_back({.network = network, .prefix_length = length, .route = {.interface = i}});
    }
    return entries;
}

/// A destination that shares a prefix with an entry, or is any address.
IpAddress draw_destination(const std::vector<RouteEntry>& entries, IpVersion version) {
    IpAddress address = draw_address(version);
    const auto& entry = *rc::gen::elementOf(entries);
    for (unsigned bit = 0; bit < entry.prefix_length; ++bit) {
        const unsigned mask = 0x80U >> (bit % 8);
        auto& octet = address.octets[bit / 8];
        octet = static_cast<std::uint8_t>((octet & ~mask) | (entry.network.octets[bit / 8] & mask));
    }
    // One bit flipped: just outside of the prefix, where the next shorter one counts.
    const auto flipped = *rc::gen::inRange(0U, static_cast<unsigned>(8 * plan::address_octets(version)));
    if (*rc::gen::arbitrary<bool>())
        address.octets[flipped / 8] = static_cast<std::uint8_t>(address.octets[flipped / 8] ^ (0x80U >> (flipped % 8)));
    return address;
}

const Route* find(const RouteTable& table, const char* destination) { return table.find(ip(destination)); }

}  // namespace

TEST_CASE("the longest prefix wins, in IPv4 and in IPv6, as in a search by the book") {
    for (const IpVersion version : {IpVersion::v4, IpVersion::v6}) {
        const bool agree = rc::check(version == IpVersion::v4 ? "IPv4" : "IPv6", [version] {
            const auto entries = draw_entries(version);
            const RouteTable table{entries};
            for (int i = 0; i < 50; ++i) {
                const auto destination = draw_destination(entries, version);
                const Route* const expected = find_slowly(entries, destination);
                const Route* const found = table.find(destination);
                RC_ASSERT((expected == nullptr) == (found == nullptr));
                if (expected != nullptr) RC_ASSERT(*expected == *found);
            }
        });
        CHECK(agree);
    }
}

TEST_CASE("the routes of Figure 3 lead to the gateways, and only for their networks (SEED-14)") {
    auto entries = router::routes_of(
        std::vector{interface_of(0, {{ip("10.0.0.1"), 24}}), interface_of(1, {{ip("10.0.1.1"), 24}})});
    entries.push_back(
        {.network = ip("198.18.0.0"), .prefix_length = 16, .route = {.interface = 0, .via = ip("10.0.0.2")}});
    entries.push_back(
        {.network = ip("198.19.0.0"), .prefix_length = 16, .route = {.interface = 1, .via = ip("10.0.1.2")}});
    const RouteTable table{entries};
    CHECK(*find(table, "198.18.0.1") == Route{.interface = 0, .via = ip("10.0.0.2")});
    CHECK(*find(table, "198.19.255.254") == Route{.interface = 1, .via = ip("10.0.1.2")});
    CHECK(*find(table, "10.0.1.2") == Route{.interface = 1});
    CHECK(*find(table, "10.0.1.1") == Route{.interface = 1, .kind = RouteKind::local});
    CHECK(*find(table, "10.0.0.0") == Route{.interface = 0, .kind = RouteKind::broadcast});
    CHECK(*find(table, "10.0.0.255") == Route{.interface = 0, .kind = RouteKind::broadcast});
    for (const char* const unknown : {"198.17.255.255", "198.20.0.0", "10.0.2.1", "0.0.0.0", "2001:2::1"})
        CHECK_MESSAGE(find(table, unknown) == nullptr, unknown);
    CHECK(table.find_v4(0xC6120001) == find(table, "198.18.0.1"));
}

TEST_CASE("the routes of Figure 5 lead to the gateways, and only for their networks (SEED-17)") {
    auto entries = router::routes_of(
        std::vector{interface_of(0, {{ip("2001:2:0:1000::1"), 64}}), interface_of(1, {{ip("2001:2:0:9000::1"), 64}})});
    entries.push_back(
        {.network = ip("2001:2::"), .prefix_length = 64, .route = {.interface = 0, .via = ip("2001:2:0:1000::2")}});
    entries.push_back({.network = ip("2001:2:0:8000::"),
                       .prefix_length = 64,
                       .route = {.interface = 1, .via = ip("2001:2:0:9000::2")}});
    const RouteTable table{entries};
    CHECK(*find(table, "2001:2::2") == Route{.interface = 0, .via = ip("2001:2:0:1000::2")});
    CHECK(*find(table, "2001:2:0:8000:0:0:ffff:2") == Route{.interface = 1, .via = ip("2001:2:0:9000::2")});
    CHECK(*find(table, "2001:2:0:9000::2") == Route{.interface = 1});
    CHECK(*find(table, "2001:2:0:9000::1") == Route{.interface = 1, .kind = RouteKind::local});
    // IPv6 has no broadcast: the last address of a link is a host.
    CHECK(*find(table, "2001:2:0:1000:ffff:ffff:ffff:ffff") == Route{.interface = 0});
    for (const char* const unknown : {"2001:2:0:1::2", "2001:2:0:8001::", "2001:2:1::", "::", "198.18.0.1"})
        CHECK_MESSAGE(find(table, unknown) == nullptr, unknown);
    const auto gateway = ip("2001:2:0:1000::2");
    CHECK(table.find_v6(reinterpret_cast<const std::byte*>(gateway.octets.data())) == table.find(gateway));
}

TEST_CASE("256 networks on each side fit, in both families, with a default route below them (SEED-31, SEED-32)") {
    std::vector<RouteEntry> entries;
    for (unsigned i = 0; i < 512; ++i) {
        const unsigned side = i / 256;
        auto v4 = ip("198.18.0.0");
        v4.octets[1] = static_cast<std::uint8_t>(18 + side);
        v4.octets[2] = static_cast<std::uint8_t>(i);
        auto v6 = ip("2001:2::");
        v6.octets[6] = static_cast<std::uint8_t>(side * 0x80);
        v6.octets[7] = static_cast<std::uint8_t>(i);
        entries.push_back({.network = v4, .prefix_length = 24, .route = {.interface = i}});
        entries.push_back({.network = v6, .prefix_length = 64, .route = {.interface = i}});
    }
    entries.push_back({.network = ip("0.0.0.0"), .route = {.interface = 1000}});
    entries.push_back({.network = ip("::"), .route = {.interface = 1001}});
    const RouteTable table{entries};
    for (const auto& entry : entries) {
        auto host = entry.network;
        host.octets[plan::address_octets(host.version) - 1] = 2;
        REQUIRE(table.find(host) != nullptr);
        CHECK(table.find(host)->interface == entry.route.interface);
    }
    CHECK(find(table, "8.8.8.8")->interface == 1000);
    CHECK(find(table, "2001:db8::1")->interface == 1001);
}

TEST_CASE("two million IPv4 and one million IPv6 prefixes are found among each other, in 100 MB") {
    // The IPv4 ones are spread evenly. The IPv6 ones are all in one /48, with one far away from them, and nest: each
    // 4th has a /64 within its /56.
    constexpr unsigned count_v4 = 2'000'000;
    constexpr unsigned count_v6 = 1'000'000;
    const auto v4 = [](unsigned number) {
        const std::uint32_t first = 0x01000000U + number * 0x600U;  // a /24, /25 or /26 each 1,536 addresses
        IpAddress network{.version = IpVersion::v4};
        for (unsigned i = 0; i < 4; ++i) network.octets[i] = static_cast<std::uint8_t>(first >> (24 - 8 * i));
        return network;
    };
    const auto v6 = [](unsigned number) {
        auto network = ip("2001:2::");
        for (unsigned i = 0; i < 4; ++i) network.octets[6 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
        return network;
    };
    std::vector<router::RoutePrefix> odd;
    std::vector<router::RoutePrefix> even;
    std::vector<router::RoutePrefix> others;
    for (unsigned i = 0; i < count_v4; ++i)
        (i % 2 == 0 ? even : odd).push_back({v4(i), static_cast<std::uint8_t>(24 + i % 3)});
    for (unsigned i = 0; i + 1 < count_v6; ++i)
        others.push_back({v6(2 * i), static_cast<std::uint8_t>(i % 4 == 0 ? 79 : 80)});
    others.push_back({ip("fd00::"), 8});
    const std::vector<RouteEntry> nested{{.network = v6(0), .prefix_length = 96, .route = {.interface = 7}},
                                         {.network = ip("2001:2::"), .prefix_length = 48, .route = {.interface = 8}}};
    const std::vector<router::RouteGroup> groups{
        {even, {.interface = 1}}, {odd, {.interface = 2}}, {others, {.interface = 3}}};
    const RouteTable table{nested, groups};
    CHECK(table.octets() < 100'000'000);
    const auto interface_at = [&](const IpAddress& address) {
        const Route* const route = table.find(address);
        return route == nullptr ? -1 : static_cast<int>(route->interface);
    };
    for (unsigned i = 0; i < count_v4; i += 997) {
        auto address = v4(i);
        REQUIRE(interface_at(address) == (i % 2 == 0 ? 1 : 2));
        address.octets[3] = static_cast<std::uint8_t>(0xFFU >> (i % 3));
        REQUIRE(interface_at(address) == (i % 2 == 0 ? 1 : 2));
        address.octets[2] = static_cast<std::uint8_t>(address.octets[2] + 1);  // within the gap to the next one
        REQUIRE(interface_at(address) == -1);
    }
    for (unsigned i = 1; i + 1 < count_v6; i += 499) {
        auto address = v6(2 * i);
        address.octets[15] = 1;
        REQUIRE(interface_at(address) == 3);
        address.octets[9] |= 1U;  // the other half of a /79, and the neighbour of a /80
        REQUIRE(interface_at(address) == (i % 4 == 0 ? 3 : 8));
    }
    CHECK(interface_at(ip("2001:2::1")) == 7);
    CHECK(interface_at(ip("2001:2:0:0:0:1::")) == 3);
    CHECK(interface_at(ip("2001:2:0:ffff::1")) == 8);
    CHECK(interface_at(ip("fdff::1")) == 3);
    CHECK(interface_at(ip("3fff::1")) == -1);
    CHECK(interface_at(ip("::")) == -1);
    CHECK(interface_at(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")) == -1);
}

TEST_CASE("prefixes of neighbours with one route are one range, and the whole family is one prefix") {
    using Ranges = router::PrefixRanges<std::uint32_t>;
    const std::vector<Ranges::Prefix> neighbors{
        {0, 5, 0}, {0xC6120000, 1, 24}, {0xC6120100, 1, 24}, {0xFFFFFF00, 2, 24}};
    const Ranges ranges{neighbors};
    CHECK(ranges.range_count() == 4);
    CHECK(ranges.find(0) == 5);
    CHECK(ranges.find(0xC61200FF) == 1);
    CHECK(ranges.find(0xC6120100) == 1);
    CHECK(ranges.find(0xC6120200) == 5);
    CHECK(ranges.find(0xFFFFFFFF) == 2);
    CHECK(Ranges{}.find(0xC6120000) == Ranges::nothing);
}

TEST_CASE("a table of nothing, or of default routes alone, is a table too") {
    const RouteTable nothing{std::vector<RouteEntry>{}};
    CHECK(find(nothing, "198.18.0.1") == nullptr);
    CHECK(find(nothing, "2001:2::1") == nullptr);
    const RouteTable defaults{std::vector<RouteEntry>{{.network = ip("0.0.0.0"), .route = {.interface = 4}},
                                                      {.network = ip("::"), .route = {.interface = 6}}}};
    CHECK(find(defaults, "198.18.0.1")->interface == 4);
    CHECK(find(defaults, "2001:2::1")->interface == 6);
}

TEST_CASE("a route that cannot be meant is refused, with what to write instead") {
    CHECK(fault_of({{.network = ip("198.18.0.1"), .prefix_length = 16}}) == "198.18.0.1/16 has bits behind its prefix");
    CHECK(fault_of({{.network = ip("2001:2::8000:0"), .prefix_length = 96}}) ==
          "2001:2::8000:0/96 has bits behind its prefix");
    CHECK(fault_of({{.network = ip("198.18.0.0"), .prefix_length = 33}}) == "the prefix of 198.18.0.0/33 is too long");
    CHECK(fault_of({{.network = ip("2001:2::"), .prefix_length = 129}}) == "the prefix of 2001:2::/129 is too long");
    CHECK(fault_of({{.network = ip("198.18.0.0"), .prefix_length = 16, .route = {.via = ip("2001:2::1")}}}) ==
          "198.18.0.0/16 leads to 2001:2::1, which is of the other family");
    CHECK(fault_of({{.network = ip("198.18.0.0"), .prefix_length = 16, .route = {.via = ip("224.0.0.1")}}}) ==
          "198.18.0.0/16 leads to 224.0.0.1, which no neighbour can have");
    CHECK(fault_of({{.network = ip("2001:2::"), .prefix_length = 48},
                    {.network = ip("2001:2::"), .prefix_length = 48}}) == "there are two routes for 2001:2::/48");
}

TEST_CASE("a route of a group is checked as any other, also against those of entries and other groups") {
    const std::vector<router::RoutePrefix> prefixes{{ip("198.18.0.0"), 24}, {ip("198.18.1.0"), 24}};
    const std::vector<RouteEntry> entries{{.network = ip("198.18.1.0"), .prefix_length = 24}};
    const auto fault = [](std::span<const RouteEntry> of_entries, std::span<const router::RouteGroup> groups) {
        try {
            const RouteTable table{of_entries, groups};
        } catch (const Fault& found) {
            return std::string{found.what()};
        }
        return std::string{};
    };
    const std::vector<router::RouteGroup> twice{{prefixes, {}}, {prefixes, {}}};
    CHECK(fault(entries, std::span{twice}.first(1)) == "there are two routes for 198.18.1.0/24");
    CHECK(fault({}, twice) == "there are two routes for 198.18.0.0/24");
    CHECK(fault({}, std::span{twice}.first(1)).empty());
    const std::vector<router::RouteGroup> other{{prefixes, {.via = ip("2001:2::1")}}};
    CHECK(fault({}, other) == "198.18.0.0/24 leads to 2001:2::1, which is of the other family");
    const std::vector<router::RoutePrefix> behind{{ip("198.18.0.1"), 24}};
    CHECK(fault({}, std::vector<router::RouteGroup>{{behind, {}}}) == "198.18.0.1/24 has bits behind its prefix");
}

TEST_CASE("addresses of interfaces that contradict each other are refused") {
    CHECK(fault_of({interface_of(0, {{ip("10.0.0.1"), 24}}), interface_of(1, {{ip("10.0.0.2"), 24}})}) ==
          "interfaces 0 and 1 both have 10.0.0.0/24");
    CHECK(fault_of({interface_of(0, {{ip("2001:2::1"), 64}}), interface_of(1, {{ip("2001:2::1"), 64}})}) ==
          "interfaces 0 and 1 both have 2001:2::1/128");
    CHECK(fault_of({interface_of(0, {{ip("10.0.0.255"), 24}})}) ==
          "10.0.0.255/24 of interface 0 is not an address of a host");
    CHECK(fault_of({interface_of(0, {{ip("10.0.0.0"), 24}})}) ==
          "10.0.0.0/24 of interface 0 is not an address of a host");
    CHECK(fault_of({interface_of(0, {{ip("ff02::1"), 64}})}) ==
          "ff02::1/64 of interface 0 is not an address of a host");
    CHECK(fault_of({interface_of(0, {{ip("10.0.0.1"), 0}})}) ==
          "10.0.0.1/0 of interface 0 is not an address of a host");
    CHECK(fault_of({interface_of(0, {{ip("10.0.0.1"), 33}})}) ==
          "10.0.0.1/33 of interface 0 is not an address of a host");
    CHECK(fault_of({interface_of(0, {{ip("10.0.255.255"), 8}, {ip("10.0.0.1"), 16}})}) ==
          "10.0.255.255 of interface 0 is also the broadcast address of one of its networks");
}

TEST_CASE("two addresses of one network share its routes, and a /31 and a /32 have no broadcast addresses") {
    const auto shared = router::routes_of(std::vector{interface_of(0, {{ip("10.0.0.1"), 24}, {ip("10.0.0.3"), 24}})});
    CHECK(shared.size() == 5);  // two addresses, the network, and its first and last
    CHECK(router::routes_of(std::vector{interface_of(0, {{ip("10.0.0.0"), 31}})}).size() == 2);
    CHECK(router::routes_of(std::vector{interface_of(0, {{ip("10.0.0.9"), 32}})}).size() == 1);
    CHECK(router::routes_of(std::vector{interface_of(0, {{ip("2001:2::1"), 128}})}).size() == 1);
}

TEST_CASE("an interface asks from the address on the same link") {
    const auto interfaces = tests::two_interfaces();
    const auto source = [&](const char* target) { return plan::to_string(*interfaces[0].source_for(ip(target))); };
    CHECK(source("10.0.0.2") == "10.0.0.1");
    CHECK(source("198.18.77.1") == "198.18.0.1");
    CHECK(source("172.16.0.1") == "10.0.0.1");
    CHECK(source("2001:2::5:2") == "2001:2::1");
    CHECK(source("fe80::1") == "fe80::ff:fe00:d001");
    CHECK(interface_of(0, {{ip("2001:2::1"), 64}}).source_for(ip("10.0.0.2")) == nullptr);
    CHECK(interfaces[0].is_on_link(ip("198.18.255.254")));
    CHECK_FALSE(interfaces[0].is_on_link(ip("198.18.255.255")));
    CHECK_FALSE(interfaces[0].is_on_link(ip("198.19.0.2")));
    CHECK(interfaces[1].is_on_link(ip("fe80::2")));
    CHECK(interfaces[1].owns(interfaces[1].link_local));
    CHECK_FALSE(interfaces[1].owns(interfaces[0].link_local));
}

}  // namespace route_table_test
