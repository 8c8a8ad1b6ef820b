// SPDX-License-Identifier: Apache-2.0
// Translation by connections: frames of a router between two ports in memory, octet for octet beside those that are
// built here by the book.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "nat_bench.hpp"

namespace nat_test {

using namespace evenhand;
using namespace evenhand::router;
using namespace evenhand::tests::forwarding;
using tests::ip;
using tests::Octets;

namespace {

bool has_right_checksum(const Octets& f) {
    Octets copy = f;
    const Packet packet = read_packet(copy.data(), copy.size());
    const UdpPart udp = udp_of(packet);
    REQUIRE(udp.at != nullptr);
    const std::size_t octets = 2 * plan::address_octets(packet.version);
    const std::uint32_t sum =
        tests::slow_sum(std::span{packet.source, octets}) + 17U + static_cast<unsigned>(udp.octets);
    return tests::slow_sum(std::span{udp.at, udp.octets}, sum) == 0xFFFF;
}

}  // namespace

TEST_CASE(
    "a connection of each kind goes out with the pool's address, and its answers find the host, octet for octet") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        for (const std::size_t payload : {0U, 1U, 18U, 29U, 1200U}) {
            CAPTURE(payload);
            NatBench bench{kind.options()};
            Udp out = kind.out(0, 50'000);
            out.payload = payload;
            Udp expected{.from = kind.pool_address(0),
                         .to = kind.peer_outside(1),
                         .source_port = 50'000,
                         .destination_port = 7,
                         .hops = 63,
                         .payload = payload};
            for (std::uint16_t i = 1; i <= 2; ++i) {  // the first makes the connection, the second finds it
                if (kind.is_nat64()) {
                    expected.identification = payload > 1232 ? 0 : i;
                    expected.flags = payload > 1232 ? 0x4000 : 0;
                }
                const auto came = bench.outgoing(out.from_left());
                REQUIRE(came.size() == 1);
                CHECK(tests::hex(came[0]) == tests::hex(expected.to_right()));
            }
            Udp back = kind.back(50'000);
            back.payload = payload;
            const Udp arrives{.from = kind.peer_inside(1),
                              .to = kind.host_address(0),
                              .source_port = 7,
                              .destination_port = 50'000,
                              .hops = 63,
                              .payload = payload};
            const auto answers = bench.incoming(back.from_right());
            REQUIRE(answers.size() == 1);
            CHECK(tests::hex(answers[0]) == tests::hex(arrives.to_left()));
            CHECK(bench.nat_counters().created == 1);
            CHECK(bench.nat_counters().entries == 1);
            CHECK(bench.nat_counters().translated_frames == 3);
        }
    }
}

TEST_CASE("NAT64 knows the six lengths of a prefix (RFC 6052)") {
    for (const auto& [prefix, length] : std::vector<std::pair<const char*, unsigned>>{{"2001:db8::", 32},
                                                                                      {"2001:db8:100::", 40},
                                                                                      {"2001:db8:122::", 48},
                                                                                      {"2001:db8:122:300::", 56},
                                                                                      {"2001:db8:122:344::", 64},
                                                                                      {"2001:db8:122:344::", 96}}) {
        CAPTURE(length);
        Kind kind = nat64;
        kind.prefix = prefix;
        kind.prefix_length = length;
        NatBench bench{kind.options()};
        CHECK(bench.outside_of(kind.out(0, 4000)) == std::pair{kind.pool_address(0), std::uint16_t{4000}});
        const auto answer = bench.incoming(kind.back(4000).from_right());
        REQUIRE(answer.size() == 1);
        CHECK(NatBench::endpoint(answer[0], true).first == kind.peer_inside(1));
        CHECK(has_right_checksum(answer[0]));
    }
}

TEST_CASE("checksums change by what was changed: none stays none in IPv4, and a wrong one stays wrong") {
    NatBench bench{nat44.options()};
    Udp none = nat44.out(0, 4000);
    none.has_checksum = false;
    const auto came = bench.outgoing(none.from_left());
    REQUIRE(came.size() == 1);
    CHECK(came[0][40] == std::byte{0});
    CHECK(came[0][41] == std::byte{0});
    for (const Kind& kind : {nat44, nat66}) {
        NatBench other{kind.options()};
        auto wrong = kind.out(0, 4000).from_left();
        wrong.back() ^= std::byte{1};
        const auto left = other.outgoing(wrong);
        REQUIRE(left.size() == 1);
        CHECK_FALSE(has_right_checksum(left[0]));
    }
}

TEST_CASE(
    "each checksum that a packet can have becomes what the translated packet has, also at the ends of the range") {
    for (const Kind& kind : {nat44, nat66}) {
        CAPTURE(kind.name);
        std::set<std::uint16_t> checksums;
        for (std::uint32_t port = 0; port < 65536; ++port) {
            Udp udp = kind.out(0, static_cast<std::uint16_t>(port));
            Octets f = udp.from_left();
            const Packet packet = read_packet(f.data(), f.size());
            const UdpPart part = udp_of(packet);
            checksums.insert(frame::load<std::uint16_t>(part.at + 6));
            udp.from = kind.pool_address(0);
            udp.source_port = static_cast<std::uint16_t>(31 * port);
            rewrite(packet, part, Endpoint::source, udp.from, udp.source_port);
            REQUIRE(f == udp.from_left());
        }
        CHECK(checksums.size() == 65535);
        CHECK_FALSE(checksums.contains(0));
    }
}

TEST_CASE("a connection keeps its port, or gets the next free one; a port serves several peers if it may") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        for (const bool reuses : {true, false}) {
            CAPTURE(reuses);
            NatOptions options = kind.options();
            options.reuse_ports = reuses;
            options.first_port = 2000;
            options.last_port = 2004;
            NatBench bench{options};
            CHECK(bench.port_of(kind.out(0, 2003)) == 2003);
            CHECK(bench.port_of(kind.out(1, 2003)) == 2004);  // the same pool address, port and peer
            CHECK(bench.port_of(kind.out(2, 2003)) == 2000);
            CHECK(bench.port_of(kind.out(1, 2003)) == 2004);  // as before
            CHECK(bench.port_of(kind.out(0, 2003, 2)) == (reuses ? 2003 : 2001));
            CHECK(bench.port_of(kind.out(0, 2003, 1, 8)) == (reuses ? 2003 : 2002));
            CHECK(bench.receiver_of(kind.back(2003)) == std::pair{kind.host_address(0), std::uint16_t{2003}});
            CHECK(bench.receiver_of(kind.back(2000)) == std::pair{kind.host_address(2), std::uint16_t{2003}});
            CHECK(bench.receiver_of(kind.back(reuses ? 2003 : 2001, 2)) ==
                  std::pair{kind.host_address(0), std::uint16_t{2003}});
            // Answers must come from the peer.
            CHECK(bench.receiver_of(kind.back(2003, 3)).second == 0);
            CHECK(bench.receiver_of(kind.back(2003, 1, 9)).second == 0);
            CHECK(bench.nat_counters().unknown_frames == 2);
            if (reuses) {
                // A port out of the range: its remainder.
                CHECK(bench.port_of(kind.out(5, 7, 9)) == 2002);
                CHECK(bench.port_of(kind.out(3, 2003)) == 2001);
                CHECK(bench.port_of(kind.out(4, 2003)) == 2002);
            }
            for (int i = 0; i < 3; ++i) CHECK(bench.port_of(kind.out(6, 2003)) == 0);
            CHECK(bench.nat_counters().exhausted_ports == 3);
            CHECK(bench.nat_counters().created == bench.nat_counters().entries);
            // When they are gone there are free ones.
            const std::size_t entries = bench.nat_counters().entries;
            CHECK(bench.forwarder().flush() == entries);
            CHECK(bench.nat_counters().entries == 0);
            CHECK(bench.nat_counters().flushed == entries);
            CHECK(bench.port_of(kind.out(6, 2003)) == 2003);
            CHECK(bench.receiver_of(kind.back(2000)).second == 0);
        }
    }
}

