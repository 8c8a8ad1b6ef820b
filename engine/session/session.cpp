// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "build_facts.hpp"
#include "contract/reply.hpp"
#include "pace/clock.hpp"
#include "port/dpdk_host.hpp"

namespace evenhand::session {
namespace {

using plan::Direction;
using plan::Side;

template <class T, class Make>
plan::PerSide<T> for_both(Make make) {
    return {make(Side::left), make(Side::right)};
}

/// Whether the request takes longer than a moment: it opens, sends, waits, counts or writes much.
bool takes_time(const contract::AnyRequest& request) {
    return std::visit(
        [](const auto& body) {
            using Body = std::decay_t<decltype(body)>;
            return !(std::is_same_v<Body, contract::AboutRequest> || std::is_same_v<Body, contract::StopRequest> ||
                     std::is_same_v<Body, contract::EndSendingRequest> ||
                     std::is_same_v<Body, contract::CountersRequest> || std::is_same_v<Body, contract::CloseRequest> ||
                     std::is_same_v<Body, contract::ClockRequest> || std::is_same_v<Body, contract::LinkRequest> ||
                     std::is_same_v<Body, tally::TogetherRequest>);
        },
        request);
}

/// The common parts of long requests: events twice a second, and an early end when the client asks for it or is gone. A
/// client with a timeout (one of several testers) gets five events a second, since it must hear from this tester as
/// well.
class LongRequest {
   public:
    /// `client_timeout_s`: if nothing arrives from the client for so long, it is taken to be gone.
    explicit LongRequest(LineChannel& channel, std::optional<double> client_timeout_s = std::nullopt)
        : channel_{channel}, client_timeout_s_{client_timeout_s} {}

    /// `write_event`: writes the line of an event when one is due. Returns false if the request must end.
    template <class WriteEvent>
    bool goes_on(WriteEvent write_event) {
        using namespace std::chrono_literals;
        const auto interval = client_timeout_s_ ? 200ms : 500ms;
        if (std::chrono::steady_clock::now() >= next_) {
            next_ = std::chrono::steady_clock::now() + interval;
            channel_.write_line(write_event());
        }
        return goes_on();
    }

    /// The last notice to the running request since the last call.
    std::optional<std::string> take_notice() { return channel_.take_notice(); }
    /// The next request that is answered while this one runs.
    std::optional<std::string> take_beside() { return channel_.take_beside(); }

    /// The same without events.
    bool goes_on() {
        return channel_.goes_on() &&
               !(client_timeout_s_ && channel_.is_silent_for(std::chrono::duration<double>{*client_timeout_s_}));
    }

   private:
    LineChannel& channel_;
    std::optional<double> client_timeout_s_;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

/// Makes the links of a trial known to link requests as long as it runs.
class RunningTrialLinks {
   public:
    RunningTrialLinks(TrialLinks*& known, TrialLinks& links) noexcept : known_{known} { known_ = &links; }
    ~RunningTrialLinks() { known_ = nullptr; }
    RunningTrialLinks(const RunningTrialLinks&) = delete;
    RunningTrialLinks& operator=(const RunningTrialLinks&) = delete;

   private:
    TrialLinks*& known_;
};

class SessionObserver : public run::TrialObserver {
   public:
    /// `serve_line`: answers a request that need not wait for the trial's end.
    SessionObserver(LineChannel& channel, std::int64_t id, std::optional<double> client_timeout_s, TrialLinks& links,
                    std::function<void(const std::string&)> serve_line)
        : request_{channel, client_timeout_s}, id_{id}, links_{links}, serve_line_{std::move(serve_line)} {}

    bool goes_on(const run::Progress& progress) override {
        const bool goes_on = request_.goes_on([&] { return contract::write_progress(id_, progress); });
        while (const auto line = request_.take_beside()) serve_line_(*line);
        // A notice that arrived before the trial's first frame is for another trial.
        if (const auto line = request_.take_notice();
            line && (progress.directions[Direction::forward] || progress.directions[Direction::reverse]))
            wanted_end_s_ = std::get<contract::EndSendingRequest>(contract::read_request(*line).body).after_s;
        return goes_on;
    }
    [[nodiscard]] std::optional<double> wanted_end_s() const override { return wanted_end_s_; }
    [[nodiscard]] std::span<const run::LinkSwitch> link_switches() const override { return links_.switches; }

