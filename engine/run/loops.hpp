// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: the `for` around the loops of a worker's senders and receivers. To be included by the files that
// compile it for a kind of port: everything is inlined there, down to the port's bursts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "pace/clock.hpp"
#include "port/bursts.hpp"
#include "run/worker_queues.hpp"
#include "run/worker_trial.hpp"

namespace evenhand::run {

/// A port whose owner of transmit queue 0 also sends frames that are not test frames.
template <class P>
concept AnsweringPort = TxPort<P> && RxPort<P> && requires(P port) {
    { port.flush_answers() } noexcept -> std::same_as<unsigned>;  // how many it sent
};

template <class Port>
template <FrameExpectation Frames, class Clock>
void WorkerQueues<Port>::receive(Ticks now, Clock& clock) noexcept {
    for (auto& receiver : receivers_) {
        if (!receiver.is_fed()) [[likely]]
            receiver.template turn<Frames>(now, clock);
    }
}

template <class Port>
void WorkerQueues<Port>::flush_answers() noexcept {
    for (auto& outlet : outlets_) (void)outlet->port->flush_answers();
}

template <class Port>
bool WorkerQueues<Port>::idle_turn() {
    pace::TickClock clock;
    unsigned frames = 0;
    for (auto& receiver : receivers_) {
        if (!receiver.is_fed()) frames += receiver.turn(clock.now(), clock);
    }
    for (auto& outlet : outlets_) {
        frames += outlet->port->flush_answers();
        if (outlet->question_wanted.exchange(false, std::memory_order_acquire)) {
            outlet->send([&](std::span<std::byte> frame) { return outlet->responder->write_question(frame); });
        }
        if (OwnFrames* const own = outlet->own_frames.exchange(nullptr, std::memory_order_acquire); own != nullptr) {
            for (const auto& octets : own->frames) {
                outlet->port->send_control([&](std::span<std::byte> frame) {
                    std::copy_n(octets.begin(), std::min(octets.size(), frame.size()), frame.begin());
                    return std::min(octets.size(), frame.size());
                });
            }
            own->is_over.store(true, std::memory_order_release);
        }
        announce_next(*outlet);
    }
    return frames != 0;
}

template <class Port>
template <class Write>
void WorkerQueues<Port>::Outlet::send(Write write) {
    if (!envelope.tunnel().is_none() && !envelope.tunnel().has_ethernet()) return;  // nobody is inside
    const auto dut_mac = link == nullptr ? std::nullopt : link->dut_mac();
    if (link != nullptr && !dut_mac) return;
    const frame::Envelope around = dut_mac ? envelope.between(link->own_mac(), *dut_mac) : envelope;
    port->send_control([&](std::span<std::byte> frame) {
        const std::size_t octets = around.octets() + write(frame.subspan(around.octets()));
        around.put(frame.data(), octets);
        return octets;
    });
}

template <class Port>
void WorkerQueues<Port>::announce_next(Outlet& outlet) {
    Announcements* const hosts = outlet.announcements.load(std::memory_order_acquire);
    if (hosts == nullptr) return;
    if (hosts->next < hosts->hosts.size()) {
        const std::uint32_t host = hosts->hosts[hosts->next++];
        outlet.send([&](std::span<std::byte> frame) { return outlet.responder->write_announcement(frame, host); });
        return;
    }
    outlet.announcements.store(nullptr, std::memory_order_relaxed);
    hosts->is_over.store(true, std::memory_order_release);
}

/// THE loop, for one kind of port and one kind of frames.
template <AnsweringPort Port, FrameSource Source>
class PortLoop final : public TrialLoop {
   public:
    PortLoop(WorkerQueues<Port>& queues, std::vector<Sender<Port, Source>> senders, std::vector<Stream> streams)
        : queues_{&queues}, senders_{std::move(senders)}, streams_{std::move(streams)} {}

    void run(WorkerTrial& trial) noexcept override {
        if (trial.lapses) {
            for (auto& sender : senders_) sender.log_to(trial.lapses->of_senders);
        }
        queues_->begin(trial, pace::TickClock::now());
        run_until_finish(trial);
        queues_->end();
    }