TEST_CASE("an inside host has one address of the pool, and the hosts have all of them") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options(10);
        options.capacity = 10'000;
        NatBench bench{options};
        std::map<plan::IpAddress, int, decltype([](const auto& a, const auto& b) { return a.octets < b.octets; })> used;
        for (unsigned host = 0; host < 200; ++host) {
            const auto first = bench.outside_of(kind.out(host, 4000)).first;
            for (unsigned peer = 0; peer < 5; ++peer)
                CHECK(bench.outside_of(kind.out(host, static_cast<std::uint16_t>(5000 + peer), peer)).first == first);
            CHECK(options.pool.contains(first));
            ++used[first];
        }
        CHECK(used.size() == 10);
        for (const auto& [address, hosts] : used) CHECK(hosts > 5);
    }
}

TEST_CASE("a full table refuses new connections, or replaces the one that was made first") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options();
        options.capacity = 5;
        {
            NatBench bench{options};
            for (unsigned host = 0; host < 8; ++host)
                CHECK((bench.port_of(kind.out(host, static_cast<std::uint16_t>(4000 + host))) != 0) == (host < 5));
            CHECK(bench.nat_counters().refused_full == 3);
            CHECK(bench.nat_counters().most_entries == 5);
            CHECK(bench.port_of(kind.out(0, 4000)) == 4000);
            CHECK(bench.receiver_of(kind.back(4004)).second == 4004);
        }
        options.when_full = WhenFull::replace;
        NatBench bench{options};
        for (unsigned host = 0; host < 8; ++host) {
            CHECK(bench.port_of(kind.out(host, static_cast<std::uint16_t>(4000 + host))) == 4000 + host);
            CHECK(bench.port_of(kind.out(0, 4000)) == 4000);  // that it is used does not save it
        }
        // Numbers 0 to 7, repeating from 0 after 5: the table has the last five that were made.
        CHECK(bench.nat_counters().entries == 5);
        CHECK(bench.nat_counters().most_entries == 5);
        CHECK(bench.nat_counters().refused_full == 0);
        CHECK(bench.nat_counters().created == bench.nat_counters().replaced + 5);
        CHECK(bench.receiver_of(kind.back(4001)).second == 0);
        CHECK(bench.receiver_of(kind.back(4007)).second == 4007);
    }
}

