// SPDX-License-Identifier: Apache-2.0
// Neighbours: SEED-18, SEED-20, SEED-21, R2544-34. Frames without FCS, written out as RFC 826 and RFC 4861 have them.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "direct_plans.hpp"
#include "frame/reader.hpp"
#include "neighbor/responder.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace neighbor_test {

using namespace evenhand;
using neighbor::Responder;
using tests::hex;
using tests::ip;
using tests::Octets;
using tests::octets_of;

namespace {

constexpr plan::MacAddress own{2, 0, 0, 0, 0, 0x11};
constexpr plan::MacAddress dut{2, 0, 0, 0, 0, 0x22};
const std::string own_hex = "020000000011";
const std::string dut_hex = "020000000022";
const std::string everyone = "ffffffffffff";
const std::string padding(36, '0');

Responder right_v4() { return Responder{own, ip("10.0.1.2"), ip("10.0.1.1")}; }
Responder right_v6() { return Responder{own, ip("2001:2:0:9000::2"), ip("2001:2:0:9000::1")}; }

std::string hex_of(const plan::IpAddress& address) { return hex(std::as_bytes(address.bytes())); }

std::string arp_hex(const std::string& to, const std::string& from, const std::string& operation, const char* sender_ip,
                    const std::string& target_mac, const char* target_ip) {
    return to + from + "0806" +
           "0001"
           "0800"
           "06"
           "04" +
           operation + from + hex_of(ip(sender_ip)) + target_mac + hex_of(ip(target_ip)) + padding;
}
Octets arp_request(const char* target) {
    return octets_of(arp_hex(everyone, dut_hex, "0001", "10.0.1.1", "000000000000", target));
}

/// A neighbour message with its checksum by the book. `icmp`: type, code, two zero octets, and the rest.
Octets nd(const std::string& to, const std::string& from, const plan::IpAddress& source,
          const plan::IpAddress& destination, const std::string& icmp) {
    const std::string length = fmt::format("{:04x}", icmp.size() / 2);
    auto f = octets_of(to + from +
                       "86dd"
                       "60000000" +
                       length + "3aff" + hex_of(source) + hex_of(destination) + icmp);
    const auto sum = static_cast<std::uint16_t>(
        ~tests::slow_sum(std::span{f}.subspan(22), static_cast<std::uint32_t>(58 + icmp.size() / 2)));
    f[56] = static_cast<std::byte>(sum >> 8U);
    f[57] = static_cast<std::byte>(sum);
    return f;
}

struct Solicitation {
    const char* target = "2001:2:0:9000::2";
    const char* source = "2001:2:0:9000::1";
    const char* destination = "ff02::1:ff00:2";
    std::string to = "3333ff000002";
    std::string options = "0101" + dut_hex;
};
Octets solicit(const Solicitation& s) {
    return nd(s.to, dut_hex, ip(s.source), ip(s.destination),
              "87000000"
              "00000000" +
                  hex_of(ip(s.target)) + s.options);
}

Octets advertise(const char* target, const std::string& options = "0201" + dut_hex) {
    return nd(own_hex, dut_hex, ip("2001:2:0:9000::1"), ip("2001:2:0:9000::2"),
              "88000000"
              "60000000" +
                  hex_of(ip(target)) + options);
}

/// What the responder answers, in a buffer of `room` octets; empty for nothing.
Octets answer(Responder& responder, const Octets& question, std::size_t room = 2048) {
    Octets buffer = question;
    buffer.resize(std::max(room, question.size()));
    buffer.resize(responder.answer(buffer, question.size()));
    return buffer;
}

bool is_silent(Responder&& responder, const Octets& question) {
    return answer(responder, question).empty() && responder.answers() == 0;
}

}  // namespace

TEST_CASE("an ARP request for the gateway is answered, octet by octet") {
    auto responder = right_v4();
    const auto request = arp_request("10.0.1.2");
    REQUIRE(request.size() == 60);
    CHECK(frame::look_at(request.data(), request.size()).kind == frame::FrameKind::neighbor);
    CHECK(hex(answer(responder, request)) == arp_hex(dut_hex, own_hex, "0002", "10.0.1.2", dut_hex, "10.0.1.1"));
    CHECK(responder.questions() == 1);
    CHECK(responder.answers() == 1);
}

