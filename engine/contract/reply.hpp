// SPDX-License-Identifier: Apache-2.0
// Contract: the engine's replies, each one line of JSON. Pure functions; the session writes the lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contract/request.hpp"
#include "fault.hpp"
#include "plan/per_direction.hpp"
#include "run/request.hpp"
#include "run/way.hpp"
#include "tally/result.hpp"
#include "tally/together.hpp"
#include "witness/watch.hpp"

namespace evenhand::contract {

constexpr int version = 1;

struct About {
    std::string version;
    std::string dpdk;
    std::string compiler;
    std::string build_type;
};

struct OpenedPort {
    std::string device;
    std::string driver;
    plan::MacAddress mac{};
    std::optional<double> line_rate_bps;
    bool link_up = false;
    unsigned receive_ring_frames = 0;
    const char* receive_ring_source = "driver";
    unsigned transmit_ring_frames = 0;
    const char* flow_control = "none";
    const char* hardware_stamps = "none";
    bool counts_exactly = false;
    bool has_control_queue = false;
    bool frees_fast = false;
    std::optional<unsigned> numa_node;
    std::vector<unsigned> far_cpus;  // those of its workers' CPUs that are on another NUMA node
};

struct ResolvedSide {
    plan::MacAddress dut_mac{};
    bool is_static = false;
};

struct SideCounters {
    tally::PortCounters port;
    std::uint64_t questions = 0;
    std::uint64_t answers = 0;
};

[[nodiscard]] std::string write_fault(std::optional<std::int64_t> id, const Fault& fault);
[[nodiscard]] std::string write_plain(std::int64_t id, const char* response);
[[nodiscard]] std::string write_about(std::int64_t id, const About& about);
[[nodiscard]] std::string write_frames(std::int64_t id, const FramesRequest& request);
[[nodiscard]] std::string write_open(std::int64_t id, const plan::PerSide<OpenedPort>& ports, double ticks_per_second,
                                     std::uint16_t session, const std::vector<tally::ClockOffset>& clock_offsets = {});
/// `way`: empty if no direction was tried.
[[nodiscard]] std::string write_resolve(std::int64_t id, const plan::PerSide<ResolvedSide>& sides,
                                        const run::Way& way = {});
/// `are_up`: whether the link of each side is.
[[nodiscard]] std::string write_link(std::int64_t id, const plan::PerSide<bool>& are_up);
[[nodiscard]] std::string write_counters(std::int64_t id, const plan::PerSide<SideCounters>& sides);
[[nodiscard]] std::string write_progress(std::int64_t id, const run::Progress& progress);
[[nodiscard]] std::string write_proving(std::int64_t id, const proof::ProofRequest& request,
                                        std::uint64_t drawn_frames);
[[nodiscard]] std::string write_prove(std::int64_t id, const proof::ProofRequest& request,
                                      const proof::ProofResult& result);
[[nodiscard]] std::string write_learning(std::int64_t id, const run::LearningProgress& progress);
[[nodiscard]] std::string write_learn(std::int64_t id, const run::LearningResult& result);
[[nodiscard]] std::string write_watch(std::int64_t id, const witness::WatchResult& result);
[[nodiscard]] std::string write_trial(std::int64_t id, const tally::TrialResult& result);
[[nodiscard]] std::string write_judge(std::int64_t id, const tally::TogetherResult& result);
[[nodiscard]] std::string write_clock(std::int64_t id, std::int64_t time_ns, bool is_steered);

}  // namespace evenhand::contract
