// SPDX-License-Identifier: Apache-2.0
// One opened tester: two ports, their responders, and the workers. Lives from open to close.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frame/envelope.hpp"
#include "frame/expectation.hpp"
#include "frame/share.hpp"
#include "frame/state_table.hpp"
#include "frame/traffic.hpp"
#include "neighbor/responder.hpp"
#include "plan/per_direction.hpp"
#include "port/dpdk_port.hpp"
#include "run/deviations.hpp"
#include "run/request.hpp"
#include "run/way.hpp"
#include "run/worker.hpp"
#include "tally/frame_capture.hpp"
#include "tally/icmp_errors.hpp"
#include "witness/cpu_watch.hpp"

namespace evenhand::run {

class Tester {
   public:
    /// Opens ports and starts workers; after a Fault nothing stays open. Faults: bad_plan, bad_frame_size, bad_request,
    /// no_device, no_permission, no_memory, no_cpu.
    explicit Tester(OpenRequest request);
    ~Tester();
    Tester(const Tester&) = delete;
    Tester& operator=(const Tester&) = delete;

    /// Asks on both sides until each DUT interface has told its MAC; then sends a few test frames in each direction of
    /// `tried`, if the plan has no state. It is not a fault if none gets through: the result has hints. Throws
    /// Fault{not_resolved} that names the side, Fault{stopped} if `goes_on`, which is asked every few milliseconds,
    /// returns false, and Fault{no_device} if a port was removed.
    Way resolve(double timeout_s, const std::vector<plan::Direction>& tried, const std::function<bool()>& goes_on);

    /// Runs and judges one trial, phases (a) to (e) of RFC 2544 section 23. run/trial.hpp has its steps. Faults:
    /// bad_rate, not_resolved, no_memory, no_device (nothing is sent then).
    [[nodiscard]] tally::TrialResult run_trial(const TrialRequest& asked, TrialObserver& observer);

    /// Has the DUT resolve every host of the receiving sides, and determines which of them it reaches: sends a small
    /// test frame to each host, and again to those that were not reached, round after round. In gateway plans this
    /// shows whether the routes are right. Faults: bad_rate, not_resolved (nothing is sent then), no_device.
    [[nodiscard]] LearningResult learn(const LearnRequest& request, LearningObserver& observer);

    /// Throws Fault{bad_rate} if frames of a direction at this rate exceed what one of the lines can carry, or the
    /// resolution of the clock. `may_overload`: a receiving line that is slower than the sending one may be overloaded.
    void check_rate(plan::Direction direction, double rate_fps, const frame::DirectionTraffic& traffic,
                    const char* where, bool may_overload) const;
    /// What a trial's frames at this rate need of the receiving line, if it carries less.
    [[nodiscard]] std::optional<tally::LineOverload> overload(plan::Direction direction, double rate_fps) const;
    /// The same for both directions of a trial on the one line of a port that both sides are on.
    void check_shared_line(const TrialRequest& request) const;
    /// Throws Fault{not_resolved} unless the DUT's MAC is known on both sides.
    void check_resolved(const char* where) const;

    /// Throws Fault{no_device} if a port was removed from this machine since it was opened, and Fault{bad_order} if its
    /// link was taken down.
    void check_ports() const;
    /// Whether a port was removed.
    [[nodiscard]] bool has_lost_a_port() const;
    /// Waits for links that are down, as long as when the ports were opened. Throws Fault{no_device} that names the
    /// port and the reason, Fault{bad_order} for a link that was taken down, and Fault{stopped} if `goes_on`, which is
    /// asked every few milliseconds, returns false.
    void wait_for_links(const std::function<bool()>& goes_on) const;

