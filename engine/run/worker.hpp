// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: one CPU of the tester. Between trials it answers neighbours at leisure; during a trial it runs the
// loops.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include "frame/host_mac_source.hpp"
#include "frame/learning_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/vlan.hpp"
#include "neighbor/responder.hpp"
#include "plan/plan.hpp"
#include "port/dpdk_port.hpp"
#include "run/receiver.hpp"
#include "run/sender.hpp"

namespace evenhand::run {

template <plan::IpVersion V>
using PortSender = Sender<port::DpdkPort, frame::TestFrameSource<V>>;
template <plan::IpVersion V>
using HostMacSender = Sender<port::DpdkPort, frame::HostMacSource<frame::TestFrameSource<V>, V>>;
/// The same around either, for links with VLAN tags.
template <plan::IpVersion V>
using TaggedSender = Sender<port::DpdkPort, frame::TaggedSource<frame::TestFrameSource<V>>>;
template <plan::IpVersion V>
using TaggedHostMacSender =
    Sender<port::DpdkPort, frame::TaggedSource<frame::HostMacSource<frame::TestFrameSource<V>, V>>>;
using MixSender = Sender<port::DpdkPort, frame::MixSource>;
using TaggedMixSender = Sender<port::DpdkPort, frame::TaggedSource<frame::MixSource>>;
using LearningSender = Sender<port::DpdkPort, frame::TaggedSource<frame::LearningSource>>;
using PortReceiver = Receiver<port::DpdkPort, neighbor::Responder>;

/// One worker's share of one trial or of one round of learning. Made by the session before it, used by the worker
/// during it, read by the session after it.
struct WorkerTrial {
    /// All senders of a worker send one kind of frame, so that the loop is compiled for it.
    std::variant<std::vector<PortSender<plan::IpVersion::v4>>, std::vector<PortSender<plan::IpVersion::v6>>,
                 std::vector<HostMacSender<plan::IpVersion::v4>>, std::vector<HostMacSender<plan::IpVersion::v6>>,
                 std::vector<TaggedSender<plan::IpVersion::v4>>, std::vector<TaggedSender<plan::IpVersion::v6>>,
                 std::vector<TaggedHostMacSender<plan::IpVersion::v4>>,
                 std::vector<TaggedHostMacSender<plan::IpVersion::v6>>, std::vector<MixSender>,
                 std::vector<TaggedMixSender>, std::vector<LearningSender>>
        senders;
    std::vector<plan::Direction> sender_directions;  // of the senders, in their order
    std::vector<frame::StreamShare> sender_shares;   // the same, of test frames only

