// SPDX-License-Identifier: Apache-2.0
// Forward: THE loop of the router. Takes frames that have arrived, decides where they go and which element works on
// them, and sends those that are due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elements/calendar.hpp"
#include "elements/elements.hpp"
#include "elements/spread.hpp"
#include "forward/arrivals.hpp"
#include "forward/counters.hpp"
#include "forward/departures.hpp"
#include "forward/forward_options.hpp"
#include "forward/nat.hpp"
#include "forward/packet.hpp"
#include "forward/stalls.hpp"
#include "forward/translation.hpp"
#include "local/answerer.hpp"
#include "local/question.hpp"
#include "tables/interface.hpp"
#include "tables/neighbor_table.hpp"
#include "tables/route_table.hpp"

namespace evenhand::router {

/// One worker's router between the two ports of each pair; its elements work for all pairs. The model calculates with
/// the times at which frames arrived (arrival_times.hpp), not with those at which they were looked at: a busy host
/// delays frames, but does not fill queues that would not have been full. Frames that are found late may leave late,
/// which is counted. Nothing leaves early: an arrival is an estimate, so each delay begins no sooner than the look that
/// found the frame.
template <class Port>
class Forwarder {
   public:
    using Frame = typename Port::Frame;

    /// `ports`: left and right of each of `pairs`, which are 1 to most_interfaces / 2; they outlive the forwarder. Its
    /// time begins at `start`, a reading of the clock, so that a model that compares and multiplies times is right
    /// whatever the value of the CPU's counter. All pairs share one table of connections.
    Forwarder(const std::vector<Port*>& ports, std::vector<VirtualRouter> pairs, std::optional<ElementModel> model,
              std::optional<Translator> translator, std::optional<Nat> nat, Defects defects,
              const ForwardOptions& options, Ticks start)
        : ports_{ports},
          pairs_{std::move(pairs)},
          model_{std::move(model)},
          translator_{std::move(translator)},
          nat_{std::move(nat)},
          translates_{translator_ || nat_},
          options_{options},
          departures_{ports, std::move(defects), options.ticks_per_second / 100, counters_},
          calendar_{options.waiting_frames, options.horizon + options.stalls.length, 0},  // which does not turn then
          start_{start},
          arrivals_{ports, options.ticks_per_second, model_.has_value() || options.stalls.every != 0, counters_} {}

    /// Never waits. The values of `clock()` never go back, but may pass 2^64.
    template <class Clock>
    void turn(Clock&& clock) noexcept {
        now_ = arrivals_.look([&] { return clock() - start_; });
        const bool may_leave = !stalls_.is_in(now_);
        if (arrivals_.has_frames()) {
            if (may_leave) calendar_.advance(now_, leave_);  // before the frames that are received now
            arrivals_.hand_over([&](Frame* frame, unsigned in, Ticks arrival) { receive(frame, in, arrival); });
        }
        if (may_leave) calendar_.advance(now_, leave_);
        if (static_cast<std::int64_t>(now_ - next_timers_) >= 0) run_timers(now_);
        departures_.flush_all(now_, may_leave);
    }

    /// Whether no frame has arrived for `at_least` ticks, and none waits to leave.
    [[nodiscard]] bool is_idle(Ticks at_least) const noexcept {
        return arrivals_.is_idle(at_least) && calendar_.waiting() == 0;
    }

    [[nodiscard]] const ForwardCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] const std::optional<ElementModel>& model() const noexcept { return model_; }
    [[nodiscard]] const std::optional<Translator>& translator() const noexcept { return translator_; }
    [[nodiscard]] const std::optional<Nat>& nat() const noexcept { return nat_; }
    /// Removes all connections and returns how many there were: none without a Nat. To be called between two turns.
    std::size_t flush() noexcept { return nat_ ? nat_->flush() : 0; }

   private:
    static_assert(most_interfaces / 2 <= ConnectionTable::most_pairs);

    struct Waiting {
        Frame* frame = nullptr;
        Ticks due = 0;  // according to the model: when it should have left if it had been found on arrival
        std::uint8_t out = 0;
    };

