// SPDX-License-Identifier: Apache-2.0
// Before the first trial: the DUT's MACs, and whether frames get through it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "fault.hpp"
#include "frame/learning_source.hpp"
#include "frame/template.hpp"
#include "plan/host_set.hpp"
#include "run/tester.hpp"

namespace evenhand::run {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using plan::Direction;
using plan::Side;

using plan::both_sides;

constexpr auto ask_again_after = 500ms;
constexpr auto look_every = 5ms;

/// A memif's client determines how many rings there are, one for each of its receive queues. What a server with more
/// transmit queues than that sends on the others is lost, and neither end notices (seen with Open vSwitch, which sends
/// on its queue 1).
std::string silent_memif_hint(const port::DpdkPort& port, unsigned receive_queues) {
    if (port.driver() != "net_memif") return "";
    return fmt::format(
        " If the other end of this memif sends on more than {} queue{} (Open vSwitch does), give it no more, or raise "
        "receive_queues.",
        receive_queues, receive_queues == 1 ? "" : "s");
}

}  // namespace

Way Tester::resolve(double timeout_s, const std::vector<Direction>& tried, const std::function<bool()>& goes_on) {
    struct Noting {
        explicit Noting(plan::PerSide<std::unique_ptr<neighbor::Sightings>>& of) : sightings{of} {
            for (const auto& s : sightings) s->begin();
        }
        ~Noting() {
            for (const auto& s : sightings) s->end();
        }
        Noting(const Noting&) = delete;
        Noting& operator=(const Noting&) = delete;
        plan::PerSide<std::unique_ptr<neighbor::Sightings>>& sightings;
    } const noting{sightings_};
    ask_until_resolved(timeout_s, goes_on);
    if (tried.empty() || request_.plan.has_state) return {};
    WayFacts facts = way_facts();
    try_way(facts, tried, goes_on);
    return {.directions = facts.directions, .hints = hints_of(facts)};
}

void Tester::ask_until_resolved(double timeout_s, const std::function<bool()>& goes_on) {
    check_ports();
    for (const auto side : both_sides) {
        for (std::size_t p = 0; p < plans(); ++p) responders_[p][side]->forget_dut_mac();
        if (link_responders_[side]) link_responders_[side]->forget_dut_mac();
    }
    const auto begin = Steady::now();
    const std::chrono::duration<double> timeout{timeout_s};
    auto ask_at = begin;
    while (const auto missing = unresolved()) {
        check_ports();
        const auto now = Steady::now();
        if (now - begin > timeout) refuse_unresolved(*missing, timeout_s);
        if (now >= ask_at) {
            send_questions();
            // On one link the DUT answers for both sides, as it should.
            if (now - begin > timeout / 2 && !(is_one_armed() && around(Side::left) == around(Side::right)))
                ask_across();
            ask_at = now + ask_again_after;
        }
        if (!goes_on()) {
            throw Fault{FaultCode::stopped,
                        fmt::format("stopped before {} had answered on the {} side", plan::to_string(missing->address),
                                    name_of(missing->side)),
                        "resolve", "Send it again."};
        }
        std::this_thread::sleep_for(look_every);
    }
    pass_on_dut_macs();
}

void Tester::refuse_unresolved(const Asked& missing, double timeout_s) const {
    for (const auto each : both_sides) port(each).check_link();
    const auto side = missing.side;
    const auto address = plan::to_string(missing.address);
    const bool is_silent = port(side).counters().received_frames == 0;
    const auto hints = hints_of(way_facts());
    std::string what = fmt::format("{} did not answer on the {} side within {} s", address, name_of(side), timeout_s);
    std::string next =
        fmt::format("Check that the DUT has {} on this link (evenhand plan show {}), or give its MAC as dut_mac.{}",
                    address, missing.plan, is_silent ? silent_memif_hint(port(side), receive_queues(side)) : "");
    if (!hints.empty()) {
        what += "; " + hints.front().what;
        next = hints.front().next;
    } else if (is_silent) {
        what += "; no frame at all has come in there";
    }
    throw Fault{FaultCode::not_resolved, what, missing.where, next};
}

