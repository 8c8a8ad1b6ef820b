// SPDX-License-Identifier: Apache-2.0
// Stations 5 and 6: ICMP errors that a DUT sends about test frames say why it did not forward them (R2544-06).
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/icmp_error.hpp"
#include "frame/source.hpp"
#include "octets.hpp"
#include "plans.hpp"
#include "tally/icmp_errors.hpp"

namespace icmp_errors_test {

using namespace evenhand;
using frame::IpVersion;
using plan::Direction;
using tally::IcmpErrorCount;
using tests::Octets;

namespace {

constexpr std::uint16_t trial = 77;
constexpr plan::MacAddress tester_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 3};
constexpr std::size_t ip_octets_v4 = 20;
constexpr std::size_t ip_octets_v6 = 40;

/// An error, but for what it quotes.
struct Error {
    IpVersion version = IpVersion::v4;
    std::uint8_t type = 3;
    std::uint8_t code = 1;
    std::uint32_t mtu = 0;
    std::size_t options = 0;  // octets of the IPv4 header beyond the usual
};

/// The packet of test frame `k`, without its Ethernet header.
Octets packet_of(const plan::AddressPlan& p, std::uint64_t k, std::uint16_t of_trial = trial,
                 Direction direction = Direction::forward) {
    const std::size_t size = 100;
    Octets octets(size - frame::fcs_octets);
    frame::write_pattern(p.version(), octets);
    const auto shape =
        frame::make_template(p, size, {.direction = direction, .stream = 0, .trial = of_trial}, tester_mac, dut_mac);
    std::byte* const at = octets.data();
    frame::TestFrameSource{shape, plan::FlowDraw{p, direction, 1}, {.first = k}}.write_next({&at, 1}, 12345);
    return {octets.begin() + frame::ethernet_octets, octets.end()};
}

/// The frame of an error that quotes `quoted`, by the book: RFC 792, 1191, 4443.
Octets error_about(const Error& e, const Octets& quoted) {
    const bool is_v4 = e.version == IpVersion::v4;
    const std::size_t head = is_v4 ? ip_octets_v4 + e.options : ip_octets_v6;
    Octets f(frame::ethernet_octets + head + 8);
    frame::store(f.data() + 12, frame::big(static_cast<std::uint16_t>(is_v4 ? 0x0800 : 0x86DD)));
    std::byte* const ip = f.data() + frame::ethernet_octets;
    ip[0] = static_cast<std::byte>(is_v4 ? 0x40 + head / 4 : 0x60);
    ip[is_v4 ? 9 : 6] = static_cast<std::byte>(is_v4 ? 1 : 58);
    std::byte* const icmp = ip + head;
    icmp[0] = static_cast<std::byte>(e.type);
    icmp[1] = static_cast<std::byte>(e.code);
    if (is_v4)
        frame::store(icmp + 6, frame::big(static_cast<std::uint16_t>(e.mtu)));
    else
        frame::store(icmp + 4, frame::big(e.mtu));
    f.insert(f.end(), quoted.begin(), quoted.end());
    return f;
}

plan::AddressPlan plan_of(IpVersion version) {
    return version == IpVersion::v4 ? tests::gateway_v4() : tests::gateway_v6();
}

/// The hosts of both sides of the plans of both IP versions.
std::vector<plan::HostSet> all_hosts() {
    std::vector<plan::HostSet> hosts;
    for (const auto& p : {tests::gateway_v4(), tests::gateway_v6()})
        for (const auto* const side : {&p.left, &p.right}) hosts.emplace_back(side->hosts);
    return hosts;
}

std::vector<IcmpErrorCount> counts_of(const tally::IcmpErrors& errors) {
    std::vector<IcmpErrorCount> counts;
    errors.add_to(counts);
    return counts;
}

bool note(tally::IcmpErrors& errors, const Octets& f) { return errors.note(f.data(), f.size()); }

/// The type and code of "no way to the host", and of "too big".
Error unreachable(IpVersion version) {
    return {.version = version, .type = static_cast<std::uint8_t>(version == IpVersion::v4 ? 3 : 1), .code = 0};
}
Error too_big(IpVersion version, std::uint32_t mtu) {
    const bool is_v4 = version == IpVersion::v4;
    return {.version = version,
            .type = static_cast<std::uint8_t>(is_v4 ? 3 : 2),
            .code = static_cast<std::uint8_t>(is_v4 ? 4 : 0),
            .mtu = mtu};
}

}  // namespace