    [[nodiscard]] static std::uint8_t number_of_pair(unsigned port) noexcept {
        return static_cast<std::uint8_t>(port / 2);
    }
    [[nodiscard]] const VirtualRouter& pair_of(unsigned port) const noexcept { return pairs_[port / 2]; }
    [[nodiscard]] const Interface& interface_of(unsigned port) const noexcept {
        return pair_of(port).interfaces[port % 2];
    }
    /// The port of this interface of the pair that `port` belongs to.
    [[nodiscard]] static unsigned port_beside(unsigned port, unsigned interface) noexcept {
        return (port & ~1U) + interface;
    }

    void receive(Frame* frame, unsigned in, Ticks arrival) noexcept {
        std::byte* const octets = Port::octets(frame);
        const std::size_t length = Port::length(frame);
        InterfaceCounters& counters = counters_.interfaces[in];
        const Packet packet = read_packet(octets, length);
        switch (packet.kind) {
            case PacketKind::unicast: break;
            case PacketKind::control: hand_over(frame, in, arrival); return;
            case PacketKind::ignored: drop(frame, in, counters.ignored_frames); return;
            case PacketKind::malformed: drop(frame, in, counters.malformed_frames); return;
            case PacketKind::martian: drop(frame, in, counters.martian_frames); return;
        }
        if (const auto& mac = interface_of(in).mac; std::memcmp(octets, mac.data(), mac.size()) != 0) {
            drop(frame, in, counters.other_mac_frames);
            return;
        }
        if (stays_on_link(packet)) {
            hand_over(frame, in, arrival);  // so it can only be for the router itself
            return;
        }
        if (translates_ && receive_translated(frame, in, packet, arrival)) return;
        const RouteTable& routes = *pair_of(in).routes;
        const Route* const route = packet.version == IpVersion::v4
                                       ? routes.find_v4(frame::big(frame::load<std::uint32_t>(packet.destination)))
                                       : routes.find_v6(packet.destination);
        if (route == nullptr) {
            drop(frame, in, counters.no_route_frames);
        } else if (route->kind == RouteKind::local) {
            hand_over(frame, in, arrival);
        } else if (route->kind == RouteKind::broadcast) {
            drop(frame, in, counters.ignored_frames);
        } else {
            forward(frame, in, packet, read_address(packet.destination, packet.version), *route, arrival);
        }
    }

    /// Sends the packet where its new destination leads. The frame itself is translated when an element has worked on
    /// it. False: it is not to be translated.
    [[nodiscard]] bool receive_translated(Frame* frame, unsigned in, const Packet& packet, Ticks arrival) noexcept {
        if (nat_) return receive_connected(frame, in, packet, arrival);
        if (!translator_->is_for(packet)) return false;
        const auto addresses = translator_->addresses_of(packet);
        const Route* const route = addresses ? pair_of(in).routes->find(addresses->destination) : nullptr;
        if (route == nullptr || route->kind != RouteKind::forward) {
            drop(frame, in, counters_.interfaces[in].no_route_frames);
        } else {
            forward(frame, in, packet, addresses->destination, *route, arrival);
        }
        return true;
    }

    /// The same for translation by connections.
    [[nodiscard]] bool receive_connected(Frame* frame, unsigned in, const Packet& packet, Ticks arrival) noexcept {
        const NatWay way = nat_->way_of(packet, in % 2);
        if (way == NatWay::past) return false;
        const Route* route = nullptr;
        if (way == NatWay::outgoing) {
            const plan::IpAddress destination = nat_->outside_destination(packet);
            route = pair_of(in).routes->find(destination);
            if (route == nullptr || route->kind != RouteKind::forward || route->interface == in % 2) {
                if (destination.version == packet.version) return false;  // for the router itself, or for the inside
                drop(frame, in, counters_.interfaces[in].no_route_frames);
                return true;
            }
        }
        const auto crossing = nat_->look_up(packet, way, number_of_pair(in), arrival);
        if (!crossing) {
            ports_[in]->release(&frame, 1);
            return true;
        }
        if (way == NatWay::incoming) route = pair_of(in).routes->find(crossing->destination);
        if (route == nullptr || route->kind != RouteKind::forward) {
            drop(frame, in, counters_.interfaces[in].no_route_frames);
        } else {
            forward(frame, in, packet, crossing->destination, *route, arrival, &*crossing);
        }
        return true;
    }