void Tester::ask_across() {
    for (const auto side : both_sides) {
        if (!tunnel(side).is_none() || !tunnel(plan::other_side(side)).is_none()) continue;
        std::vector<std::vector<std::byte>> frames;
        const auto around = this->around(side).octets();
        for (std::size_t p = 0; p < plans(); ++p) {
            const auto& target = plan(p).side(plan::other_side(side)).dut_address;
            const auto& own_mac = responder(side, p).own_mac();
            std::vector<std::byte> frame(around + neighbor::solicitation_octets);
            const auto inner = std::span{frame}.subspan(around);
            // Like a probe (RFC 5227), or from the link-local address, so that no neighbour table changes.
            const std::size_t octets =
                target.version == plan::IpVersion::v4
                    ? neighbor::write_arp_request(inner, {.mac = own_mac, .ip = {.version = target.version}}, target)
                    : neighbor::write_neighbor_solicitation(
                          inner, {.mac = own_mac, .ip = plan::link_local_address(own_mac)}, target);
            frame.resize(around + octets);
            this->around(side).put(frame.data(), frame.size());
            frames.push_back(std::move(frame));
        }
        send_own(side, std::move(frames));
    }
}

void Tester::send_own(Side side, std::vector<std::vector<std::byte>> frames) {
    OwnFrames own;
    own.responder = &responder(side);
    own.frames = std::move(frames);
    if (!std::ranges::any_of(workers_, [&](auto& worker) { return worker->send(own); })) return;
    while (!own.is_over.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
}

std::vector<std::vector<std::byte>> Tester::way_frames(Direction direction) const {
    const auto side = plan::sending_side(direction);
    const auto envelope = this->envelope(side);
    const auto around = envelope.octets();
    std::vector<std::vector<std::byte>> frames;
    for (std::size_t p = 0; p < plans(); ++p) {
        const plan::HostSet from{plan(p).sent(direction).sources};
        const plan::HostSet to{plan(p).sent(direction).destinations,
                               plan::numbered_of(plan(p).side(plan::receiving_side(direction)))};
        const std::array pending{std::uint32_t{0}, to.size() - 1};
        frame::LearningSource source{plan(p),
                                     {.direction = direction, .stream = 0},
                                     from,
                                     to,
                                     pending,
                                     {},
                                     source_mac(side, 0),
                                     responder(side, p).dut_mac().value()};
        const auto octets = frame::LearningSource::octets_of(plan(p).side(side).version());
        for (std::size_t i = 0; i < pending.size(); ++i) {
            std::vector<std::byte> frame(around + octets);
            frame::write_pattern(plan(p).side(side).version(), std::span{frame}.subspan(around));
            std::byte* const at = frame.data() + around;
            source.write_next(std::span{&at, 1}, pace::TickClock::now());
            envelope.put(frame.data(), frame.size());
            frames.push_back(std::move(frame));
        }
    }
    return frames;
}

WayFacts Tester::way_facts() const {
    WayFacts facts;
    for (std::size_t p = 0; p < plans(); ++p) facts.plans.push_back(&plan(p));
    for (const auto side : both_sides) {
        facts.tags[side] = around(side).tags().list();
        facts.seen[side] = sightings_[side]->seen();
        facts.is_resolved[side] = true;
    }
    for (const auto& each : asked()) {
        if (!each.responder->dut_mac()) facts.is_resolved[each.side] = false;
    }
    return facts;
}

void Tester::try_way(WayFacts& facts, const std::vector<Direction>& tried, const std::function<bool()>& goes_on) {
    constexpr auto give_up_after = 1200ms;  // a DUT that has to ask for a next hop first asks again after a second
    constexpr auto send_again_after = 400ms;
    constexpr auto stragglers = 20ms;
    plan::PerDirection<std::optional<Tried>> directions;
    const auto send = [&] {
        for (const auto direction : tried) {
            auto frames = way_frames(direction);
            auto& of = directions[direction];
            if (!of) of.emplace();
            if (of->came != 0) continue;
            of->sent += frames.size();
            send_own(plan::sending_side(direction), std::move(frames));
        }
    };
    const auto count = [&] {
        bool all_came = true;
        for (const auto direction : tried) {
            auto& of = *directions[direction];
            const auto seen = sightings_[plan::receiving_side(direction)]->seen();
            of.came = std::min(of.sent, seen.test_frames[direction]);
            all_came = all_came && of.came != 0;
        }
        return all_came;
    };
    const auto begin = Steady::now();
    auto send_at = begin;
    while (Steady::now() - begin < give_up_after && goes_on()) {
        if (Steady::now() >= send_at) {
            send();
            send_at = Steady::now() + send_again_after;
        }
        std::this_thread::sleep_for(look_every);
        if (count()) break;
    }
    std::this_thread::sleep_for(stragglers);
    (void)count();
    facts = way_facts();
    facts.directions = directions;
}

}  // namespace evenhand::run