TEST_CASE("errors about frames of the trial are counted by kind, with the number of the first frame") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        CAPTURE(version);
        const auto p = plan_of(version);
        tally::IcmpErrors errors{all_hosts()};
        errors.begin(trial);
        for (const std::uint64_t k : {5U, 3U, 9U})
            CHECK(note(errors, error_about(unreachable(version), packet_of(p, k))));
        CHECK(note(errors, error_about(too_big(version, 1280), packet_of(p, 0))));
        const auto counts = counts_of(errors);
        REQUIRE(counts.size() == 2);
        CHECK(counts[0].version == version);
        CHECK(counts[0].type == unreachable(version).type);
        CHECK(counts[0].code == 0);
        CHECK(counts[0].frames == 3);
        CHECK(counts[0].mtu == 0);
        CHECK(counts[0].first_frame == 5);
        CHECK(counts[1].type == too_big(version, 0).type);
        CHECK(counts[1].code == too_big(version, 0).code);
        CHECK(counts[1].frames == 1);
        CHECK(counts[1].mtu == 1280);
        CHECK(counts[1].first_frame == 0);
        errors.begin(trial);
        CHECK(counts_of(errors).empty());
    }
}

TEST_CASE("of several MTUs the smallest is told, and one that is not said is none") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        const auto p = plan_of(version);
        tally::IcmpErrors errors{all_hosts()};
        errors.begin(trial);
        for (const std::uint32_t mtu : {0U, 1400U, 1300U, 1350U, 0U})
            note(errors, error_about(too_big(version, mtu), packet_of(p, 1)));
        REQUIRE(counts_of(errors).size() == 1);
        CHECK(counts_of(errors)[0].mtu == 1300);
        CHECK(counts_of(errors)[0].frames == 5);
    }
}

TEST_CASE("an error about another trial's frame is the tester's, and is not counted") {
    tally::IcmpErrors errors{all_hosts()};
    errors.begin(trial);
    CHECK(note(errors, error_about(unreachable(IpVersion::v4), packet_of(tests::gateway_v4(), 5, trial - 1))));
    CHECK(counts_of(errors).empty());
}

TEST_CASE("where the tag is not quoted, source and destination must both be hosts of the plan") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        CAPTURE(version);
        const bool is_v4 = version == IpVersion::v4;
        // RFC 792: header and eight octets.
        const std::size_t least = (is_v4 ? ip_octets_v4 : ip_octets_v6) + 8;
        auto quoted = packet_of(plan_of(version), 5);
        quoted.resize(least);
        tally::IcmpErrors errors{all_hosts()};
        errors.begin(trial);
        CHECK(note(errors, error_about(unreachable(version), quoted)));
        REQUIRE(counts_of(errors).size() == 1);
        CHECK_FALSE(counts_of(errors)[0].first_frame);
        const std::size_t source = is_v4 ? 12 : 8;
        for (const std::size_t address : {source, source + (is_v4 ? 4 : 16)}) {
            auto other = quoted;
            other[address] ^= std::byte{0x40};
            CHECK_FALSE(note(errors, error_about(unreachable(version), other)));
        }
        quoted.resize(least - 1);
        CHECK_FALSE(note(errors, error_about(unreachable(version), quoted)));
        CHECK(counts_of(errors)[0].frames == 1);
    }
}