TEST_CASE("a connection ends when neither direction used it for the timeout, by the time of the model") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options();
        options.timeout_s = 0.01;
        options.capacity = 3;
        NatBench bench{options};
        const Ticks step = 9'000 * us;
        CHECK(bench.port_of(kind.out(0, 4000)) == 4000);
        CHECK(bench.port_of(kind.out(1, 4001)) == 4001);
        CHECK(bench.port_of(kind.out(2, 4002)) == 4002);
        for (int i = 0; i < 4; ++i) {
            bench.now += step;
            bench.turn();
            CHECK(bench.port_of(kind.out(0, 4000)) == 4000);             // out
            CHECK(bench.receiver_of(kind.back(4001)).second == (4001));  // or in
        }
        CHECK(bench.nat_counters().expired == 1);
        CHECK(bench.nat_counters().entries == 2);
        CHECK(bench.receiver_of(kind.back(4002)).second == 0);
        CHECK(bench.nat_counters().unknown_frames == 1);
        CHECK(bench.port_of(kind.out(3, 4003)) == 4003);  // in its place
        CHECK(bench.port_of(kind.out(4, 4004)) == 0);
        CHECK(bench.nat_counters().refused_full == 1);
        bench.now += 10'100 * us;  // nothing was looked for since
        CHECK(bench.port_of(kind.out(4, 4000)) == 4000);
        CHECK(bench.nat_counters().created == 5);
        bench.run(12'000 * us, 100 * us);
        CHECK(bench.nat_counters().entries == 0);
        CHECK(bench.nat_counters().expired == 5);
    }
}

