// SPDX-License-Identifier: Apache-2.0
#include "run/connections.hpp"

#include <fmt/format.h>

#include <new>
#include <string>

#include "fault.hpp"
#include "run/load.hpp"
#include "run/memory.hpp"
#include "run/tester.hpp"

namespace evenhand::run {
namespace {

using Use = ConnectionRequest::Use;
using plan::Direction;

[[noreturn]] void refuse(FaultCode code, std::string what, std::string where, std::string next) {
    throw Fault{code, std::move(what), std::move(where), std::move(next)};
}

void check_number(const plan::AddressPlan& plan, std::uint64_t connections) {
    const auto tuples = plan::FourTuples::count(plan);
    if (!tuples) {
        refuse(FaultCode::bad_plan, "the plan has more four tuples than can be counted", "plan",
               "Use fewer hosts or ports (R9693-04).");
    }
    const auto most = std::min(*tuples, plan::most_connections);
    if (connections > most) {
        refuse(FaultCode::bad_request,
               fmt::format("{} connections, but the plan has {} four tuples", connections, *tuples),
               "connections.count", fmt::format("Use 1 to {}, or more hosts or ports.", most));
    }
}

/// "0 to 1 of 4"
std::string streams_of(const frame::TesterShare& share) {
    return fmt::format("{} to {} of {}", share.first(), share.first() + share.streams() - 1, share.stride());
}

}  // namespace

void count_connections(tally::DirectionResult& direction, const ConnectionRequest& request, frame::StateTable& table) {
    if (request.use != Use::establish) return;
    table.count_recorded();
    direction.connections = tally::DirectionResult::Connections{
        .opened = table.connections(), .learnt = table.recorded(), .shared_tuples = table.shared_tuples()};
}

void Tester::prepare_connections(const TrialRequest& request) {
    const auto& asked = request.connections;
    if (request_.plan.has_state != asked.has_value()) {
        if (asked)
            refuse(FaultCode::bad_request, "connections in a plan without state", "connections",
                   "Leave them out, or use a plan with state.");
        refuse(FaultCode::bad_request, "a plan with state, but nothing is said of connections", "trial",
               "Say which connections the frames are of (connections).");
    }
    if (!asked) return;
    if (has_mix())
        refuse(FaultCode::bad_request, "connections in a mix", "connections", "Use frames that are all alike.");
    // One of several testers has only the connections that its own frames open, since only their answers come back to
    // it.
    const auto own = request.share ? share(request, Direction::forward) : frame::TesterShare{};
    const auto frames = frames_of(request);
    if (asked->use == Use::establish) {
        check_number(request_.plan, asked->count);
        if (request.directions != std::vector{Direction::forward})
            refuse(FaultCode::bad_request, "only the initiator opens connections", "directions",
                   "Want \"forward\" alone (R9693-01).");
        if (frames != asked->count)
            refuse(FaultCode::bad_request, fmt::format("{} frames cannot open {} connections", frames, asked->count),
                   "connections.count", "Send one frame for each connection: rate_fps times duration_s.");
        state_table_.reset();
        check_memory(own.count(asked->count), available_octets(), own.part());
        try {
            state_table_ = std::make_unique<frame::StateTable>(
                plan::FourTuples{request_.plan, asked->count, asked->order, request_.seed}, own);
        } catch (const std::bad_alloc&) {
            refuse(FaultCode::no_memory,
                   fmt::format("no memory for a state table of {} connections", own.count(asked->count)),
                   "connections.count", "Use fewer; each takes 4 octets.");
        }
        return;
    }
    if (!state_table_)
        refuse(FaultCode::bad_order, "no connection is established", "connections", "Establish them first (R9693-03).");
    if (own != state_table_->own())
        refuse(FaultCode::bad_order,
               fmt::format("the connections were established by streams {}, but this trial has {}",
                           streams_of(state_table_->own()), streams_of(own)),
               "share", "Use the share of the trial that established them, or establish them again (R9693-03).");
    const auto known = state_table_->recorded();
    if (known != state_table_->connections())
        refuse(FaultCode::bad_order,
               fmt::format("only {} of {} connections are established", known, state_table_->connections()),
               "connections", "Establish all of them: at a lower rate, or fewer (R9693-03).");
    const auto connections = state_table_->tuples().connections();
    if (asked->use == Use::each_once && frames != connections)
        refuse(FaultCode::bad_request,
               fmt::format("{} frames, but each of {} connections is to have one", frames, connections), "trial",
               "Send one frame for each connection: rate_fps times duration_s.");
}

}  // namespace evenhand::run