    void forward(Frame* frame, unsigned in, const Packet& packet, const plan::IpAddress& destination,
                 const Route& route, Ticks arrival, const NatCrossing* crossing = nullptr) noexcept {
        if (!take_hop(Port::octets(frame), packet.version)) {
            drop(frame, in, counters_.interfaces[in].expired_frames);
            return;
        }
        const plan::IpAddress next_hop = route.via ? *route.via : destination;
        NeighborTable& neighbors = *pair_of(in).neighbors;
        if (const plan::MacAddress* const mac = neighbors.find(route.interface, next_hop, arrival); mac != nullptr) {
            admit(frame, in, packet, port_beside(in, route.interface), *mac, arrival, crossing);
        } else if (neighbors.hold(route.interface, next_hop, frame, arrival) != HoldResult::held) {
            drop(frame, in, counters_.interfaces[in].unresolved_frames);
        }
    }

    /// Gives the frame to its element, and from there to its departure.
    void admit(Frame* frame, unsigned in, const Packet& packet, unsigned out, const plan::MacAddress& mac,
               Ticks arrival, const NatCrossing* crossing) noexcept {
        Ticks due = arrival;
        Ticks departure = now_;
        if (model_) {
            const std::size_t element = model_->spread.element(packet.version, packet.source, packet.ports);
            const bool is_dear = crossing != nullptr && crossing->makes_entry();
            const std::optional<Ticks> served =
                nat_ ? model_->elements.admit(element, arrival, is_dear) : model_->elements.admit(element, arrival);
            if (!served) {
                drop(frame, in, counters_.interfaces[in].element_dropped_frames);
                return;
            }
            due = *served;
            departure = model_->elements.leave_at(element, due, now_, is_dear);
        }
        if (translates_ && !translate(frame, in, packet, arrival, crossing)) return;
        write_macs(Port::octets(frame), mac, interface_of(out).mac);
        const bool is_longer = options_.longer_every != 0 && (admitted_ + 1) % options_.longer_every == 0;
        const Ticks delay = options_.extra_delay + (is_longer ? options_.longer_delay : 0);
        departure += delay;
        if (!stalls_.outlast(in, departure)) {
            drop(frame, in, counters_.interfaces[in].stalled_frames);
            return;
        }
        ++admitted_;
        if (!calendar_.add({.frame = frame, .due = stalls_.end_of(due + delay), .out = static_cast<std::uint8_t>(out)},
                           departure))
            drop(frame, in, counters_.model.overflow_frames);
    }

    /// Translates the frame, if it is to be translated. False: it was dropped.
    [[nodiscard]] bool translate(Frame* frame, unsigned in, const Packet& packet, Ticks arrival,
                                 const NatCrossing* crossing) noexcept {
        if (nat_ ? crossing == nullptr : !translator_->is_for(packet)) return true;
        const std::span<std::byte> room{Port::octets(frame), Port::room(frame)};
        const std::size_t octets = nat_ ? nat_->translate(room, Port::length(frame), packet, *crossing, arrival)
                                        : translator_->translate(room, Port::length(frame));
        if (octets != 0) {
            Port::set_length(frame, octets);
            return true;
        }
        if (!nat_) ++counters_.interfaces[in].malformed_frames;
        ports_[in]->release(&frame, 1);
        return false;
    }

    /// Hands the frame to the router itself. Frames that waited for the neighbour that sent it go on.
    void hand_over(Frame* frame, unsigned in, Ticks arrival) noexcept {
        ++counters_.interfaces[in].local_frames;
        const std::size_t answer =
            pair_of(in).local->handle(in % 2, {Port::octets(frame), Port::room(frame)}, Port::length(frame), arrival);
        if (answer != 0) {
            Port::set_length(frame, answer);
            departures_.put(frame, in);
        } else {
            ports_[in]->release(&frame, 1);
        }
        go_on(in, arrival);
    }