    /// Whether both sides are on one port, which port() then gives for either (a router on a stick).
    [[nodiscard]] bool is_one_armed() const noexcept { return is_one_armed_; }
    /// The port's transmit queue for this stream of the side.
    [[nodiscard]] unsigned transmit_queue(plan::Side side, unsigned stream) const noexcept {
        const bool is_behind = is_one_armed_ && !shares_transmit_queues_ && side == plan::Side::right;
        return stream + (is_behind ? streams_[plan::Side::left] : 0);
    }
    /// The part of what its receiving port brings at most that is this direction's: 1, unless both sides are on one
    /// port.
    [[nodiscard]] double part_of_port(const TrialRequest& request, plan::Direction direction) const;
    [[nodiscard]] port::DpdkPort& port(plan::Side side) { return *ports_[side]; }
    [[nodiscard]] const port::DpdkPort& port(plan::Side side) const { return *ports_[side]; }
    /// `plan`: the number of the plan; in a mix of two IP versions each plan has its own responder.
    [[nodiscard]] const neighbor::Responder& responder(plan::Side side, std::size_t plan = 0) const {
        return *responders_[plan][side];
    }
    /// Answers to the DUT's questions, without those that were dropped because there was no buffer.
    [[nodiscard]] std::uint64_t answers_sent(plan::Side side) const;
    /// All frames that the receivers of this side took from its port since it was opened.
    [[nodiscard]] std::uint64_t taken_frames(plan::Side side) const;
    /// From now on, ICMP errors count if they are about frames of the trial that has this number in its tags.
    void begin_icmp_errors(std::uint16_t wire_trial) noexcept;
    [[nodiscard]] std::vector<tally::IcmpErrorCount> icmp_errors(plan::Side side) const;
    /// From now on each receive queue keeps the first `frames` of each kind that are not what was sent, and the first
    /// `received` that are; 0: none.
    void begin_captures(std::size_t frames, std::size_t received);
    /// What the receive queues of this side have kept; they keep no more.
    [[nodiscard]] std::vector<tally::KeptFrame> end_captures(plan::Side side);
    /// The offsets of the workers' tick counters, as measured when the tester was opened, relative to the first
    /// worker's. Workers whose CPU did not run in time are missing. Empty with one worker.
    [[nodiscard]] const std::vector<tally::ClockOffset>& clock_offsets() const { return clock_offsets_; }
    [[nodiscard]] std::uint64_t questions(plan::Side side) const;
    /// Whether the DUT's MAC on the link was given.
    [[nodiscard]] bool has_static_mac(plan::Side side) const { return request_.ports[side].dut_mac.has_value(); }
    /// Who answers on the link itself, and knows the DUT's MAC there: the responder of the plan, unless the side is in
    /// a tunnel whose ends have addresses of their own.
    [[nodiscard]] const neighbor::Responder& link_responder(plan::Side side) const {
        return link_responders_[side] ? *link_responders_[side] : responder(side);
    }
    [[nodiscard]] std::optional<double> line_rate_bps(plan::Side side) const;
    /// The CPUs of its workers that are on another NUMA node than the port, whose memory they reach more slowly.
    [[nodiscard]] std::vector<unsigned> far_cpus(plan::Side side) const;
    [[nodiscard]] const OpenRequest& request() const { return request_; }
    /// 1, or 2 in a mix of both IP versions.
    [[nodiscard]] std::size_t plans() const { return request_.mix && request_.mix->other_plan ? 2 : 1; }
    [[nodiscard]] const plan::AddressPlan& plan(std::size_t number) const {
        return number == 0 ? request_.plan : request_.mix->other_plan.value();
    }
    /// Whether not all frames are alike.
    [[nodiscard]] bool has_mix() const { return request_.mix.has_value(); }
    /// What the frames of a direction are of; null if all frames are alike.
    [[nodiscard]] const frame::FrameMix* mix(plan::Direction direction) const { return request_.mix_of(direction); }
    /// Whether the hosts are on the link; this is the same on both sides.
    [[nodiscard]] bool is_direct() const { return !request_.plan.left.gateway; }
    /// Where the hosts are that these directions send to, and whether learn() has sent to all of them.
    [[nodiscard]] Hosts hosts_before(const std::vector<plan::Direction>& directions) const;
    /// The source MAC of frames from this host of this side; the same in both IP versions.
    [[nodiscard]] plan::MacAddress source_mac(plan::Side side, std::uint32_t host) const;
    /// The trial number in the tags of its frames: 1..65535. Each session counts from a number of its own, so that
    /// frames which an earlier session left in a queue are stale although every run begins with trial 1.
    [[nodiscard]] std::uint16_t wire_trial(std::uint16_t trial) const noexcept {
        return static_cast<std::uint16_t>((trial - 1U + session_) % 65535U + 1U);
    }
    [[nodiscard]] std::uint16_t session() const noexcept { return session_; }
    /// What trials send in this direction, and what arrives; a mix has one kind for each of its classes.
    [[nodiscard]] const frame::DirectionTraffic& traffic(plan::Direction direction) const {
        return traffic_[direction];
    }
    /// The expectation of a receiver of this direction for frames of this plan.
    [[nodiscard]] frame::TestFrameExpectation frame_expectation(plan::Direction direction,
                                                                const frame::LinkFrames& arrives,
                                                                std::size_t plan = 0) const;
    /// What is around all test frames on the link of this side: VLAN tags, a tunnel.
    [[nodiscard]] const frame::Envelope& around(plan::Side side) const { return envelopes_[side]; }
    /// The same for frames that are sent: with the DUT's present MAC, which must be known.
    [[nodiscard]] frame::Envelope envelope(plan::Side side) const {
        if (!link_responders_[side]) return envelopes_[side];
        return envelopes_[side].between(link_responders_[side]->own_mac(), link_responders_[side]->dut_mac().value());
    }
    [[nodiscard]] bool has_envelopes() const {
        return around(plan::Side::left).octets() + around(plan::Side::right).octets() != 0;
    }
    /// For a request with a mix: the classes that a side sends, without its tags.
    [[nodiscard]] frame::MixedPlans untagged_mix(plan::Side side) const {
        return {.mix = mix(plan::direction_sent_by(side))->without_tags(around(side).counted_octets()),
                .other_plan = request_.mix->other_plan};
    }
    /// The translations of the connections that were established last; null before that.
    [[nodiscard]] frame::StateTable* state_table() const { return state_table_.get(); }
    /// Which frames of this direction this tester sends in a trial.
    [[nodiscard]] frame::TesterShare share(const TrialRequest& request, plan::Direction direction) const {
        if (!request.share) {
            const unsigned all = streams(plan::sending_side(direction));
            return {0, all, all};
        }
        return {request.share->first, streams(plan::sending_side(direction)), request.share->stride};
    }
    [[nodiscard]] unsigned streams(plan::Side side) const { return streams_[side]; }
    [[nodiscard]] unsigned receive_queues(plan::Side side) const { return receive_queues_[side]; }
    [[nodiscard]] std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }
    /// One watch for each of the DUT's CPUs, if the DUT runs on this machine.
    [[nodiscard]] std::vector<std::unique_ptr<witness::CpuWatch>>& watches() { return watches_; }
    /// Measured over the time since the tester was opened: the longer that is, the more exact.
    [[nodiscard]] double ticks_per_second() const;
    /// The clocks, read when the tester was being opened.
    [[nodiscard]] const pace::ClockSample& opened_at() const noexcept { return opened_at_; }

