// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of plans whose hosts are lists, as they are written, read by the book, checked, and learnt.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "frame/checksum.hpp"
#include "frame/expectation.hpp"
#include "frame/learning_source.hpp"
#include "frame/reader.hpp"
#include "frame/source.hpp"
#include "frame/writer.hpp"
#include "lists.hpp"
#include "neighbor/responder.hpp"
#include "octets.hpp"
#include "proof/proof.hpp"
#include "run/learning.hpp"
#include "slow.hpp"

namespace listed_frames_test {

using namespace evenhand;
using frame::FrameFault;
using plan::Choice;
using plan::Direction;
using plan::FlowBlock;
using plan::FlowDraw;
using plan::IpVersion;
using tests::ip;
using tests::listed;
using tests::Octets;

namespace {

constexpr plan::MacAddress tester_mac{2, 0, 0, 0, 0, 1};
constexpr plan::MacAddress dut_mac{2, 0, 0, 0, 0, 2};
constexpr std::uint64_t seed = 11;
constexpr auto untouched = std::byte{0xA5};

std::vector<plan::AddressPlan> plans() {
    std::vector<plan::AddressPlan> found{tests::both_listed_v4(), tests::both_listed_v6()};
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        found.push_back(listed(version, 200));
        found.push_back(listed(version, 200, Choice::host));
        found.push_back(listed(version, 200, Choice::entry, plan::Mode::increment));
        found.push_back(listed(version, 5000));  // blocks are begun ahead
    }
    return found;
}

/// Frames first, first + 1, ... of a direction.
std::vector<Octets> frames_of(const plan::AddressPlan& p, Direction direction, std::uint64_t first, std::size_t n,
                              std::size_t size) {
    std::vector<Octets> frames(n, Octets(size - frame::fcs_octets));
    std::vector<std::byte*> at;
    for (auto& one : frames) {
        frame::write_pattern(p.version(), one);
        at.push_back(one.data());
    }
    const auto shape = frame::make_template(p, size, {.direction = direction, .trial = 5}, tester_mac, dut_mac);
    frame::TestFrameSource{shape, FlowDraw{p, direction, seed}, {.first = first}}.write_next(at, 0x123456789A);
    return frames;
}

/// A frame as RFC 791, 768 and 8200 have it, read octet by octet.
struct ByTheBook {
    std::string source;
    std::string destination;
    unsigned source_port = 0;
    unsigned destination_port = 0;
    bool has_good_checksums = false;
};
ByTheBook read(const Octets& frame) {
    const auto octet = [&](std::size_t i) { return static_cast<unsigned>(frame.at(i)); };
    const auto word = [&](std::size_t i) { return octet(i) << 8U | octet(i + 1); };
    const bool is_v4 = word(12) == 0x0800;
    REQUIRE((is_v4 || word(12) == 0x86DD));
    const std::size_t at = is_v4 ? 26 : 22;
    const std::size_t address_octets = is_v4 ? 4 : 16;
    const std::size_t udp = at + 2 * address_octets;
    const auto text = [&](std::size_t begin) {
        plan::IpAddress address{.version = is_v4 ? IpVersion::v4 : IpVersion::v6};
        for (std::size_t i = 0; i < address_octets; ++i)
            address.octets.at(i) = static_cast<std::uint8_t>(octet(begin + i));
        return plan::to_string(address);
    };
    const std::span whole{frame};
    const auto udp_octets = static_cast<std::uint32_t>(frame.size() - udp);
    const bool has_good_header = !is_v4 || tests::slow_sum(whole.subspan(14, 20)) == 0xFFFF;
    return {.source = text(at),
            .destination = text(at + address_octets),
            .source_port = word(udp),
            .destination_port = word(udp + 2),
            .has_good_checksums =
                has_good_header && word(udp + 6) != 0 && tests::slow_sum(whole.subspan(at), 17 + udp_octets) == 0xFFFF};
}

frame::TestFrameExpectation expected_of(const plan::AddressPlan& p, Direction direction, std::size_t size,
                                        bool knows = true) {
    frame::TestFrameExpectation expected{frame::traffic_of(p, direction, size).arrives, dut_mac, dut_mac};
    if (knows) expected.know(FlowDraw{p, direction, seed}, 1);
    return expected;
}

/// Gives a frame another address, with right checksums.
void put_address(Octets& frame, bool is_destination, const plan::IpAddress& address) {
    const bool is_v4 = address.version == IpVersion::v4;
    const std::size_t octets = plan::address_octets(address.version);
    const std::size_t source = is_v4 ? 26 : 22;
    const std::size_t udp = source + 2 * octets;
    std::ranges::copy(std::as_bytes(address.bytes()),
                      frame.begin() + static_cast<std::ptrdiff_t>(source + (is_destination ? octets : 0)));
    const auto put = [&](std::size_t at, std::uint16_t word) {
        frame[at] = static_cast<std::byte>(word >> 8U);
        frame[at + 1] = static_cast<std::byte>(word);
    };
    const std::span whole{frame};
    if (is_v4) {
        put(24, 0);
        put(24, static_cast<std::uint16_t>(~tests::slow_sum(whole.subspan(14, 20))));
    }
    put(udp + 6, 0);
    put(udp + 6, static_cast<std::uint16_t>(
                     ~tests::slow_sum(whole.subspan(source), static_cast<std::uint32_t>(17 + frame.size() - udp))));
}

}  // namespace

