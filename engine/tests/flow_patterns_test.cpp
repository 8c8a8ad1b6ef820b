// SPDX-License-Identifier: Apache-2.0
// Stations 1, 2 and 5: fields that vary within a flow: which value each frame has, what is sent, what must arrive.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "lists.hpp"
#include "mix_rig.hpp"
#include "octets.hpp"
#include "plan/flow_patterns.hpp"
#include "plan/whole_draw.hpp"
#include "results.hpp"

namespace flow_patterns_test {

using namespace evenhand;
using namespace evenhand::tests;
using frame::FrameClass;
using frame::MixedPlans;
using plan::FieldPattern;
using plan::FlowField;
using plan::Mode;

namespace {

FieldPattern range(std::uint32_t first, std::uint32_t count, std::uint32_t step, Mode mode = Mode::pseudorandom) {
    return {.addresses = {}, .list = {}, .first = first, .count = count, .step = step, .mode = mode};
}
FieldPattern list(std::vector<std::uint32_t> values, Mode mode = Mode::pseudorandom, bool in_lock_step = false) {
    return {.addresses = {}, .list = std::move(values), .mode = mode, .is_in_lock_step = in_lock_step};
}
FieldPattern hosts(std::vector<plan::IpAddress> addresses, std::uint32_t count, std::uint32_t step, Mode mode) {
    return {.addresses = std::move(addresses), .list = {}, .count = count, .step = step, .mode = mode};
}

/// A host of a side, whose hosts are a range, or else of the list's first entry.
plan::IpAddress host(const plan::HostRange& of, std::uint32_t number) {
    if (of.list) return plan::address_of(of.base.version, plan::number_of(of.base) + number);
    return of.address(of.host.first + number);
}

/// From one host to the next.
std::uint32_t apart(const plan::HostRange& of) {
    return static_cast<std::uint32_t>(plan::number_of(host(of, 1)) - plan::number_of(host(of, 0)));
}

/// Four flows, of which the second and the third vary in all ways, of frames in unlike shares. The others are fixed.
MixedPlans varied(const plan::AddressPlan& p, std::size_t frame_size) {
    using enum FlowField;
    std::vector<FrameClass> classes(4);
    for (std::size_t c = 0; c < classes.size(); ++c)
        classes[c] = {.frame_size = frame_size, .name = "flow " + std::to_string(c)};
    classes[0].fields.traffic_class = 10U << 2U | 2U;
    classes[0].fields.destination_port = 7000;
    auto& one = classes[1].fields.patterns;
    one[source_port] = range(1000, 100, 10, Mode::increment);
    one[destination_port] = list({5060, 80, 443}, Mode::pseudorandom, true);
    one[traffic_class] = list({46U << 2U, 0, 34U << 2U}, Mode::pseudorandom, true);
    one[vlan_priority] = range(0, 8, 1);
    one[vlan] = list({100, 7, 4094}, Mode::pseudorandom, true);
    one[left_host] = hosts({host(p.left.hosts, 5)}, 10, apart(p.left.hosts), Mode::decrement);
    one[right_host] =
        hosts({host(p.right.hosts, 2), host(p.right.hosts, 0), host(p.right.hosts, 1)}, 1, 1, Mode::pseudorandom);
    auto& two = classes[2].fields.patterns;
    two[source_port] = range(2000, 50, 2);
    two[vlan] = range(1, 20, 3, Mode::increment);
    if (p.version() == IpVersion::v6) two[flow_label] = range(0, 0x100000, 1);
    two[right_host] = hosts({host(p.right.hosts, 0)}, 4, apart(p.right.hosts), Mode::pseudorandom);
    return {.mix = {classes, {0, 1, 2, 1, 3, 2, 1}}, .other_plan = {}};
}

std::vector<plan::AddressPlan> plans() {
    auto both_v6 = listed_v6(list_of({{"2400::", "2400::ffff"}, {"2600::1", "2600::1"}}));
    both_v6.left.hosts = plan::HostRange::of(list_of({{"2001:db8::fff0", "2001:db8::1:ffff"}, {"2800::", "2800::9"}}));
    return {gateway_v4(), gateway_v6(), listed_v4(list_of({{"20.0.0.0", "20.0.0.99"}, {"30.0.0.0", "30.0.9.9"}})),
            both_v6};
}

/// A frame's values, with both addresses, however the plan draws them.
struct Values {
    std::string source;
    std::string destination;
    std::uint32_t source_port;
    std::uint32_t destination_port;
    std::uint32_t marks;
};

Values values_of(const plan::AddressPlan& p, plan::Direction direction, const plan::FlowDraw& draw,
                 const plan::FlowPatterns& patterns, std::uint64_t k) {
    const auto flow = draw.draw(k);
    const auto whole = draw.whole_addresses(k);
    const auto [from, to] = p.sent(direction);
    return {plan::to_string(whole ? whole->source : from.address(flow.source)),
            plan::to_string(whole ? whole->destination : to.address(flow.destination)), flow.source_port,
            flow.destination_port, patterns.mark(k)};
}

std::uint32_t dscp_of(std::uint32_t marks, IpVersion version) {
    return (version == IpVersion::v4 ? marks >> 2U : marks >> 22U) & 0x3FU;
}

std::uint32_t ecn_of(std::uint32_t marks, IpVersion version) {
    return (version == IpVersion::v4 ? marks : marks >> 20U) & 3U;
}

}  // namespace

TEST_CASE("what steps does so frame by frame of its flow, in every plan, direction and IP version") {
    for (const auto& p : plans()) {
        for (const auto direction : plan::both_directions) {
            CAPTURE(p.name);
            const auto mixed = varied(p, 100);
            const auto draw = frame::draw_of(p, mixed.mix, direction, 99);
            const auto patterns = frame::patterns_of(mixed.mix, p, direction, 99);
            std::uint64_t n = 0;
            for (std::uint64_t k = 0; k < 3000; ++k) {
                if (mixed.mix.class_of(k) != 1) continue;
                const auto v = values_of(p, direction, draw, *patterns, k);
                REQUIRE(v.source_port == 1000 + n % 100 * 10);
                const auto& left = direction == plan::Direction::forward ? v.source : v.destination;
                REQUIRE(left == plan::to_string(host(p.left.hosts, static_cast<std::uint32_t>(5 + 9 - n % 10))));
                ++n;
            }
            CHECK(n == 3000 * 3 / 7 + 1);
        }
    }
}

TEST_CASE("what is drawn has each value equally often, independently, or in lock-step where that is asked for") {
    constexpr std::uint64_t frames = 70'000;
    for (const auto& p : plans()) {
        CAPTURE(p.name);
        const auto mixed = varied(p, 100);
        const auto draw = frame::draw_of(p, mixed.mix, plan::Direction::reverse, 4);
        const auto patterns = frame::patterns_of(mixed.mix, p, plan::Direction::reverse, 4);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> in_lock_step;
        std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> independent;  // right host and priority
        std::map<std::uint32_t, std::uint64_t> ports;
        for (std::uint64_t k = 0; k < frames; ++k) {
            const auto c = mixed.mix.class_of(k);
            const auto v = values_of(p, plan::Direction::reverse, draw, *patterns, k);
            const auto priority = v.marks >> plan::FlowPatterns::priority_shift;
            if (c == 0) {
                REQUIRE(dscp_of(v.marks, p.version()) == 10);
                REQUIRE(ecn_of(v.marks, p.version()) == 2);
                REQUIRE(priority == 0);
            }
            if (c == 1) {
                ++in_lock_step[{dscp_of(v.marks, p.version()), v.destination_port}];
                ++independent[{v.source, priority}];
            }
            if (c == 2) {
                ++ports[v.source_port];
            }
            if (c == 3) REQUIRE(v.marks == 0);
        }
        // Six standard deviations of a binomial count: 10^-9 for each of about a hundred counts.
        const auto is_usual = [](std::uint64_t count, double expected) {
            const double apart_by = static_cast<double>(count) - expected;
            return apart_by * apart_by < 36 * expected;
        };
        CHECK(in_lock_step.size() == 3);
        for (const auto& [pair, count] : in_lock_step) {
            CHECK(std::set<std::pair<std::uint32_t, std::uint32_t>>{{46, 5060}, {0, 80}, {34, 443}}.contains(pair));
            CHECK(is_usual(count, 30'000.0 / 3));
        }
        CHECK(independent.size() == 3 * 8);
        for (const auto& [pair, count] : independent) CHECK(is_usual(count, 30'000.0 / 24));
        CHECK(ports.size() == 50);
        for (const auto& [port, count] : ports) {
            CHECK((port >= 2000 && port <= 2098 && port % 2 == 0));
            CHECK(is_usual(count, 20'000.0 / 50));
        }
    }
}

TEST_CASE("frame k has the same values drawn alone, in a block and in a list; another seed has others") {
    for (const auto& p : plans()) {
        CAPTURE(p.name);
        const auto mixed = varied(p, 100);
        const auto draw = frame::draw_of(p, mixed.mix, plan::Direction::forward, 7);
        const auto patterns = frame::patterns_of(mixed.mix, p, plan::Direction::forward, 7);
        const auto other = frame::draw_of(p, mixed.mix, plan::Direction::forward, 8);
        std::size_t differing = 0;
        for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{12'345}, std::uint64_t{1} << 40U}) {
            plan::FlowBlock block;
            plan::FlowBlock listed;
            std::array<std::uint64_t, plan::FlowBlock::size> words{};
            for (std::size_t j = 0; j < words.size(); ++j) words[j] = std::uint64_t{3} << 56U | (first + 5 * j);
            draw.draw_block(first, 5, block);
            draw.draw_listed(words.data(), listed);
            for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
                const std::uint64_t k = first + 5 * j;
                const plan::Flow one = draw.draw(k);
                for (const auto* const of : {&block, &listed}) {
                    REQUIRE(of->source(j) == one.source);
                    REQUIRE(of->destination(j) == one.destination);
                    REQUIRE(of->source_port(j) == one.source_port);
                    REQUIRE(of->destination_port(j) == one.destination_port);
                    REQUIRE(of->marks[j] == patterns->mark(k));
                    if (!p.has_lists() || p.version() == IpVersion::v4) continue;
                    const auto whole = draw.whole_addresses(k).value();
                    REQUIRE(std::equal(whole.source.octets.begin(), whole.source.octets.end(),
                                       reinterpret_cast<const std::uint8_t*>(of->addresses[j].data())));
                    REQUIRE(std::equal(whole.destination.octets.begin(), whole.destination.octets.end(),
                                       reinterpret_cast<const std::uint8_t*>(of->addresses[j].data()) + 16));
                }
                differing += static_cast<std::size_t>(!(one == other.draw(k)));
            }
        }
        CHECK(differing > 75);  // flow 1 draws among few values
    }
}

TEST_CASE("VLANs step with their flow, are drawn, or are in lock-step with other fields; other flows have none") {
    for (const auto& p : plans()) {
        const auto mixed = varied(p, 100);
        const auto patterns = frame::patterns_of(mixed.mix, p, plan::Direction::reverse, 5);
        REQUIRE(patterns->has_vlans());
        const std::map<std::uint32_t, std::uint16_t> of_dscp{{46, 100}, {0, 7}, {34, 4094}};
        std::map<std::uint16_t, std::uint64_t> drawn;
        std::uint64_t n = 0;
        for (std::uint64_t k = 0; k < 21'000; ++k) {
            const auto vlan = patterns->vlan(k);
            const auto c = mixed.mix.class_of(k);
            if (c == 0 || c == 3) REQUIRE(vlan == 0);
            if (c == 2) REQUIRE(vlan == 1 + 3 * (n++ % 20));
            if (c != 1) continue;
            REQUIRE(vlan == of_dscp.at(dscp_of(patterns->mark(k), p.version())));
            ++drawn[vlan];
        }
        REQUIRE(drawn.size() == 3);
        for (const auto& [vlan, count] : drawn) {
            const double apart_by = static_cast<double>(count) - 3000;
            CHECK(apart_by * apart_by < 36 * 3000.0);
        }
        // By itself it is drawn by itself: the other fields are as without it.
        auto classes = mixed.mix.classes();
        classes[1].fields.patterns[FlowField::vlan] = range(1, 4094, 1);
        const auto others = frame::patterns_of({classes, {0, 1, 2, 1, 3, 2, 1}}, p, plan::Direction::reverse, 5);
        std::set<std::uint16_t> seen;
        for (std::uint64_t k = 0; k < 21'000; ++k) {
            REQUIRE(others->mark(k) == patterns->mark(k));
            if (mixed.mix.class_of(k) == 1) seen.insert(others->vlan(k));
        }
        CHECK(seen.size() > 3600);  // of 4094, by 9000 draws: 3640 are expected, within 20
        CHECK(*seen.begin() >= 1);
        CHECK(*seen.rbegin() <= 4094);
    }
}

TEST_CASE("a single value that a flow gives two of its fields is the same as a pattern of that value") {
    const auto p = gateway_v6();
    auto fixed = varied(p, 100).mix.classes();
    fixed[3].fields.flow_label = 77;
    const frame::FrameMix mix{fixed, {0, 1, 2, 3}};
    const auto patterns = frame::patterns_of(mix, p, plan::Direction::forward, 1);
    CHECK(patterns->mark(3) == 77);
    CHECK(patterns->mark(0) == (10U << 2U | 2U) << 20U);
    CHECK(frame::patterns_of({{{.frame_size = 100, .name = "a", .fields = {.traffic_class = 3}}}, {0}}, p,
                             plan::Direction::forward, 1) == nullptr);
}

template <IpVersion V>
void check_octets(const plan::AddressPlan& p, const MixedPlans& mixed, frame::StreamShare share) {
    using L = frame::Layout<V>;
    const auto draw = frame::draw_of(p, mixed.mix, Direction::forward, 1);
    const auto patterns = frame::patterns_of(mixed.mix, p, Direction::forward, 1);
    std::vector<std::vector<std::byte>> buffers(40, std::vector<std::byte>(mixed.mix.largest_frame_size()));
    for (auto& buffer : buffers) frame::write_pattern(V, buffer);
    auto source = source_of(p, mixed, share);
    CHECK(source.has_flow_tags());
    const std::vector<std::size_t> bursts{32, 1, 3, 31, 7};
    std::uint64_t i = 0;
    for (std::size_t burst = 0; i < 2000; ++burst) {
        std::vector<std::byte*> at;
        std::vector<std::size_t> lengths;
        for (std::size_t j = 0; j < bursts[burst % bursts.size()]; ++j) {
            at.push_back(buffers[j].data());
            lengths.push_back(source.frame_octets(j));
            const auto tag = source.flow_tag(j);
            REQUIRE(tag.priority == patterns->mark(share.sequence(i + j)) >> plan::FlowPatterns::priority_shift);
            REQUIRE(tag.vlan == patterns->vlan(share.sequence(i + j)));
        }
        source.write_next(at, 7);
        for (std::size_t j = 0; j < at.size(); ++j, ++i) {
            const auto k = share.sequence(i);
            const auto v = values_of(p, Direction::forward, draw, *patterns, k);
            const std::byte* const octets = at[j];
            const auto address = [&](std::size_t where) {
                return plan::to_string(plan::address_of(V, plan::number_of(V, octets + where)));
            };
            REQUIRE(frame::look_at(octets, lengths[j]).tag.sequence == k);
            REQUIRE(address(L::source) == v.source);
            REQUIRE(address(L::destination) == v.destination);
            REQUIRE(frame::big(frame::load<std::uint16_t>(octets + L::udp)) == v.source_port);
            const auto& own = mixed.mix.classes()[mixed.mix.class_of(k)].fields.destination_port;
            REQUIRE(frame::big(frame::load<std::uint16_t>(octets + L::udp + 2)) == own.value_or(v.destination_port));
            REQUIRE(frame::mark_of(octets, V) == (v.marks & plan::FlowPatterns::mark_mask));
            // The header and the whole datagram with its pseudo-header add up to 0xFFFF.
            if constexpr (V == IpVersion::v4)
                REQUIRE(frame::fold(frame::sum_octets(octets + L::ip, L::ip_octets)) == 0xFFFF);
            REQUIRE(frame::fold(frame::sum_octets(octets + L::source, lengths[j] - L::source) +
                                frame::pseudo_header_sum(frame::protocol_udp, lengths[j] - L::udp)) == 0xFFFF);
        }
    }
}

TEST_CASE("frames have the drawn values and right checksums, in streams and plans of all kinds") {
    for (const std::uint64_t stride : {1U, 5U}) {
        for (const auto& p : plans()) {
            CAPTURE(p.name);
            const frame::StreamShare share{.first = stride - 1, .stride = stride};
            auto mixed = varied(p, 100);
            const auto check = [&] {
                if (p.version() == IpVersion::v4)
                    check_octets<IpVersion::v4>(p, mixed, share);
                else
                    check_octets<IpVersion::v6>(p, mixed, share);
            };
            check();
            auto classes = mixed.mix.classes();
            classes[2].frame_size = 333;
            mixed.mix = {classes, {0, 1, 2, 3, 1}};
            check();
        }
    }
}

TEST_CASE("all frames arrive as they were sent, in whole bursts or one by one, and none as remarked") {
    for (const auto& p : plans()) {
        for (const bool has_sizes : {false, true}) {
            CAPTURE(p.name);
            CAPTURE(has_sizes);
            auto mixed = varied(p, 100);
            if (has_sizes) {
                auto classes = mixed.mix.classes();
                classes[1].frame_size = 333;
                mixed.mix = {classes, {0, 1, 2, 1, 3, 2, 1}};
            }
            MixRig rig{mixed, 700, p};
            rig.run();
            CHECK(rig.tally->received_frames == 700);
            CHECK(damage_of(*rig.tally) == Damage{});
            CHECK(rig.tally->remarked_frames == 0);
        }
    }
}

TEST_CASE("a frame arrives in the VLAN of its flow, or in that of the receiving side; in another one it is foreign") {
    constexpr std::uint16_t own = 300;
    for (const auto& p : plans()) {
        const auto mixed = varied(p, 100);
        const auto patterns = frame::patterns_of(mixed.mix, p, Direction::forward, 1);
        for (const auto& vlans : {std::vector<std::uint16_t>{own}, {200, own}}) {
            const std::size_t vlan_at = 10 + 4 * vlans.size();
            enum class Dut : std::uint8_t { leaves, routes, moves };
            for (const auto dut : {Dut::leaves, Dut::routes, Dut::moves}) {
                CAPTURE(p.name);
                CAPTURE(vlans.size());
                MixRig rig{mixed, 700, p, frame::VlanTags{vlans}};
                std::uint64_t k = 0;
                std::uint64_t moved = 0;
                rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
                    std::byte* const octets = f.octets.data() + vlan_at;
                    const auto found = frame::big(frame::load<std::uint16_t>(octets)) & 0xFFFU;
                    const auto wanted = patterns->vlan(k++);
                    REQUIRE(found == (wanted == 0 ? own : wanted));
                    if (dut == Dut::routes) frame::store(octets, frame::big(own));
                    if (dut != Dut::moves || k % 10 != 0) return 1U;
                    frame::store(octets, frame::big(static_cast<std::uint16_t>(found == 100 ? 7 : 100)));
                    ++moved;
                    return 1U;
                };
                rig.run();
                CHECK(moved == (dut == Dut::moves ? 70 : 0));
                CHECK(rig.tally->received_frames == 700 - moved);
                CHECK(damage_of(*rig.tally) == Damage{.foreign = moved});
            }
        }
    }
}

TEST_CASE("a frame with another value of its own flow's pattern is not the one that was sent, or is remarked") {
    for (const bool is_v4 : {true, false}) {
        const auto p = is_v4 ? gateway_v4() : gateway_v6();
        const auto mixed = varied(p, 100);
        const auto draw = frame::draw_of(p, mixed.mix, Direction::forward, 1);
        const std::size_t udp = is_v4 ? 34 : 54;
        std::uint64_t swapped = 0;
        std::uint64_t remarked = 0;
        MixRig rig{mixed, 700, p};
        rig.left.on_the_wire = [&](MemoryPort::Frame& f) {
            const auto k = number_of(f);
            const auto c = mixed.mix.class_of(k);
            std::byte* const octets = f.octets.data();
            if (c == 2 && draw.draw(k).source_port != 2000) {
                // Both ports' sum stays the same, and so does the checksum.
                const auto port = [&](std::size_t at) { return frame::big(frame::load<std::uint16_t>(octets + at)); };
                const auto destination = port(udp + 2) + port(udp) - 2000;
                frame::store(octets + udp, frame::big(std::uint16_t{2000}));
                frame::store(octets + udp + 2, frame::big(static_cast<std::uint16_t>(destination)));
                ++swapped;
            }
            if (c == 1 && frame::mark_of(octets, p.version()) == 0) {
                frame::put_mark(octets, p.version(), is_v4 ? 34U << 2U : 34U << 22U);
                ++remarked;
            }
            return 1U;
        };
        rig.run();
        CHECK(swapped > 150);
        CHECK(remarked > 70);
        CHECK(rig.tally->received_frames == 700 - swapped);
        CHECK(rig.tally->wrong_port_frames == swapped);
        CHECK(rig.tally->remarked_frames == remarked);
        CHECK(rig.tally->flows[1].remarked_frames == remarked);
    }
}

TEST_CASE("patterns that cannot be are refused by the key that has them") {
    const auto v4 = gateway_v4(1000);
    const auto fault_of = [](const plan::AddressPlan& p, FlowField field, FieldPattern pattern,
                             std::optional<FieldPattern> marks = std::nullopt) -> std::string {
        FrameClass c{.frame_size = 100, .name = "a"};
        c.fields.patterns[field] = std::move(pattern);
        if (marks) c.fields.patterns[FlowField::traffic_class] = std::move(marks);
        try {
            frame::check_mix(p, {.mix = {{c}, {0}}, .other_plan = {}});
        } catch (const Fault& fault) {
            CHECK(fault.code == FaultCode::bad_request);
            return fault.where;
        }
        return "";
    };
    const auto of = [&](std::uint32_t number, std::uint32_t count, std::uint32_t step = 1) {
        return hosts({v4.left.hosts.address(number)}, count, step, Mode::pseudorandom);
    };
    const std::uint32_t first = v4.left.hosts.host.first;
    CHECK(fault_of(v4, FlowField::left_host, of(first, 1000)).empty());
    CHECK(fault_of(v4, FlowField::left_host, of(first, 1001)) == "mix.classes[0].left_host");
    CHECK(fault_of(v4, FlowField::left_host, of(first, 3, 500)) == "mix.classes[0].left_host");
    CHECK(fault_of(v4, FlowField::right_host, of(first, 1)) == "mix.classes[0].right_host");
    CHECK(fault_of(gateway_v6(), FlowField::left_host, of(first, 1)) == "mix.classes[0].left_host");
    CHECK(fault_of(nets_v4(), FlowField::left_host, of(first, 1)) == "mix.classes[0].left_host");
    CHECK(fault_of(v4, FlowField::flow_label, range(0, 2, 1)) == "mix.classes[0].flow_label");
    const auto ports = list({1, 2}, Mode::pseudorandom, true);
    CHECK(fault_of(v4, FlowField::source_port, ports, list({3, 4}, Mode::pseudorandom, true)).empty());
    CHECK(fault_of(v4, FlowField::source_port, ports, list({3, 4, 5}, Mode::pseudorandom, true)) == "mix.classes[0]");
    CHECK(fault_of(v4, FlowField::source_port, ports, list({3, 4}, Mode::increment, true)) == "mix.classes[0]");
    const auto listed = listed_v4(list_of({{"20.0.0.0", "20.0.0.99"}, {"30.0.0.0", "30.0.9.9"}}));
    const auto across = [&](std::uint32_t count) { return hosts({ip("20.0.0.90")}, count, 1, Mode::pseudorandom); };
    CHECK(fault_of(listed, FlowField::right_host, across(10)).empty());
    CHECK(fault_of(listed, FlowField::right_host, across(11)) == "mix.classes[0].right_host");
}

namespace {

struct OfPrefixes {
    plan::AddressPlan plan;
    plan::Side side;
    std::vector<std::pair<std::string, std::string>> entries;
    plan::Choice choice = plan::Choice::entry;
};

FieldPattern prefixes_of(const OfPrefixes& of) {
    FieldPattern pattern;
    pattern.prefixes = list_of(of.entries, of.choice);
    return pattern;
}

MixedPlans with_prefixes(const OfPrefixes& of) {
    std::vector<FrameClass> classes(2);
    for (std::size_t c = 0; c < classes.size(); ++c)
        classes[c] = {.frame_size = 100, .name = "flow " + std::to_string(c)};
    const auto field = of.side == plan::Side::left ? FlowField::left_host : FlowField::right_host;
    classes[1].fields.patterns[field] = prefixes_of(of);
    classes[1].fields.patterns[FlowField::source_port] = list({1000, 2000});
    return {.mix = {classes, {0, 1, 1}}, .other_plan = {}};
}

/// Sides that are a range, or a list as the other or itself; entries of one address and of several, the last of them
/// not of a power of two.
std::vector<OfPrefixes> plans_with_prefixes() {
    auto both_v6 = listed_v6(list_of({{"2400::", "2400::ffff"}, {"2600::", "2600:0:ffff::"}}));
    const auto listed = listed_v4(list_of({{"20.0.0.0", "20.0.0.99"}, {"30.0.0.0", "30.0.9.9"}}));
    const auto v4 = gateway_v4();
    const auto v6 = gateway_v6();
    const auto at = [](const plan::HostRange& range, std::uint32_t number) {
        return plan::to_string(range.address(range.host.first + number));
    };
    return {
        {v4,
         plan::Side::left,
         {{at(v4.left.hosts, 4), at(v4.left.hosts, 4)}, {at(v4.left.hosts, 8), at(v4.left.hosts, 13)}}},
        {v6,
         plan::Side::right,
         {{at(v6.right.hosts, 9), at(v6.right.hosts, 9)}, {at(v6.right.hosts, 70), at(v6.right.hosts, 70)}}},
        {listed, plan::Side::right, {{"20.0.0.8", "20.0.0.15"}, {"30.0.1.0", "30.0.1.5"}}},
        {listed, plan::Side::right, {{"20.0.0.8", "20.0.0.15"}, {"30.0.1.0", "30.0.1.5"}}, plan::Choice::host},
        {listed, plan::Side::left, {{at(listed.left.hosts, 0), at(listed.left.hosts, 9)}}},
        {both_v6, plan::Side::right, {{"2400::10", "2400::1f"}, {"2600:0:5::", "2600:0:5:ffff:ffff:ffff:ffff:ffff"}}},
    };
}

}  // namespace

TEST_CASE("a flow with prefixes has all their hosts, and no others; entries equally often, or hosts") {
    constexpr std::uint64_t frames = 30'000;
    for (const auto& of : plans_with_prefixes()) {
        for (const auto direction : plan::both_directions) {
            CAPTURE(of.plan.name);
            CAPTURE(of.entries.front().first);
            const auto mixed = with_prefixes(of);
            REQUIRE_NOTHROW(frame::check_mix(of.plan, mixed));
            const auto draw = frame::draw_of(of.plan, mixed.mix, direction, 7);
            const auto patterns = frame::patterns_of(mixed.mix, of.plan, direction, 7);
            const auto list = list_of(of.entries, of.choice);
            const bool is_source = (of.side == plan::Side::left) == (direction == plan::Direction::forward);
            std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> by_entry;
            std::map<std::string, std::uint64_t> others;
            std::set<std::string> seen;
            for (std::uint64_t k = 0; k < frames; ++k) {
                const auto v = values_of(of.plan, direction, draw, *patterns, k);
                const auto address = ip((is_source ? v.source : v.destination).c_str());
                const auto place = list->place(reinterpret_cast<const std::byte*>(address.octets.data()));
                if (mixed.mix.class_of(k) == 0) {
                    ++others[is_source ? v.source : v.destination];
                    continue;
                }
                REQUIRE(place.has_value());
                ++by_entry[{place->entry, v.source_port}];
                seen.insert(is_source ? v.source : v.destination);
            }
            CHECK(others.size() > (of.plan.has_lists() ? 100U : 5000U));  // drawn from all hosts of the side
            double hosts = 0;
            for (std::size_t e = 0; e < list->size(); ++e)
                hosts += static_cast<double>(list->last(e) - list->first(e)) + 1;
            CHECK(static_cast<double>(seen.size()) == (hosts < 100 ? hosts : static_cast<double>(seen.size())));
            for (const auto& [place, count] : by_entry) {
                const double entry = static_cast<double>(list->last(place.first) - list->first(place.first)) + 1;
                const double share =
                    of.choice == plan::Choice::host ? entry / hosts : 1 / static_cast<double>(list->size());
                const double apart_by = static_cast<double>(count) - frames * 2.0 / 3 * share / 2;
                CHECK(apart_by * apart_by < 36 * frames / 3.0 * share);
            }
            CHECK(by_entry.size() == 2 * list->size());
        }
    }
}

TEST_CASE("frames of a flow with prefixes are drawn alike one by one, in blocks and by their numbers") {
    for (const auto& of : plans_with_prefixes()) {
        CAPTURE(of.plan.name);
        const auto mixed = with_prefixes(of);
        const auto draw = frame::draw_of(of.plan, mixed.mix, plan::Direction::reverse, 5);
        plan::FlowBlock block;
        plan::FlowBlock listed;
        constexpr std::uint64_t stride = 3;
        for (std::uint64_t first = 0; first < 3000; first += stride * plan::FlowBlock::size) {
            draw.draw_block(first, stride, block);
            std::array<std::uint64_t, plan::FlowBlock::size> numbers{};
            for (std::size_t j = 0; j < numbers.size(); ++j) numbers[j] = first + j * stride;
            draw.draw_listed(numbers.data(), listed);
            for (std::size_t j = 0; j < numbers.size(); ++j) {
                const auto flow = draw.draw(numbers[j]);
                REQUIRE(flow.source == block.source(j));
                REQUIRE(flow.destination == block.destination(j));
                REQUIRE(flow.source == listed.source(j));
                REQUIRE(flow.destination == listed.destination(j));
                if (of.plan.has_lists() && of.plan.version() == IpVersion::v6) {
                    const auto whole = draw.whole_addresses(numbers[j]).value();
                    const auto at = [&](std::size_t end) {
                        return plan::address_of(IpVersion::v6,
                                                plan::number_of(IpVersion::v6, block.addresses[j].data() + 16 * end));
                    };
                    REQUIRE(at(0) == whole.source);
                    REQUIRE(at(1) == whole.destination);
                    REQUIRE(block.addresses[j] == listed.addresses[j]);
                }
            }
        }
    }
}

TEST_CASE("prefixes that are not hosts of the side are refused") {
    const auto v4 = gateway_v4(1000);
    const auto listed = listed_v4(list_of({{"20.0.0.0", "20.0.0.99"}, {"20.0.0.100", "20.0.9.9"}}));
    const auto is_refused = [](const OfPrefixes& of) {
        try {
            frame::check_mix(of.plan, with_prefixes(of));
        } catch (const Fault& fault) {
            return fault.where ==
                   (of.side == plan::Side::left ? "mix.classes[1].left_host" : "mix.classes[1].right_host");
        }
        return false;
    };
    const auto first = plan::to_string(v4.left.hosts.address(v4.left.hosts.host.first));
    CHECK_FALSE(is_refused({v4, plan::Side::left, {{first, first}}}));
    CHECK(is_refused({v4, plan::Side::left, {{first, "198.18.200.0"}}}));
    CHECK(is_refused({v4, plan::Side::left, {{"198.17.0.0", first}}}));
    CHECK(is_refused({v4, plan::Side::left, {{"2001:2::1", "2001:2::1"}}}));
    CHECK(is_refused({nets_v4(), plan::Side::left, {{first, first}}}));
    CHECK(
        is_refused({gateway_v6(), plan::Side::left, {{"2001:2::1", "2001:2::9"}}}));  // hosts are not one by one there
    CHECK_FALSE(is_refused({listed, plan::Side::right, {{"20.0.0.0", "20.0.0.99"}}}));
    CHECK(is_refused({listed, plan::Side::right, {{"20.0.0.90", "20.0.0.110"}}}));  // of two entries
}

}  // namespace flow_patterns_test
