// SPDX-License-Identifier: Apache-2.0
// Own answers of the router: ARP, neighbour discovery and echo, SEED-22. Frames without FCS, written out as the RFCs
// have them.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "interfaces.hpp"
#include "local/answerer.hpp"
#include "local/question.hpp"
#include "neighbor/responder.hpp"
#include "octets.hpp"

namespace local_test {

using namespace evenhand;
using plan::IpAddress;
using plan::MacAddress;
using router::Counter;
using router::LocalAnswerer;
using router::NeighborState;
using router::NeighborTable;
using tests::hex;
using tests::ip;
using tests::Octets;
using tests::octets_of;

namespace {

constexpr MacAddress tester_mac{2, 0, 0, 0, 0, 0x11};
const std::string tester = "020000000011";
const std::string other = "020000000033";
const std::string own = "02000000d001";  // interface 0
const std::string everyone = "ffffffffffff";

std::string hex_of(const IpAddress& address) { return hex(std::as_bytes(address.bytes())); }
std::string hex_of(const char* address) { return hex_of(ip(address)); }

/// Two octets at `at`: the complement of the sum of everything from `from` on.
void put_checksum(Octets& f, std::size_t at, std::span<const std::byte> summed, std::uint32_t pseudo_header = 0) {
    const auto sum = static_cast<std::uint16_t>(~tests::slow_sum(summed, pseudo_header));
    f[at] = static_cast<std::byte>(sum >> 8U);
    f[at + 1] = static_cast<std::byte>(sum);
}

Octets padded(Octets f) {
    if (f.size() < 60) f.resize(60);
    return f;
}

struct Arp {
    std::string to = everyone;
    std::string from = tester;
    std::string operation = "0001";
    std::string sender_mac = tester;
    const char* sender_ip = "10.0.0.2";
    std::string target_mac = "000000000000";
    const char* target_ip = "10.0.0.1";
};
Octets arp(const Arp& a) {
    return padded(octets_of(a.to + a.from + "0806" + "0001" + "0800" + "06" + "04" + a.operation + a.sender_mac +
                            hex_of(a.sender_ip) + a.target_mac + hex_of(a.target_ip)));
}

struct Icmp6 {
    std::string to = own;
    std::string from = tester;
    IpAddress source = ip("2001:2:0:1000::2");
    IpAddress destination = ip("2001:2:0:1000::1");
    std::string hop_limit = "ff";
    std::string head = "8700";  // type and code
    std::string rest;           // behind the checksum
};
Octets icmp6(const Icmp6& m) {
    const std::size_t octets = 4 + m.rest.size() / 2;
    auto f = octets_of(m.to + m.from + "86dd" + "60000000" + fmt::format("{:04x}", octets) + "3a" + m.hop_limit +
                       hex_of(m.source) + hex_of(m.destination) + m.head + "0000" + m.rest);
    put_checksum(f, 56, std::span{f}.subspan(22), static_cast<std::uint32_t>(58 + octets));
    return f;
}

struct Solicitation {
    const char* target = "2001:2:0:1000::1";
    const char* source = "2001:2:0:1000::2";
    const char* destination = "ff02::1:ff00:1";
    std::string to = "3333ff000001";
    std::string options = "0101" + tester;
    std::string hop_limit = "ff";
};
Octets solicit(const Solicitation& s) {
    return icmp6({.to = s.to,
                  .source = ip(s.source),
                  .destination = ip(s.destination),
                  .hop_limit = s.hop_limit,
                  .head = "8700",
                  .rest = "00000000" + hex_of(s.target) + s.options});
}

struct Advertisement {
    const char* target = "2001:2:0:1000::2";
    std::string flags = "60";  // solicited, override
    std::string options = "0201" + tester;
    const char* destination = "2001:2:0:1000::1";
    std::string to = own;
    std::string hop_limit = "ff";
};
Octets advertise(const Advertisement& a) {
    return icmp6({.to = a.to,
                  .destination = ip(a.destination),
                  .hop_limit = a.hop_limit,
                  .head = "8800",
                  .rest = a.flags + "000000" + hex_of(a.target) + a.options});
}

const std::string echo_rest =
    "00070001" + std::string("0102030405060708090a0b0c0d0e0f10111213");  // an odd number of octets

struct Echo4 {
    std::string to = own;
    const char* source = "10.0.0.2";
    const char* destination = "10.0.0.1";
    std::string flags = "0000";
    std::string protocol = "01";
    std::string head = "0800";
    std::string ttl = "0a";
};
Octets echo4(const Echo4& e) {
    const std::size_t octets = 20 + 4 + echo_rest.size() / 2;
    auto f = octets_of(e.to + tester + "0800" + "4500" + fmt::format("{:04x}", octets) + "1234" + e.flags + e.ttl +
                       e.protocol + "0000" + hex_of(e.source) + hex_of(e.destination) + e.head + "0000" + echo_rest);
    put_checksum(f, 24, std::span{f}.subspan(14, 20));
    put_checksum(f, 36, std::span{f}.subspan(34));
    return padded(f);
}

struct Rig {
    /// The answer to a frame in a buffer of `room` octets, filled with noise behind the frame.
    Octets handle(const Octets& frame, std::size_t room = 2048, unsigned interface = 0) {
        Octets buffer = frame;
        buffer.resize(std::max(room, frame.size()), std::byte{0xA5});
        buffer.resize(answerer.handle(interface, buffer, frame.size(), now));
        return buffer;
    }
    /// Nothing is answered, and one counter alone says why.
    bool is_silent(const Octets& frame, const Counter& reason, unsigned interface = 0) {
        const auto before = reason.value();
        const auto answered = handle(frame, 2048, interface);
        return answered.empty() && reason.value() == before + 1 && total() == ++handled;
    }
    std::uint64_t total() const {
        const auto& c = answerer.counters();
        std::uint64_t sum = 0;
        for (const auto* const counter : {&c.arp_answers, &c.nd_answers, &c.echo_answers, &c.told, &c.malformed,
                                          &c.bad_checksum, &c.bad_hop_limit, &c.not_ours, &c.unsupported})
            sum += counter->value();
        return sum;
    }
    MacAddress find(const char* address) {
        const auto* const mac = table.find(0, ip(address), now);
        return mac == nullptr ? MacAddress{} : *mac;
    }
    /// As a frame that waits for it does.
    void want(const char* address) { REQUIRE(table.hold(0, ip(address), this, now) == router::HoldResult::held); }