TEST_CASE("what stands behind an ARP request is not sent back with the answer") {
    auto responder = right_v4();
    auto request = arp_request("10.0.1.2");
    request.resize(1400, std::byte{0x55});
    CHECK(hex(answer(responder, request)) == arp_hex(dut_hex, own_hex, "0002", "10.0.1.2", dut_hex, "10.0.1.1"));
}

TEST_CASE("nobody answers ARP for a host, the DUT, the other side or a neighbour (SEED-18)") {
    for (const char* const target :
         {"198.19.0.1", "198.18.0.1", "10.0.1.1", "10.0.0.2", "10.0.1.3", "0.0.0.0", "255.255.255.255"}) {
        CAPTURE(target);
        auto responder = right_v4();
        CHECK(answer(responder, arp_request(target)).empty());
        CHECK(responder.questions() == 1);
        CHECK(responder.answers() == 0);
    }
}

TEST_CASE("an ARP reply is no question") {
    CHECK(is_silent(right_v4(), octets_of(arp_hex(own_hex, dut_hex, "0002", "10.0.1.1", own_hex, "10.0.1.2"))));
}

TEST_CASE("ARP of another hardware, protocol or address length is left alone, and so is a cut one") {
    const auto good = arp_request("10.0.1.2");
    for (const std::size_t at : {14U, 15U, 16U, 17U, 18U, 19U, 20U, 21U}) {
        auto f = good;
        f[at] ^= std::byte{4};
        CHECK_MESSAGE(is_silent(right_v4(), f), at);
    }
    for (std::size_t length = 0; length < 42; ++length)
        CHECK_MESSAGE(is_silent(right_v4(), Octets(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length))),
                      length);
    auto responder = right_v4();
    CHECK(answer(responder, Octets(good.begin(), good.begin() + 42)).size() ==
          42);  // without padding, as some virtual ports give it
}

TEST_CASE("a solicitation to the group is answered, octet by octet") {
    auto responder = right_v6();
    const auto expected = nd(dut_hex, own_hex, ip("2001:2:0:9000::2"), ip("2001:2:0:9000::1"),
                             "88000000"
                             "e0000000" +
                                 hex_of(ip("2001:2:0:9000::2")) + "0201" + own_hex);
    const auto question = solicit({});
    CHECK(frame::look_at(question.data(), question.size()).kind == frame::FrameKind::neighbor);
    CHECK(hex(answer(responder, question)) == hex(expected));
    CHECK(responder.answers() == 1);
    SUBCASE("and so is one to the address itself, with or without the option") {
        CHECK(hex(answer(responder, solicit({.destination = "2001:2:0:9000::2", .to = own_hex}))) == hex(expected));
        CHECK(hex(answer(responder, solicit({.destination = "2001:2:0:9000::2", .to = own_hex, .options = ""}))) ==
              hex(expected));
    }
    SUBCASE("and one with other options before that of the address, and octets behind the packet") {
        auto longer = solicit({.options = "0e01"
                                          "010203040506"
                                          "0101" +
                                          dut_hex});
        longer.resize(longer.size() + 6);
        CHECK(hex(answer(responder, longer)) == hex(expected));
    }
}

TEST_CASE("duplicate address detection is answered to all nodes") {
    auto responder = right_v6();
    const auto expected = nd("333300000001", own_hex, ip("2001:2:0:9000::2"), ip("ff02::1"),
                             "88000000"
                             "a0000000" +
                                 hex_of(ip("2001:2:0:9000::2")) + "0201" + own_hex);
    CHECK(hex(answer(responder, solicit({.source = "::", .options = ""}))) == hex(expected));
}

