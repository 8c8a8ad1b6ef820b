// SPDX-License-Identifier: Apache-2.0
// Stations 4 and 5: the queues that one worker receives from, and the ports that its answers leave by.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "frame/envelope.hpp"
#include "neighbor/responder.hpp"
#include "run/receiver.hpp"
#include "run/worker_trial.hpp"

namespace evenhand::run {

/// Used by its worker only, unless stated otherwise. Functions that use a port are in run/loops.hpp.
template <class Port>
class WorkerQueues {
   public:
    /// To be called before the worker starts: receive queue `queue` of `port` is read here. `outside`: see Receiver.
    void add_receiver(Port& port, unsigned queue, neighbor::Responder& responder, const frame::Envelope& envelope,
                      tally::IcmpErrors& icmp_errors, tally::FrameCapture& capture, neighbor::Responder* outside) {
        receivers_.emplace_back(port, queue, responder, envelope, &icmp_errors, &capture, outside);
        receiver_ports_.push_back(&port);
    }
    /// To be called before the worker starts, after all of add_receiver(): both sides are on one port, whose frames the
    /// receiver with the index `first` takes, also for `second`. See Receiver::share_with().
    void share_port(std::size_t first, std::size_t second, plan::Direction arrives_at_second) noexcept {
        receivers_[first].share_with(receivers_[second], arrives_at_second);
    }
    /// To be called before the worker starts: answers and questions of `port` leave here; the worker owns its transmit
    /// queue 0. `envelope`: of questions and announcements. `link`: who knows the DUT's MAC on the link, if they are in
    /// a tunnel; nothing is asked there before he does.
    void add_outlet(Port& port, neighbor::Responder& responder, const frame::Envelope& envelope,
                    const neighbor::Responder* link) {
        outlets_.push_back(std::make_unique<Outlet>(port, responder, envelope, link));
    }

    /// For any thread. See Worker.
    void send_questions() noexcept {
        for (auto& outlet : outlets_) outlet->question_wanted.store(true, std::memory_order_release);
    }
    [[nodiscard]] bool announce(Announcements& hosts) noexcept {
        for (auto& outlet : outlets_) {
            if (outlet->responder != hosts.responder) continue;
            outlet->announcements.store(&hosts, std::memory_order_release);
            return true;
        }
        return false;
    }
    [[nodiscard]] bool send(OwnFrames& frames) noexcept {
        for (auto& outlet : outlets_) {
            if (outlet->responder != frames.responder) continue;
            outlet->own_frames.store(&frames, std::memory_order_release);
            return true;
        }
        return false;
    }
    [[nodiscard]] std::uint64_t taken_frames(const Port& port) const noexcept {
        std::uint64_t frames = 0;
        for (std::size_t i = 0; i < receivers_.size(); ++i)
            frames += receiver_ports_[i] == &port ? receivers_[i].taken_frames() : 0;
        return frames;
    }

    /// Between trials: receives, answers, asks, announces. False if nothing had arrived and nothing was to be sent.
    [[nodiscard]] bool idle_turn();

    /// Between begin() and end(), test frames are counted, each in the reception of its receiver.
    void begin(WorkerTrial& trial, Ticks now) noexcept {
        for (auto& reception : trial.receptions)
            receivers_[reception.receiver].arm(reception.expectation, *reception.map, *reception.tally, now,
                                               reception.part);
    }
    void end() noexcept {
        for (auto& receiver : receivers_) receiver.disarm();
    }
    /// Ends the residual wait earlier than begin() said.
    void shorten(const WorkerTrial& trial) noexcept {
        for (const auto& reception : trial.receptions) receivers_[reception.receiver].end_by(trial.ending.residual_end);
    }
    /// Runs one turn of every receiver.
    template <FrameExpectation Frames, class Clock>
    void receive(Ticks now, Clock& clock) noexcept;
    void flush_answers() noexcept;

   private:
    struct Outlet {
        Outlet(Port& p, neighbor::Responder& r, const frame::Envelope& e, const neighbor::Responder* l)
            : port{&p}, responder{&r}, envelope{e}, link{l} {}
        /// Sends what `write` writes, in the envelope. `write` returns its octets.
        template <class Write>
        void send(Write write);
        Port* port;
        neighbor::Responder* responder;
        frame::Envelope envelope;
        const neighbor::Responder* link;
        std::atomic<bool> question_wanted{false};            // set by the session, cleared by the worker
        std::atomic<Announcements*> announcements{nullptr};  // the same
        std::atomic<OwnFrames*> own_frames{nullptr};         // the same
    };

    void announce_next(Outlet& outlet);

    std::vector<Receiver<Port, neighbor::Responder>> receivers_;
    std::vector<const Port*> receiver_ports_;  // the port of each receiver
    std::vector<std::unique_ptr<Outlet>> outlets_;
};

}  // namespace evenhand::run
