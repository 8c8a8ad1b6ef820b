// SPDX-License-Identifier: Apache-2.0
#include "run/tester.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
#include "run/load.hpp"
#include "run/rate_limit.hpp"
#include "run/sent_traffic.hpp"
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

/// Frames of both sides arrive in any receive queue of one port, and one worker must take them.
void check_shared_queues(const std::vector<WorkerRequest>& workers) {
    for (const auto& worker : workers) {
        plan::PerSide<std::set<unsigned>> numbers;
        for (const auto& queue : worker.receivers) numbers[queue.side].insert(queue.number);
        if (numbers[plan::Side::left] == numbers[plan::Side::right]) continue;
        throw Fault{FaultCode::bad_request,
                    fmt::format("both sides are on one port, and the worker on CPU {} receives from other queues of "
                                "the left side than of the right",
                                worker.cpu),
                    "workers", "Give each queue of the left side and that of the right with its number to one worker."};
    }
}

}  // namespace

Tester::Tester(OpenRequest request)
    : request_{std::move(request)},
      session_{request_.session.value_or(static_cast<std::uint16_t>(std::random_device{}() % 65535U))} {
    check_devices();
    is_one_armed_ = request_.ports[plan::Side::left].device == request_.ports[plan::Side::right].device;
    plan::check_plan(request_.plan);
    for (const auto side : both_sides) envelopes_[side] = envelope_of(request_.ports[side]);
    check_tunnels();
    if (request_.mix) {
        for (const auto side : both_sides) frame::check_mix(request_.plan, untagged_mix(side));
    }
    check_frame_sizes(request_);
    for (const auto direction : plan::both_directions) traffic_[direction] = traffic_of(request_, direction);
    count_queues();

    opened_at_ = pace::sample_clocks();  // the rate is measured while the ports open
    std::vector<std::string> pci_devices;
    for (const auto& p : request_.ports) {
        if (port::is_pci_device(p.device)) pci_devices.push_back(p.device);
    }
    port::start_dpdk(request_.host, pci_devices);
    if (is_one_armed_) {
        check_shared_queues(request_.workers);
        shares_transmit_queues_ = can_share_transmit_queues();
        open_shared_port();
    } else {
        for (const auto side : both_sides) open_port(side);
    }
    for (const auto& opened : ports_) opened->wait_for_link();
    for (const auto& w : request_.workers) {
        auto worker = std::make_unique<Worker>(w.cpu);
        add_queues(*worker, w);
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

/// Both sides may name one device, if all that is said of it is the same.
void Tester::check_devices() const {
    const auto& left = request_.ports[plan::Side::left];
    const auto& right = request_.ports[plan::Side::right];
    const auto name_of_device = [](const PortRequest& p) { return p.device.substr(0, p.device.find(',')); };
    if (name_of_device(left) != name_of_device(right)) return;
    const bool is_alike = left.device == right.device && left.receive_ring_frames == right.receive_ring_frames &&
                          left.transmit_ring_frames == right.transmit_ring_frames &&
                          left.line_rate_bps == right.line_rate_bps && left.link_timeout_s == right.link_timeout_s;
    if (is_alike) return;
    throw Fault{
        FaultCode::bad_request,
        fmt::format("both sides are {}, with other arguments, rings, line rate or link timeout", name_of_device(left)),
        "ports", "Give each side a device of its own; or, for a router on a stick, say the same of it on both sides."};
}

void Tester::add_queues(Worker& worker, const WorkerRequest& asked) {
    for (const auto& r : asked.receivers) {
        auto& errors = icmp_errors_[r.side].emplace_back(std::make_unique<tally::IcmpErrors>(all_hosts()));
        auto& capture = captures_[r.side].emplace_back(std::make_unique<tally::FrameCapture>());
        auto* const link = link_responders_[r.side] ? link_responders_[r.side].get() : responders_[0][r.side].get();
        worker.queues().add_receiver(*ports_[r.side], r.number, *responders_[0][r.side], around(r.side), *errors,
                                     *capture, tunnel(r.side).is_none() ? nullptr : link);
    }
    for (std::size_t i = 0; is_one_armed_ && i < asked.receivers.size(); ++i) {
        const auto& left = asked.receivers[i];
        if (left.side != plan::Side::left) continue;
        for (std::size_t j = 0; j < asked.receivers.size(); ++j) {
            const auto& right = asked.receivers[j];
            if (right.side == plan::Side::right && right.number == left.number)
                worker.queues().share_port(i, j, plan::direction_sent_by(plan::Side::left));
        }
    }
    for (const auto& s : asked.senders) {
        if (s.number != 0 || (is_one_armed_ && s.side != plan::Side::left)) continue;
        // The owner of the port's first transmit queue sends all that is no test frame.
        for (const auto side : both_sides) {
            if (side != s.side && !is_one_armed_) continue;
            auto* const link = link_responders_[side].get();
            if (link != nullptr) worker.queues().add_outlet(*ports_[side], *link, around(side).outside(), nullptr);
            const auto inside = link == nullptr ? around(side).outside() : around(side);
            for (std::size_t p = 0; p < plans(); ++p)
                worker.queues().add_outlet(*ports_[side], *responders_[p][side], inside, link);
        }
    }
}

/// Many software ports have one transmit queue. Both sides can use it if one worker sends for both, and if their
/// frames have the same octets that never change.
bool Tester::can_share_transmit_queues() const {
    const auto version = [this](plan::Side side) {
        return traffic(plan::direction_sent_by(side)).kinds.front().sent.version;
    };
    if (version(plan::Side::left) != version(plan::Side::right) ||
        around(plan::Side::left).octets() != around(plan::Side::right).octets()) {
        return false;
    }
    return std::ranges::all_of(request_.workers, [](const auto& worker) {
        plan::PerSide<std::set<unsigned>> numbers;
        for (const auto& queue : worker.senders) numbers[queue.side].insert(queue.number);
        return numbers[plan::Side::left] == numbers[plan::Side::right];
    });
}

void Tester::open_port(plan::Side side) {
    ports_[side] = make_port(std::array{side});
    make_responders(side);
}

void Tester::open_shared_port() {
    ports_[plan::Side::left] = ports_[plan::Side::right] = make_port(both_sides);
    for (const auto side : both_sides) make_responders(side);
}

std::shared_ptr<port::DpdkPort> Tester::make_port(std::span<const plan::Side> of) const {
    struct Filling {
        plan::IpVersion version = plan::IpVersion::v4;
        std::size_t octets = 0;
        std::size_t around = 0;
    };
    std::vector<Filling> fillings;  // by transmit queue; the longest of both sides
    const auto& p = request_.ports[of.front()];
    port::PortOptions options{.device = p.device,
                              .where = fmt::format("ports.{}.device", name_of(of.front())),
                              .receive_queues = receive_queues_[of.front()],
                              .transmit_queues = 0,
                              .receive_ring_frames = p.receive_ring_frames,
                              .transmit_ring_frames = p.transmit_ring_frames,
                              .link_timeout_s = p.link_timeout_s};
    for (const auto side : of) {
        const std::size_t around = this->around(side).octets();
        const auto& leaving = traffic(plan::direction_sent_by(side));
        const auto& coming = traffic(plan::direction_sent_by(plan::other_side(side)));
        const std::size_t octets = leaving.largest_sent() + around - frame::fcs_octets;
        const std::size_t coming_octets = coming.largest_arriving() + around - frame::fcs_octets;
        options.largest_transmit_octets = std::max(options.largest_transmit_octets, static_cast<unsigned>(octets));
        options.largest_receive_octets =
            std::max(options.largest_receive_octets, static_cast<unsigned>(std::max(octets, coming_octets)));
        options.tag_octets = std::max(options.tag_octets, static_cast<unsigned>(this->around(side).counted_octets()));
        const auto version = frame::pattern_of(leaving.kinds.front().sent.version, plans() > 1);
        for (unsigned stream = 0; stream < streams_[side]; ++stream) {
            const auto queue = of.size() == 1 ? stream : transmit_queue(side, stream);
            if (queue >= fillings.size()) fillings.resize(queue + 1);
            fillings[queue] = {
                .version = version, .octets = std::max(fillings[queue].octets, octets), .around = around};
        }
    }
    options.transmit_queues = static_cast<unsigned>(fillings.size());
    return std::make_shared<port::DpdkPort>(options, [=](std::span<std::byte> buffer, unsigned queue) {
        const auto& filling = fillings[queue];
        frame::write_pattern(filling.version, buffer.first(filling.octets).subspan(filling.around));
    });
}

/// Needs the addresses of this side only, whatever their IP version: the other side may have another one.
void Tester::make_responders(plan::Side side) {
    const auto& p = request_.ports[side];
    const auto link_mac = p.mac.value_or(ports_[side]->mac());
    const auto own_mac = p.inner_mac.value_or(link_mac);
    const auto& dut_mac = tunnel(side).has_ethernet() ? p.inner_dut_mac : p.dut_mac;
    if (tunnel(side).has_ends()) make_link_responder(side, link_mac);
    const auto host_macs = request_.host_macs == HostMacMode::pseudorandom
                               ? std::optional{plan::HostMacs{request_.seed, side}}
                               : std::nullopt;
    for (std::size_t number = 0; number < plans(); ++number) {
        const auto& s = plan(number).side(side);
        auto& responder = responders_[number][side];
        responder = s.gateway ? std::make_unique<neighbor::Responder>(own_mac, *s.gateway, s.dut_address)
                              : std::make_unique<neighbor::Responder>(own_mac, plan::HostSet{s.hosts}, host_macs,
                                                                      s.dut_address);
        if (dut_mac) responder->fix_dut_mac(*dut_mac);
    }
    if (plans() > 1) responders_[0][side]->set_other(*responders_[1][side]);
    sightings_[side] = std::make_unique<neighbor::Sightings>(link_mac, around(side));
    responders_[0][side]->set_sightings(*sightings_[side]);
}

void Tester::make_link_responder(plan::Side side, const plan::MacAddress& own_mac) {
    const auto& p = request_.ports[side];
    auto& responder = link_responders_[side];
    const auto& of_other = request_.ports[plan::other_side(side)].tunnel;
    if (is_on_one_link() && p.tunnel.local == of_other.local && p.tunnel.remote == of_other.remote)
        responder = link_responders_[plan::other_side(side)];  // the DUT answers both at once
    if (!responder || responder->own_mac() != own_mac)
        responder = std::make_shared<neighbor::Responder>(own_mac, p.tunnel.local, p.tunnel.remote);
    if (p.dut_mac) responder->fix_dut_mac(*p.dut_mac);
}

void Tester::check_tunnels() const {
    for (const auto side : both_sides) {
        if (tunnel(side).is_none()) continue;
        const auto where = fmt::format("ports.{}.tunnel", name_of(side));
        const auto& ends = request_.ports[side].tunnel;
        const auto other = plan::other_side(side);
        for (std::size_t p = 0; p < plans(); ++p) {
            frame::check_tunnel(ends, plan(p), side, where);
            if (is_on_one_link()) frame::check_tunnel(ends, plan(p), other, where);
        }
        if (is_on_one_link() && tunnel(side).takes_those_of(tunnel(other))) {
            throw Fault{FaultCode::bad_request, "both sides are on one link, and their frames arrive in one tunnel",
                        where, "Give each side a VNI, labels or ends of its own, or a VLAN."};
        }
    }
}

void Tester::pass_on_dut_macs() {
    for (const auto side : both_sides) {
        const auto& link = link_responders_[side];
        if (!link || tunnel(side).has_ethernet() || !link->dut_mac()) continue;
        for (std::size_t p = 0; p < plans(); ++p) responders_[p][side]->set_dut_mac(*link->dut_mac());
    }
}

std::uint64_t Tester::answers_sent(plan::Side side) const {
    std::uint64_t answers = link_responders_[side] ? link_responders_[side]->answers() : 0;
    for (std::size_t p = 0; p < plans(); ++p) answers += responder(side, p).answers();
    // Where both sides are on one port, it is not known whose answers were dropped.
    return answers - std::min(answers, port(side).dropped_answers());
}

std::uint64_t Tester::questions(plan::Side side) const {
    std::uint64_t questions = link_responders_[side] ? link_responders_[side]->questions() : 0;
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

std::optional<tally::LineOverload> Tester::overload(plan::Direction direction, double rate_fps) const {
    const auto from = plan::sending_side(direction);
    const auto to = plan::receiving_side(direction);
    return line_overload({line_rate_bps(from), line_rate_bps(to)},
                         traffic(direction).period_octets(around(from).octets(), around(to).octets()), rate_fps);
}

void Tester::check_rate(plan::Direction direction, double rate_fps, const frame::DirectionTraffic& traffic,
                        const char* where, bool may_overload) const {
    const auto from = plan::sending_side(direction);
    const auto to = plan::receiving_side(direction);
    const auto octets = traffic.period_octets(around(from).octets(), around(to).octets());
    const auto limit = rate_limit({line_rate_bps(from), line_rate_bps(to)}, octets, ticks_per_second(), may_overload);
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

void Tester::check_shared_line(const TrialRequest& request) const {
    const auto line_bps = line_rate_bps(plan::Side::left);
    if (!is_one_armed_ || !line_bps || request.directions.size() < 2) return;
    constexpr double overhead_octets = 20;  // as in rate_limit()
    constexpr double bits_per_octet = 8;
    double sent_bps = 0;
    double arriving_bps = 0;
    for (const auto direction : request.directions) {
        const auto octets = traffic(direction).period_octets(around(plan::sending_side(direction)).octets(),
                                                             around(plan::receiving_side(direction)).octets());
        const auto frames = static_cast<double>(octets.frames);
        const double fps = share(request, direction).part() * peak_fps(of_direction(request, direction));
        sent_bps += fps * bits_per_octet * (static_cast<double>(octets.sent) / frames + overhead_octets);
        arriving_bps += fps * bits_per_octet * (static_cast<double>(octets.arriving) / frames + overhead_octets);
    }
    const double needed_bps = std::max(sent_bps, arriving_bps);
    constexpr double rounding = 1 + 1e-9;
    if (needed_bps <= *line_bps * rounding) return;
    throw Fault{FaultCode::bad_rate,
                fmt::format("both directions together need {:.0f} bit/s of the one line of both sides, which carries "
                            "{:.0f}",
                            needed_bps, *line_bps),
                "rate_fps",
                fmt::format("Use at most {:.0f} fps.", std::floor(request.rate_fps * *line_bps / needed_bps))};
}

double Tester::part_of_port(const TrialRequest& request, plan::Direction direction) const {
    if (!is_one_armed_) return 1;
    double all_fps = 0;
    for (const auto each : request.directions) all_fps += peak_fps(of_direction(request, each));
    return peak_fps(of_direction(request, direction)) / all_fps;
}

void Tester::check_resolved(const char* where) const {
    if (const auto missing = unresolved()) {
        throw Fault{FaultCode::not_resolved,
                    fmt::format("the DUT's MAC on the {} side is not known", name_of(missing->side)), where,
                    "Send a resolve request first, or give dut_mac."};
    }
}

std::vector<Tester::Asked> Tester::asked() const {
    std::vector<Asked> all;
    for (const auto side : both_sides) {
        if (!link_responders_[side]) continue;
        all.push_back({.side = side,
                       .responder = link_responders_[side].get(),
                       .address = request_.ports[side].tunnel.remote,
                       .where = fmt::format("ports.{}.tunnel.remote", name_of(side)),
                       .plan = request_.plan.name});
    }
    for (std::size_t p = 0; p < plans(); ++p) {
        for (const auto side : both_sides) {
            if (tunnel(side).has_ends() && !tunnel(side).has_ethernet()) continue;
            all.push_back({.side = side,
                           .responder = responders_[p][side].get(),
                           .address = plan(p).side(side).dut_address,
                           .where = fmt::format("{}.{}.dut_address", p == 0 ? "plan" : "mix.other_plan", name_of(side)),
                           .plan = plan(p).name});
        }
    }
    return all;
}

std::optional<Tester::Asked> Tester::unresolved() const {
    for (auto& each : asked()) {
        if (!each.responder->dut_mac()) return each;
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