    [[nodiscard]] std::vector<Sent> sent() const override {
        std::vector<Sent> found;
        found.reserve(senders_.size());
        for (std::size_t i = 0; i < senders_.size(); ++i)
            found.push_back({.stream = streams_[i], .frames = senders_[i].frames(), .tally = senders_[i].tally()});
        return found;
    }

   private:
    void run_until_finish(WorkerTrial& trial) noexcept {
        // Everything but sending and receiving happens once in this many turns. Answers: a burst of them costs the port
        // little more than one, but 64 questions in each turn must fit into the ring until then. All other tasks: ten
        // times less often.
        constexpr int turns_between_answers = 32;
        constexpr int answers_between_looks = 16;
        pace::TickClock clock;
        Ticks finish = trial.finish;
        bool is_shortened = false;
        do {
            for (int i = 0; i < answers_between_looks; ++i) {
                for (int j = 0; j < turns_between_answers; ++j) {
                    // The time that another sender takes for its burst must not be in the stamps of this one.
                    Ticks now = clock.now();
                    for (std::size_t s = 0; s < senders_.size(); ++s) {
                        if (s != 0) now = clock.now();
                        senders_[s].turn(now);
                    }
                    queues_->template receive<typename Source::Expectation>(now, clock);
                }
                queues_->flush_answers();
            }
            port::Bursts::is_between();
            tell_so_far(trial);
            if (!is_shortened && trial.is_shortened.load(std::memory_order_acquire)) {
                shorten(trial);
                finish = trial.ending.finish;
                is_shortened = true;
            }
        } while (!trial.stop.load(std::memory_order_relaxed) && static_cast<std::int64_t>(clock.now() - finish) < 0);
        for (auto& sender : senders_) sender.give_back();
    }

    void shorten(const WorkerTrial& trial) noexcept {
        const auto& ending = trial.ending;
        for (std::size_t i = 0; i < senders_.size(); ++i)
            senders_[i].end_after(streams_[i].share.count(ending.frames[streams_[i].direction]), ending.send_deadline);
        queues_->shorten(trial);
    }

    /// A few sums and plain stores, once in some hundred turns. Nothing that the turns themselves count with is shared.
    void tell_so_far(WorkerTrial& trial) noexcept {
        struct Sums {
            std::uint64_t sent = 0;
            std::uint64_t sent_until = std::numeric_limits<std::uint64_t>::max();
            std::uint64_t received = 0;
            std::uint64_t timed = 0;
            double latency = 0;
            std::uint64_t max_latency = 0;
        };
        plan::PerDirection<Sums> sums{};
        for (std::size_t s = 0; s < senders_.size(); ++s) {
            auto& of = sums[streams_[s].direction];
            const std::uint64_t offered = senders_[s].tally().offered_frames;
            of.sent += offered;
            of.sent_until = std::min(of.sent_until, streams_[s].own.sequence(offered));
        }
        for (const auto& reception : trial.receptions) {
            auto& of = sums[reception.direction];
            const auto& latency = reception.tally->latency;
            of.received += reception.tally->received_frames;
            of.timed += latency.count();
            of.latency += latency.sum();
            of.max_latency = std::max(of.max_latency, latency.max());
        }
        for (const auto direction : plan::both_directions) {
            const auto& of = sums[direction];
            auto& so_far = trial.so_far[direction];
            so_far.sent_frames.store(of.sent, std::memory_order_relaxed);
            so_far.sent_until.store(of.sent_until, std::memory_order_relaxed);
            so_far.received_frames.store(of.received, std::memory_order_relaxed);
            so_far.timed_frames.store(of.timed, std::memory_order_relaxed);
            so_far.max_latency_ticks.store(of.max_latency, std::memory_order_relaxed);
            if (of.timed != 0)
                so_far.mean_latency_ticks.store(of.latency / static_cast<double>(of.timed), std::memory_order_relaxed);
        }
    }

    WorkerQueues<Port>* queues_;
    std::vector<Sender<Port, Source>> senders_;
    std::vector<Stream> streams_;  // one for each sender
};

template <class Port, FrameSource Source>
std::unique_ptr<TrialLoop> make_loop(WorkerQueues<Port>& queues, std::vector<Sender<Port, Source>> senders,
                                     std::vector<Stream> streams) {
    return std::make_unique<PortLoop<Port, Source>>(queues, std::move(senders), std::move(streams));
}

}  // namespace evenhand::run