    void send_questions();

   private:
    /// For a trial that establishes connections, makes a new state table. Throws Fault{bad_order, bad_request,
    /// no_memory}.
    void prepare_connections(const TrialRequest& request);
    void count_queues();
    void measure_clocks();
    [[nodiscard]] std::vector<plan::HostSet> all_hosts() const;
    void check_devices() const;
    [[nodiscard]] bool can_share_transmit_queues() const;
    void open_port(plan::Side side);
    /// Opens the one port of both sides.
    void open_shared_port();
    /// `of`: the side, or both sides, whose frames the port carries.
    [[nodiscard]] std::shared_ptr<port::DpdkPort> make_port(std::span<const plan::Side> of) const;
    void add_queues(Worker& worker, const WorkerRequest& asked);
    void make_responders(plan::Side side);
    void make_link_responder(plan::Side side, const plan::MacAddress& own_mac);
    [[nodiscard]] const frame::Tunnel& tunnel(plan::Side side) const { return envelopes_[side].tunnel(); }
    /// Whether both sides are on one port, and no VLAN tags tell them apart.
    [[nodiscard]] bool is_on_one_link() const {
        return is_one_armed_ && around(plan::Side::left).tags() == around(plan::Side::right).tags();
    }
    void check_tunnels() const;
    /// What is inside a tunnel of IP packets has the MACs of the link.
    void pass_on_dut_macs();
    void ask_until_resolved(double timeout_s, const std::function<bool()>& goes_on);
    /// An interface of the DUT that is to tell its MAC.
    struct Asked {
        plan::Side side = plan::Side::left;
        const neighbor::Responder* responder = nullptr;  // who asks
        plan::IpAddress address;
        std::string where;  // the key of the request that has the address
        std::string plan;
    };
    [[noreturn]] void refuse_unresolved(const Asked& missing, double timeout_s) const;
    /// Asks on each side for the DUT's address of the other side, in a way that changes no neighbour table.
    void ask_across();
    /// Sends these frames, which have their tags, on this side; for use between trials.
    void send_own(plan::Side side, std::vector<std::vector<std::byte>> frames);
    [[nodiscard]] std::vector<std::vector<std::byte>> way_frames(plan::Direction direction) const;
    void try_way(WayFacts& facts, const std::vector<plan::Direction>& tried, const std::function<bool()>& goes_on);
    [[nodiscard]] WayFacts way_facts() const;
    /// All interfaces of the DUT whose MACs are needed, those on a link before those in its tunnel.
    [[nodiscard]] std::vector<Asked> asked() const;
    /// The first of them that has not told its MAC; nothing if all have.
    [[nodiscard]] std::optional<Asked> unresolved() const;