TEST_CASE("an error may quote the other IP version, and come behind options") {
    tally::IcmpErrors errors{all_hosts()};
    errors.begin(trial);
    CHECK(note(errors, error_about(unreachable(IpVersion::v4), packet_of(tests::gateway_v6(), 1))));
    CHECK(note(errors, error_about(unreachable(IpVersion::v6), packet_of(tests::gateway_v4(), 2))));
    auto behind_options = unreachable(IpVersion::v4);
    behind_options.options = 8;
    CHECK(note(errors, error_about(behind_options, packet_of(tests::gateway_v4(), 3))));
    const auto counts = counts_of(errors);
    REQUIRE(counts.size() == 2);
    CHECK(counts[0].version == IpVersion::v4);
    CHECK(counts[0].frames == 2);
    CHECK(counts[0].first_frame == 1);
    CHECK(counts[1].version == IpVersion::v6);
    CHECK(counts[1].first_frame == 2);
}

TEST_CASE("what is no error, or about no test frame, is left to others") {
    const auto p = tests::gateway_v4();
    tally::IcmpErrors errors{all_hosts()};
    errors.begin(trial);
    for (const int type : {0, 8, 13}) {  // echoes, a time stamp
        auto e = unreachable(IpVersion::v4);
        e.type = static_cast<std::uint8_t>(type);
        CHECK_FALSE(note(errors, error_about(e, packet_of(p, 1))));
    }
    for (const int type : {0, 5, 128, 136}) {
        auto e = unreachable(IpVersion::v6);
        e.type = static_cast<std::uint8_t>(type);
        CHECK_FALSE(note(errors, error_about(e, packet_of(tests::gateway_v6(), 1))));
    }
    auto tcp = packet_of(p, 1);
    tcp[9] = std::byte{6};
    CHECK_FALSE(note(errors, error_about(unreachable(IpVersion::v4), tcp)));
    CHECK_FALSE(note(errors, packet_of(p, 1)));
    const auto whole = error_about(unreachable(IpVersion::v4), packet_of(p, 1));
    for (std::size_t octets = 0; octets < frame::ethernet_octets + ip_octets_v4 + 8 + ip_octets_v4 + 8; ++octets)
        CHECK_FALSE(errors.note(whole.data(), octets));
    CHECK(counts_of(errors).empty());
}