TEST_CASE("frames of lists have the drawn addresses, right checksums, and are found in a burst") {
    for (const auto& p : plans()) {
        CAPTURE(p.name);
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            for (const std::size_t size : {frame::smallest_frame_size(p.version()), std::size_t{333}}) {
                const FlowDraw draw{p, direction, seed};
                const auto frames = frames_of(p, direction, 1000, 64, size);
                const auto expected = expected_of(p, direction, size);
                std::vector<const std::byte*> at;
                for (std::size_t i = 0; i < frames.size(); ++i) {
                    const auto found = read(frames[i]);
                    const auto drawn = draw.whole_addresses(1000 + i).value();
                    CHECK(found.source == plan::to_string(drawn.source));
                    CHECK(found.destination == plan::to_string(drawn.destination));
                    CHECK(found.source_port == draw.draw(1000 + i).source_port);
                    CHECK(found.destination_port == draw.draw(1000 + i).destination_port);
                    CHECK(found.has_good_checksums);
                    CHECK(expected.holds(0, frames[i].data(), p.version()));
                    CHECK_FALSE(expected.frame_fault(0, frames[i].data(), p.version()).has_value());
                    at.push_back(frames[i].data());
                }
                auto check = expected.burst_checks({.direction = direction, .trial = 5});
                if (!check) continue;  // this CPU cannot
                frame::FoundBurst burst;
                check.find(at.data(), 64, burst);
                CHECK(burst.known == ~std::uint64_t{0});
            }
        }
    }
}

TEST_CASE("both writers write the same octets for lists, and none around the frame") {
    for (const auto& p : plans()) {
        CAPTURE(p.name);
        const std::size_t size = frame::smallest_frame_size(p.version()) + 3;
        const auto shape = frame::make_template(p, size, {.stream = 7, .trial = 5}, tester_mac, dut_mac);
        if (frame::frame_writer("avx2", shape) == nullptr) return;
        const FlowDraw draw{p, Direction::forward, seed};
        for (std::uint64_t first = 0; first < 3200; first += FlowBlock::size) {
            FlowBlock block;
            draw.draw_block(first, 1, block);
            const std::size_t begin = first / FlowBlock::size % FlowBlock::size;
            const std::size_t margin = 64 + begin % 7;
            const auto written = [&](const char* name) {
                std::vector<Octets> buffers(FlowBlock::size - begin, Octets(shape.octets + 2 * margin, untouched));
                std::vector<std::byte*> at;
                at.reserve(buffers.size());
                for (auto& buffer : buffers) at.push_back(buffer.data() + margin);
                frame::frame_writer(name, shape)(frame::FrameShape{shape}, block, begin, at,
                                                 {.sequence = first + begin, .stride = 1, .time = first * 77777});
                return buffers;
            };
            CHECK(written("avx2") == written("plain"));
        }
    }
}

TEST_CASE("a burst of frames of lists is checked as its frames are one by one: every octet counts") {
    for (const auto& p : {tests::both_listed_v4(), tests::both_listed_v6(), listed(IpVersion::v6, 200)}) {
        CAPTURE(p.name);
        const std::size_t size = frame::smallest_frame_size(p.version()) + 40;
        const auto expected = expected_of(p, Direction::forward, size);
        auto check = expected.burst_checks({.direction = Direction::forward, .trial = 5});
        if (!check) return;  // this CPU cannot
        const auto sound = frames_of(p, Direction::forward, 0, 33, size);
        std::mt19937_64 random{20261129};
        for (std::size_t octet = 0; octet < sound[0].size(); ++octet) {
            auto frames = sound;
            const std::size_t which = random() % frames.size();
            frames[which][octet] ^= static_cast<std::byte>(1U << random() % 8);
            std::vector<const std::byte*> at;
            at.reserve(frames.size());
            for (const auto& one : frames) at.push_back(one.data());
            frame::FoundBurst burst;
            check.find(at.data(), static_cast<unsigned>(at.size()), burst);
            const auto look = frame::look_at(frames[which].data(), frames[which].size());
            const bool is_ours =
                look.kind == frame::FrameKind::test && look.tag.trial == 5 && look.tag.direction == Direction::forward;
            const bool holds = is_ours && expected.holds(0, frames[which].data(), look.version);
            if (is_ours) CHECK(holds == !expected.frame_fault(0, frames[which].data(), look.version).has_value());
            const bool is_known = holds && !frame::is_remarked(frames[which].data(), look.version);
            CAPTURE(octet);
            const std::uint64_t all = (std::uint64_t{1} << frames.size()) - 1;
            CHECK(burst.known == (is_known ? all : all & ~(std::uint64_t{1} << which)));
        }
    }
}