TEST_CASE("the target decides, never the group (SEED-21)") {
    // The hosts of the right block share 256 groups with the gateways: ff02::1:ffXX:2.
    auto responder = Responder{own, ip("2001:2::100:2"), ip("2001:2::100:1")};
    CHECK_FALSE(answer(responder, solicit({.target = "2001:2::100:2", .destination = "ff02::1:ff00:2"})).empty());
    CHECK_FALSE(
        answer(responder, solicit({.target = "2001:2::100:2", .destination = "ff02::1:ff77:2", .to = "3333ff770002"}))
            .empty());
    for (const char* const target :
         {"2001:2::1", "2001:2::2", "2001:2::200:2", "2001:2:0:8000::2", "2001:2::100:1", "::", "fe80::ff:fe00:22"}) {
        CHECK_MESSAGE(answer(responder, solicit({.target = target})).empty(), target);
    }
    CHECK(responder.answers() == 2);
    CHECK(responder.questions() == 9);
}

namespace {

Responder direct(const plan::AddressPlan& plan, std::optional<plan::HostMacs> macs = {}) {
    return Responder{own, plan::HostSet{plan.right.hosts}, macs, plan.right.dut_address};
}

/// A question of either version, broadcast or to the group; or unicast, as a device asks that looks after its entries.
Octets question_for(const plan::IpAddress& target, const char* asker, bool unicast = false) {
    const auto text = plan::to_string(target);
    if (target.version == plan::IpVersion::v4)
        return octets_of(arp_hex(unicast ? own_hex : everyone, dut_hex, "0001", asker,
                                 unicast ? own_hex : "000000000000", text.c_str()));
    const auto& t = target.octets;
    if (unicast)
        return solicit(
            {.target = text.c_str(), .source = asker, .destination = text.c_str(), .to = own_hex, .options = ""});
    const auto group = fmt::format("ff02::1:ff{:02x}:{:x}", t[13], t[14] * 256 + t[15]);
    return solicit({.target = text.c_str(),
                    .source = asker,
                    .destination = group.c_str(),
                    .to = fmt::format("3333ff{:02x}{:02x}{:02x}", t[13], t[14], t[15])});
}

/// The MAC that an answer tells, in the frame's source and in the message; empty without an answer.
std::string told(const Octets& reply) {
    if (reply.empty()) return {};
    const auto all = hex(reply);
    auto told_mac = all.substr(24, 4) == "0806" ? all.substr(44, 12) : all.substr(160, 12);
    CHECK(all.substr(12, 12) == told_mac);
    return told_mac;
}

std::string mac_hex(const plan::MacAddress& mac) { return hex(std::as_bytes(std::span{mac})); }

}  // namespace

TEST_CASE("in direct plans every host is answered for, asked by all or to itself (SEED-20, R2544-25)") {
    for (const auto& plan : {tests::direct_v4(253), tests::direct_v4(), tests::direct_v6()}) {
        auto responder = direct(plan);
        const plan::HostSet hosts{plan.right.hosts};
        const auto asker = plan::to_string(plan.right.dut_address);
        std::uint64_t asked = 0;
        for (std::uint32_t host = 0; host < hosts.size(); host += host % 7 == 0 || host + 20 > hosts.size() ? 1 : 13) {
            for (const bool unicast : {false, true}) {
                const auto reply = answer(responder, question_for(hosts.address(host), asker.c_str(), unicast));
                REQUIRE(told(reply) == own_hex);
                ++asked;
            }
        }
        REQUIRE(told(answer(responder, question_for(hosts.address(hosts.size() - 1), asker.c_str()))) == own_hex);
        CHECK(responder.answers() == asked + 1);
        CHECK(responder.questions() == asked + 1);
        CHECK(responder.dut_mac() == dut);
    }
}

