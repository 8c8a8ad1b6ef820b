// SPDX-License-Identifier: Apache-2.0
// Station 2: a frame's octets do not depend on the CPU that wrote them. SEED-44, R2544-31, R5180-11.
#include "frame/writer.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "frame/reader.hpp"
#include "octets.hpp"
#include "plans.hpp"

namespace writer_test {

using namespace evenhand;
using frame::IpVersion;
using plan::FlowBlock;
using tests::Octets;

namespace {

constexpr auto untouched = std::byte{0xA5};
constexpr std::size_t margin = 64;

/// Buffers as a port has them: a frame's octets hold the pattern, those around it must not change. Frames begin at any
/// octet.
struct Buffers {
    Buffers(IpVersion version, std::size_t octets, std::size_t count, std::size_t misaligned_by) {
        for (std::size_t i = 0; i < count; ++i) {
            storage.emplace_back(octets + 2 * margin + misaligned_by, untouched);
            frames.push_back(storage.back().data() + margin + misaligned_by);
            frame::write_pattern(version, {frames.back(), octets});
        }
    }
    std::vector<Octets> storage;
    std::vector<std::byte*> frames;
};

struct Burst {
    frame::FrameTemplate shape;
    IpVersion version;
    FlowBlock block;
    std::size_t at;
    std::size_t frames;
    frame::Stamp stamp;
    std::size_t misaligned_by;
};

std::vector<Octets> written(const char* name, const Burst& b) {
    Buffers buffers{b.version, b.shape.octets, b.frames, b.misaligned_by};
    frame::frame_writer(name, b.shape)(frame::FrameShape{b.shape}, b.block, b.at, buffers.frames, b.stamp);
    return buffers.storage;
}

bool all_writers_agree(const Burst& burst) {
    const auto plain = written("plain", burst);
    return frame::frame_writer("avx2", burst.shape) == nullptr || written("avx2", burst) == plain;
}

frame::FrameTemplate template_of(const plan::AddressPlan& plan, std::size_t frame_size, plan::Direction direction,
                                 std::uint16_t trial) {
    return frame::make_template(plan, frame_size, {.direction = direction, .stream = 7, .trial = trial},
                                {2, 0, 0, 0, 0, 1}, {2, 0xFF, 0x80, 0x7F, 0, 2});
}

/// Any 16-bit number, and often one of those at which sums turn over.
std::uint32_t any_word() {
    return *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 65536),
                           rc::gen::element<std::uint32_t>(0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF));
}

FlowBlock any_block(bool has_network_octets) {
    FlowBlock block;
    for (std::size_t field = 0; field < plan::drawn_fields; ++field) {
        for (auto& value : block.lanes.field[field])
            value = any_word() | (has_network_octets && field < 2 ? any_word() << 16U : 0);
    }
    return block;
}

/// Host and network numbers at any places in the addresses of both sides; without networks IPv6 hosts at odd octets
/// too, and with an octet in between.
plan::AddressPlan any_plan(bool v6) {
    const auto any_offset = [&] { return 2 * *rc::gen::inRange<std::uint32_t>(0, v6 ? 8 : 2); };
    auto plan = v6 ? tests::gateway_v6() : tests::gateway_v4();
    plan.left.hosts.offset = any_offset();
    plan.right.hosts.offset = any_offset();
    if (*rc::gen::arbitrary<bool>()) {
        for (auto* const hosts : {&plan.left.hosts, &plan.right.hosts}) {
            const std::uint32_t offset =
                v6 ? (hosts->offset + 2 + 2 * *rc::gen::inRange<std::uint32_t>(0, 7)) % 16 : hosts->offset;
            hosts->network = plan::NetworkRange{.offset = offset, .count = 2};
        }
    } else if (v6) {
        for (auto* const hosts : {&plan.left.hosts, &plan.right.hosts}) {
            hosts->gap = *rc::gen::inRange<std::uint32_t>(0, 2);
            hosts->offset = *rc::gen::inRange<std::uint32_t>(0, 15 - hosts->gap);
        }
    }
    return plan;
}

}  // namespace