TEST_CASE("another address than the frame's is a wrong address, whether it is in the list or not") {
    for (const auto& p :
         {tests::both_listed_v4(), tests::both_listed_v6(), listed(IpVersion::v4, 200), listed(IpVersion::v6, 200)}) {
        CAPTURE(p.name);
        const auto version = p.version();
        const std::size_t size = frame::smallest_frame_size(version);
        const auto known = expected_of(p, Direction::forward, size);
        const auto any = expected_of(p, Direction::forward, size, false);
        auto check = known.burst_checks({.direction = Direction::forward, .trial = 5});
        const auto sound = frames_of(p, Direction::forward, 0, 2, size);
        const auto other = FlowDraw{p, Direction::forward, seed}.whole_addresses(1).value();
        const auto outside = ip(version == IpVersion::v4 ? "9.9.9.9" : "2001:2:0:ffff::9");
        for (const bool is_destination : {false, true}) {
            auto of_other = sound[0];
            put_address(of_other, is_destination, is_destination ? other.destination : other.source);
            auto of_nobody = sound[0];
            put_address(of_nobody, is_destination, outside);
            for (const auto& octets : {of_other, of_nobody}) {
                REQUIRE(read(octets).has_good_checksums);
                CHECK_FALSE(known.holds(0, octets.data(), version));
                CHECK(known.frame_fault(0, octets.data(), version) == FrameFault::address);
                if (!check) continue;
                const std::byte* const at = octets.data();
                frame::FoundBurst burst;
                check.find(&at, 1, burst);
                CHECK(burst.known == 0);
            }
            // While hosts are learnt, any address of the list will do.
            CHECK(any.holds(0, of_other.data(), version));
            CHECK_FALSE(any.frame_fault(0, of_other.data(), version).has_value());
            CHECK_FALSE(any.holds(0, of_nobody.data(), version));
            CHECK(any.frame_fault(0, of_nobody.data(), version) == FrameFault::address);
        }
    }
}

TEST_CASE("one host of each entry behind a gateway is reached, and all hosts on the link") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        auto p = listed(version, 50);
        for (const bool is_on_link : {false, true}) {
            if (is_on_link) {
                p.right.gateway.reset();
                p.right.hosts = plan::HostRange::of(
                    version == IpVersion::v4 ? tests::list_of({{"20.0.0.0", "20.0.0.99"}, {"20.0.1.7", "20.0.1.7"}})
                                             : tests::list_of({{"2400::", "2400::63"}, {"2400::1:7", "2400::1:7"}}));
            }
            run::HostsToReach hosts{p, Direction::forward, false};
            REQUIRE(hosts.begin_round());
            CHECK(hosts.hosts() == (is_on_link ? 101 : 50));
            const std::size_t size = frame::LearningSource::octets_of(version) + frame::fcs_octets;
            auto source = hosts.make_source(p, 0, {}, tester_mac, dut_mac);
            const auto expected = expected_of(p, Direction::forward, size, false);
            for (std::size_t i = 0; i < hosts.pending().size(); ++i) {
                Octets octets(size - frame::fcs_octets);
                std::byte* const at = octets.data();
                source.write_next({&at, 1}, 1234);
                const auto found = read(octets);
                CHECK(found.has_good_checksums);
                CHECK(expected.holds(0, octets.data(), version));
                const auto& list = *p.right.hosts.list;
                const auto wanted = is_on_link ? list.address(i) : plan::address_of(version, list.first(i));
                CHECK(found.destination == plan::to_string(wanted));
                CHECK(p.left.hosts.contains(ip(found.source.c_str())));
            }
        }
    }
}

