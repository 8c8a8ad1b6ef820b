// SPDX-License-Identifier: Apache-2.0
// Client requests. contract/ checks their form, the stations their contents. No JSON here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frame/mix.hpp"
#include "frame/tunnel.hpp"
#include "pace/clock.hpp"
#include "plan/four_tuples.hpp"
#include "plan/per_direction.hpp"
#include "plan/plan.hpp"
#include "port/dpdk_host.hpp"
#include "tally/clean_time.hpp"
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
    std::vector<std::uint16_t> vlans;  // VLAN tags of all frames on this link: none, one, or two (the outer one first)
    /// What the test frames of this side are in; `mac` and `dut_mac` above are those of the link.
    frame::TunnelEnds tunnel{};
    std::optional<plan::MacAddress> inner_mac = std::nullopt;      // the tester's in the frames inside; of VXLAN only
    std::optional<plan::MacAddress> inner_dut_mac = std::nullopt;  // the DUT's
};

/// What a worker's CPU runs: any set of senders and receivers, so that one CPU can be a whole tester, and several can
/// share a direction.
struct WorkerRequest {
    struct Queue {
        plan::Side side = plan::Side::left;
        unsigned number = 0;
    };
    unsigned cpu = 0;
    std::vector<Queue> senders;    // number = stream = transmit queue
    std::vector<Queue> receivers;  // number = receive queue
};

/// A DUT that runs on this machine, so that effects of the host can be told from those of the DUT. This is a fact about
/// the host: it says nothing about how the DUT works (SEED-07).
struct DutOnHost {
    struct Cpu {
        unsigned cpu = 0;
        std::vector<int> threads;  // of the DUT on this CPU
    };
    std::vector<Cpu> cpus;
    unsigned ring_frames = 0;  // frames of one direction that wait without loss while the DUT does not run
};

/// Whose MAC the hosts of direct plans have (R4814-06).
enum class HostMacMode : std::uint8_t { port, pseudorandom };

struct OpenRequest {
    port::HostOptions host;
    plan::PerSide<PortRequest> ports;
    std::vector<WorkerRequest> workers;
    plan::AddressPlan plan;
    std::size_t frame_size = 64;           // of all frames, unless there is a mix
    std::optional<frame::MixedPlans> mix;  // frames of several sizes, of both IP versions, or of several flows
    /// Where the flows of the reverse direction are others: these. `mix` is that of the forward direction then.
    std::optional<frame::FrameMix> reverse_mix;
    std::uint64_t seed = 0;
    HostMacMode host_macs = HostMacMode::port;
    std::optional<std::uint16_t> session;  // 0..65534; drawn if not given. See Tester::wire_trial()
    std::optional<DutOnHost> dut;  // nothing: the DUT is a device of its own, or the client did not say where it runs

    /// What the frames of a direction are of; null if all frames are alike.
    [[nodiscard]] const frame::FrameMix* mix_of(plan::Direction direction) const {
        if (direction == plan::Direction::reverse && reverse_mix) return &*reverse_mix;
        return mix ? &mix->mix : nullptr;
    }
};

/// RFC 2544 section 23, phases (a), (b), (d), (e).
struct Waits {
    double after_routing_s = 2;
    double after_learning_s = 2;
    double residual_s = 2;
    double restabilize_s = 5;
};

/// Delays of single frames, in addition to the histogram over all frames: of the frames that are due from `from_s` on,
/// `tagged_frames` are listed, evenly spread.
struct DelayRequest {
    double from_s = 0;
    std::uint64_t tagged_frames = 0;
    bool has_variation = false;
};

/// Which connections the frames of a trial belong to, where the DUT keeps state (RFC 9693).
struct ConnectionRequest {
    enum class Use : std::uint8_t {
        establish,    // frame k of the initiator opens connection k: test phase 1
        each_once,    // frame k of a direction belongs to connection k: validates all of them
        established,  // each frame belongs to any connection: test phase 2
    };
    Use use = Use::established;
    std::uint64_t count = 0;  // to establish
    plan::TupleOrder order = plan::TupleOrder::pseudorandom;
};

/// Which streams of a trial belong to this tester, where several testers make the trial together: `first` and the
/// following ones, as many as it has on a side, of `stride` in all. See frame::TesterShare.
struct ShareRequest {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;
};