TEST_CASE("two connections to one destination share a tuple on purpose, and the older gets the answers") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options();
        options.same_tuple_every = 3;
        NatBench bench{options};
        CHECK(bench.port_of(kind.out(0, 4000, 1)) == 4000);
        CHECK(bench.port_of(kind.out(1, 4001, 2)) == 4001);
        CHECK(bench.port_of(kind.out(2, 4002, 3)) == 4002);  // the third has no other with its destination,
        CHECK(bench.nat_counters().same_tuple_frames == 0);
        CHECK(bench.port_of(kind.out(3, 4003, 2)) == 4001);  // so it is the fourth
        CHECK(bench.port_of(kind.out(4, 4004, 2)) == 4004);
        CHECK(bench.port_of(kind.out(5, 4005, 1)) == 4000);  // and the sixth in its turn
        for (int i = 0; i < 4; ++i) CHECK(bench.port_of(kind.out(5, 4005, 1)) == 4000);
        CHECK(bench.nat_counters().same_tuple_frames == 6);
        CHECK(bench.receiver_of(kind.back(4000, 1)) == std::pair{kind.host_address(0), std::uint16_t{4000}});
        CHECK(bench.receiver_of(kind.back(4001, 2)) == std::pair{kind.host_address(1), std::uint16_t{4001}});
        CHECK(bench.nat_counters().created == 6);
    }
}

TEST_CASE("each other defect is done to each n-th new connection, and counted to the frame") {
    constexpr unsigned hosts = 100;
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options(2);
        options.lost_entry_every = 10;
        options.other_address_every = 12;
        options.wrong_checksum_every = 15;
        NatBench bench{options};
        std::size_t lost = 0;
        std::size_t wrong = 0;
        std::size_t unknown = 0;
        std::map<unsigned, std::size_t> elsewhere;  // frames by round
        for (unsigned host = 0; host < hosts; ++host) {
            const auto port = static_cast<std::uint16_t>(4000 + host);
            for (unsigned round = 0; round < 3; ++round) {
                const auto created = bench.nat_counters().created;
                const auto came = bench.outgoing(kind.out(host, port, host).from_left());
                REQUIRE(came.size() == 1);
                const bool is_new = bench.nat_counters().created != created;
                CHECK(is_new == (round == 0 || (created % 10 == 0 && round == 1)));
                const auto [address, outside_port] = NatBench::endpoint(came[0], true);
                CHECK(outside_port == port);
                if (address == Kind::numbered(kind.pool, 0xFFFF)) {
                    ++elsewhere[round];
                } else {
                    CHECK(options.pool.contains(address));
                }
                const bool is_wrong = is_new && (created + 1) % 15 == 0;
                CHECK(has_right_checksum(came[0]) != is_wrong);
                wrong += is_wrong ? 1 : 0;
                const bool is_lost = is_new && (created + 1) % 10 == 0;
                lost += is_lost ? 1 : 0;
                Udp back = kind.back(port, host);
                back.to = address;
                const bool is_of_pool = options.pool.contains(address);
                CHECK((bench.receiver_of(back).second == port) == (!is_lost && is_of_pool));
                unknown += is_lost && is_of_pool ? 1 : 0;
            }
        }
        const NatCounters counters = bench.nat_counters();
        CHECK(lost > 5);
        CHECK(counters.lost_entry_frames == lost);
        CHECK(counters.created == hosts + lost);
        CHECK(counters.entries == hosts);
        CHECK(counters.wrong_checksum_frames == wrong);
        CHECK(wrong == counters.created / 15);
        std::size_t frames = 0;
        for (const auto& [round, count] : elsewhere) frames += count;
        CHECK(counters.other_address_frames == frames);
        CHECK(frames > 10);
        CHECK(counters.unknown_frames == unknown);
        CHECK(bench.counters().interfaces[1].no_route_frames == frames);  // answers to what is not of the pool
    }
}

