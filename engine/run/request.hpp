// SPDX-License-Identifier: Apache-2.0
// What a client asks for, checked for form by contract/ and for sense by the stations. No JSON here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
};

/// What a worker's CPU runs: any set of senders and receivers, so one CPU can be a whole tester and many can share a direction.
struct WorkerRequest {
    struct Queue {
        plan::Side side = plan::Side::left;
        unsigned number = 0;
    };
    unsigned cpu = 0;
    std::vector<Queue> senders;    // number = stream = transmit queue
    std::vector<Queue> receivers;  // number = receive queue
};

struct OpenRequest {
    port::HostOptions host;
    std::array<PortRequest, 2> ports;  // by plan::Side
    std::vector<WorkerRequest> workers;
    plan::AddressPlan plan;
    std::size_t frame_size = 64;
    std::uint64_t seed = 0;
};

/// RFC 2544 section 23, phases (a), (b), (d), (e).
struct Waits {
    double after_routing_s = 2;
    double after_learning_s = 2;
    double residual_s = 2;
    double restabilize_s = 5;
};

struct TrialRequest {
    std::uint16_t trial = 1;
    double rate_fps = 0;
    double duration_s = 0;
    std::vector<plan::Direction> directions{plan::Direction::forward, plan::Direction::reverse};
    Waits waits;
    tally::Limits limits;
};

struct Progress {
    std::uint16_t trial = 0;
    const char* phase = "";
    double elapsed_s = 0;
    double total_s = 0;
    std::uint64_t sent_frames = 0;
    std::uint64_t received_frames = 0;
};

/// Looked at about fifty times a second while a trial runs.
class TrialObserver {
   public:
    virtual ~TrialObserver() = default;
    /// False ends the trial early: INVALID, "stopped".
    virtual bool goes_on(const Progress& progress) = 0;
};

}  // namespace evenhand::run