    const LocalAnswerer::Counters& counters() const { return answerer.counters(); }

    router::Ticks now = 1;
    NeighborTable table{{}, 1000};
    LocalAnswerer answerer{tests::two_interfaces(), table};
    std::uint64_t handled = 0;
};

/// An IPv6 message with a right checksum.
bool is_right_v6(const Octets& f) {
    const auto octets = static_cast<std::uint32_t>(f[18]) << 8U | static_cast<std::uint32_t>(f[19]);
    return tests::slow_sum(std::span{f}.subspan(22, 32 + octets), 58 + octets) == 0xFFFF;
}

}  // namespace

TEST_CASE("an ARP request for an address of the interface is answered octet by octet, and its asker is known") {
    for (const char* const target : {"10.0.0.1", "198.18.0.1"}) {
        Rig rig;
        const auto answer = rig.handle(arp({.target_ip = target}));
        CHECK(hex(answer) == hex(arp({.to = tester,
                                      .from = own,
                                      .operation = "0002",
                                      .sender_mac = own,
                                      .sender_ip = target,
                                      .target_mac = tester,
                                      .target_ip = "10.0.0.2"})));
        CHECK(rig.find("10.0.0.2") == tester_mac);
        CHECK(rig.counters().arp_answers.value() == 1);
        CHECK(rig.counters().learned.value() == 1);
    }
}

TEST_CASE("an ARP request without padding is answered with it, and one with too much without it") {
    Rig rig;
    auto shortest = arp({});
    shortest.resize(42);
    auto longest = arp({});
    longest.resize(1514, std::byte{0x77});
    const auto expected = hex(rig.handle(arp({})));
    CHECK(hex(rig.handle(shortest)) == expected);
    CHECK(rig.handle(longest).size() == 60);
}

TEST_CASE("ARP for others is not answered, and teaches only what was known before") {
    Rig rig;
    // The other side's address, the network, a host, the asker itself, and nobody.
    for (const char* const target : {"10.0.1.1", "10.0.0.0", "10.0.0.255", "198.18.0.2", "10.0.0.2", "0.0.0.0"})
        CHECK(rig.is_silent(arp({.target_ip = target}), rig.counters().told));
    CHECK(rig.table.size() == 0);
    rig.want("10.0.0.2");
    CHECK(rig.is_silent(arp({.target_ip = "10.0.0.9"}), rig.counters().told));
    CHECK(rig.find("10.0.0.2") == tester_mac);
    CHECK(rig.is_silent(arp({.to = other}), rig.counters().not_ours));
}

TEST_CASE("an ARP probe is answered and teaches nothing, and so does a claim to the router's own address") {
    Rig rig;
    CHECK(hex(rig.handle(arp({.sender_ip = "0.0.0.0"}))).substr(0, 24) == tester + own);
    CHECK(hex(rig.handle(arp({.sender_ip = "10.0.0.1"}))).substr(0, 24) == tester + own);
    CHECK(hex(rig.handle(arp({.sender_ip = "172.16.0.1"}))).substr(0, 24) == tester + own);  // not on the link
    CHECK(rig.table.size() == 0);
}

TEST_CASE("an ARP reply to the router resolves its question (SEED-22)") {
    Rig rig;
    rig.want("10.0.0.2");
    CHECK(rig.is_silent(arp({.to = own, .operation = "0002", .target_mac = own}), rig.counters().told));
    CHECK(rig.table.state(0, ip("10.0.0.2")) == NeighborState::reachable);
    CHECK(rig.find("10.0.0.2") == tester_mac);
    // An announcement to all is no answer: known, but not reachable.
    rig.want("10.0.0.3");
    CHECK(rig.is_silent(arp({.operation = "0002", .sender_ip = "10.0.0.3", .target_ip = "10.0.0.3"}),
                        rig.counters().told));
    CHECK(rig.table.state(0, ip("10.0.0.3")) == NeighborState::stale);
}

TEST_CASE("ARP that is cut, of another kind, or from nobody is left alone") {
    Rig rig;
    const auto good = arp({});
    for (std::size_t octets = 0; octets < 42; ++octets) {
        Octets cut{good.begin(), good.begin() + static_cast<std::ptrdiff_t>(octets)};
        CHECK_MESSAGE(rig.is_silent(cut, rig.counters().malformed), octets);
    }
    for (std::size_t at = 14; at < 21; ++at) {
        auto f = good;
        f[at] ^= std::byte{4};
        CHECK_MESSAGE(rig.is_silent(f, rig.counters().malformed), at);
    }
    CHECK(rig.is_silent(arp({.operation = "0003"}), rig.counters().malformed));
    CHECK(rig.is_silent(arp({.sender_mac = everyone}), rig.counters().malformed));
    CHECK(rig.is_silent(arp({.sender_mac = "000000000000"}), rig.counters().malformed));
    CHECK(rig.is_silent(arp({.from = "010000000011"}), rig.counters().malformed));
}

TEST_CASE("a solicitation to the group or to the router itself is advertised, and its asker is known") {
    for (const auto& solicitation : {Solicitation{}, Solicitation{.destination = "2001:2:0:1000::1", .to = own},
                                     Solicitation{.target = "2001:2::1", .source = "2001:2::77:2"},
                                     Solicitation{.target = "fe80::ff:fe00:d001",
                                                  .source = "fe80::2",
                                                  .destination = "ff02::1:ff00:d001",
                                                  .to = "3333ff00d001"}}) {
        CAPTURE(solicitation.target);
        Rig rig;
        const auto answer = rig.handle(solicit(solicitation));
        CHECK(hex(answer) == hex(icmp6({.to = tester,
                                        .from = own,
                                        .source = ip(solicitation.target),
                                        .destination = ip(solicitation.source),
                                        .head = "8800",
                                        .rest = "e0000000" + hex_of(solicitation.target) + "0201" + own})));
        CHECK(is_right_v6(answer));
        CHECK(rig.find(solicitation.source) == tester_mac);
        CHECK(rig.counters().nd_answers.value() == 1);
    }
}

TEST_CASE("a probe without option is answered to who sent it, but teaches nothing") {
    Rig rig;
    CHECK(hex(rig.handle(solicit({.destination = "2001:2:0:1000::1", .to = own, .options = ""}))).substr(0, 24) ==
          tester + own);
    CHECK(rig.table.size() == 0);
}

TEST_CASE("duplicate address detection is answered to all nodes, unsolicited (RFC 4861, 7.2.4)") {
    Rig rig;
    const auto answer = rig.handle(solicit({.source = "::", .options = ""}));
    CHECK(hex(answer) == hex(icmp6({.to = "333300000001",
                                    .from = own,
                                    .source = ip("2001:2:0:1000::1"),
                                    .destination = ip("ff02::1"),
                                    .head = "8800",
                                    .rest = "a0000000" + hex_of("2001:2:0:1000::1") + "0201" + own})));
    CHECK(rig.table.size() == 0);
    // With a MAC told, or not to the group, it is none (RFC 4861, 7.1.1).
    CHECK(rig.handle(solicit({.source = "::"})).empty());
    CHECK(rig.handle(solicit({.source = "::", .destination = "2001:2:0:1000::1", .to = own, .options = ""})).empty());
    CHECK(rig.counters().malformed.value() == 2);
}

TEST_CASE("solicitations for others, from elsewhere, or damaged are not answered") {
    Rig rig;
    const auto& c = rig.counters();
    CHECK(rig.is_silent(solicit({.target = "2001:2:0:9000::1"}), c.told));  // the other interface's
    CHECK(rig.is_silent(solicit({.target = "2001:2::100:1"}), c.told));     // in the same group
    CHECK(rig.is_silent(solicit({.destination = "ff02::1"}), c.not_ours));
    CHECK(rig.is_silent(solicit({.to = other}), c.not_ours));
    CHECK(rig.is_silent(solicit({.target = "ff02::1"}), c.malformed));
    CHECK(rig.is_silent(solicit({.source = "ff02::2"}), c.malformed));
    CHECK(rig.is_silent(solicit({.options = "0101" + everyone}), c.malformed));
    CHECK(rig.is_silent(solicit({.options = "0100" + tester}), c.malformed));
    CHECK(rig.is_silent(solicit({.options = "0102" + tester}), c.malformed));
    CHECK(rig.is_silent(solicit({.hop_limit = "fe"}), c.bad_hop_limit));
    auto damaged = solicit({});
    damaged.back() ^= std::byte{1};
    CHECK(rig.is_silent(damaged, c.bad_checksum));
    auto version = solicit({});
    version[14] = std::byte{0x40};
    CHECK(rig.is_silent(version, c.malformed));
    const auto good = solicit({});
    for (std::size_t octets = 0; octets < good.size(); ++octets) {
        CHECK_MESSAGE(
            rig.is_silent(Octets{good.begin(), good.begin() + static_cast<std::ptrdiff_t>(octets)}, c.malformed),
            octets);
    }
    CHECK(rig.table.size() == 0);
    CHECK(rig.handle(solicit({.destination = "2001:2:0:1000::1", .to = own, .options = ""}), 0)
              .empty());  // no room for the answer
    CHECK(c.unsupported.value() == 1);
}

TEST_CASE("a solicited advertisement resolves, one to all is gossip, and one without MAC confirms (SEED-22)") {
    Rig rig;
    const auto state = [&] { return rig.table.state(0, ip("2001:2:0:1000::2")); };
    const auto& told = rig.counters().told;
    CHECK(rig.is_silent(advertise({}), told));
    CHECK_FALSE(state());  // nobody asked
    rig.want("2001:2:0:1000::2");
    CHECK(rig.is_silent(advertise({}), told));
    CHECK(state() == NeighborState::reachable);
    CHECK(rig.find("2001:2:0:1000::2") == tester_mac);
    CHECK(rig.is_silent(advertise({.flags = "40", .options = "0201" + other}), told));  // without override: not taken
    CHECK(state() == NeighborState::stale);
    CHECK(rig.find("2001:2:0:1000::2") == tester_mac);
    CHECK(state() == NeighborState::probe);
    CHECK(rig.is_silent(advertise({.flags = "40", .options = ""}), told));
    CHECK(state() == NeighborState::reachable);
    CHECK(rig.is_silent(
        advertise({.flags = "20", .options = "0201" + other, .destination = "ff02::1", .to = "333300000001"}), told));
    CHECK(state() == NeighborState::stale);
    CHECK(rig.find("2001:2:0:1000::2")[5] == 0x33);
}

TEST_CASE("an advertisement that cannot be is not believed") {
    Rig rig;
    rig.want("2001:2:0:1000::2");
    const auto& c = rig.counters();
    CHECK(rig.is_silent(advertise({.destination = "ff02::1", .to = "333300000001"}), c.malformed));  // solicited by all
    CHECK(rig.is_silent(advertise({.options = "0201" + everyone}), c.malformed));
    CHECK(rig.is_silent(advertise({.options = "0203" + tester}), c.malformed));
    CHECK(rig.is_silent(advertise({.target = "ff02::1"}), c.malformed));
    CHECK(rig.is_silent(advertise({.hop_limit = "40"}), c.bad_hop_limit));
    CHECK(rig.is_silent(advertise({.destination = "2001:2:0:9000::1"}), c.not_ours));
    CHECK(rig.is_silent(advertise({.target = "2001:2:0:9000::2"}), c.told));  // not on this link: not learned
    CHECK(rig.is_silent(advertise({.target = "2001:2:0:1000::1"}), c.told));  // the router's own
    const auto good = advertise({});
    for (std::size_t octets = 0; octets < good.size(); ++octets)
        (void)rig.handle(Octets{good.begin(), good.begin() + static_cast<std::ptrdiff_t>(octets)});
    CHECK(rig.table.state(0, ip("2001:2:0:1000::2")) == NeighborState::incomplete);
    CHECK(rig.table.size() == 1);
}

TEST_CASE("an IPv4 echo request comes back with right checksums") {
    // Also for the address of the other interface: it is the router's.
    for (const char* const target : {"10.0.0.1", "198.18.0.1", "10.0.1.1"}) {
        Rig rig;
        auto expected = echo4({.to = tester, .source = target, .destination = "10.0.0.2", .head = "0000", .ttl = "40"});
        const auto own_mac = octets_of(own);
        std::ranges::copy(own_mac, expected.begin() + 6);
        CHECK(hex(rig.handle(echo4({.destination = target}))) == hex(expected));
        CHECK(rig.counters().echo_answers.value() == 1);
    }
}

TEST_CASE("an IPv6 echo request comes back with the right checksum") {
    for (const char* const target : {"2001:2:0:1000::1", "2001:2:0:8000::1", "fe80::ff:fe00:d001"}) {
        Rig rig;
        const auto answer =
            rig.handle(icmp6({.destination = ip(target), .hop_limit = "0a", .head = "8000", .rest = echo_rest}));
        CHECK(hex(answer) == hex(icmp6({.to = tester,
                                        .from = own,
                                        .source = ip(target),
                                        .destination = ip("2001:2:0:1000::2"),
                                        .hop_limit = "40",
                                        .head = "8100",
                                        .rest = echo_rest})));
        CHECK(rig.counters().echo_answers.value() == 1);
    }
}

TEST_CASE("what is behind the packet in the frame is not sent back") {
    Rig rig;
    auto v4 = echo4({});
    v4.resize(100, std::byte{0x77});
    CHECK(hex(rig.handle(v4)) == hex(rig.handle(echo4({}))));
    auto v6 = icmp6({.head = "8000", .rest = echo_rest});
    const auto octets = v6.size();
    v6.resize(200, std::byte{0x77});
    CHECK(rig.handle(v6).size() == octets);
}

TEST_CASE("echo is answered only for whole requests to the router") {
    Rig rig;
    const auto& c = rig.counters();
    CHECK(rig.is_silent(echo4({.destination = "10.0.0.3"}), c.not_ours));
    CHECK(rig.is_silent(echo4({.to = everyone}), c.not_ours));
    CHECK(rig.is_silent(echo4({.to = everyone, .destination = "10.0.0.255"}), c.not_ours));
    CHECK(rig.is_silent(echo4({.source = "224.0.0.1"}), c.malformed));
    CHECK(rig.is_silent(echo4({.source = "10.0.0.1"}), c.malformed));
    CHECK(rig.is_silent(echo4({.head = "0801"}), c.malformed));
    CHECK(rig.is_silent(echo4({.head = "0000"}), c.unsupported));
    CHECK(rig.is_silent(echo4({.flags = "2000"}), c.unsupported));  // more fragments
    CHECK(rig.is_silent(echo4({.flags = "0001"}), c.unsupported));  // a later fragment
    CHECK(rig.is_silent(echo4({.protocol = "11"}), c.unsupported));
    auto f = echo4({});
    f[45] ^= std::byte{1};
    CHECK(rig.is_silent(f, c.bad_checksum));
    f = echo4({});
    f[22] ^= std::byte{1};
    CHECK(rig.is_silent(f, c.bad_checksum));
    f = echo4({});
    f[14] = std::byte{0x44};  // header of 16 octets
    CHECK(rig.is_silent(f, c.malformed));
    f = echo4({});
    f[16] = std::byte{1};  // longer than the frame
    CHECK(rig.is_silent(f, c.malformed));
    CHECK(rig.is_silent(icmp6({.to = other, .head = "8000", .rest = echo_rest}), c.not_ours));
    CHECK(rig.is_silent(icmp6({.destination = ip("2001:2:0:1000::9"), .head = "8000", .rest = echo_rest}), c.not_ours));
    CHECK(rig.is_silent(icmp6({.to = "333300000001", .destination = ip("ff02::1"), .head = "8000", .rest = echo_rest}),
                        c.not_ours));
    CHECK(rig.is_silent(icmp6({.source = ip("::"), .head = "8000", .rest = echo_rest}), c.malformed));
    CHECK(rig.is_silent(icmp6({.head = "8001", .rest = echo_rest}), c.malformed));
    CHECK(rig.is_silent(icmp6({.head = "8100", .rest = echo_rest}), c.unsupported));
    CHECK(rig.is_silent(icmp6({.head = "8000", .rest = "0007"}), c.malformed));
    f = icmp6({.head = "8000", .rest = echo_rest});
    f.back() ^= std::byte{1};
    CHECK(rig.is_silent(f, c.bad_checksum));
    const auto good4 = echo4({});
    const auto good6 = icmp6({.head = "8000", .rest = echo_rest});
    for (std::size_t octets = 0; octets < 14 + 20 + 4 + echo_rest.size() / 2; ++octets)
        CHECK(rig.is_silent(Octets{good4.begin(), good4.begin() + static_cast<std::ptrdiff_t>(octets)}, c.malformed));
    for (std::size_t octets = 0; octets < good6.size(); ++octets)
        CHECK(rig.is_silent(Octets{good6.begin(), good6.begin() + static_cast<std::ptrdiff_t>(octets)}, c.malformed));
}

TEST_CASE(
    "the tester's own gateway answers the router's questions and the router takes its answers, to all and by unicast "
    "(SEED-18, SEED-22)") {
    struct Link {
        unsigned interface;
        const char* gateway;
        const char* router;
    };
    for (const Link& link :
         {Link{0, "10.0.0.2", "10.0.0.1"}, Link{1, "10.0.1.2", "10.0.1.1"},
          Link{0, "2001:2:0:1000::2", "2001:2:0:1000::1"}, Link{1, "2001:2:0:9000::2", "2001:2:0:9000::1"}}) {
        CAPTURE(link.gateway);
        NeighborTable table{{}, 1000};
        const auto interfaces = tests::two_interfaces();
        LocalAnswerer answerer{interfaces, table};
        neighbor::Responder gateway{tester_mac, ip(link.gateway), ip(link.router)};
        int frame = 0;
        REQUIRE(table.hold(link.interface, ip(link.gateway), &frame, 0) == router::HoldResult::held);
        unsigned questions = 0;
        const auto ask = [&](router::Ticks now) {
            table.turn(now, [&](const router::NeighborQuestion& question) {
                ++questions;
                Octets buffer(2048);
                std::size_t octets = router::write_question(buffer, interfaces[question.interface], question);
                REQUIRE(octets >= 60);
                if (question.to) CHECK(hex(std::span{buffer}.first(6)) == tester);
                octets = gateway.answer(buffer, octets);
                REQUIRE(octets > 0);
                CHECK(answerer.handle(question.interface, buffer, octets, now) == 0);
            });
        };
        ask(0);
        CHECK(questions == 1);
        CHECK(table.state(link.interface, ip(link.gateway)) == NeighborState::reachable);
        CHECK(gateway.dut_mac() == interfaces[link.interface].mac);
        int sent = 0;
        table.take_ready(
            [&](void* f, unsigned interface, const MacAddress& mac) {
                sent += f == &frame && interface == link.interface && mac == tester_mac ? 1 : 0;
            },
            [](void*) {});
        CHECK(sent == 1);
        REQUIRE(table.find(link.interface, ip(link.gateway), 35'000) != nullptr);
        ask(35'000);
        CHECK(questions == 2);
        CHECK(table.counters().probes.value() == 1);
        CHECK(table.state(link.interface, ip(link.gateway)) == NeighborState::reachable);
        // And the other way round: the tester asks, the router answers.
        Octets buffer(2048);
        const std::size_t octets = answerer.handle(link.interface, buffer, gateway.write_question(buffer), 35'001);
        REQUIRE(octets > 0);
        gateway.forget_dut_mac();
        CHECK(gateway.answer(buffer, octets) == 0);
        CHECK(gateway.dut_mac() == interfaces[link.interface].mac);
    }
}

TEST_CASE("a question is not written where there is no address to ask with, or no room") {
    const auto only_v6 = tests::interface_of(0, {{ip("2001:2::1"), 64}});
    Octets buffer(router::question_octets);
    CHECK(router::write_question(buffer, only_v6, {.target = ip("10.0.0.2")}) == 0);
    CHECK(router::write_question(buffer, only_v6, {.target = ip("2001:2::2")}) == router::question_octets);
    CHECK(router::write_question(std::span{buffer}.first(buffer.size() - 1), only_v6, {.target = ip("2001:2::2")}) ==
          0);
}

TEST_CASE("100,000 damaged frames in buffers of their own size are survived, and each is counted once") {
    // Buffers end where the frame ends, so that the sanitized build sees any reading or writing beyond.
    const std::vector<Octets> seeds{arp({}),
                                    arp({.to = own, .operation = "0002"}),
                                    solicit({}),
                                    solicit({.source = "::", .options = ""}),
                                    solicit({.options = "0101" + tester + "0e01" + tester}),
                                    advertise({}),
                                    advertise({.options = ""}),
                                    echo4({}),
                                    icmp6({.head = "8000", .rest = echo_rest})};
    Rig rig;
    std::mt19937 bits{20'261'121};
    const auto below = [&](std::size_t n) { return bits() % n; };
    std::uint64_t answers = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        Octets f = seeds[below(seeds.size())];
        for (std::size_t n = below(4); n > 0; --n) f[below(f.size())] = static_cast<std::byte>(bits());
        if (below(4) == 0) f.resize(below(f.size() + 40));
        // Half of the IPv6 ones get a right checksum again, or hardly any would come past it.
        if (below(2) == 0 && f.size() > 58 && f[12] == std::byte{0x86}) {
            const std::size_t octets = std::min<std::size_t>(
                static_cast<std::size_t>(f[18]) << 8U | static_cast<std::size_t>(f[19]), f.size() - 54);
            f[56] = f[57] = std::byte{0};
            if (octets >= 4)
                put_checksum(f, 56, std::span{f}.subspan(22, 32 + octets), static_cast<std::uint32_t>(58 + octets));
        }
        f.shrink_to_fit();
        const std::size_t octets = f.size();
        const std::size_t answer = rig.answerer.handle(below(2) != 0 ? 1 : 0, f, octets, i);
        REQUIRE(answer <= octets);
        answers += answer != 0 ? 1 : 0;
        REQUIRE(rig.total() == i + 1);
    }
    CHECK(answers > 10'000);
    CHECK(rig.counters().told.value() > 1'000);
    CHECK(rig.counters().malformed.value() > 1'000);
    CHECK(rig.counters().bad_checksum.value() > 1'000);
    CHECK(rig.counters().bad_hop_limit.value() > 100);
}

}  // namespace local_test