TEST_CASE("hosts of a list on the link are answered for, and no other address") {
    const plan::HostSet v4{plan::HostRange::of(tests::list_of({{"10.0.0.2", "10.0.0.9"}, {"10.0.0.20", "10.0.0.20"}}))};
    const plan::HostSet v6{
        plan::HostRange::of(tests::list_of({{"2001:db8::2", "2001:db8::9"}, {"2001:db8::20", "2001:db8::20"}}))};
    const auto answered = [&](const plan::IpAddress& dut, const plan::HostSet& hosts, const plan::IpAddress& target) {
        neighbor::Responder responder{tester_mac, hosts, std::nullopt, dut};
        Octets frame(128);
        const neighbor::Party asker{.mac = dut_mac, .ip = dut};
        const std::size_t octets = dut.version == IpVersion::v4
                                       ? neighbor::write_arp_request(frame, asker, target)
                                       : neighbor::write_neighbor_solicitation(frame, asker, target);
        const auto answer = responder.answer(frame, octets);
        if (answer == 0) return false;
        const auto party = neighbor::read_announcement(std::span<const std::byte>{frame}.first(answer));
        REQUIRE(party.has_value());
        CHECK(party->ip == target);
        CHECK(party->mac == tester_mac);
        return true;
    };
    for (const unsigned last : {0U, 1U, 2U, 5U, 9U, 10U, 16U, 19U, 20U, 21U, 32U, 33U, 255U}) {
        CAPTURE(last);
        const bool is_v4_host = (last >= 2 && last <= 9) || last == 20;
        CHECK(answered(ip("10.0.0.1"), v4, ip(fmt::format("10.0.0.{}", last).c_str())) == is_v4_host);
        const bool is_v6_host = (last >= 2 && last <= 9) || last == 32;
        CHECK(answered(ip("2001:db8::1"), v6, ip(fmt::format("2001:db8::{:x}", last).c_str())) == is_v6_host);
    }
    CHECK_FALSE(answered(ip("10.0.0.1"), v4, ip("11.0.0.2")));
    CHECK_FALSE(answered(ip("2001:db8::1"), v6, ip("2001:db8:1::2")));
}

TEST_CASE("draws from lists pass the proof, and generators with faults do not") {
    struct Patient : proof::ProofObserver {
        bool goes_on(std::uint64_t /*drawn_frames*/) override { return true; }
    };
    constexpr std::uint64_t frames = tests::is_slow ? 300'000 : 1'000'000;
    constexpr std::uint64_t until_a_fault_shows = 1'000'000;
    constexpr double doubtful = 1e-6;
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        for (const auto choice : {Choice::entry, Choice::host}) {
            auto p = listed(version, 300, choice);
            const auto prove = [&](proof::Generator generator, std::uint64_t of_frames) {
                Patient patient;
                return proof::prove({.plan = p, .seed = seed, .frames = of_frames, .generator = generator}, patient);
            };
            const auto good = prove(proof::Generator::philox, frames);
            std::vector<std::string> names;
            for (const auto& field : good.fields) {
                CAPTURE(field.name);
                names.push_back(field.name);
                CHECK(field.is_proven);
                if (!field.chi_square) continue;
                CHECK(field.chi_square->p > doubtful);
                CHECK(field.chi_square->p < 1 - doubtful);
                CHECK(field.serial->correlation->p > doubtful);
            }
            for (const auto& pair : good.pairs) {
                if (pair.chi_square) CHECK(pair.chi_square->p > doubtful);
                CHECK(pair.correlation->p > doubtful);
            }
            CHECK(names ==
                  (choice == Choice::entry
                       ? std::vector<std::string>{"source", "destination_entry", "destination_part", "source_port",
                                                  "destination_port"}
                       : std::vector<std::string>{"source", "destination_part", "source_port", "destination_port"}));
            const auto bad = prove(proof::Generator::modulo, until_a_fault_shows);
            const auto is_bad = [&](const proof::FieldProof& field) {
                return field.chi_square && field.chi_square->p < doubtful;
            };
            CHECK(std::ranges::any_of(bad.fields, is_bad));
        }
    }
    // A list of many small entries: one address each, whose parts are chosen at random.
    std::vector<tests::Ends> single;
    single.reserve(200);
    for (unsigned i = 0; i < 200; ++i)
        single.emplace_back(fmt::format("20.0.{}.7", i), fmt::format("20.0.{}.{}", i, 7 + i % 3));
    Patient patient;
    const auto small =
        proof::prove({.plan = tests::listed_v4(tests::list_of(single)), .seed = seed, .frames = frames}, patient);
    for (const auto& field : small.fields) {
        if (field.chi_square) CHECK(field.chi_square->p > doubtful);
    }
}

}  // namespace listed_frames_test