TEST_CASE("the tag of a quoted frame says its direction, its trial and its number") {
    const auto p = tests::gateway_v4();
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        const auto f = error_about(too_big(IpVersion::v4, 1280), packet_of(p, 12'345'678'901, trial, direction));
        const auto error = frame::read_icmp_error(f.data(), f.size());
        REQUIRE(error);
        CHECK(error->mtu == 1280);
        REQUIRE(error->tag);
        CHECK(error->tag->direction == direction);
        CHECK(error->tag->trial == trial);
        CHECK(error->tag->sequence == 12'345'678'901);
    }
}

TEST_CASE("kinds beyond those that there is room for are counted with the last one") {
    tally::IcmpErrors errors{all_hosts()};
    errors.begin(trial);
    constexpr std::uint8_t kinds = 20;
    for (std::uint8_t code = 0; code < kinds; ++code) {
        auto e = unreachable(IpVersion::v4);
        e.code = code;
        CHECK(note(errors, error_about(e, packet_of(tests::gateway_v4(), code))));
    }
    const auto counts = counts_of(errors);
    REQUIRE(counts.size() == 16);
    for (std::uint8_t code = 0; code < 15; ++code) {
        CHECK(counts[code].code == code);
        CHECK(counts[code].frames == 1);
    }
    CHECK(counts[15].code == 15);
    CHECK(counts[15].frames == 5);
}

TEST_CASE("counts of several queues are one for each kind: the sum, the smallest MTU, the lowest number") {
    const IcmpErrorCount base{
        .version = IpVersion::v4, .type = 3, .code = 4, .frames = 2, .mtu = 1400, .first_frame = 9};
    std::vector<IcmpErrorCount> counts;
    tally::add(counts, base);
    auto other = base;
    other.frames = 5, other.mtu = 1300, other.first_frame = 12;
    tally::add(counts, other);
    other.frames = 1, other.mtu = 0, other.first_frame = 4;
    tally::add(counts, other);
    other.mtu = 1500, other.first_frame = std::nullopt;
    tally::add(counts, other);
    REQUIRE(counts.size() == 1);
    CHECK(counts[0].frames == 9);
    CHECK(counts[0].mtu == 1300);
    CHECK(counts[0].first_frame == 4);
    auto other_type = base;
    other_type.type = 1;
    tally::add(counts, other_type);
    auto other_code = base;
    other_code.code = 1;
    tally::add(counts, other_code);
    auto v6 = base;
    v6.version = IpVersion::v6;
    tally::add(counts, v6);
    CHECK(counts.size() == 4);
    auto without = base;
    without.code = 9, without.mtu = 0, without.first_frame = std::nullopt;
    tally::add(counts, without);
    without.mtu = 1280, without.first_frame = 7;
    tally::add(counts, without);
    CHECK(counts.back().mtu == 1280);
    CHECK(counts.back().first_frame == 7);
}

TEST_CASE("an error is told in its own words, in each IP version") {
    struct Told {
        IpVersion version;
        std::uint8_t type;
        std::uint8_t code;
        const char* what;
        const char* next;  // a part of it
    };
    constexpr auto v4 = IpVersion::v4;
    constexpr auto v6 = IpVersion::v6;
    const std::vector<Told> all{{v4, 3, 0, "net unreachable", "no route"},
                                {v4, 3, 1, "host unreachable", "no answer about its next hop"},
                                {v4, 3, 2, "protocol unreachable", "as its own"},
                                {v4, 3, 3, "port unreachable", "as its own"},
                                {v4, 3, 4, "packet too big, MTU 1280", "at most 1298 octets"},
                                {v4, 3, 5, "destination unreachable, code 5", "no route"},
                                {v4, 3, 9, "administratively prohibited", "filter"},
                                {v4, 3, 10, "administratively prohibited", "filter"},
                                {v4, 3, 13, "administratively prohibited", "filter"},
                                {v4, 4, 0, "source quench", "less load"},
                                {v4, 5, 1, "redirect", "swapped"},
                                {v4, 11, 0, "hop limit exceeded", "loop"},
                                {v4, 11, 1, "fragment reassembly time exceeded", "fragments"},
                                {v4, 12, 0, "parameter problem", "headers"},
                                {v4, 1, 0, "type 1, code 0", "logs"},
                                {v6, 1, 0, "no route to destination", "no route"},
                                {v6, 1, 1, "administratively prohibited", "filter"},
                                {v6, 1, 2, "destination unreachable, code 2", "no route"},
                                {v6, 1, 3, "address unreachable", "no answer about its next hop"},
                                {v6, 1, 4, "port unreachable", "as its own"},
                                {v6, 1, 5, "rejected", "filter"},
                                {v6, 1, 6, "rejected", "filter"},
                                {v6, 2, 0, "packet too big, MTU 1280", "at most 1298 octets"},
                                {v6, 3, 0, "hop limit exceeded", "loop"},
                                {v6, 3, 1, "fragment reassembly time exceeded", "fragments"},
                                {v6, 4, 0, "parameter problem", "headers"}};
    for (const auto& told : all) {
        CAPTURE(told.version);
        CAPTURE(told.type);
        CAPTURE(told.code);
        const auto meaning = tally::meaning_of(
            {.version = told.version, .type = told.type, .code = told.code, .frames = 1, .mtu = 1280});
        CHECK(meaning.what == told.what);
        CHECK(meaning.next.find(told.next) != std::string::npos);
    }
    CHECK(tally::meaning_of({.version = v6, .type = 2, .code = 0, .frames = 1}).what == "packet too big");
}

}  // namespace icmp_errors_test
