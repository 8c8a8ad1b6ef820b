// SPDX-License-Identifier: Apache-2.0
#include "run/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <type_traits>

#include "port/bursts.hpp"
#include "port/dpdk_host.hpp"

namespace evenhand::run {

void Worker::start() {
    std::promise<void> ready;
    auto is_ready = ready.get_future();
    thread_ = std::thread{[this, &ready] {
        try {
            const port::WorkerThread registration{cpu_};
            thread_id_ = gettid();
            ready.set_value();
            live();
        } catch (...) {
            ready.set_exception(std::current_exception());
        }
    }};
    try {
        is_ready.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

void Worker::finish() noexcept {
    quit_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

void Worker::send_questions() noexcept {
    for (auto& outlet : outlets_) outlet->question_wanted.store(true, std::memory_order_release);
}

bool Worker::announce(Announcements& hosts) noexcept {
    for (auto& outlet : outlets_) {
        if (outlet->responder != hosts.responder) continue;
        outlet->announcements.store(&hosts, std::memory_order_release);
        return true;
    }
    return false;
}

void Worker::live() {
    // Short against the rings (2048 frames come in 137 us at 14.88 Mfps, but nobody sends test frames now), long enough
    // to leave the CPU to others. A DUT that asks for thousands of hosts at once is answered without a pause.
    constexpr auto pause = std::chrono::microseconds{50};
    while (!quit_.load(std::memory_order_relaxed)) {
        port::Bursts::is_between();
        if (WorkerTrial* const trial = trial_.load(std::memory_order_acquire); trial != nullptr) {
            run_trial(*trial);
            trial_.store(nullptr, std::memory_order_relaxed);
            trial->is_over.store(true, std::memory_order_release);
        } else {
            if (!idle_turn()) std::this_thread::sleep_for(pause);
        }
    }
}

bool Worker::idle_turn() {
    pace::TickClock clock;
    unsigned frames = 0;
    for (auto& receiver : receivers_) frames += receiver.turn(clock.now(), clock);
    for (auto& outlet : outlets_) {
        frames += outlet->port->flush_answers();
        if (outlet->question_wanted.exchange(false, std::memory_order_acquire)) {
            outlet->port->send_control([&](std::span<std::byte> frame) {
                const std::size_t octets = outlet->responder->write_question(frame.subspan(outlet->tags.octets()));
                outlet->tags.put(frame.data());
                return outlet->tags.octets() + octets;
            });
        }
        announce_next(*outlet);
    }
    return frames != 0;
}

void Worker::announce_next(Outlet& outlet) {
    Announcements* const hosts = outlet.announcements.load(std::memory_order_acquire);
    if (hosts == nullptr) return;
    if (hosts->next < hosts->hosts.size()) {
        const std::uint32_t host = hosts->hosts[hosts->next++];
        outlet.port->send_control([&](std::span<std::byte> frame) {
            const std::size_t octets = outlet.responder->write_announcement(frame.subspan(outlet.tags.octets()), host);
            outlet.tags.put(frame.data());
            return outlet.tags.octets() + octets;
        });
        return;
    }
    outlet.announcements.store(nullptr, std::memory_order_relaxed);
    hosts->is_over.store(true, std::memory_order_release);
}

void Worker::run_trial(WorkerTrial& trial) noexcept {
    const Ticks now = pace::TickClock::now();
    for (auto& reception : trial.receptions)
        receivers_[reception.receiver].arm(reception.expectation, *reception.map, *reception.tally, now);
    std::visit([&](auto& senders) { run_loops(senders, trial); }, trial.senders);
    for (auto& receiver : receivers_) receiver.disarm();
}

template <class Senders>
void Worker::shorten(Senders& senders, const WorkerTrial& trial) noexcept {
    const auto& ending = trial.ending;
    for (std::size_t i = 0; i < senders.size(); ++i)
        senders[i].end_after(trial.sender_shares[i].count(ending.frames), ending.send_deadline);
    for (const auto& reception : trial.receptions) receivers_[reception.receiver].end_by(ending.residual_end);
}

/// A few sums and plain stores, once in some hundred turns. Nothing that a turn counts with is shared.
template <class Senders>
void Worker::tell_so_far(const Senders& senders, WorkerTrial& trial) noexcept {
    struct Sums {
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
        std::uint64_t timed = 0;
        double latency = 0;
        std::uint64_t max_latency = 0;
    };
    std::array<Sums, 2> sums{};
    for (std::size_t s = 0; s < senders.size(); ++s)
        sums[static_cast<std::size_t>(trial.sender_directions[s])].sent += senders[s].tally().offered_frames;
    for (const auto& reception : trial.receptions) {
        auto& of = sums[static_cast<std::size_t>(reception.direction)];
        const auto& latency = reception.tally->latency;
        of.received += reception.tally->received_frames;
        of.timed += latency.count();
        of.latency += latency.sum();
        of.max_latency = std::max(of.max_latency, latency.max());
    }
    for (std::size_t d = 0; d < sums.size(); ++d) {
        const auto& of = sums[d];
        auto& so_far = trial.so_far[d];
        so_far.sent_frames.store(of.sent, std::memory_order_relaxed);
        so_far.received_frames.store(of.received, std::memory_order_relaxed);
        so_far.timed_frames.store(of.timed, std::memory_order_relaxed);
        so_far.max_latency_ticks.store(of.max_latency, std::memory_order_relaxed);
        if (of.timed != 0)
            so_far.mean_latency_ticks.store(of.latency / static_cast<double>(of.timed), std::memory_order_relaxed);
    }
}

template <class Senders>
void Worker::run_loops(Senders& senders, WorkerTrial& trial) noexcept {
    // What is not sending or receiving is looked at once in so many turns. Answers: a burst of them costs the port
    // little more than one, but 64 questions in each turn must fit into the ring until then. The rest: ten times rarer.
    constexpr int turns_between_answers = 32;
    constexpr int answers_between_looks = 16;
    constexpr bool is_mixed =
        std::is_same_v<Senders, std::vector<MixSender>> || std::is_same_v<Senders, std::vector<TaggedMixSender>>;
    constexpr auto kinds = is_mixed ? FrameKinds::mixed : FrameKinds::alike;
    pace::TickClock clock;
    Ticks finish = trial.finish;
    bool is_shortened = false;
    do {
        for (int i = 0; i < answers_between_looks; ++i) {
            for (int j = 0; j < turns_between_answers; ++j) {
                // What another sender takes for its burst must not be in this one's stamps.
                Ticks now = clock.now();
                for (std::size_t s = 0; s < senders.size(); ++s) {
                    if (s != 0) now = clock.now();
                    senders[s].turn(now);
                }
                for (auto& receiver : receivers_) receiver.template turn<kinds>(now, clock);
            }
            for (auto& outlet : outlets_) (void)outlet->port->flush_answers();
        }
        port::Bursts::is_between();
        tell_so_far(senders, trial);
        if (!is_shortened && trial.is_shortened.load(std::memory_order_acquire)) {
            shorten(senders, trial);
            finish = trial.ending.finish;
            is_shortened = true;
        }
    } while (!trial.stop.load(std::memory_order_relaxed) && static_cast<std::int64_t>(clock.now() - finish) < 0);
    for (auto& sender : senders) sender.give_back();
}

}  // namespace evenhand::run