TEST_CASE("every writer writes the same octets, and none around the frame") {
    const bool same = rc::check("plain and avx2 agree", [](bool v6, bool reverse, std::uint16_t trial) {
        const auto plan = any_plan(v6);
        const auto size = *rc::gen::oneOf(rc::gen::just<std::size_t>(v6 ? 84 : 64),
                                          rc::gen::inRange<std::size_t>(v6 ? 84 : 64, 1519));
        const auto at = *rc::gen::inRange<std::size_t>(0, FlowBlock::size);
        const auto shape =
            template_of(plan, size, reverse ? plan::Direction::reverse : plan::Direction::forward, trial);
        const auto stride = *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(1, frame::most_streams + 1),
                                            rc::gen::inRange<std::uint64_t>(1, frame::sequence_mask / FlowBlock::size));
        const Burst burst{
            .shape = shape,
            .version = plan.version(),
            .block = any_block(shape.has_network_octets),
            .at = at,
            .frames = *rc::gen::inRange<std::size_t>(1, FlowBlock::size - at + 1),
            .stamp = {.sequence = *rc::gen::inRange<std::uint64_t>(0, frame::sequence_mask - FlowBlock::size * stride),
                      .stride = stride,
                      .time = *rc::gen::inRange<std::uint64_t>(0, frame::time_mask + 1)},
            .misaligned_by = *rc::gen::inRange<std::size_t>(0, 64)};
        RC_ASSERT(all_writers_agree(burst));
    });
    CHECK(same);
}

TEST_CASE("every writer agrees on checksums of every value, 0 and 0xFFFF among them") {
    // One port goes through all values, and with it the UDP sum; both hosts do, and with them the sum of the IPv4
    // header.
    auto at_odd_octets = tests::gateway_v6();
    at_odd_octets.left.hosts.offset = 9;
    at_odd_octets.right.hosts.offset = 7;
    at_odd_octets.right.hosts.gap = 1;
    for (const auto& plan : {tests::gateway_v4(), tests::gateway_v6(), tests::nets_v6(), at_odd_octets}) {
        Burst burst{.shape = template_of(plan, plan.version() == IpVersion::v4 ? 64 : 84, plan::Direction::forward, 1),
                    .version = plan.version(),
                    .block = {},
                    .at = 0,
                    .frames = FlowBlock::size,
                    .stamp = {.sequence = 0xFFFFFFF0, .stride = 3, .time = 0x123456789ABC},
                    .misaligned_by = 0};
        bool agree = true;
        for (std::uint32_t first = 0; first < 65536; first += FlowBlock::size) {
            for (auto& field : burst.block.lanes.field) field.fill(0xFFFF);
            std::iota(burst.block.lanes.field[3].begin(), burst.block.lanes.field[3].end(), first);
            agree = agree && all_writers_agree(burst);
            std::iota(burst.block.lanes.field[0].begin(), burst.block.lanes.field[0].end(), first);
            agree = agree && all_writers_agree(burst);
        }
        CHECK(agree);
    }
}

TEST_CASE("frames have the addresses of their flow and right checksums, wherever the octets of the numbers stand") {
    const bool right = rc::check("all writers", [](bool v6) {
        const auto plan = any_plan(v6);
        const auto shape = template_of(plan, 100, plan::Direction::forward, 1);
        const std::size_t source_at = v6 ? 22 : 26;
        const std::size_t octets = plan::address_octets(plan.version());
        const Burst burst{.shape = shape,
                          .version = plan.version(),
                          .block = any_block(shape.has_network_octets),
                          .at = 0,
                          .frames = FlowBlock::size,
                          .stamp = {.sequence = 12, .stride = 1, .time = 34},
                          .misaligned_by = 0};
        for (const char* const name : {"plain", "avx2"}) {
            if (frame::frame_writer(name, shape) == nullptr) continue;
            const auto frames = written(name, burst);
            for (std::size_t i = 0; i < frames.size(); ++i) {
                const std::byte* const at = frames[i].data() + margin;
                const auto source = plan.left.hosts.address(burst.block.source(i));
                const auto destination = plan.right.hosts.address(burst.block.destination(i));
                RC_ASSERT(std::memcmp(at + source_at, source.octets.data(), octets) == 0);
                RC_ASSERT(std::memcmp(at + source_at + octets, destination.octets.data(), octets) == 0);
                RC_ASSERT(frame::is_intact(at, shape.octets, plan.version()));
            }
        }
    });
    CHECK(right);
}

TEST_CASE("the sender takes the fastest writer of this CPU") {
    for (const auto& plan : {tests::gateway_v4(), tests::gateway_v6()}) {
        const auto shape = template_of(plan, 84, plan::Direction::forward, 1);
        const auto plain = frame::frame_writer("plain", shape);
        const auto avx2 = frame::frame_writer("avx2", shape);
        const bool is_fastest = frame::fastest_frame_writer(shape) == (avx2 != nullptr ? avx2 : plain);
        CHECK(is_fastest);
        const bool is_known = frame::frame_writer("mmx", shape) != nullptr;
        CHECK_FALSE(is_known);
    }
}

}  // namespace writer_test