TEST_CASE(
    "in direct plans nothing else is answered for: network, DUT, broadcast, the other side, a gateway (SEED-20)") {
    for (const char* const target : {"198.19.0.0", "198.19.0.1", "198.19.255.255", "198.18.0.2", "10.0.1.2",
                                     "198.20.0.2", "0.0.0.0", "255.255.255.255"}) {
        CHECK_MESSAGE(is_silent(direct(tests::direct_v4()), question_for(ip(target), "198.19.0.1")), target);
    }
    for (const char* const target : {"198.19.0.255", "198.19.1.2"})
        CHECK_MESSAGE(is_silent(direct(tests::direct_v4(253)), question_for(ip(target), "198.19.0.1")), target);
    CHECK_FALSE(is_silent(direct(tests::direct_v4()),
                          question_for(ip("198.19.0.255"), "198.19.0.1")));  // a legal host of a /16
    for (const char* const target : {"2001:2:0:8000::1", "2001:2:0:8000::3", "2001:2:0:8000::1:1", "2001:2:0:8001::2",
                                     "2001:2::2", "2001:2:0:9000::2", "::", "fe80::ff:fe00:22"}) {
        CHECK_MESSAGE(is_silent(direct(tests::direct_v6()), question_for(ip(target), "2001:2:0:8000::1")), target);
    }
    CHECK_FALSE(is_silent(direct(tests::direct_v6()), question_for(ip("fe80::ff:fe00:11"), "fe80::ff:fe00:22")));
}

TEST_CASE("hosts of all networks are answered for, and no DUT of any (SEED-20)") {
    Responder v4{own, tests::networks_v4(), {}, ip("198.18.0.1")};
    for (const char* const target : {"198.18.0.2", "198.18.0.254", "198.18.77.100", "198.18.255.2", "198.18.255.254"}) {
        CHECK_MESSAGE(told(answer(v4, question_for(ip(target), "198.18.0.1"))) == own_hex, target);
    }
    for (const char* const target : {"198.18.77.0", "198.18.77.1", "198.18.77.255", "198.18.255.255", "198.19.0.2"}) {
        CHECK_MESSAGE(answer(v4, question_for(ip(target), "198.18.0.1")).empty(), target);
    }
    Responder v6{own, tests::networks_v6(), {}, ip("2001:2:0:8000::1")};
    for (const char* const target : {"2001:2:0:8000::2", "2001:2:0:80ff::ffff:2", "2001:2:0:8042::abcd:2"}) {
        CHECK_MESSAGE(told(answer(v6, question_for(ip(target), "2001:2:0:8000::1"))) == own_hex, target);
    }
    for (const char* const target : {"2001:2:0:8042::1", "2001:2:0:8100::2", "2001:2::2"}) {
        CHECK_MESSAGE(answer(v6, question_for(ip(target), "2001:2:0:8000::1")).empty(), target);
    }
}

TEST_CASE("in direct plans too the target decides, never the group (SEED-21)") {
    auto responder = Responder{own, plan::HostSet{tests::direct_v6().left.hosts}, {}, ip("2001:2::1")};
    CHECK_FALSE(
        answer(responder, solicit({.target = "2001:2::100:2", .source = "2001:2::1", .destination = "ff02::1:ff00:2"}))
            .empty());
    CHECK_FALSE(
        answer(responder, solicit({.target = "2001:2::177:2", .source = "2001:2::1", .destination = "ff02::1:ff00:2"}))
            .empty());
    CHECK(answer(responder, solicit({.target = "2001:2::1", .source = "2001:2::1", .destination = "ff02::1:ff00:2"}))
              .empty());
}

TEST_CASE("a host on the link does not call itself a router, a gateway does") {
    auto host = direct(tests::direct_v6());
    constexpr std::size_t flags = 14 + 40 + 4;
    CHECK(answer(host, question_for(ip("2001:2:0:8000::2"), "2001:2:0:8000::1")).at(flags) == std::byte{0x60});
    CHECK(answer(host, solicit({.target = "2001:2:0:8000::2", .source = "::", .options = ""})).at(flags) ==
          std::byte{0x20});
    auto gateway = right_v6();
    CHECK(answer(gateway, solicit({})).at(flags) == std::byte{0xE0});
}

