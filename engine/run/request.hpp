// SPDX-License-Identifier: Apache-2.0
// What a client asks for, checked for form by contract/ and for sense by the stations. No JSON here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/mix.hpp"
#include "plan/four_tuples.hpp"
#include "plan/plan.hpp"
#include "port/dpdk_host.hpp"
#include "tally/result.hpp"

namespace evenhand::run {

struct PortRequest {
    std::string device;
    std::optional<plan::MacAddress> mac;
    std::optional<plan::MacAddress> dut_mac;
    unsigned receive_ring_frames = 2048;
    unsigned transmit_ring_frames = 2048;
    std::optional<double> line_rate_bps;
    std::optional<double> link_timeout_s;  // how long to wait for the link when the port is opened
    std::vector<std::uint16_t> vlans;      // of all frames on this link: none, one, or two (the outer one first)
};

/// What a worker's CPU runs: any set of senders and receivers, so one CPU can be a whole tester and many can share a
/// direction.
struct WorkerRequest {
    struct Queue {
        plan::Side side = plan::Side::left;
        unsigned number = 0;
    };
    unsigned cpu = 0;
    std::vector<Queue> senders;    // number = stream = transmit queue
    std::vector<Queue> receivers;  // number = receive queue
};

/// A DUT that lives on this host, so that the host's doings can be told from its own. A fact about the host: nothing
/// here says how the DUT works (SEED-07).
struct DutOnHost {
    struct Cpu {
        unsigned cpu = 0;
        std::vector<int> threads;  // of the DUT on this CPU
    };
    std::vector<Cpu> cpus;
    unsigned ring_frames = 0;  // of one direction, that wait without loss while the DUT does not run
};

/// Whose MAC the hosts of direct forms have (R4814-06).
enum class HostMacMode : std::uint8_t { port, pseudorandom };

struct OpenRequest {
    port::HostOptions host;
    std::array<PortRequest, 2> ports;  // by plan::Side
    std::vector<WorkerRequest> workers;
    plan::AddressPlan plan;
    std::size_t frame_size = 64;           // of all frames, unless there is a mix
    std::optional<frame::MixedPlans> mix;  // frames of several sizes, or of both IP versions
    std::uint64_t seed = 0;
    HostMacMode host_macs = HostMacMode::port;
    std::optional<std::uint16_t> session;  // 0..65534; drawn if not given. See Tester::wire_trial()
    std::optional<DutOnHost> dut;          // absent: the DUT is a device of its own, or nobody said where it runs
};

/// RFC 2544 section 23, phases (a), (b), (d), (e).
struct Waits {
    double after_routing_s = 2;
    double after_learning_s = 2;
    double residual_s = 2;
    double restabilize_s = 5;
};

/// Delays beyond the histogram over all frames. Of the frames that are due from `from_s` on `tagged_frames`, evenly
/// spread, are listed.
struct DelayRequest {
    double from_s = 0;
    std::uint64_t tagged_frames = 0;
    bool has_variation = false;
};

/// Which connections the frames of a trial are of, where the DUT keeps state (RFC 9693).
struct ConnectionRequest {
    enum class Use : std::uint8_t {
        establish,    // frame k of the initiator opens connection k: test phase 1
        each_once,    // frame k of a direction is of connection k: the validation of all of them
        established,  // each frame is of any connection: test phase 2
    };
    Use use = Use::established;
    std::uint64_t count = 0;  // to establish
    plan::TupleOrder order = plan::TupleOrder::pseudorandom;
};

/// Which streams of a trial are this tester's, where several testers make it together: `first` and those that follow,
/// as many as it has of a side, of `stride` in all. See frame::TesterShare.
struct ShareRequest {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;
};

struct TrialRequest {
    std::uint16_t trial = 1;
    double rate_fps = 0;    // within a burst, and before the load changes; see load.hpp
    double duration_s = 0;  // the same
    std::optional<tally::Burst> burst;
    std::optional<tally::LoadChange> then;
    std::vector<plan::Direction> directions{plan::Direction::forward, plan::Direction::reverse};
    Waits waits;
    tally::Limits limits;
    std::optional<DelayRequest> delays;
    std::optional<ConnectionRequest> connections;  // with a plan that has state; else none
    std::optional<ShareRequest> share;             // absent: the tester is alone, and all frames are its own
    std::optional<std::int64_t> start_at_unix_ns;  // time of day (CLOCK_REALTIME) when frame 0 is due; absent: soon
    std::optional<double> client_timeout_s;        // a client of which nothing is heard for so long has gone
    /// The trial is judged by its clean time (tally/clean_time.hpp), and is sent for `duration_s` at the most, until
    /// `wanted_s` of it are together.
    struct Clean {
        double wanted_s = 0;
    };
    std::optional<Clean> clean;
    bool stops_when_failed = false;  // sending ends as soon as the trial can no longer pass
    bool has_overdue_after = false;  // else it follows from the rate: tally::usual_overdue_after_us()
};

/// Reach every host of the receiving sides once, so that the DUT has resolved it.
struct LearnRequest {
    double rate_fps = 20'000;  // per direction
    unsigned rounds = 5;
    double wait_s = 1;  // after the last frame of a round
    std::vector<plan::Direction> directions{plan::Direction::forward, plan::Direction::reverse};
};

/// Look at CPUs of this host for a while; nothing is opened or sent.
struct WatchRequest {
    double seconds = 5;
    std::vector<unsigned> cpus;
};

/// How far learning is. Two values by the side where the hosts are; nothing where none is to be reached.
struct LearningProgress {
    struct OfSide {
        std::uint64_t hosts = 0;
        std::uint64_t reachable = 0;
    };
    unsigned round = 0;
    double rate_share = 1;  // of the rate that was asked for: rounds after lost answers are slower
    std::array<std::optional<OfSide>, 2> sides;
};

struct LearningResult {
    struct OfSide {
        std::uint64_t hosts = 0;
        std::uint64_t reachable = 0;
        unsigned rounds = 0;                       // in which frames were sent to this side
        std::vector<plan::IpAddress> unreachable;  // the first of them, most_unreachable_listed at most
        std::uint64_t questions_answered = 0;      // on this side, meanwhile
    };
    std::array<std::optional<OfSide>, 2> sides;  // as in LearningProgress
    double rate_share = 1;                       // of the last round
    bool stopped = false;
};

constexpr std::size_t most_unreachable_listed = 100;

struct Progress {
    std::uint16_t trial = 0;
    const char* phase = "";
    double elapsed_s = 0;
    double total_s = 0;
    std::uint64_t sent_frames = 0;
    std::uint64_t received_frames = 0;
    /// One direction. What is under way is neither received nor lost, so losses are counted among settled frames only.
    struct OfDirection {
        std::uint64_t sent_frames = 0;
        std::uint64_t received_frames = 0;
        std::uint64_t settled_frames = 0;      // were due so long ago that they would have come
        std::uint64_t lost_frames = 0;         // of these: have not come
        std::optional<double> mean_latency_s;  // of what has come
        std::optional<double> max_latency_s;
    };
    std::array<std::optional<OfDirection>, 2> directions;  // by plan::Direction; nothing before frames are sent
    /// Of one tester among several, where the trial may stop early: see EarlyStop.
    struct Failing {
        std::uint64_t lost_frames = 0;  // of this tester's, for good
        double allowed_frames = 0;      // that all testers together may lose
    };
    std::optional<Failing> failing;
};

/// Looked at about fifty times a second while a trial runs.
class TrialObserver {
   public:
    virtual ~TrialObserver() = default;
    /// False ends the trial early: INVALID, "stopped".
    virtual bool goes_on(const Progress& progress) = 0;
    /// When the sending shall end, in seconds from its begin, if the client has said so: of one tester among several,
    /// that the trial can no longer pass only the client knows.
    [[nodiscard]] virtual std::optional<double> wanted_end_s() const { return std::nullopt; }
};

/// The same for learning.
class LearningObserver {
   public:
    virtual ~LearningObserver() = default;
    /// False ends it early, with what is known by then.
    virtual bool goes_on(const LearningProgress& progress) = 0;
};

}  // namespace evenhand::run