TEST_CASE("what is no business of the translator is routed, and what is not translated is dropped and counted") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatBench bench{kind.options(4)};
        // From outside to an inside host by its own address.
        const bool is_v6 = kind.host_address(0).version == plan::IpVersion::v6;
        Udp direct{.from = is_v6 ? ip("2001:2:0:8000::9") : ip("198.19.0.9"),
                   .to = kind.host_address(0),
                   .source_port = 7,
                   .destination_port = 8};
        const auto came = bench.incoming(direct.from_right());
        direct.hops = 63;
        REQUIRE(came.size() == 1);
        CHECK(came[0] == direct.to_left());
        // To the pool without a connection, from both sides and with TCP.
        CHECK(bench.incoming(kind.back(4000).from_right()).empty());
        CHECK(bench.nat_counters().unknown_frames == 1);
        auto tcp = kind.back(4000).from_right();
        if (kind.back(4000).to.version == plan::IpVersion::v6) {
            tcp[20] = std::byte{6};
        } else {
            tcp[23] = std::byte{6};
            put(tcp, 24, 0);
            put(tcp, 24, static_cast<std::uint16_t>(~tests::slow_sum(std::span{tcp}.subspan(14, 20))));
        }
        CHECK(bench.incoming(tcp).empty());
        CHECK(bench.nat_counters().refused_frames == 1);
        Udp within{.from = ip(kind.is_nat64() ? "198.18.0.1" : kind.host),
                   .to = kind.pool_address(0),
                   .source_port = 4000,
                   .destination_port = 7};
        CHECK(bench.outgoing(within.from_left()).empty());
        CHECK(bench.nat_counters().unknown_frames == 2);
        // The router itself still answers.
        bench.send(0, Bench::question(false, left_tester, "10.0.0.2", "10.0.0.1"));
        bench.turn();
        CHECK(bench.take(0).size() == 1);
        // No route, and no hop left.
        Udp nowhere = kind.out(0, 4000);
        nowhere.to = kind.is_nat64() ? embed(ip(kind.prefix), kind.prefix_length, ip("192.0.2.1"))
                     : is_v6         ? ip("2001:7::1")
                                     : ip("192.0.2.1");
        CHECK(bench.outgoing(nowhere.from_left()).empty());
        CHECK(bench.counters().interfaces[0].no_route_frames == 1);
        Udp last = kind.out(0, 4000);
        last.hops = 1;
        CHECK(bench.outgoing(last.from_left()).empty());
        CHECK(bench.counters().interfaces[0].expired_frames == 1);
        CHECK(bench.nat_counters().created == 0);
    }
    // NAT64 leaves IPv6 alone that is not behind its prefix.
    NatBench bench{nat64.options()};
    Udp native{.from = nat64.host_address(0), .to = ip("2001:2:0:8000::9"), .source_port = 1, .destination_port = 2};
    const auto came = bench.outgoing(native.from_left());
    native.hops = 63;
    REQUIRE(came.size() == 1);
    CHECK(came[0] == native.to_right());
}

TEST_CASE("a frame that waits for its next hop makes its connection when it goes on") {
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        Bench bench{{}, {}, {}, 100 * second, kind.options()};
        bench.send(0, kind.out(0, 4000).from_left());
        bench.run(10 * us);
        CHECK(bench.nat_counters().created == 0);
        const bool is_v6 = kind.peer_outside(1).version == plan::IpVersion::v6;
        bench.send(1, Bench::question(is_v6, right_tester, is_v6 ? "2001:2:0:9000::2" : "10.0.1.2",
                                      is_v6 ? "2001:2:0:9000::1" : "10.0.1.1"));
        bench.run(10 * us);
        const auto came = NatBench::udp_alone(bench.take(1));
        REQUIRE(came.size() == 1);
        CHECK(NatBench::endpoint(came[0], true) == std::pair{kind.pool_address(0), std::uint16_t{4000}});
        CHECK(bench.nat_counters().created == 1);
        CHECK(bench.counters().model.departed_frames == 1);
    }
}

