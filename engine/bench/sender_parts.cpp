// SPDX-License-Identifier: Apache-2.0
// Bench: where the sender loop spends its time on one CPU. Its parts alone and the whole are measured in turn, many
// times. bench/sender_rate.py runs it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "connections.hpp"
#include "fault.hpp"
#include "flows.hpp"
#include "frame/connections.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/template.hpp"
#include "gateway_plan.hpp"
#include "own_plan.hpp"
#include "pace/clock.hpp"
#include "parts.hpp"
#include "plan/permutation.hpp"
#include "plan/philox.hpp"
#include "port/dpdk_host.hpp"
#include "port/dpdk_port_inline.hpp"
#include "run/sender.hpp"

namespace {

using namespace evenhand;
using bench::Part;
using pace::TickClock;
using pace::Ticks;
using plan::IpVersion;
using port::DpdkPort;

constexpr std::uint64_t seed = 1;
constexpr std::uint64_t bursts_of_a_round =
    1000;  // some 0.3 ms, so that many rounds pass without another program on the CPU
constexpr double never_s = 1e6;

/// `burst(i)` runs the part for burst i of 32 frames.
template <class Burst>
void measure(Part& part, Burst burst) {
    const Ticks begin = TickClock::now();
    for (std::uint64_t i = 0; i < bursts_of_a_round; ++i) burst(i);
    part.ticks_per_frame.push_back(static_cast<double>(TickClock::now() - begin) /
                                   (bursts_of_a_round * run::burst_size));
}

/// How many rounds open all connections; after that there are none left to open.
constexpr unsigned rounds_that_open(std::uint64_t connections) {
    return static_cast<unsigned>(connections / (bursts_of_a_round * run::burst_size));
}

/// A variant of vector code, alone: 32 draws, as a sender makes them or a receiver's burst check, or 32 numbers of
/// connections that become four tuples.
struct VectorPart {
    Part part;
    std::function<void(std::uint64_t i)> burst;
};

/// Each variant that this CPU can run, on all addresses and ports that there are. What they write is kept in `lanes`.
std::vector<VectorPart> vector_parts(plan::DrawLanes& lanes) {
    plan::DrawBounds bounds;
    for (std::size_t field = 0; field < plan::drawn_fields; ++field) bounds.set(field, 1, 65'533);
    plan::LaneBits biased{};
    std::array<std::uint64_t, plan::DrawLanes::size> words{};
    std::iota(words.begin(), words.end(), std::uint64_t{1} << 20U);
    std::vector<VectorPart> parts;
    for (const char* const name : {"plain", "avx2", "avx512"}) {
        if (const auto draw = plan::draw_variant(name); draw != nullptr) {
            parts.emplace_back(Part{fmt::format("draw {}", name)}, [=, &lanes](std::uint64_t i) mutable {
                (void)draw(i * run::burst_size, 1, 0, {1, 2}, bounds, lanes, biased);
            });
        }
        if (const auto draw = plan::listed_draw_variant(name); draw != nullptr) {
            parts.emplace_back(Part{fmt::format("draw listed {}", name)}, [=, &lanes](std::uint64_t i) mutable {
                words[i % words.size()] += run::burst_size;
                (void)draw(words.data(), 0, {1, 2}, bounds, lanes, biased);
            });
        }
        if (const auto permute = plan::RectanglePermutation::variant(name); permute != nullptr) {
            const plan::RectanglePermutation permutation{bounds, seed};
            parts.emplace_back(Part{fmt::format("permute {}", name)}, [=, &lanes](std::uint64_t i) {
                plan::RectanglePermutation::Numbers numbers;
                std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(i * run::burst_size));
                (void)permute(permutation, numbers, lanes);
            });
        }
    }
    return parts;
}

template <IpVersion V>
void measure_all(const std::string& device, unsigned cpu, unsigned rounds) {
    const auto plan = bench::gateway_plan(V);
    DpdkPort port{{.device = device,
                   .where = "device",
                   .largest_transmit_octets = frame::Layout<V>::smallest_frame_size - frame::fcs_octets},
                  [](std::span<std::byte> buffer, unsigned) { frame::write_pattern(V, buffer); }};
    const port::WorkerThread here{cpu};
    const double ticks_per_second = pace::calibrate_ticks_per_second();
    const plan::FlowDraw draw{plan, plan::Direction::forward, seed};
    const auto shape = frame::make_template(plan, frame::Layout<V>::smallest_frame_size, {.trial = 1},
                                            {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2});
    frame::TestFrameSource source{shape, draw, {}};
    const auto sender_of = [&](const auto& frames) {
        constexpr double beyond_reach_fps = 4e8;
        const Ticks start = TickClock::now();
        return run::Sender<DpdkPort, std::remove_cvref_t<decltype(frames)>>{
            port,
            0,
            frames,
            pace::EvenSchedule{start, ticks_per_second, beyond_reach_fps},
            std::numeric_limits<std::uint64_t>::max() / 2,
            run::Punctuality{.overdue_after = start},
            start + static_cast<Ticks>(never_s * ticks_per_second)};
    };
    auto sender = sender_of(source);
    auto flow_sender = sender_of(frame::MixSource{
        frame::make_mix_parts(plan, bench::flows_of(frame::Layout<V>::smallest_frame_size), seed, {.trial = 1}, {},
                              {.source_mac = {2, 0, 0, 0, 0, 1}, .dut_macs = {{2, 0, 0, 0, 0, 2}}, .hosts = {}})});

    /// Addresses of one's own: from one prefix on the right, and from many.
    struct Own {
        Part drawing;
        Part whole;
        plan::FlowDraw draw;
        decltype(sender) its_sender;
    };
    std::vector<Own> own;
    for (const auto& [name, prefixes] : {std::pair{"one prefix", 1U}, {"10^6 prefixes", bench::prefixes_of_a_table}}) {
        const auto own_plan = bench::own_plan(V, prefixes);
        const plan::FlowDraw its_draw{own_plan, plan::Direction::forward, seed};
        const auto its_shape = frame::make_template(own_plan, frame::Layout<V>::smallest_frame_size, {.trial = 1},
                                                    {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2});
        own.push_back({.drawing = {fmt::format("draw, {}", name), {}},
                       .whole = {fmt::format("all, {}", name), {}},
                       .draw = its_draw,
                       .its_sender = sender_of(frame::TestFrameSource{its_shape, its_draw, {}})});
    }

    std::array<DpdkPort::Frame*, run::burst_size> held{};
    if (port.reserve(0, held.data(), run::burst_size) == 0)
        throw Fault{FaultCode::no_memory, "no frame buffers", "device", "Raise memory_mb."};
    std::array<std::byte*, run::burst_size> octets{};
    std::ranges::transform(held, octets.begin(), DpdkPort::octets);

    Part drawing{"draw"};
    Part opening{"draw, new connections"};
    Part using_them{"draw, established connections"};
    Part answering{"draw, answers"};
    const auto state = bench::state_table(bench::plan_with_state(V), bench::connections, seed, true);
    const auto flows = [&](plan::Direction direction, plan::ConnectionUse use) {
        return frame::ConnectionFlows{*state, plan::ConnectionDraw{use, direction, state->connections(), seed},
                                      direction, frame::LinkEnd::sent};
    };
    auto opened = flows(plan::Direction::forward, plan::ConnectionUse::each_once);
    auto used = flows(plan::Direction::forward, plan::ConnectionUse::drawn);
    auto answered = flows(plan::Direction::reverse, plan::ConnectionUse::drawn);
    const auto source_of = [&](const frame::ConnectionFlows& of) { return frame::ConnectionSource{shape, of, {}}; };
    auto using_sender = sender_of(source_of(used));
    auto answering_sender = sender_of(source_of(answered));
    using Opening = decltype(sender_of(source_of(opened)));
    std::optional<Opening> opening_sender;
    constexpr auto rounds_of_one_opening = rounds_that_open(bench::connections);
    std::uint64_t drawn = 0;  // blocks, of all rounds, so that no part of the table is read again and again
    std::vector<std::pair<Part, frame::FrameWriter>> writing;
    for (const char* const name : {"plain", "avx2"}) {
        if (const auto writer = frame::frame_writer(name, shape); writer != nullptr)
            writing.emplace_back(Part{fmt::format("write {}", name)}, writer);
    }
    Part buffers{"reserve and send"};
    Part whole{"all"};
    Part whole_flows{"all, 64 flows"};
    Part whole_opening{"all, new connections"};
    Part whole_using{"all, established connections"};
    Part whole_answering{"all, answers"};
    const frame::FrameShape shape_of_writers{shape};
    plan::FlowBlock block;
    plan::DrawLanes lanes;
    auto vectors = vector_parts(lanes);
    for (unsigned round = 0; round < rounds; ++round) {
        measure(drawing, [&](std::uint64_t i) { draw.draw_block(i * run::burst_size, 1, block); });
        for (auto& each : own)
            measure(each.drawing,
                    [&](std::uint64_t i) { each.draw.draw_block((drawn + i) * run::burst_size, 1, block); });
        measure(opening, [&](std::uint64_t i) {
            opened.draw_block((drawn + i) * run::burst_size % state->connections(), 1, block);
        });
        measure(using_them, [&](std::uint64_t i) { used.draw_block((drawn + i) * run::burst_size, 1, block); });
        measure(answering, [&](std::uint64_t i) { answered.draw_block((drawn + i) * run::burst_size, 1, block); });
        drawn += bursts_of_a_round;
        for (auto& vector : vectors) measure(vector.part, [&](std::uint64_t i) { vector.burst(i); });
        for (auto& [part, write] : writing) {
            measure(part, [&](std::uint64_t i) {
                write(shape_of_writers, block, 0, octets, {.sequence = i * run::burst_size, .time = i});
            });
        }
        measure(buffers, [&](std::uint64_t /*i*/) {
            std::array<DpdkPort::Frame*, run::burst_size> burst;
            const unsigned n = port.reserve(0, burst.data(), run::burst_size);
            for (unsigned i = 0; i < n; ++i) DpdkPort::set_length(burst[i], source.frame_octets(i));
            port.send(0, burst.data(), n);
        });
        measure(whole, [&](std::uint64_t /*i*/) { sender.turn(TickClock::now()); });
        for (auto& each : own)
            measure(each.whole, [&](std::uint64_t /*i*/) { each.its_sender.turn(TickClock::now()); });
        measure(whole_flows, [&](std::uint64_t /*i*/) { flow_sender.turn(TickClock::now()); });
        if (round % rounds_of_one_opening == 0) {
            if (opening_sender) opening_sender->give_back();
            opening_sender.emplace(sender_of(source_of(opened)));
        }
        measure(whole_opening, [&](std::uint64_t /*i*/) { opening_sender->turn(TickClock::now()); });
        measure(whole_using, [&](std::uint64_t /*i*/) { using_sender.turn(TickClock::now()); });
        measure(whole_answering, [&](std::uint64_t /*i*/) { answering_sender.turn(TickClock::now()); });
    }
    sender.give_back();
    flow_sender.give_back();
    for (auto& each : own) each.its_sender.give_back();
    if (opening_sender) opening_sender->give_back();
    using_sender.give_back();
    answering_sender.give_back();
    port.give_back(held.data(), run::burst_size);
    std::vector<Part> all{std::move(drawing), std::move(opening), std::move(using_them), std::move(answering)};
    for (auto& [part, burst] : vectors) all.push_back(std::move(part));
    for (auto& [part, write] : writing) all.push_back(std::move(part));
    all.insert(all.end(), {std::move(buffers), std::move(whole), std::move(whole_flows), std::move(whole_opening),
                           std::move(whole_using), std::move(whole_answering)});
    for (auto& each : own) {
        all.push_back(std::move(each.drawing));
        all.push_back(std::move(each.whole));
    }
    bench::print(all, ticks_per_second);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int wanted = 5;
    if (argc != wanted) {
        fmt::print(stderr, "usage: {} DEVICE CPU 4|6 ROUNDS\n", argv[0]);
        return 2;
    }
    try {
        port::start_dpdk({.memory_mb = 256, .hugepages = false, .extra_eal_arguments = {}}, {});
        const auto cpu = static_cast<unsigned>(std::atoi(argv[2]));
        const auto rounds = static_cast<unsigned>(std::max(1, std::atoi(argv[4])));
        if (std::string{argv[3]} == "6") {
            measure_all<IpVersion::v6>(argv[1], cpu, rounds);
        } else {
            measure_all<IpVersion::v4>(argv[1], cpu, rounds);
        }
    } catch (const Fault& fault) {
        fmt::print(stderr, "{}: {}. {}\n", fault.where, fault.what_text, fault.next);
        return 3;
    }
    port::stop_dpdk();
    return 0;
}