TEST_CASE(
    "each host answers with its own pseudorandom MAC, the link-local address with the port's (R4814-05, R4814-08)") {
    for (const auto& plan : {tests::direct_v4(), tests::direct_v6()}) {
        const plan::HostMacs macs{99, plan::Side::right};
        auto responder = direct(plan, macs);
        const plan::HostSet hosts{plan.right.hosts};
        const auto asker = plan::to_string(plan.right.dut_address);
        for (const std::uint32_t host : {0U, 1U, 255U, 4711U, hosts.size() - 1}) {
            for (const bool unicast : {false, true})
                CHECK(told(answer(responder, question_for(hosts.address(host), asker.c_str(), unicast))) ==
                      mac_hex(macs.mac(host)));
        }
    }
    auto v6 = direct(tests::direct_v6(), plan::HostMacs{99, plan::Side::right});
    CHECK(told(answer(v6, question_for(ip("fe80::ff:fe00:11"), "fe80::ff:fe00:22"))) == own_hex);
}

TEST_CASE("in direct plans the first host asks for the DUT (SEED-22)") {
    const plan::HostMacs macs{99, plan::Side::right};
    Octets frame(neighbor::arp_octets, std::byte{0xAA});
    REQUIRE(direct(tests::direct_v4()).write_question(frame) == 60);
    CHECK(hex(frame) == arp_hex(everyone, own_hex, "0001", "198.19.0.2", everyone, "198.19.0.1"));
    REQUIRE(direct(tests::direct_v4(), macs).write_question(frame) == 60);
    CHECK(hex(frame) == arp_hex(everyone, mac_hex(macs.mac(0)), "0001", "198.19.0.2", everyone, "198.19.0.1"));
    frame.assign(neighbor::solicitation_octets, std::byte{0xAA});
    REQUIRE(direct(tests::direct_v6()).write_question(frame) == 86);
    CHECK(hex(frame) == hex(nd("3333ff000001", own_hex, ip("2001:2:0:8000::2"), ip("ff02::1:ff00:1"),
                               "87000000"
                               "00000000" +
                                   hex_of(ip("2001:2:0:8000::1")) + "0101" + own_hex)));
}

TEST_CASE("a host on the link announces its MAC to all, asked by nobody (R4814-06, RFC 5227, RFC 4861 7.2.6)") {
    const plan::HostMacs macs{99, plan::Side::right};
    Octets frame(neighbor::arp_octets, std::byte{0xAA});
    CHECK_FALSE(right_v4().has_hosts());
    const auto v4 = direct(tests::direct_v4(), macs);
    REQUIRE(v4.has_hosts());
    REQUIRE(v4.write_announcement(frame, 3) == 60);
    CHECK(hex(frame) == arp_hex(everyone, mac_hex(macs.mac(3)), "0001", "198.19.0.5", everyone, "198.19.0.5"));
    frame.assign(neighbor::solicitation_octets, std::byte{0xAA});
    REQUIRE(direct(tests::direct_v6()).write_announcement(frame, 3) == 86);
    CHECK(hex(frame) == hex(nd("333300000001", own_hex, ip("2001:2:0:8000::3:2"), ip("ff02::1"),
                               "88000000"
                               "20000000" +
                                   hex_of(ip("2001:2:0:8000::3:2")) + "0201" + own_hex)));
}

TEST_CASE("the link-local address is answered for") {
    auto responder = right_v6();
    const auto reply = answer(responder, solicit({.target = "fe80::ff:fe00:11",
                                                  .source = "fe80::ff:fe00:22",
                                                  .destination = "ff02::1:ff00:11",
                                                  .to = "3333ff000011"}));
    REQUIRE(reply.size() == 86);
    CHECK(hex(reply).substr(44, 64) == hex_of(ip("fe80::ff:fe00:11")) + hex_of(ip("fe80::ff:fe00:22")));
}