    struct Reception {
        std::size_t receiver = 0;  // index into the worker's receivers
        plan::Direction direction = plan::Direction::forward;
        Expectation expectation;
        tally::SequenceMap* map = nullptr;
        std::unique_ptr<tally::ReceiverTally> tally;
        std::unique_ptr<tally::DelaySpread> spread;            // where delays are asked for
        std::unique_ptr<tally::VariationHistogram> variation;  // where it is asked for
        std::unique_ptr<frame::MixCheck> mix;                  // where frames are of several classes
    };
    std::vector<Reception> receptions;
    Ticks finish = 0;  // when the last phase ends
    /// Another end, once `is_shortened` is set. Both are written by the session.
    struct Ending {
        std::uint64_t frames = 0;  // of each direction
        Ticks send_deadline = 0;
        Ticks residual_end = 0;
        Ticks finish = 0;
    } ending;
    std::atomic<bool> is_shortened{false};
    void shorten(const Ending& other) noexcept {
        ending = other;
        is_shortened.store(true, std::memory_order_release);
    }
    std::atomic<bool> stop{false};     // written by the session
    std::atomic<bool> is_over{false};  // written by the worker, last of all
    /// Copied from the tallies by the worker now and then, for whoever watches the trial. Each is right for itself;
    /// together they are not of one moment.
    struct SoFar {
        std::atomic<std::uint64_t> sent_frames{0};
        std::atomic<std::uint64_t> received_frames{0};
        std::atomic<std::uint64_t> timed_frames{0};  // those that the next two are of
        std::atomic<double> mean_latency_ticks{0};
        std::atomic<std::uint64_t> max_latency_ticks{0};
    };
    std::array<SoFar, 2> so_far{};  // by plan::Direction
};

/// Hosts whose MACs are to be told to the DUT between trials. Made by the session, which leaves it alone until
/// `is_over`.
struct Announcements {
    const neighbor::Responder* responder = nullptr;
    std::span<const std::uint32_t> hosts;
    std::size_t next = 0;              // of `hosts`; the worker's
    std::atomic<bool> is_over{false};  // written by the worker
};

class Worker {
   public:
    explicit Worker(unsigned cpu) : cpu_{cpu} {}
    ~Worker() { finish(); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Before start(): receive queue `queue` of `port` is read here.
    void add_receiver(port::DpdkPort& port, unsigned queue, neighbor::Responder& responder,
                      const frame::VlanTags& tags) {
        receivers_.emplace_back(port, queue, responder, tags);
        receiver_ports_.push_back(&port);
    }
    /// Before start(): answers and questions of `port` leave here; this worker owns its transmit queue 0.
    void add_outlet(port::DpdkPort& port, neighbor::Responder& responder, const frame::VlanTags& tags) {
        outlets_.push_back(std::make_unique<Outlet>(port, responder, tags));
    }

    /// Starts the thread on its CPU. Throws Fault{no_cpu}.
    void start();
    /// Ends the thread; waits for it.
    void finish() noexcept;

    /// Ask for the DUT's MAC on every port whose outlet is here.
    void send_questions() noexcept;

    /// Have the MACs of hosts told on the port of their responder; false if its outlet is not here. They go one by one,
    /// some 10,000 a second.
    [[nodiscard]] bool announce(Announcements& hosts) noexcept;

    /// Begin a trial; it is over when trial.is_over is set. The trial must outlive that.
    void begin(WorkerTrial& trial) noexcept { trial_.store(&trial, std::memory_order_release); }

    [[nodiscard]] unsigned cpu() const noexcept { return cpu_; }
    /// Frames of whatever kind that its receivers took from this port since it was opened.
    [[nodiscard]] std::uint64_t taken_frames(const port::DpdkPort& port) const noexcept {
        std::uint64_t frames = 0;
        for (std::size_t i = 0; i < receivers_.size(); ++i)
            frames += receiver_ports_[i] == &port ? receivers_[i].taken_frames() : 0;
        return frames;
    }
    /// Of its thread, once start() has returned.
    [[nodiscard]] int thread_id() const noexcept { return thread_id_; }

   private:
    struct Outlet {
        Outlet(port::DpdkPort& p, neighbor::Responder& r, const frame::VlanTags& t)
            : port{&p}, responder{&r}, tags{t} {}
        port::DpdkPort* port;
        neighbor::Responder* responder;
        frame::VlanTags tags;
        std::atomic<bool> question_wanted{false};            // set by the session, cleared by the worker
        std::atomic<Announcements*> announcements{nullptr};  // the same
    };

    void live();
    /// Returns whether there was anything to do that cannot wait.
    bool idle_turn();
    static void announce_next(Outlet& outlet);
    void run_trial(WorkerTrial& trial) noexcept;
    template <class Senders>
    void shorten(Senders& senders, const WorkerTrial& trial) noexcept;
    template <class Senders>
    static void tell_so_far(const Senders& senders, WorkerTrial& trial) noexcept;
    template <class Senders>
    void run_loops(Senders& senders, WorkerTrial& trial) noexcept;

    unsigned cpu_;
    std::vector<PortReceiver> receivers_;
    std::vector<const port::DpdkPort*> receiver_ports_;  // of each of these
    std::vector<std::unique_ptr<Outlet>> outlets_;
    std::atomic<WorkerTrial*> trial_{nullptr};  // set by the session, cleared by the worker
    std::atomic<bool> quit_{false};
    int thread_id_ = 0;  // written by the worker before start() returns
    std::thread thread_;
};

/// Lets the workers run a trial, or a round of learning, from the constructor to the destructor. What they use outlives
/// it, whatever is thrown meanwhile.
class RunningTrials {
   public:
    RunningTrials(std::vector<std::unique_ptr<Worker>>& workers,
                  const std::vector<std::unique_ptr<WorkerTrial>>& trials)
        : trials_{trials} {
        for (std::size_t i = 0; i < workers.size(); ++i) workers[i]->begin(*trials[i]);
    }
    ~RunningTrials() {
        for (const auto& trial : trials_) trial->stop.store(true, std::memory_order_relaxed);
        for (const auto& trial : trials_) {
            while (!trial->is_over.load(std::memory_order_acquire))
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    RunningTrials(const RunningTrials&) = delete;
    RunningTrials& operator=(const RunningTrials&) = delete;

   private:
    const std::vector<std::unique_ptr<WorkerTrial>>& trials_;
};

}  // namespace evenhand::run
