// SPDX-License-Identifier: Apache-2.0
// The bench for what is around frames, VLAN tags and tunnels: frames as they come from the DUT, and both loops.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <utility>
#include <vector>

#include "frame/envelope.hpp"
#include "neighbor/messages.hpp"
#include "rig.hpp"

namespace evenhand::tests {

using Vlans = std::vector<std::uint16_t>;

[[nodiscard]] inline frame::VlanTags tags_of(const Vlans& vlans) { return frame::VlanTags{vlans}; }

/// A tunnel between the tester, 192.0.2.2 or 2001:db8::2, and the DUT.
[[nodiscard]] inline frame::TunnelEnds ends_of(frame::TunnelKind kind, bool v6 = false) {
    frame::TunnelEnds ends{
        .kind = kind, .local = ip(v6 ? "2001:db8::2" : "192.0.2.2"), .remote = ip(v6 ? "2001:db8::1" : "192.0.2.1")};
    if (kind == frame::TunnelKind::vxlan) ends.vni = 0xABCDEF;
    if (kind == frame::TunnelKind::mpls) ends.labels = ends.arriving_labels = {100, 16};
    return ends;
}
/// That of the other end.
[[nodiscard]] inline frame::TunnelEnds turned(frame::TunnelEnds ends) {
    std::swap(ends.local, ends.remote);
    std::swap(ends.labels, ends.arriving_labels);
    return ends;
}
/// What the DUT puts around the frames that it sends into the tunnel of the side that has these ends.
[[nodiscard]] inline frame::Tunnel sent_into(const frame::TunnelEnds& ends, const plan::MacAddress& of_dut,
                                             const plan::MacAddress& of_tester) {
    return frame::Tunnel{turned(ends)}.between(of_dut, of_tester);
}

/// A frame in this envelope. `write` writes what is inside, and returns its octets.
template <class Write>
[[nodiscard]] MemoryPort::Frame enveloped(const frame::Envelope& around, Write write) {
    MemoryPort::Frame f;
    f.length = around.octets() + write(std::span{f.octets}.subspan(around.octets()));
    around.put(f.octets.data(), f.length);
    return f;
}
[[nodiscard]] inline MemoryPort::Frame question(const frame::Envelope& around, const neighbor::Party& asker,
                                                const plan::IpAddress& target) {
    return enveloped(around, [&](std::span<std::byte> room) {
        return target.version == IpVersion::v4 ? neighbor::write_arp_request(room, asker, target)
                                               : neighbor::write_neighbor_solicitation(room, asker, target);
    });
}

/// Sends a direction's frames in one envelope, through both loops, to a side that expects another one. All of them
/// arrive and are as they were sent, or all are foreign.
template <IpVersion V>
void check_loops(const frame::Envelope& sent, const frame::Envelope& expected, bool arrives) {
    constexpr std::uint64_t frames = 200;
    constexpr std::size_t size = frame::Layout<V>::smallest_frame_size;
    Rig<V> rig{{.frames = frames}};
    // The MACs are those with which a frame arrives.
    const auto shape = frame::make_template(
        rig.plan, size, {.direction = Direction::forward, .stream = 0, .trial = trial}, left_mac, right_mac);
    const plan::FlowDraw draw{rig.plan, Direction::forward, 1};
    const frame::TaggedSource source{frame::TestFrameSource{shape, draw, {}}, sent};
    CHECK(source.frame_octets(0) == size - frame::fcs_octets + sent.octets());
    run::Sender<MemoryPort, frame::TaggedSource<frame::TestFrameSource>> sender{
        rig.left,    0,
        source,      pace::EvenSchedule{start, second, rate_fps},
        frames,      run::Punctuality{.overdue_after = 100 * us},
        rig.deadline};
    run::Receiver<MemoryPort, neighbor::Responder> receiver{rig.right, 0, rig.responder, expected};
    auto known = tests::expected(rig.plan, size);
    known.know(draw, 1);
    receiver.arm({.trial = trial,
                  .direction = Direction::forward,
                  .frames = std::move(known),
                  .start = start,
                  .clock_skew = us,
                  .residual_end = rig.residual_end,
                  .ring_lasts = 50 * us,
                  .burst_lasts = run::receive_burst * us},
                 rig.map, *rig.tally, rig.clock.now());
    for (; rig.clock.time < start + (frames + 100) * us; rig.clock.time += 7 * us) {
        sender.turn(rig.clock.now());
        receiver.turn(rig.clock.now(), rig.clock);
    }
    CHECK(sender.tally().offered_frames == frames);
    CHECK(rig.got().received_frames == (arrives ? frames : 0));
    CHECK(damage_of(rig.got()) == Damage{.foreign = arrives ? 0 : frames});
}

}  // namespace evenhand::tests