TEST_CASE("solicitations that RFC 4861, 7.1.1 calls invalid are not answered") {
    const auto good = solicit({});
    REQUIRE_FALSE(is_silent(right_v6(), good));
    const auto changed = [&](std::size_t at, int value) {
        auto f = good;
        f[at] = static_cast<std::byte>(value);
        return f;
    };
    SUBCASE("hop limit 254: it has crossed a router") { CHECK(is_silent(right_v6(), changed(21, 254))); }
    SUBCASE("a wrong checksum, by any octet that it covers") {
        for (std::size_t at = 22; at < good.size(); ++at)
            CHECK_MESSAGE(is_silent(right_v6(), changed(at, static_cast<int>(good[at]) ^ 0x40)), at);
    }
    SUBCASE("a code that is not 0, with the checksum right") {
        CHECK(is_silent(right_v6(), nd("3333ff000002", dut_hex, ip("2001:2:0:9000::1"), ip("ff02::1:ff00:2"),
                                       "87010000"
                                       "00000000" +
                                           hex_of(ip("2001:2:0:9000::2")) + "0101" + dut_hex)));
    }
    SUBCASE("another protocol") { CHECK(is_silent(right_v6(), changed(20, 17))); }
    SUBCASE("truncated anywhere") {
        for (std::size_t length = 0; length < good.size(); ++length)
            CHECK_MESSAGE(
                is_silent(right_v6(), Octets(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length))),
                length);
    }
    SUBCASE("a payload length that is not that of the packet") {
        for (const int length : {0, 8, 23, 24, 31, 33, 255})
            CHECK_MESSAGE(is_silent(right_v6(), changed(19, length)), length);
    }
    SUBCASE("an option of length 0, or one that leaves the packet") {
        CHECK(is_silent(right_v6(), solicit({.options = "0100" + dut_hex})));
        CHECK(is_silent(right_v6(), solicit({.options = "0e00"
                                                        "010203040506"
                                                        "0101" +
                                                        dut_hex})));
        CHECK(is_silent(right_v6(), solicit({.options = "0102" + dut_hex})));
    }
}

TEST_CASE("an answer that does not fit is none") {
    // A solicitation without the option has 78 octets, its answer 86.
    auto responder = right_v6();
    CHECK(answer(responder, solicit({.options = ""}), 85).empty());
    CHECK(answer(responder, solicit({.options = ""}), 86).size() == 86);
}

// SEED-22: frames go there.
TEST_CASE("the DUT's MAC is learnt wherever it is told") {
    using Told = std::pair<const char*, Octets>;
    SUBCASE("IPv4") {
        for (const auto& [what, frame] :
             {Told{"reply", octets_of(arp_hex(own_hex, dut_hex, "0002", "10.0.1.1", own_hex, "10.0.1.2"))},
              Told{"request", arp_request("10.0.1.2")}, Told{"request for another", arp_request("10.0.1.77")}}) {
            auto responder = right_v4();
            CHECK_FALSE(responder.dut_mac().has_value());
            (void)answer(responder, frame);
            CHECK_MESSAGE(responder.dut_mac() == dut, what);
        }
    }
    SUBCASE("IPv6") {
        for (const auto& [what, frame] :
             {Told{"advertisement", advertise("2001:2:0:9000::1")}, Told{"solicitation", solicit({})},
              Told{"for another", solicit({.target = "2001:2:0:9000::77"})}}) {
            auto responder = right_v6();
            (void)answer(responder, frame);
            CHECK_MESSAGE(responder.dut_mac() == dut, what);
        }
    }
    SUBCASE("but not from others, and not from what does not tell it") {
        for (const auto& frame :
             {advertise("2001:2:0:9000::3"), advertise("2001:2:0:9000::1", ""), solicit({.options = ""}),
              solicit({.source = "2001:2:0:9000::3"}), solicit({.source = "::", .options = ""})}) {
            auto responder = right_v6();
            (void)answer(responder, frame);
            CHECK_FALSE(responder.dut_mac().has_value());
        }
        auto responder = right_v4();
        (void)answer(responder, octets_of(arp_hex(own_hex, dut_hex, "0002", "10.0.1.9", own_hex, "10.0.1.2")));
        CHECK_FALSE(responder.dut_mac().has_value());
    }
    SUBCASE("it can be given and forgotten") {
        auto responder = right_v4();
        responder.set_dut_mac({0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54});
        CHECK(responder.dut_mac() == plan::MacAddress{0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54});
        responder.forget_dut_mac();
        CHECK_FALSE(responder.dut_mac().has_value());
        responder.set_dut_mac({});
        CHECK(responder.dut_mac() == plan::MacAddress{});
    }
}

