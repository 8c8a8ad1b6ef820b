// SPDX-License-Identifier: Apache-2.0
// The bench for mixes and flows: one sender, a cable, one receiver.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "frame/mix_expectation.hpp"
#include "frame/mix_source.hpp"
#include "frame/vlan.hpp"
#include "rig.hpp"

namespace evenhand::tests {

[[nodiscard]] inline frame::MixSource source_of(const plan::AddressPlan& first, const frame::MixedPlans& mixed,
                                                frame::StreamShare share, std::uint8_t stream = 0) {
    return frame::MixSource{
        frame::make_mix_parts(first, mixed, 1, {.direction = Direction::forward, .stream = stream, .trial = trial},
                              share, {.source_mac = left_mac, .dut_macs = {dut_mac, dut_mac}, .hosts = {}})};
}

/// What arrives at the right side of each class, as run/worker_trials.cpp puts it together. `is_translated`: as if the
/// DUT had translated to the addresses that the frames were sent with.
[[nodiscard]] inline frame::MixExpectation expectation_of(const plan::AddressPlan& first,
                                                          const frame::MixedPlans& mixed, bool is_translated = false) {
    std::vector<frame::MixExpectation::Class> classes;
    std::array<std::optional<frame::TestFrameExpectation>, 2> known;  // of each plan
    for (const auto& c : mixed.mix.classes()) {
        const auto& plan = mixed.plan(first, c.plan);
        auto arrives = frame::traffic_of(plan, Direction::forward, c.frame_size).arrives;
        arrives.first_of_pattern =
            frame::first_of_pattern(arrives.version, frame::pattern_of(first.version(), mixed.mix.has_two_plans()));
        const auto ports = c.fields.narrow({arrives.source_ports, arrives.destination_ports});
        arrives.source_ports = ports.sources;
        arrives.destination_ports = ports.destinations;
        classes.push_back({.frames = {arrives, right_mac, dut_mac}});
        auto& its = classes.back();
        auto& same = known.at(c.plan);
        if (is_translated)
            its.translated.emplace(its.frames, arrives, plan::FlowDraw{plan, Direction::forward, 1}, 1);
        else if (same)
            its.frames.know_as(*same);
        else
            its.frames.know(frame::draw_of(plan, mixed.mix, Direction::forward, 1), 1);
        if (!same) same.emplace(its.frames);
    }
    return {mixed.mix, std::move(classes)};
}

/// Left to right over a cable, as run/worker_trials.cpp puts it together.
struct MixRig {
    /// `around`: the tags of both sides.
    explicit MixRig(frame::MixedPlans m, std::uint64_t count = 1000, plan::AddressPlan plan = gateway_v4(),
                    const frame::VlanTags& around = {})
        : first{std::move(plan)}, mixed{std::move(m)}, frames{count}, tags{around} {
        left.connect(right);
        std::vector<MemoryPort::Frame*> all(2048);
        const auto n = left.reserve(0, all.data(), 2048);
        for (auto* const f : all)
            frame::write_pattern(frame::pattern_of(first.version(), mixed.mix.has_two_plans()),
                                 std::span{f->octets}.subspan(tags.octets(), 1514));
        left.give_back(all.data(), n);
        if (mixed.mix.has_flows()) tally->flows.resize(mixed.mix.classes().size());
        receiver.arm({.trial = trial,
                      .direction = Direction::forward,
                      .frames = expectation_of(first, mixed),
                      .start = start,
                      .clock_skew = us,
                      .residual_end = start + second,
                      .ring_lasts = second,
                      .burst_lasts = run::receive_burst * us},
                     map, *tally, clock.now());
    }

    void run() {
        run::Sender<MemoryPort, frame::TaggedSource<frame::MixSource>> sender{
            left,
            0,
            frame::TaggedSource{source_of(first, mixed, {}), tags},
            pace::EvenSchedule{start, second, rate_fps},
            frames,
            {.overdue_after = 100 * us},
            start + second};
        for (; clock.time < start + (frames + 100) * us; clock.time += us) {
            sender.turn(clock.now());
            receiver.turn<frame::MixExpectation>(clock.now(), clock);
        }
        CHECK(sender.tally().offered_frames == frames);
    }

    plan::AddressPlan first;
    frame::MixedPlans mixed;
    std::uint64_t frames;
    frame::VlanTags tags;
    MemoryPort left{2048};
    MemoryPort right{2048};
    neighbor::Responder responder{right_mac, first.right.gateway.value(), first.right.dut_address};
    run::Receiver<MemoryPort, neighbor::Responder> receiver{right, 0, responder, tags};
    tally::SequenceMap map{frames, false};
    std::unique_ptr<tally::ReceiverTally> tally = std::make_unique<tally::ReceiverTally>();
    HandClock clock{start - 10 * us};
};

}  // namespace evenhand::tests