    /// Handles frames of this port's pair that waited: frames whose next hop answered go to their element as if they
    /// arrived now; frames whose next hop did not are dropped.
    void go_on(unsigned port, Ticks now) noexcept {
        pair_of(port).neighbors->take_ready(
            [&](void* held, unsigned out, const plan::MacAddress& mac) {
                admit_held(static_cast<Frame*>(held), port_beside(port, out), mac, now);
            },
            [&](void* held) {
                auto* frame = static_cast<Frame*>(held);
                ports_[port]->release(&frame, 1);  // the neighbour table counts it
            });
    }

    void admit_held(Frame* frame, unsigned out, const plan::MacAddress& mac, Ticks now) noexcept {
        const unsigned in = out ^ 1U;
        const Packet packet = read_packet(Port::octets(frame), Port::length(frame));
        const NatWay way = nat_ ? nat_->way_of(packet, in % 2) : NatWay::past;
        if (way == NatWay::past) {
            admit(frame, in, packet, out, mac, now, nullptr);
        } else if (const auto crossing = nat_->look_up(packet, way, number_of_pair(in), now); crossing) {
            admit(frame, in, packet, out, mac, now, &*crossing);
        } else {
            ports_[in]->release(&frame, 1);  // its connection ended while it waited
        }
    }

    void run_timers(Ticks now) noexcept {
        next_timers_ = now + options_.ticks_per_second / 1000;
        if (nat_) nat_->turn(now);
        std::size_t entries = 0;
        for (unsigned port = 0; port < ports_.size(); port += 2) {
            pair_of(port).neighbors->turn(
                now, [&](const NeighborQuestion& question) { ask(port_beside(port, question.interface), question); });
            go_on(port, now);
            entries += pair_of(port).neighbors->size();
        }
        if (model_) model_->elements.set_cost_factor(model_->neighbor_cost.factor(entries));
    }

    void ask(unsigned out, const NeighborQuestion& question) noexcept {
        Frame* frame = nullptr;
        if (ports_[out]->reserve(0, &frame, 1) != 1) return;
        const std::size_t octets =
            write_question({Port::octets(frame), Port::room(frame)}, interface_of(out), question);
        if (octets == 0) {
            ports_[out]->give_back(&frame, 1);
            return;
        }
        Port::set_length(frame, octets);
        departures_.put(frame, out);
    }

    void drop(Frame* frame, unsigned in, std::uint64_t& counter) noexcept {
        ++counter;
        ports_[in]->release(&frame, 1);
    }

    struct Leave {
        Forwarder* self;
        void operator()(const Waiting& waiting, Ticks /*departure*/) const noexcept {
            ModelCounters& model = self->counters_.model;
            ++model.departed_frames;
            if (const auto late = static_cast<std::int64_t>(self->now_ - waiting.due);
                late > static_cast<std::int64_t>(self->options_.overdue_after)) {
                ++model.overdue_frames;
                model.longest_overdue = std::max(model.longest_overdue, static_cast<Ticks>(late));
            }
            self->departures_.leave(waiting.frame, waiting.out, self->now_);
        }
    };

    std::vector<Port*> ports_;  // left and right of each pair
    std::vector<VirtualRouter> pairs_;
    std::optional<ElementModel> model_;
    std::optional<Translator> translator_;
    std::optional<Nat> nat_;
    bool translates_;  // in either way
    ForwardOptions options_;
    ForwardCounters counters_;
    Departures<Port> departures_;
    Calendar<Waiting> calendar_;
    Leave leave_{this};
    Ticks start_;  // as read from the clock; all other times are relative to it
    Arrivals<Port> arrivals_;
    Stalls stalls_{options_.stalls, options_.horizon};
    Ticks now_ = 0;
    Ticks next_timers_ = 0;
    std::uint64_t admitted_ = 0;
};

}  // namespace evenhand::router