struct TrialRequest {
    std::uint16_t trial = 1;
    double rate_fps = 0;  // within a burst, and before the load changes; see load.hpp
    /// Each direction's rates in relation to those of the request; greater than 0. See of_direction().
    plan::PerDirection<double> rate_parts{1, 1};
    bool has_rate_parts = false;  // false: both directions have the same load
    double duration_s = 0;        // the same
    std::optional<tally::Burst> burst;
    std::optional<tally::LoadChange> then;
    std::vector<plan::Direction> directions{plan::Direction::forward, plan::Direction::reverse};
    Waits waits;
    tally::Limits limits;
    /// The loss ratio of all frames beyond which a trial has failed, where flows have limits of their own; nothing:
    /// that of `limits`.
    std::optional<double> failed_beyond = std::nullopt;
    std::optional<DelayRequest> delays;
    std::optional<ConnectionRequest> connections;  // with a plan that has state, otherwise nothing
    std::optional<ShareRequest> share;             // nothing: the tester is alone, and all frames are its own
    std::optional<std::int64_t> start_at_unix_ns;  // time of day (CLOCK_REALTIME) when frame 0 is due; nothing: soon
    std::optional<double> client_timeout_s;        // a client that is silent for so long is taken to be gone
    /// The trial is judged by its clean time (tally/clean_time.hpp). Frames are sent until there are `wanted_s` of it,
    /// for at most `duration_s`.
    struct Clean {
        double wanted_s = 0;
    };
    std::optional<Clean> clean;
    std::size_t kept_frames = 0;    // the first ones of each kind that are not what was sent are kept with their octets
    std::size_t kept_received = 0;  // and so many of those that are
    bool stops_when_failed = false;  // sending ends as soon as the trial can no longer pass
    bool has_overdue_after = false;  // false: the limit follows from the rate, see tally::usual_overdue_after_us()
};

/// Reach every host of the receiving sides once, so that the DUT has resolved each of them.
struct LearnRequest {
    double rate_fps = 20'000;  // per direction
    unsigned rounds = 5;
    double wait_s = 1;  // after the last frame of a round
    std::vector<plan::Direction> directions{plan::Direction::forward, plan::Direction::reverse};
};

/// Watch CPUs of this machine for a while, without opening or sending anything.
struct WatchRequest {
    double seconds = 5;
    std::vector<unsigned> cpus;
};

/// How far learning has come, by the side where the hosts are; nothing for a side without hosts to reach.
struct LearningProgress {
    struct OfSide {
        std::uint64_t hosts = 0;
        std::uint64_t reachable = 0;
    };
    unsigned round = 0;
    double rate_share = 1;  // share of the requested rate: rounds after lost answers are slower
    plan::PerSide<std::optional<OfSide>> sides;
};

struct LearningResult {
    struct OfSide {
        std::uint64_t hosts = 0;
        std::uint64_t reachable = 0;
        unsigned rounds = 0;                       // rounds in which frames were sent to this side
        std::vector<plan::IpAddress> unreachable;  // the first of them, at most most_unreachable_listed
        std::uint64_t questions_answered = 0;      // on this side, meanwhile
    };
    plan::PerSide<std::optional<OfSide>> sides;  // as in LearningProgress
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
    /// One direction. Frames on their way are neither received nor lost, so losses are counted among settled frames
    /// only.
    struct OfDirection {
        std::uint64_t sent_frames = 0;
        std::uint64_t received_frames = 0;
        std::uint64_t settled_frames = 0;      // due so long ago that they would have arrived
        std::uint64_t lost_frames = 0;         // settled frames that have not arrived
        std::optional<double> mean_latency_s;  // of the frames that have arrived
        std::optional<double> max_latency_s;
        struct RecentLatency {
            double median_s = 0;
            double p999_s = 0;
        };
        std::optional<RecentLatency> recent_latency;   // of the frames that arrived in the last half second or so
        std::vector<std::uint64_t> received_of_flows;  // by class, where classes are flows; otherwise empty
    };
    plan::PerDirection<std::optional<OfDirection>> directions;  // nothing before frames are sent
    /// For one tester among several whose trial may stop early: see EarlyStop.
    struct Failing {
        std::uint64_t lost_frames = 0;  // this tester's lost frames, which cannot arrive any more
        double allowed_frames = 0;      // how many all testers together may lose
    };
    std::optional<Failing> failing;
    /// Where the trial is judged by its clean time: the present time since frame 0 was due, and the parts that are left
    /// out and ended a short time ago, or have not ended.
    double sending_s = 0;
    std::vector<tally::LeftOut> left_out;
};

/// A link of the tester's own that was taken down or up during a trial.
struct LinkSwitch {
    plan::Side side = plan::Side::left;
    bool is_up = false;
    pace::Ticks at = 0;
};

/// Asked about fifty times a second while a trial runs.
class TrialObserver {
   public:
    virtual ~TrialObserver() = default;
    /// False ends the trial early: INVALID, "stopped".
    virtual bool goes_on(const Progress& progress) = 0;
    /// When the sending shall end, in seconds from its beginning, if the client has set an end: with several testers,
    /// only the client knows that the trial can no longer pass.
    [[nodiscard]] virtual std::optional<double> wanted_end_s() const { return std::nullopt; }
    /// The links of its own ports that the tester has taken down and up since the trial began, in order.
    [[nodiscard]] virtual std::span<const LinkSwitch> link_switches() const { return {}; }
};

/// The same for learning.
class LearningObserver {
   public:
    virtual ~LearningObserver() = default;
    /// False ends learning early, with the result so far.
    virtual bool goes_on(const LearningProgress& progress) = 0;
};

}  // namespace evenhand::run