TEST_CASE("a frame that makes an entry is as dear as was said, and one that its element drops makes none") {
    ElementModel model = model_of(1, 1e6, 8);
    model.elements = Elements{{.count = 1, .rate_fps = 1e6, .queue_frames = 8, .dear_cost = 5}, second};
    NatOptions options = nat44.options();
    NatBench bench{options, model};
    // 20 new connections at once: one in service, 8 wait.
    for (unsigned i = 0; i < 20; ++i) bench.send(0, nat44.out(i, static_cast<std::uint16_t>(4000 + i)).from_left());
    bench.turn();
    CHECK(bench.nat_counters().created == 9);
    CHECK(bench.counters().interfaces[0].element_dropped_frames == 11);
    std::vector<Ticks> left;
    const Ticks began = bench.now;
    while (bench.now < began + 60 * us) {
        bench.run(us / 10, us / 10);
        for (std::size_t n = NatBench::udp_alone(bench.take(1)).size(); n != 0; --n) left.push_back(bench.now - began);
    }
    REQUIRE(left.size() == 9);
    for (std::size_t i = 0; i < left.size(); ++i) {
        CHECK(left[i] >= 5 * us * (i + 1));
        CHECK(left[i] <= 5 * us * (i + 1) + us / 2);
    }
    CHECK(bench.forwarder().model()->elements.counters(0).most_waiting == 8);
    // Their second frames take 1 us each.
    for (unsigned i = 0; i < 9; ++i) bench.send(0, nat44.out(i, static_cast<std::uint16_t>(4000 + i)).from_left());
    bench.run(8 * us + us / 2, us / 10);
    CHECK(NatBench::udp_alone(bench.take(1)).size() == 8);
    bench.run(us, us / 10);
    CHECK(NatBench::udp_alone(bench.take(1)).size() == 1);
    CHECK(bench.nat_counters().created == 9);
}

TEST_CASE("nothing that comes breaks the translator, and each frame is accounted for") {
    const char* const wanted = std::getenv("EVENHAND_FUZZ_FRAMES");
    const std::size_t rounds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 30'000;
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        NatOptions options = kind.options(3);
        options.capacity = 50;
        options.timeout_s = 2e-5;
        options.last_port = 1100;
        options.lost_entry_every = 13;
        options.same_tuple_every = 7;
        options.other_address_every = 11;
        Bench bench{{}, {}, {}, 100 * second, options};
        bench.introduce();
        std::mt19937_64 random{20261125};
        for (std::size_t i = 0; i < rounds; ++i) {
            const auto host = static_cast<unsigned>(random() % 20);
            const auto port = static_cast<std::uint16_t>(1000 + random() % 200);
            const auto peer = static_cast<unsigned>(random() % 3);
            Octets f = i % 2 == 0 ? kind.out(host, port, peer).from_left() : kind.back(port, peer).from_right();
            if (random() % 4 == 0) {
                for (auto n = 1 + random() % 4; n-- > 0;)
                    f[random() % f.size()] ^= static_cast<std::byte>(1U << random() % 8);
            }
            if (random() % 16 == 0) f.resize(random() % (f.size() + 1));
            bench.send(i % 2, f);
            if (i % 32 == 31) bench.run(2 * us), (void)bench.take(0), (void)bench.take(1);
        }
        bench.run(5 * second, 1000 * us);
        const NatCounters nat = bench.nat_counters();
        std::uint64_t accounted = bench.counters().model.departed_frames +
                                  bench.neighbors().counters().dropped_frames.value() + nat.refused_full +
                                  nat.exhausted_ports + nat.unknown_frames + nat.refused_frames;
        std::uint64_t received = 0;
        for (const auto& c : bench.counters().interfaces) {
            received += c.received_frames;
            accounted += c.local_frames + c.other_mac_frames + c.ignored_frames + c.malformed_frames +
                         c.martian_frames + c.expired_frames + c.no_route_frames + c.unresolved_frames;
        }
        CHECK(received == rounds + 4);
        CHECK(accounted == received);
        CHECK(nat.created > 100);
        CHECK(nat.created == nat.entries + nat.expired + nat.replaced + nat.lost_entry_frames);
        CHECK(nat.entries == 0);
        CHECK(nat.most_entries == 50);
    }
}

}  // namespace nat_test