    OpenRequest request_;
    bool is_one_armed_ = false;
    bool shares_transmit_queues_ = false;  // stream k of either side leaves by queue k of the one port
    std::uint16_t session_ = 0;
    plan::PerSide<bool> has_learnt_{};  // for the side where the hosts are
    plan::PerSide<frame::Envelope> envelopes_;
    plan::PerDirection<frame::DirectionTraffic> traffic_;
    plan::PerSide<unsigned> streams_{};
    plan::PerSide<unsigned> receive_queues_{};
    std::unique_ptr<frame::StateTable> state_table_;
    plan::PerSide<std::shared_ptr<port::DpdkPort>> ports_;  // the same one twice if is_one_armed_
    std::array<plan::PerSide<std::unique_ptr<neighbor::Responder>>, 2> responders_;  // by plan
    // Null: those of the plan answer on the link. The same one twice where both tunnels have the same ends on one link.
    plan::PerSide<std::shared_ptr<neighbor::Responder>> link_responders_;
    plan::PerSide<std::unique_ptr<neighbor::Sightings>> sightings_;
    plan::PerSide<std::vector<std::unique_ptr<tally::IcmpErrors>>> icmp_errors_;  // one for each receive queue
    plan::PerSide<std::vector<std::unique_ptr<tally::FrameCapture>>> captures_;   // the same
    std::vector<std::unique_ptr<Worker>> workers_;  // after the ports, so that they end before the ports close
    std::vector<std::unique_ptr<witness::CpuWatch>> watches_;
    pace::ClockSample opened_at_;
    double calibrated_ticks_per_second_ = 0;
    std::vector<tally::ClockOffset> clock_offsets_;
};

}  // namespace evenhand::run
