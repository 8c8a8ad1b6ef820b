// SPDX-License-Identifier: Apache-2.0
// Errors of set-up code. Nothing throws between start and stop of a trial: errors are counted there and judged
// afterwards.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace evenhand {

enum class FaultCode : std::uint8_t {
    bad_json,        // the line is not a JSON object
    bad_request,     // a key is missing, unknown or of the wrong kind
    bad_plan,        // the address plan contradicts itself
    bad_frame_size,  // too small for headers and tag, larger than 9216, or larger than a port takes
    bad_rate,        // above the line rate, or not a positive number
    bad_order,       // a request that does not go with the state of the session
    no_device,       // the port does not exist, does not open, or has no link
    no_permission,   // the operating system refused
    no_memory,       // not enough memory for pools or for the record of a trial
    no_cpu,          // a worker's CPU does not exist or is not allowed
    not_resolved,    // the DUT did not answer ARP or neighbour discovery
    too_late,        // the time at which it was to start has passed
    stopped,         // the client asked for it, or is gone, before there was a result
    internal,        // a broken invariant: a bug of ours
};

/// What is wrong, where in the request, and what to do next. Written to the client as one JSON line.
class Fault : public std::exception {
   public:
    Fault(FaultCode code, std::string what, std::string where, std::string next)
        : code{code}, what_text{std::move(what)}, where{std::move(where)}, next{std::move(next)} {}

    [[nodiscard]] const char* what() const noexcept override { return what_text.c_str(); }

    FaultCode code;
    std::string what_text;
    std::string where;
    std::string next;
};

/// Refuses an address plan that contradicts itself.
[[noreturn]] inline void refuse_plan(std::string what, std::string where, std::string next) {
    throw Fault{FaultCode::bad_plan, std::move(what), std::move(where), std::move(next)};
}

[[nodiscard]] constexpr std::string_view to_string(FaultCode code) {
    switch (code) {
        case FaultCode::bad_json: return "bad_json";
        case FaultCode::bad_request: return "bad_request";
        case FaultCode::bad_plan: return "bad_plan";
        case FaultCode::bad_frame_size: return "bad_frame_size";
        case FaultCode::bad_rate: return "bad_rate";
        case FaultCode::bad_order: return "bad_order";
        case FaultCode::no_device: return "no_device";
        case FaultCode::no_permission: return "no_permission";
        case FaultCode::no_memory: return "no_memory";
        case FaultCode::no_cpu: return "no_cpu";
        case FaultCode::not_resolved: return "not_resolved";
        case FaultCode::too_late: return "too_late";
        case FaultCode::stopped: return "stopped";
        case FaultCode::internal: return "internal";
    }
    return "internal";
}

/// Who has to act: "bad_request" the user (exit code 2), "host_not_ready" the host (3), "bug" the developers (4).
[[nodiscard]] constexpr std::string_view kind_of(FaultCode code) {
    switch (code) {
        case FaultCode::no_device:
        case FaultCode::no_permission:
        case FaultCode::no_memory:
        case FaultCode::no_cpu:
        case FaultCode::too_late:
        case FaultCode::not_resolved: return "host_not_ready";
        case FaultCode::internal: return "bug";
        default: return "bad_request";
    }
}

}  // namespace evenhand
