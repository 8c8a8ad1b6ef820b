// SPDX-License-Identifier: Apache-2.0
// Stations 3 to 5: what one worker does in one trial, and the one call that does it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "frame/source.hpp"
#include "neighbor/responder.hpp"
#include "plan/per_direction.hpp"
#include "plan/plan.hpp"
#include "run/lapse_log.hpp"
#include "run/receiver.hpp"
#include "run/sender.hpp"

namespace evenhand::run {

struct WorkerTrial;

/// One stream of a trial, whose frames a sender sends.
struct Stream {
    plan::Direction direction = plan::Direction::forward;
    frame::StreamShare share;
    frame::StreamShare own = {};  // its share of the tester's own frames (TesterShare::own_stream)
};

/// The senders of one worker in one trial, and THE loop, compiled for their kind of frame and of port. The kind is
/// chosen before the start, so that the trial is one virtual call.
class TrialLoop {
   public:
    struct Sent {
        Stream stream;
        std::uint64_t frames = 0;  // how many were to be sent
        tally::SenderTally tally;
    };

    TrialLoop() = default;
    virtual ~TrialLoop() = default;
    TrialLoop(const TrialLoop&) = delete;
    TrialLoop& operator=(const TrialLoop&) = delete;

    /// Runs from the first frame to the end of the trial. Called by the worker.
    virtual void run(WorkerTrial& trial) noexcept = 0;
    /// One for each sender; to be called after the trial.
    [[nodiscard]] virtual std::vector<Sent> sent() const = 0;
};

template <class Port>
class WorkerQueues;

/// Sends with `senders`, each of which sends the stream at its place in `streams`, and receives from `queues`, which
/// outlive the loop. All senders of a worker send one kind of frame, so that the loop is compiled for it. For DPDK's
/// ports it is compiled in port/dpdk_loops.cpp, with each source that there is; for other ports include run/loops.hpp.
template <class Port, FrameSource Source>
[[nodiscard]] std::unique_ptr<TrialLoop> make_loop(WorkerQueues<Port>& queues,
                                                   std::vector<Sender<Port, Source>> senders,
                                                   std::vector<Stream> streams);

/// One worker's part of one trial or of one round of learning. The session makes it before, the worker uses it during
/// the trial, and the session reads it afterwards.
struct WorkerTrial {
    std::unique_ptr<TrialLoop> loop;

    struct Reception {
        std::size_t receiver = 0;  // index into the worker's receivers
        plan::Direction direction = plan::Direction::forward;
        Expectation expectation;
        tally::SequenceMap* map = nullptr;
        unsigned part = 0;  // this worker's part of the map
        std::unique_ptr<tally::ReceiverTally> tally;
        std::unique_ptr<tally::DelaySpread> spread;            // where delays are asked for
        std::unique_ptr<tally::VariationHistogram> variation;  // where it is asked for
    };
    std::vector<Reception> receptions;
    /// Where the trial is judged by its clean time: the lapses of all senders and of all receivers of this worker.
    struct Lapses {
        Lapses(std::size_t most, Ticks joins) : of_senders{most, joins}, of_receivers{most, joins} {}
        LapseLog of_senders;
        LapseLog of_receivers;
    };
    std::unique_ptr<Lapses> lapses;
    Ticks finish = 0;  // when the last phase ends
    /// Another end of the trial, once `is_shortened` is set. Both are written by the session.
    struct Ending {
        plan::PerDirection<std::uint64_t> frames{};
        Ticks send_deadline = 0;
        Ticks residual_end = 0;
        Ticks finish = 0;
    } ending;
    std::atomic<bool> is_shortened{false};
    void shorten(const Ending& other) noexcept {
        ending = other;
        is_shortened.store(true, std::memory_order_release);
    }
    std::atomic<bool> stop{false};     // set by the session
    std::atomic<bool> is_over{false};  // set by the worker when it has done everything else
    /// Copied from the tallies by the worker from time to time, for progress reports. Each value is right by itself,
    /// but they are not from the same moment.
    struct SoFar {
        std::atomic<std::uint64_t> sent_frames{0};
        /// The tester's own frames of the direction, by their places: all frames below this one that the worker sends
        /// have left. 2^64 - 1 if the worker sends none.
        std::atomic<std::uint64_t> sent_until{0};
        std::atomic<std::uint64_t> received_frames{0};
        std::atomic<std::uint64_t> timed_frames{0};  // how many frames the next two are about
        std::atomic<double> mean_latency_ticks{0};
        std::atomic<std::uint64_t> max_latency_ticks{0};
    };
    plan::PerDirection<SoFar> so_far{};
};

/// Complete frames, with their tags, to be sent on one side between trials. Made by the session, which does not touch
/// them until `is_over`.
struct OwnFrames {
    const neighbor::Responder* responder = nullptr;  // of the side, and of the first plan
    std::vector<std::vector<std::byte>> frames;
    std::atomic<bool> is_over{false};  // written by the worker
};

/// Hosts whose MACs are to be announced to the DUT between trials. Made by the session, which does not touch it until
/// `is_over`.
struct Announcements {
    const neighbor::Responder* responder = nullptr;
    std::span<const std::uint32_t> hosts;
    std::size_t next = 0;              // index into `hosts`; used by the worker
    std::atomic<bool> is_over{false};  // written by the worker
};

}  // namespace evenhand::run
