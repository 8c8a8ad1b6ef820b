// SPDX-License-Identifier: Apache-2.0
#include "run/tester.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "fault.hpp"
#include "frame/mix_source.hpp"
#include "frame/template.hpp"
#include "pace/clock_offset.hpp"
#include "port/dpdk_host.hpp"
#include "port/numa.hpp"
#include "run/rate_limit.hpp"
#include "units.hpp"

namespace evenhand::run {
namespace {

using plan::both_sides;

using QueueList = decltype(&WorkerRequest::senders);

/// The queue numbers of a side must be 0 .. n-1, each once.
unsigned count_side(const std::vector<WorkerRequest>& workers, plan::Side side, QueueList list, const char* what) {
    std::set<unsigned> numbers;
    for (const auto& worker : workers) {
        for (const auto& queue : worker.*list) {
            if (queue.side != side) continue;
            if (!numbers.insert(queue.number).second) {
                throw Fault{
                    FaultCode::bad_request,
                    fmt::format("{} {} of the {} side is given to two workers", what, queue.number, name_of(side)),
                    "workers", "Give it to one."};
            }
        }
    }
    if (numbers.empty() || *numbers.rbegin() + 1 != numbers.size()) {
        throw Fault{FaultCode::bad_request,
                    fmt::format("the {} side has {} of {} {}s", name_of(side), numbers.size(),
                                numbers.empty() ? 1 : *numbers.rbegin() + 1, what),
                    "workers", fmt::format("Number the {}s of a side 0, 1, 2, ... without a gap.", what)};
    }
    return static_cast<unsigned>(numbers.size());
}

}  // namespace

Tester::Tester(OpenRequest request)
    : request_{std::move(request)},
      session_{request_.session.value_or(static_cast<std::uint16_t>(std::random_device{}() % 65535U))} {
    const auto name_of_device = [&](plan::Side side) {
        return request_.ports[side].device.substr(0, request_.ports[side].device.find(','));
    };
    if (name_of_device(plan::Side::left) == name_of_device(plan::Side::right)) {
        throw Fault{FaultCode::bad_request, fmt::format("both sides are {}", name_of_device(plan::Side::left)), "ports",
                    "Give each side a device of its own."};
    }
    plan::check_plan(request_.plan);
    for (const auto side : both_sides) tags_[side] = frame::VlanTags{request_.ports[side].vlans};
    if (request_.mix) {
        for (const auto side : both_sides) frame::check_mix(request_.plan, untagged_mix(side));
    }
    for (const auto direction : plan::both_directions) traffic_[direction] = make_traffic(direction);
    if (!request_.mix) check_frame_sizes();
    count_queues();

    opened_at_ = pace::sample_clocks();  // the rate is measured while the ports open
    std::vector<std::string> pci_devices;
    for (const auto& p : request_.ports) {
        if (port::is_pci_device(p.device)) pci_devices.push_back(p.device);
    }
    port::start_dpdk(request_.host, pci_devices);
    for (const auto side : both_sides) open_port(side);
    for (const auto& opened : ports_) opened->wait_for_link();
    for (const auto& w : request_.workers) {
        auto worker = std::make_unique<Worker>(w.cpu);
        for (const auto& r : w.receivers) {
            auto& errors = icmp_errors_[r.side].emplace_back(std::make_unique<tally::IcmpErrors>(all_hosts()));
            auto& capture = captures_[r.side].emplace_back(std::make_unique<tally::FrameCapture>());
            worker->queues().add_receiver(*ports_[r.side], r.number, *responders_[0][r.side], tags(r.side), *errors,
                                          *capture);
        }
        for (const auto& s : w.senders) {
            if (s.number != 0) continue;
            for (std::size_t p = 0; p < plans(); ++p)
                worker->queues().add_outlet(*ports_[s.side], *responders_[p][s.side], tags(s.side));
        }
        workers_.push_back(std::move(worker));
    }
    measure_clocks();  // before the workers make their CPUs busy
    std::vector<unsigned> busy_cpus;
    for (auto& worker : workers_) {
        worker->start();
        busy_cpus.push_back(worker->cpu());
    }
    if (request_.dut) {
        for (const auto& watched : request_.dut->cpus)
            watches_.push_back(std::make_unique<witness::CpuWatch>(watched.cpu, watched.threads));
    }
    port::keep_off(busy_cpus);
    calibrated_ticks_per_second_ = pace::calibrate_ticks_per_second(opened_at_);
}

void Tester::measure_clocks() {
    if (request_.workers.size() < 2) return;
    const double us_per_tick = us_per_second / pace::ticks_per_second(opened_at_, pace::sample_clocks());
    const unsigned first = request_.workers.front().cpu;
    clock_offsets_.push_back({.cpu = first});
    for (std::size_t i = 1; i < request_.workers.size(); ++i) {
        const unsigned cpu = request_.workers[i].cpu;
        if (const auto offset = pace::measure_offset(first, pace::TickClock{}, cpu, pace::TickClock{})) {
            clock_offsets_.push_back({.cpu = cpu,
                                      .offset_us = offset->ticks * us_per_tick,
                                      .uncertainty_us = offset->uncertainty * us_per_tick});
        }
    }
}

std::uint64_t Tester::taken_frames(plan::Side side) const {
    std::uint64_t frames = 0;
    for (const auto& worker : workers_) frames += worker->taken_frames(port(side));
    return frames;
}

Tester::~Tester() {
    for (auto& worker : workers_) worker->finish();
}

void Tester::count_queues() {
    std::set<unsigned> used;
    for (const auto& w : request_.workers) {
        if (!port::may_run_on(w.cpu)) {
            throw Fault{FaultCode::no_cpu, fmt::format("this process may not use CPU {}", w.cpu), "workers",
                        "Use CPUs that are online and in the cpuset of this process; evenhand check shows them."};
        }
        if (!used.insert(w.cpu).second)
            throw Fault{FaultCode::bad_request, fmt::format("two workers on CPU {}", w.cpu), "workers",
                        "Give what both do to one worker."};
    }
    for (const auto side : both_sides) {
        streams_[side] = count_side(request_.workers, side, &WorkerRequest::senders, "stream");
        receive_queues_[side] = count_side(request_.workers, side, &WorkerRequest::receivers, "receive queue");
    }
}

/// frame::traffic_of() determines what arrives.
frame::DirectionTraffic Tester::make_traffic(plan::Direction direction) const {
    const auto from = plan::sending_side(direction);
    const auto without_tags = [&](std::size_t size) { return size - std::min(size, tags(from).octets()); };
    frame::DirectionTraffic traffic;
    if (!request_.mix) {
        traffic.kinds.push_back(frame::traffic_of(request_.plan, direction, without_tags(request_.frame_size)));
        return traffic;
    }
    const auto& mix = *this->mix(direction);
    const auto frames = mix.count({}, mix.period());
    for (std::size_t c = 0; c < frames.size(); ++c) {
        const auto& of_class = mix.classes()[c];
        auto kind = frame::traffic_of(request_.mix->plan(request_.plan, of_class.plan), direction,
                                      without_tags(of_class.frame_size));
        kind.frames = frames[c];
        for (auto* const end : {&kind.sent, &kind.arrives}) {
            const auto ports = of_class.fields.narrow({end->source_ports, end->destination_ports});
            end->source_ports = ports.sources;
            end->destination_ports = ports.destinations;
        }
        kind.sent.first_of_pattern = kind.arrives.first_of_pattern = frame::first_of_pattern(
            kind.sent.version, frame::pattern_of(request_.plan.side(from).version(), mix.has_two_plans()));
        traffic.kinds.push_back(kind);
    }
    return traffic;
}

/// A frame size includes the tags of the side that sends. The tags of the other side may make the frame longer, and so
/// may a device that changes it.
void Tester::check_frame_sizes() const {
    for (const auto side : both_sides) {
        const auto& [sent, arrives, frames] = traffic(plan::direction_sent_by(side)).kinds.front();
        const auto around = tags(side).octets();
        const auto added = request_.plan.side(side).added_octets;
        const auto larger =
            std::max(request_.frame_size + added, arrives.frame_size + tags(plan::other_side(side)).octets());
        const std::size_t least = frame::smallest_frame_size(sent.version) - added + around;
        if (around == 0 && larger == request_.frame_size) {
            frame::check_frame_size(sent.version, request_.frame_size);
        } else if (request_.frame_size < least || larger > frame::largest_frame_size) {
            const auto with = around == 0 ? "" : " with the VLAN tags";
            const auto counted = around == 0 ? "" : ": a frame size counts the tags";
            throw Fault{FaultCode::bad_frame_size,
                        fmt::format("{} octets cannot be an IPv{} test frame{} of the {} side", request_.frame_size,
                                    static_cast<int>(sent.version), with, name_of(side)),
                        "frame_size",
                        fmt::format("Use {} to {}{}.", least,
                                    frame::largest_frame_size - (larger - request_.frame_size), counted)};
        }
    }
}

void Tester::open_port(plan::Side side) {
    const auto& p = request_.ports[side];
    const std::size_t around = tags(side).octets();
    const auto& leaving = traffic(plan::direction_sent_by(side));
    const auto& coming = traffic(plan::direction_sent_by(plan::other_side(side)));
    const std::size_t octets = leaving.largest_sent() + around - frame::fcs_octets;
    const std::size_t coming_octets = coming.largest_arriving() + around - frame::fcs_octets;
    const auto version = frame::pattern_of(leaving.kinds.front().sent.version, plans() > 1);
    ports_[side] = std::make_unique<port::DpdkPort>(
        port::PortOptions{.device = p.device,
                          .where = fmt::format("ports.{}.device", name_of(side)),
                          .receive_queues = receive_queues_[side],
                          .transmit_queues = streams_[side],
                          .receive_ring_frames = p.receive_ring_frames,
                          .transmit_ring_frames = p.transmit_ring_frames,
                          .largest_transmit_octets = static_cast<unsigned>(octets),
                          .largest_receive_octets = static_cast<unsigned>(std::max(octets, coming_octets)),
                          .tag_octets = static_cast<unsigned>(around),
                          .link_timeout_s = p.link_timeout_s},
        [=](std::span<std::byte> buffer) { frame::write_pattern(version, buffer.first(octets).subspan(around)); });
    make_responders(side);
}

/// Needs the addresses of this side only, whatever their IP version: the other side may have another one.
void Tester::make_responders(plan::Side side) {
    const auto& p = request_.ports[side];
    const auto own_mac = p.mac.value_or(ports_[side]->mac());
    const auto host_macs = request_.host_macs == HostMacMode::pseudorandom
                               ? std::optional{plan::HostMacs{request_.seed, side}}
                               : std::nullopt;
    for (std::size_t number = 0; number < plans(); ++number) {
        const auto& s = plan(number).side(side);
        auto& responder = responders_[number][side];
        responder = s.gateway ? std::make_unique<neighbor::Responder>(own_mac, *s.gateway, s.dut_address)
                              : std::make_unique<neighbor::Responder>(own_mac, plan::HostSet{s.hosts}, host_macs,
                                                                      s.dut_address);
        if (p.dut_mac) responder->fix_dut_mac(*p.dut_mac);
    }
    if (plans() > 1) responders_[0][side]->set_other(*responders_[1][side]);
    sightings_[side] = std::make_unique<neighbor::Sightings>(own_mac, tags(side).list());
    responders_[0][side]->set_sightings(*sightings_[side]);
}

std::uint64_t Tester::answers_sent(plan::Side side) const {
    std::uint64_t answers = 0;
    for (std::size_t p = 0; p < plans(); ++p) answers += responder(side, p).answers();
    return answers - port(side).dropped_answers();
}

std::uint64_t Tester::questions(plan::Side side) const {
    std::uint64_t questions = 0;
    for (std::size_t p = 0; p < plans(); ++p) questions += responder(side, p).questions();
    return questions;
}

std::optional<double> Tester::line_rate_bps(plan::Side side) const {
    const auto& given = request_.ports[side].line_rate_bps;
    return given ? given : ports_[side]->line_rate_bps();
}

std::vector<unsigned> Tester::far_cpus(plan::Side side) const {
    std::vector<unsigned> cpus;
    const auto node = port(side).numa_node();
    const auto is_here = [side](const auto& queue) { return queue.side == side; };
    for (const auto& w : request_.workers) {
        const auto of_cpu = port::node_of_cpu(w.cpu);
        const bool is_used = std::ranges::any_of(w.senders, is_here) || std::ranges::any_of(w.receivers, is_here);
        if (is_used && node && of_cpu && node != of_cpu) cpus.push_back(w.cpu);
    }
    return cpus;
}

plan::MacAddress Tester::source_mac(plan::Side side, std::uint32_t host) const {
    return request_.host_macs == HostMacMode::pseudorandom ? plan::HostMacs{request_.seed, side}.mac(host)
                                                           : responder(side).own_mac();
}

frame::TestFrameExpectation Tester::frame_expectation(plan::Direction direction, const frame::LinkFrames& arrives,
                                                      std::size_t plan) const {
    const auto& receiving = responder(plan::receiving_side(direction), plan);
    const auto own_mac = request_.host_macs == HostMacMode::port ? std::optional{receiving.own_mac()} : std::nullopt;
    return {arrives, own_mac, responder(plan::sending_side(direction), plan).dut_mac().value_or(plan::MacAddress{})};
}

void Tester::check_rate(plan::Direction direction, double rate_fps, const frame::DirectionTraffic& traffic,
                        const char* where) const {
    const auto from = plan::sending_side(direction);
    const auto to = plan::receiving_side(direction);
    const auto octets = traffic.period_octets(tags(from).octets(), tags(to).octets());
    const auto limit = rate_limit({line_rate_bps(from), line_rate_bps(to)}, octets, ticks_per_second());
    if (rate_fps > limit.fps) {
        const auto what = limit.is_of_line ? "the line carries" : "this CPU's clock can distinguish";
        throw Fault{FaultCode::bad_rate,
                    fmt::format("{:.0f} fps are more than the {:.0f} fps that {}", rate_fps, limit.fps, what), where,
                    octets.frames == 1
                        ? fmt::format("Use at most {:.0f} fps for frames of {} octets.", limit.fps, octets.sent)
                        : fmt::format("Use at most {:.0f} fps for frames of {:g} octets in the mean.", limit.fps,
                                      static_cast<double>(octets.sent) / static_cast<double>(octets.frames))};
    }
}

void Tester::check_resolved(const char* where) const {
    if (const auto missing = unresolved()) {
        throw Fault{FaultCode::not_resolved,
                    fmt::format("the DUT's MAC on the {} side is not known", name_of(missing->first)), where,
                    "Send a resolve request first, or give dut_mac."};
    }
}

std::optional<std::pair<plan::Side, std::size_t>> Tester::unresolved() const {
    for (std::size_t p = 0; p < plans(); ++p) {
        for (const auto side : both_sides) {
            if (!responder(side, p).dut_mac()) return std::pair{side, p};
        }
    }
    return std::nullopt;
}

double Tester::ticks_per_second() const {
    const auto now = pace::sample_clocks();
    return now.raw_ns - opened_at_.raw_ns < whole_ns_per_second ? calibrated_ticks_per_second_
                                                                : pace::ticks_per_second(opened_at_, now);
}

void Tester::send_questions() {
    for (auto& worker : workers_) worker->send_questions();
}

}  // namespace evenhand::run
