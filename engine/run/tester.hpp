// SPDX-License-Identifier: Apache-2.0
// One opened tester: two ports, their responders, and the workers. Lives from open to close.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "frame/expectation.hpp"
#include "frame/share.hpp"
#include "frame/state_table.hpp"
#include "frame/traffic.hpp"
#include "frame/vlan.hpp"
#include "neighbor/responder.hpp"
#include "port/dpdk_port.hpp"
#include "run/deviations.hpp"
#include "run/request.hpp"
#include "run/way.hpp"
#include "run/worker.hpp"
#include "tally/icmp_errors.hpp"
#include "witness/cpu_watch.hpp"

namespace evenhand::run {

class Tester {
   public:
    /// Opens ports and starts workers; on a Fault nothing stays open. Faults: bad_plan, bad_frame_size, bad_request,
    /// no_device, no_permission, no_memory, no_cpu.
    explicit Tester(OpenRequest request);
    ~Tester();
    Tester(const Tester&) = delete;
    Tester& operator=(const Tester&) = delete;

    /// Ask both sides until each DUT interface has told its MAC; then a few test frames in each direction of `tried`,
    /// if the plan has no state. That none gets through is no fault; what was seen says why. Throws Fault{not_resolved}
    /// that names the side, Fault{stopped} if `goes_on`, which is asked every few milliseconds, says no,
    /// Fault{no_device} if a port has gone.
    Way resolve(double timeout_s, const std::vector<plan::Direction>& tried, const std::function<bool()>& goes_on);

    /// One trial, phases (a) to (e) of RFC 2544 section 23; judged. run/trial.hpp has its steps. Faults: bad_rate,
    /// not_resolved, no_memory, no_device (nothing is sent then).
    [[nodiscard]] tally::TrialResult run_trial(const TrialRequest& asked, TrialObserver& observer);

    /// Have the DUT resolve every host of the receiving sides, and see which of them it reaches: a small test frame to
    /// each, again to those that did not come, round after round. In gateway forms the same shows whether the routes
    /// are right. Faults: bad_rate, not_resolved (nothing is sent then), no_device.
    [[nodiscard]] LearningResult learn(const LearnRequest& request, LearningObserver& observer);

    /// Throws Fault{bad_rate} if so many frames of a direction do not fit on one of both lines, or into the ticks of
    /// the clock.
    void check_rate(plan::Direction direction, double rate_fps, const frame::DirectionTraffic& traffic,
                    const char* where) const;
    /// Throws Fault{not_resolved} unless the DUT's MAC is known on both sides.
    void check_resolved(const char* where) const;

    /// Throws Fault{no_device} if a port has been taken away from this host since it was opened.
    void check_ports() const;
    /// Whether that is so.
    [[nodiscard]] bool has_lost_a_port() const;
    /// Waits for links that are down, as long as when the ports were opened. Throws Fault{no_device} that names the
    /// port and says why, Fault{stopped} if `goes_on`, which is asked every few milliseconds, says no.
    void wait_for_links(const std::function<bool()>& goes_on) const;