TEST_CASE("the learning frame is that of RFC 2544 C.2.4.1 (R2544-34)") {
    Octets frame(neighbor::arp_octets, std::byte{0xAA});
    REQUIRE(right_v4().write_question(frame) == 60);
    CHECK(hex(frame) == arp_hex(everyone, own_hex, "0001", "10.0.1.2", everyone, "10.0.1.1"));
    frame.assign(neighbor::solicitation_octets, std::byte{0xAA});
    REQUIRE(right_v6().write_question(frame) == 86);
    CHECK(hex(frame) == hex(nd("3333ff000001", own_hex, ip("2001:2:0:9000::2"), ip("ff02::1:ff00:1"),
                               "87000000"
                               "00000000" +
                                   hex_of(ip("2001:2:0:9000::1")) + "0101" + own_hex)));
}

TEST_CASE("two testers find each other") {
    Responder one{own, ip("2001:2:0:9000::2"), ip("2001:2:0:9000::1")};
    Responder other{dut, ip("2001:2:0:9000::1"), ip("2001:2:0:9000::2")};
    Octets question(neighbor::solicitation_octets);
    (void)one.write_question(question);
    const auto reply = answer(other, question);
    CHECK(other.dut_mac() == own);
    CHECK(answer(one, reply).empty());
    CHECK(one.dut_mac() == dut);
}

TEST_CASE("octets of any kind are read within their length") {
    // Buffers of exactly the frame's size: the sanitizer build sees a step beyond.
    const auto survives = [](const Octets& frame) {
        for (const bool v6 : {false, true}) {
            auto responder = v6 ? right_v6() : right_v4();
            Octets buffer(frame.begin(), frame.end());
            buffer.shrink_to_fit();
            const auto octets = responder.answer(buffer, buffer.size());
            RC_ASSERT(octets <= buffer.size());
            (void)frame::look_at(buffer.data(), buffer.size());
        }
    };
    const bool noise = rc::check("noise", [&](const std::vector<std::uint8_t>& tail) {
        auto f = octets_of(*rc::gen::element<std::string>("", everyone + dut_hex, everyone + dut_hex + "0806",
                                                          everyone + dut_hex + "86dd",
                                                          everyone + dut_hex + "08060001080006040001",
                                                          everyone + dut_hex +
                                                              "86dd60000000"
                                                              "00203aff"));
        for (const auto octet : tail) f.push_back(std::byte{octet});
        survives(f);
    });
    CHECK(noise);
    const std::vector<Octets> good{arp_request("10.0.1.2"), solicit({}), solicit({.options = ""}),
                                   solicit({.source = "::", .options = ""}), advertise("2001:2:0:9000::1")};
    const bool damage = rc::check("good messages, damaged, with the checksum made right again", [&] {
        auto f = *rc::gen::elementOf(good);
        const auto hits = *rc::gen::inRange(0, 4);
        for (int i = 0; i < hits; ++i)
            f[*rc::gen::inRange<std::size_t>(0, f.size())] = std::byte{*rc::gen::arbitrary<std::uint8_t>()};
        f.resize(*rc::gen::inRange<std::size_t>(0, f.size() + 20));
        if (f.size() > 58) {
            const auto claimed = std::min<std::size_t>(
                static_cast<std::size_t>(f[18]) * 256 + static_cast<std::size_t>(f[19]), f.size() - 54);
            f[56] = f[57] = std::byte{0};
            const auto sum = static_cast<std::uint16_t>(
                ~tests::slow_sum(std::span{f}.subspan(22, 32 + claimed), static_cast<std::uint32_t>(58 + claimed)));
            f[56] = static_cast<std::byte>(sum >> 8U);
            f[57] = static_cast<std::byte>(sum);
        }
        survives(f);
    });
    CHECK(damage);
}

}  // namespace neighbor_test