   private:
    LongRequest request_;
    std::int64_t id_;
    TrialLinks& links_;
    std::function<void(const std::string&)> serve_line_;
    std::optional<double> wanted_end_s_;
};

class SessionLearningObserver : public run::LearningObserver {
   public:
    SessionLearningObserver(LineChannel& channel, std::int64_t id) : request_{channel}, id_{id} {}

    bool goes_on(const run::LearningProgress& progress) override {
        return request_.goes_on([&] { return contract::write_learning(id_, progress); });
    }

   private:
    LongRequest request_;
    std::int64_t id_;
};

class SessionProofObserver : public proof::ProofObserver {
   public:
    SessionProofObserver(LineChannel& channel, std::int64_t id, const proof::ProofRequest& proof)
        : request_{channel}, id_{id}, proof_{proof} {}

    bool goes_on(std::uint64_t drawn_frames) override {
        return request_.goes_on([&] { return contract::write_proving(id_, proof_, drawn_frames); });
    }

   private:
    LongRequest request_;
    std::int64_t id_;
    const proof::ProofRequest& proof_;
};

}  // namespace

LineKind kind_of(const std::string& line) {
    try {
        const auto body = contract::read_request(line).body;
        if (std::holds_alternative<contract::StopRequest>(body)) return LineKind::stop;
        if (std::holds_alternative<contract::LinkRequest>(body)) return LineKind::beside;
        return std::holds_alternative<contract::EndSendingRequest>(body) ? LineKind::notice : LineKind::other;
    } catch (const Fault&) {
        return LineKind::other;  // it gets its fault when it is served
    }
}

void Session::serve() {
    while (!channel_.is_ended()) {
        constexpr int for_ever = -1;
        const auto line = channel_.read_line(for_ever);
        if (line && line->find_first_not_of(" \t\r") != std::string::npos) serve_line(*line);
    }
    tester_.reset();
}

void Session::serve_line(const std::string& line) {
    std::string reply;
    try {
        const auto request = contract::read_request(line);
        if (channel_.is_stopped() && takes_time(request.body)) {
            throw Fault{FaultCode::stopped, "not started: a stop request waits behind it, or the client is gone", "",
                        "Send it again after the stop."};
        }
        reply = std::visit([&](const auto& body) { return answer(request.id, body); }, request.body);
    } catch (const Fault& fault) {
        reply = contract::write_fault(contract::read_id(line), fault);
    } catch (const std::bad_alloc&) {
        reply = contract::write_fault(
            contract::read_id(line),
            {FaultCode::no_memory, "the host has no memory left for this", "", "Ask for less, or free memory."});
    } catch (const std::exception& error) {
        reply = contract::write_fault(contract::read_id(line), {FaultCode::internal, error.what(), "",
                                                                "Please report this as a bug, with the request."});
    }
    channel_.write_line(reply);
}

run::Tester& Session::opened() {
    if (!tester_) throw Fault{FaultCode::bad_order, "nothing is open", "", "Send an open request first."};
    return *tester_;
}

std::string Session::answer(std::int64_t id, const contract::AboutRequest& /*request*/) {
    return contract::write_about(id, {.version = build_facts::version,
                                      .dpdk = port::dpdk_version(),
                                      .compiler = build_facts::compiler,
                                      .build_type = build_facts::build_type});
}

std::string Session::answer(std::int64_t id, const contract::StopRequest& /*request*/) {
    return contract::write_plain(id, "stop");
}

std::string Session::answer(std::int64_t id, const contract::EndSendingRequest& /*request*/) {
    return contract::write_plain(id, "end_sending");
}

std::string Session::answer(std::int64_t id, const contract::CountersRequest& /*request*/) {
    auto& tester = opened();
    return contract::write_counters(id, for_both<contract::SideCounters>([&](Side side) -> contract::SideCounters {
                                        return {.port = tester.port(side).counters(),
                                                .questions = tester.questions(side),
                                                .answers = tester.answers_sent(side)};
                                    }));
}

std::string Session::answer(std::int64_t id, const contract::CloseRequest& /*request*/) {
    tester_.reset();
    return contract::write_plain(id, "close");
}

std::string Session::answer(std::int64_t id, const contract::ResolveRequest& request) {
    auto& tester = opened();
    LongRequest waiting{channel_};
    const auto way = tester.resolve(request.timeout_s, request.try_directions, [&] { return waiting.goes_on(); });
    return contract::write_resolve(id, for_both<contract::ResolvedSide>([&](Side side) -> contract::ResolvedSide {
                                       return {.dut_mac = tester.link_responder(side).dut_mac().value(),
                                               .is_static = tester.has_static_mac(side)};
                                   }),
                                   way);
}

std::string Session::answer(std::int64_t id, const contract::FramesRequest& request) {
    return contract::write_frames(id, request);
}

std::string Session::answer(std::int64_t id, const proof::ProofRequest& request) {
    SessionProofObserver observer{channel_, id, request};
    return contract::write_prove(id, request, proof::prove(request, observer));
}

std::string Session::answer(std::int64_t id, const run::OpenRequest& request) {
    if (tester_) throw Fault{FaultCode::bad_order, "a tester is open already", "", "Send a close request first."};
    tester_ = std::make_unique<run::Tester>(request);
    return contract::write_open(id, for_both<contract::OpenedPort>([&](Side side) -> contract::OpenedPort {
                                    const auto& port = tester_->port(side);
                                    return {.device = port.device(),
                                            .driver = port.driver(),
                                            .mac = tester_->link_responder(side).own_mac(),
                                            .line_rate_bps = tester_->line_rate_bps(side),
                                            .link_up = port.is_link_up(),
                                            .receive_ring_frames = port.receive_ring_frames(),
                                            .receive_ring_source = port.receive_ring_source(),
                                            .transmit_ring_frames = port.transmit_ring_frames(),
                                            .flow_control = port.flow_control(),
                                            .hardware_stamps = port.hardware_stamps(),
                                            .counts_exactly = port.counts_exactly(),
                                            .has_control_queue = port.has_control_queue(),
                                            .frees_fast = port.frees_fast(),
                                            .numa_node = port.numa_node(),
                                            .far_cpus = tester_->far_cpus(side)};
                                }),
                                tester_->ticks_per_second(), tester_->session(), tester_->clock_offsets());
}

std::string Session::answer(std::int64_t id, const run::TrialRequest& request) {
    auto& tester = opened();
    const auto sends = [&](Side side) {
        return tester.is_one_armed() ||
               std::ranges::find(request.directions, plan::direction_sent_by(side)) != request.directions.end();
    };
    TrialLinks links{.sends = for_both<bool>(sends), .switches = {}};
    const RunningTrialLinks running{running_, links};
    SessionObserver observer{channel_, id, request.client_timeout_s, links,
                             [this](const std::string& line) { serve_line(line); }};
    return contract::write_trial(id, tester.run_trial(request, observer));
}

std::string Session::answer(std::int64_t id, const contract::LinkRequest& request) {
    auto& tester = opened();
    if (const auto& change = request.change) {
        // Frames that are due while their own port has no link could not be offered.
        if (running_ != nullptr && running_->sends[change->side]) {
            throw Fault{
                FaultCode::bad_order,
                fmt::format("the trial that runs sends on the {} side, whose link stays up", name_of(change->side)),
                "side", "Stop the trial first, or take down the link of a side that only receives."};
        }
        tester.port(change->side).set_link(change->is_up);
        if (running_ != nullptr)
            running_->switches.push_back({.side = change->side, .is_up = change->is_up, .at = pace::TickClock::now()});
    }
    return contract::write_link(id, for_both<bool>([&](Side side) { return tester.port(side).is_link_up(); }));
}

std::string Session::answer(std::int64_t id, const run::LearnRequest& request) {
    SessionLearningObserver observer{channel_, id};
    return contract::write_learn(id, opened().learn(request, observer));
}

std::string Session::answer(std::int64_t id, const tally::TogetherRequest& request) {
    return contract::write_judge(id, tally::judge_together(request));
}

std::string Session::answer(std::int64_t id, const contract::ClockRequest& /*request*/) {
    return contract::write_clock(id, pace::sample_clocks().time_ns, pace::is_steered_clock_right());
}

std::string Session::answer(std::int64_t id, const run::WatchRequest& request) {
    LongRequest waiting{channel_};
    return contract::write_watch(id, witness::watch(request.cpus, request.seconds, [&] { return waiting.goes_on(); }));
}

}  // namespace evenhand::session