    [[nodiscard]] port::DpdkPort& port(plan::Side side) { return *ports_[index(side)]; }
    [[nodiscard]] const port::DpdkPort& port(plan::Side side) const { return *ports_[index(side)]; }
    /// Of a mix of two IP versions each has its own.
    [[nodiscard]] const neighbor::Responder& responder(plan::Side side, std::size_t plan = 0) const {
        return *responders_[plan][index(side)];
    }
    /// Answers to the DUT's questions that were not dropped for want of buffers.
    [[nodiscard]] std::uint64_t answers_sent(plan::Side side) const;
    /// Frames of whatever kind that the receivers of this side took from its port since it was opened.
    [[nodiscard]] std::uint64_t taken_frames(plan::Side side) const;
    /// From now on ICMP errors count that are about frames of the trial that has this number in its tags.
    void begin_icmp_errors(std::uint16_t wire_trial) noexcept;
    [[nodiscard]] std::vector<tally::IcmpErrorCount> icmp_errors(plan::Side side) const;
    /// Of the workers' tick counters, as measured when the tester was opened, the first worker's being 0; without those
    /// whose CPU never ran in time. Empty with one worker.
    [[nodiscard]] const std::vector<tally::ClockOffset>& clock_offsets() const { return clock_offsets_; }
    [[nodiscard]] std::uint64_t questions(plan::Side side) const;
    [[nodiscard]] bool has_static_mac(plan::Side side) const { return request_.ports[index(side)].dut_mac.has_value(); }
    [[nodiscard]] std::optional<double> line_rate_bps(plan::Side side) const;
    /// Those of its workers' CPUs that are of another NUMA node than the port, whose memory they reach more slowly.
    [[nodiscard]] std::vector<unsigned> far_cpus(plan::Side side) const;
    [[nodiscard]] const OpenRequest& request() const { return request_; }
    /// 1, or 2 in a mix of both IP versions.
    [[nodiscard]] std::size_t plans() const { return request_.mix && request_.mix->other_plan ? 2 : 1; }
    [[nodiscard]] const plan::AddressPlan& plan(std::size_t number) const {
        return number == 0 ? request_.plan : request_.mix->other_plan.value();
    }
    /// Null if all frames are alike.
    [[nodiscard]] const frame::FrameMix* mix() const { return request_.mix ? &request_.mix->mix : nullptr; }
    /// Hosts are on the link, on both sides.
    [[nodiscard]] bool is_direct() const { return !request_.plan.left.gateway; }
    /// Where the hosts are that these directions send to, and whether learn() has sent to all of them.
    [[nodiscard]] Hosts hosts_before(const std::vector<plan::Direction>& directions) const;
    /// MAC of frames that come from this host of this side: the same in both IP versions.
    [[nodiscard]] plan::MacAddress source_mac(plan::Side side, std::uint32_t host) const;
    /// The number in the tags of a trial's frames: 1..65535. Each session counts from a number of its own, so that what
    /// an earlier one left in a queue is stale although every run begins with trial 1.
    [[nodiscard]] std::uint16_t wire_trial(std::uint16_t trial) const noexcept {
        return static_cast<std::uint16_t>((trial - 1U + session_) % 65535U + 1U);
    }
    [[nodiscard]] std::uint16_t session() const noexcept { return session_; }
    /// What trials send in this direction, and what arrives of it; a mix has a kind for each of its classes.
    [[nodiscard]] const frame::DirectionTraffic& traffic(plan::Direction direction) const {
        return traffic_[static_cast<std::size_t>(direction)];
    }
    /// What a receiver of this direction expects, where frames of this plan arrive so.
    [[nodiscard]] frame::TestFrameExpectation frame_expectation(plan::Direction direction,
                                                                const frame::LinkFrames& arrives,
                                                                std::size_t plan = 0) const;
    /// Those of all frames on the link of this side.
    [[nodiscard]] const frame::VlanTags& tags(plan::Side side) const { return tags_[index(side)]; }
    [[nodiscard]] bool has_tags() const { return tags_[0].octets() + tags_[1].octets() != 0; }
    /// Of a request with a mix: its classes without the tags of the side that sends them.
    [[nodiscard]] frame::MixedPlans untagged_mix(plan::Side side) const {
        return {.mix = request_.mix.value().mix.without_tags(tags(side).octets()),
                .other_plan = request_.mix->other_plan};
    }
    /// What the DUT translated the connections to that were established last; nothing before that.
    [[nodiscard]] frame::StateTable* state_table() const { return state_table_.get(); }
    /// Which frames of this direction it sends in a trial.
    [[nodiscard]] frame::TesterShare share(const TrialRequest& request, plan::Direction direction) const {
        if (!request.share) {
            const unsigned all = streams(plan::sending_side(direction));
            return {0, all, all};
        }
        return {request.share->first, streams(plan::sending_side(direction)), request.share->stride};
    }
    [[nodiscard]] unsigned streams(plan::Side side) const { return streams_[index(side)]; }
    [[nodiscard]] unsigned receive_queues(plan::Side side) const { return receive_queues_[index(side)]; }
    [[nodiscard]] std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }
    /// Of the DUT's CPUs, if they are this host's.
    [[nodiscard]] std::vector<std::unique_ptr<witness::CpuWatch>>& watches() { return watches_; }
    /// By the time since open: the longer, the more exact.
    [[nodiscard]] double ticks_per_second() const;
    /// The clocks, when the ports had been opened.
    [[nodiscard]] const pace::ClockSample& opened_at() const noexcept { return opened_at_; }

    void send_questions();

   private:
    /// Of a trial that establishes connections, a new state table. Throws Fault{bad_order, bad_request, no_memory}.
    void prepare_connections(const TrialRequest& request);
    static std::size_t index(plan::Side side) { return static_cast<std::size_t>(side); }
    void count_queues();
    void measure_clocks();
    [[nodiscard]] std::vector<plan::HostSet> all_hosts() const;
    [[nodiscard]] frame::DirectionTraffic make_traffic(plan::Direction direction) const;
    void check_frame_sizes() const;
    void open_port(plan::Side side);
    void make_responders(plan::Side side);
    void ask_until_resolved(double timeout_s, const std::function<bool()>& goes_on);
    [[noreturn]] void refuse_unresolved(plan::Side side, std::size_t number, double timeout_s) const;
    /// Asks each side for the DUT's address of the other one, as nobody whom it would remember.
    void ask_across();
    /// On this side between trials; they have their tags.
    void send_own(plan::Side side, std::vector<std::vector<std::byte>> frames);
    [[nodiscard]] std::vector<std::vector<std::byte>> way_frames(plan::Direction direction) const;
    void try_way(WayFacts& facts, const std::vector<plan::Direction>& tried, const std::function<bool()>& goes_on);
    [[nodiscard]] WayFacts way_facts() const;
    /// Whose DUT has not told its MAC: side and plan.
    [[nodiscard]] std::optional<std::pair<plan::Side, std::size_t>> unresolved() const;

    OpenRequest request_;
    std::uint16_t session_ = 0;
    std::array<bool, 2> has_learnt_{};  // by the side where the hosts are
    std::array<frame::VlanTags, 2> tags_;
    std::array<frame::DirectionTraffic, 2> traffic_;  // by direction
    std::array<unsigned, 2> streams_{};
    std::array<unsigned, 2> receive_queues_{};
    std::unique_ptr<frame::StateTable> state_table_;
    std::array<std::unique_ptr<port::DpdkPort>, 2> ports_;
    std::array<std::array<std::unique_ptr<neighbor::Responder>, 2>, 2> responders_;  // by plan, then by side
    std::array<std::unique_ptr<neighbor::Sightings>, 2> sightings_;                  // by side
    std::array<std::vector<std::unique_ptr<tally::IcmpErrors>>, 2> icmp_errors_;     // by side, of each receive queue
    std::vector<std::unique_ptr<Worker>> workers_;  // after the ports: they end before the ports close
    std::vector<std::unique_ptr<witness::CpuWatch>> watches_;
    pace::ClockSample opened_at_;
    double calibrated_ticks_per_second_ = 0;
    std::vector<tally::ClockOffset> clock_offsets_;
};

}  // namespace evenhand::run
