// SPDX-License-Identifier: Apache-2.0
#include "contract/request.hpp"

#include <array>
#include <limits>

#include "contract/reader.hpp"
#include "frame/layout.hpp"
#include "frame/vlan.hpp"
#include "port/device_string.hpp"

namespace evenhand::contract {
namespace {

constexpr std::uint64_t any_whole = std::numeric_limits<std::uint64_t>::max();
constexpr double any_number = std::numeric_limits<double>::max();

constexpr std::array<std::pair<const char*, plan::Direction>, 2> directions{
    {{"forward", plan::Direction::forward}, {"reverse", plan::Direction::reverse}}};
constexpr std::array<std::pair<const char*, plan::Side>, 2> sides{
    {{"left", plan::Side::left}, {"right", plan::Side::right}}};
constexpr std::array<std::pair<const char*, plan::Mode>, 4> modes{{{"pseudorandom", plan::Mode::pseudorandom},
                                                                   {"fixed", plan::Mode::fixed},
                                                                   {"increment", plan::Mode::increment},
                                                                   {"decrement", plan::Mode::decrement}}};

constexpr std::array<std::pair<const char*, proof::Generator>, 3> generators{
    {{"philox", proof::Generator::philox},
     {"fifteen_bit", proof::Generator::fifteen_bit},
     {"modulo", proof::Generator::modulo}}};

constexpr std::uint64_t most_sessions = 65535;
constexpr std::uint64_t largest_cpu = 65535;

std::vector<std::uint64_t> read_wholes(ObjectReader& r, std::string_view key, std::uint64_t least, std::uint64_t most) {
    std::vector<std::uint64_t> found;
    const Json& list = r.array(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string place = fmt::format("{}[{}]", r.where(key), i);
        const Json holder{{place, list[i]}};
        found.push_back(ObjectReader{holder, ""}.whole(place, least, most));
    }
    return found;
}

std::size_t read_frame_size(ObjectReader& r) { return r.whole("frame_size", 64, frame::largest_frame_size); }

plan::Mode read_mode(ObjectReader& r) { return r.has("mode") ? r.choice("mode", modes) : plan::Mode::pseudorandom; }

plan::PlanSide read_plan_side(ObjectReader r) {
    plan::PlanSide side;
    if (r.has("gateway")) side.gateway = r.address("gateway");
    side.dut_address = r.address("dut_address");
    auto hosts = r.object("hosts");
    side.hosts.base = hosts.address("base");
    auto host = hosts.object("host");
    side.hosts.offset = static_cast<std::uint32_t>(host.whole("offset", 0, 14));
    side.hosts.host = {.first = static_cast<std::uint32_t>(host.whole("first", 0, 65535)),
                       .count = static_cast<std::uint32_t>(host.whole("count", 1, 65536)),
                       .mode = read_mode(host)};
    host.finish();
    if (hosts.has("network")) {
        auto network = hosts.object("network");
        side.hosts.network = {.offset = static_cast<std::uint32_t>(network.whole("offset", 0, 14)),
                              .count = static_cast<std::uint32_t>(network.whole("count", 1, plan::most_networks)),
                              .mode = read_mode(network)};
        network.finish();
    }
    hosts.finish();
    r.finish();
    return side;
}

plan::FieldRange read_udp_range(ObjectReader r) {
    const auto first = static_cast<std::uint32_t>(r.whole("first", 0, 65535));
    const auto last = static_cast<std::uint32_t>(r.whole("last", 0, 65535));
    if (last < first)
        r.refuse("last", fmt::format("UDP ports {}-{}: the last is below the first", first, last),
                 "Want first <= last.");
    const auto mode = r.has("mode") ? read_mode(r) : plan::Mode::pseudorandom;
    r.finish();
    return {.first = first, .count = last - first + 1, .mode = mode};
}

plan::AddressPlan read_plan(ObjectReader r) {
    plan::AddressPlan plan;
    plan.name = r.text("name");
    const auto version = r.whole("ip_version", 4, 6);
    if (version == 5) r.refuse("ip_version", "there is no IPv5 to test", "Use 4 or 6.");
    plan.version = version == 4 ? plan::IpVersion::v4 : plan::IpVersion::v6;
    plan.left = read_plan_side(r.object("left"));
    plan.right = read_plan_side(r.object("right"));
    auto udp = r.object("udp_ports");
    plan.source_ports = read_udp_range(udp.object("source"));
    plan.destination_ports = read_udp_range(udp.object("destination"));
    udp.finish();
    if (r.has("fixed_source")) plan.fixed_source = r.boolean("fixed_source");
    if (r.has("fixed_source_network")) plan.fixed_source_network = r.boolean("fixed_source_network");
    if (r.has("common_network")) plan.common_network = r.boolean("common_network");
    r.finish();
    plan::check_plan(plan);
    return plan;
}

/// None, one, or two: the outer one first.
std::vector<std::uint16_t> read_vlans(ObjectReader& r) {
    std::vector<std::uint16_t> vlans;
    if (!r.has("vlan")) return vlans;
    for (const auto vlan : read_wholes(r, "vlan", 1, frame::largest_vlan))
        vlans.push_back(static_cast<std::uint16_t>(vlan));
    if (vlans.empty() || vlans.size() > frame::most_vlan_tags) {
        r.refuse("vlan", fmt::format("{} VLAN tags", vlans.size()),
                 "Give one, or two: the outer (802.1ad) first; or leave it out.");
    }
    return vlans;
}

/// Of a request with this plan.
std::optional<frame::MixedPlans> read_mix(ObjectReader& r, const plan::AddressPlan& plan) {
    if (!r.has("mix")) return std::nullopt;
    auto mix = r.object("mix");
    std::optional<plan::AddressPlan> other_plan;
    if (mix.has("other_plan")) other_plan = read_plan(mix.object("other_plan"));
    std::vector<frame::FrameClass> classes;
    const Json& list = mix.array("classes");
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("{}[{}]", mix.where("classes"), i)};
        frame::FrameClass c{.plan = 0, .frame_size = read_frame_size(entry)};
        if (entry.has("plan")) c.plan = entry.whole("plan", 0, 1);
        entry.finish();
        classes.push_back(c);
    }
    std::vector<std::uint8_t> cycle;
    for (const auto number : read_wholes(mix, "cycle", 0, frame::FrameMix::most_classes - 1))
        cycle.push_back(static_cast<std::uint8_t>(number));
    mix.finish();
    frame::MixedPlans mixed{.mix = {std::move(classes), std::move(cycle)}, .other_plan = std::move(other_plan)};
    frame::check_mix(plan, mixed);
    return mixed;
}

run::PortRequest read_port(ObjectReader r) {
    run::PortRequest port;
    port.device = r.text("device");
    if (port.device.empty())
        r.refuse("device", "the device is empty",
                 "Name a DPDK device, such as net_memif0,role=client,id=0,socket=/run/x.sock.");
    if (const auto refusal = port::refuse_device(port.device)) r.refuse("device", refusal->what, refusal->next);
    if (r.has("mac")) port.mac = r.port_mac("mac");
    if (r.has("dut_mac")) port.dut_mac = r.port_mac("dut_mac");
    if (r.has("receive_ring_frames"))
        port.receive_ring_frames = static_cast<unsigned>(r.whole("receive_ring_frames", 64, 16384));
    if (r.has("transmit_ring_frames"))
        port.transmit_ring_frames = static_cast<unsigned>(r.whole("transmit_ring_frames", 64, 16384));
    port.vlans = read_vlans(r);
    if (r.has("line_rate_bps")) port.line_rate_bps = r.number("line_rate_bps", 0, any_number, true);
    constexpr double longest_link_timeout_s = 600;
    if (r.has("link_timeout_s")) port.link_timeout_s = r.number("link_timeout_s", 0, longest_link_timeout_s, true);
    r.finish();
    return port;
}

std::vector<run::WorkerRequest::Queue> read_queues(ObjectReader& r, std::string_view key, std::string_view number) {
    std::vector<run::WorkerRequest::Queue> queues;
    if (!r.has(key)) {
        return queues;
    }
    const Json& list = r.array(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("{}[{}]", r.where(key), i)};
        const auto side = entry.choice("side", sides);
        queues.push_back(
            {.side = side, .number = static_cast<unsigned>(entry.whole(number, 0, frame::most_streams - 1))});
        entry.finish();
    }
    return queues;
}

/// Those of a request with this plan; that of the port if it says nothing.
run::HostMacMode read_host_macs(ObjectReader& r, const plan::AddressPlan& plan) {
    if (!r.has("host_macs")) return run::HostMacMode::port;
    constexpr std::array<std::pair<const char*, run::HostMacMode>, 2> modes{
        {{"port", run::HostMacMode::port}, {"pseudorandom", run::HostMacMode::pseudorandom}}};
    const auto mode = r.choice("host_macs", modes);
    if (mode == run::HostMacMode::pseudorandom && (plan.left.gateway || plan.right.gateway)) {
        r.refuse("host_macs",
                 "\"pseudorandom\" with a gateway: hosts behind a gateway have no MAC on the link (R4814-06)",
                 "Use a direct form, or leave host_macs out.");
    }
    return mode;
}

run::DutOnHost read_dut(ObjectReader r) {
    run::DutOnHost dut;
    constexpr std::uint64_t most_ring_frames = 1U << 24U;
    constexpr std::uint64_t largest_thread_id = 1U << 22U;  // of Linux
    dut.ring_frames = static_cast<unsigned>(r.whole("ring_frames", 1, most_ring_frames));
    const Json& cpus = r.array("cpus");
    for (std::size_t i = 0; i < cpus.size(); ++i) {
        ObjectReader entry{cpus[i], fmt::format("{}[{}]", r.where("cpus"), i)};
        run::DutOnHost::Cpu cpu{.cpu = static_cast<unsigned>(entry.whole("cpu", 0, largest_cpu)), .threads = {}};
        if (entry.has("threads")) {
            for (const auto thread : read_wholes(entry, "threads", 1, largest_thread_id))
                cpu.threads.push_back(static_cast<int>(thread));
        }
        entry.finish();
        dut.cpus.push_back(std::move(cpu));
    }
    if (dut.cpus.empty())
        r.refuse("cpus", "there is no CPU", "Name the CPUs of this host that the DUT runs on, or leave dut out.");
    r.finish();
    return dut;
}

run::OpenRequest read_open(ObjectReader& r) {
    run::OpenRequest open;
    if (r.has("host")) {
        auto host = r.object("host");
        if (host.has("memory_mb")) open.host.memory_mb = static_cast<unsigned>(host.whole("memory_mb", 64, 1U << 20U));
        if (host.has("hugepages")) open.host.hugepages = host.boolean("hugepages");
        if (host.has("extra_eal_arguments")) {
            for (const auto& argument : host.array("extra_eal_arguments")) {
                if (!argument.is_string())
                    host.refuse("extra_eal_arguments", "an argument is not a text", "Give a list of texts.");
                open.host.extra_eal_arguments.push_back(argument.get<std::string>());
            }
            if (const auto refusal = port::refuse_eal_arguments(open.host.extra_eal_arguments))
                host.refuse("extra_eal_arguments", refusal->what, refusal->next);
        }
        host.finish();
    }
    auto ports = r.object("ports");
    open.ports = {read_port(ports.object("left")), read_port(ports.object("right"))};
    ports.finish();
    const Json& workers = r.array("workers");
    for (std::size_t i = 0; i < workers.size(); ++i) {
        ObjectReader worker{workers[i], fmt::format("{}[{}]", r.where("workers"), i)};
        run::WorkerRequest w{
            .cpu = static_cast<unsigned>(worker.whole("cpu", 0, largest_cpu)), .senders = {}, .receivers = {}};
        w.senders = read_queues(worker, "senders", "stream");
        w.receivers = read_queues(worker, "receivers", "queue");
        worker.finish();
        open.workers.push_back(std::move(w));
    }
    if (open.workers.empty())
        r.refuse("workers", "there is no worker",
                 "Give at least one, such as {\"cpu\":1,\"senders\":[...],\"receivers\":[...]}.");
    open.plan = read_plan(r.object("plan"));
    open.frame_size = read_frame_size(r);
    open.mix = read_mix(r, open.plan);
    open.seed = r.whole("seed", 0, any_whole);
    open.host_macs = read_host_macs(r, open.plan);
    if (r.has("session")) open.session = static_cast<std::uint16_t>(r.whole("session", 0, most_sessions - 1));
    if (r.has("dut")) open.dut = read_dut(r.object("dut"));
    return open;
}

std::vector<plan::Direction> read_directions(ObjectReader& r) {
    std::vector<plan::Direction> found;
    const Json& list = r.array("directions");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string key = fmt::format("directions[{}]", i);
        const Json holder{{key, list[i]}};
        ObjectReader reader{holder, ""};
        const auto direction = reader.choice(key, directions);
        for (const auto other : found) {
            if (other == direction) r.refuse("directions", "a direction stands twice", "Name each once.");
        }
        found.push_back(direction);
    }
    if (found.empty()) r.refuse("directions", "there is no direction", "Use forward, reverse or both.");
    return found;
}

run::LearnRequest read_learn(ObjectReader& r) {
    run::LearnRequest learn;
    constexpr std::uint64_t most_rounds = 1000;
    constexpr double longest_wait_s = 3600;
    if (r.has("rate_fps")) learn.rate_fps = r.number("rate_fps", 0, any_number, true);
    if (r.has("rounds")) learn.rounds = static_cast<unsigned>(r.whole("rounds", 1, most_rounds));
    if (r.has("wait_s")) learn.wait_s = r.number("wait_s", 0, longest_wait_s);
    if (r.has("directions")) learn.directions = read_directions(r);
    return learn;
}

run::WatchRequest read_watch(ObjectReader& r) {
    run::WatchRequest watch;
    constexpr double longest_s = 3600;
    if (r.has("seconds")) watch.seconds = r.number("seconds", 0, longest_s, true);
    for (const auto cpu : read_wholes(r, "cpus", 0, largest_cpu)) watch.cpus.push_back(static_cast<unsigned>(cpu));
    if (watch.cpus.empty()) r.refuse("cpus", "there is no CPU", "Name at least one.");
    return watch;
}

tally::Burst read_burst(ObjectReader r, double rate_fps) {
    constexpr std::uint64_t most_frames = std::uint64_t{1} << 35U;
    constexpr double longest_s = 86400;
    constexpr double rounding = 1e-9;
    const tally::Burst burst{.frames = r.whole("frames", 1, most_frames),
                             .interval_s = r.number("interval_s", 0, longest_s, true),
                             .rate_fps = rate_fps};
    const double lasts_s = static_cast<double>(burst.frames) / rate_fps;
    if (burst.interval_s < lasts_s * (1 - rounding)) {
        r.refuse("interval_s",
                 fmt::format("a burst every {} s, but {} frames at {} fps last {} s", burst.interval_s, burst.frames,
                             rate_fps, lasts_s),
                 "Lengthen the interval, or shorten the burst.");
    }
    r.finish();
    return burst;
}

run::TrialRequest read_trial(ObjectReader& r) {
    run::TrialRequest trial;
    constexpr double longest_s = 86400;
    constexpr double longest_wait_s = 3600;
    constexpr double longest_overdue_us = 1e12;
    trial.trial = static_cast<std::uint16_t>(r.whole("trial", 1, 65535));
    trial.rate_fps = r.number("rate_fps", 0, any_number, true);
    trial.duration_s = r.number("duration_s", 0, longest_s, true);
    if (r.has("burst")) trial.burst = read_burst(r.object("burst"), trial.rate_fps);
    if (r.has("then")) {
        if (trial.burst) r.refuse("then", "bursts and a second load in one trial", "Ask for one of them.");
        auto then = r.object("then");
        trial.then = tally::LoadChange{.rate_fps = then.number("rate_fps", 0, any_number, true),
                                       .duration_s = then.number("duration_s", 0, longest_s, true),
                                       .before_fps = trial.rate_fps};
        then.finish();
    }
    if (r.has("directions")) trial.directions = read_directions(r);
    if (r.has("waits")) {
        auto waits = r.object("waits");
        const auto wait = [&](const char* key, double& value) {
            if (waits.has(key)) value = waits.number(key, 0, longest_wait_s);
        };
        wait("after_routing_s", trial.waits.after_routing_s);
        wait("after_learning_s", trial.waits.after_learning_s);
        wait("residual_s", trial.waits.residual_s);
        wait("restabilize_s", trial.waits.restabilize_s);
        waits.finish();
    }
    if (r.has("limits")) {
        auto limits = r.object("limits");
        if (limits.has("loss_ratio")) trial.limits.loss_ratio = limits.number("loss_ratio", 0, 0.999999);
        if (limits.has("offered_tolerance"))
            trial.limits.offered_tolerance = limits.number("offered_tolerance", 0, 0.1, true);
        trial.has_overdue_after = limits.has("overdue_after_us");
        if (trial.has_overdue_after)
            trial.limits.overdue_after_us = limits.number("overdue_after_us", 0, longest_overdue_us, true);
        if (limits.has("overdue_tolerance"))
            trial.limits.overdue_tolerance = limits.number("overdue_tolerance", 0, 1, true);
        if (limits.has("longest_overdue_us"))
            trial.limits.longest_overdue_us = limits.number("longest_overdue_us", 0, longest_overdue_us, true);
        if (limits.has("clock_ppm")) trial.limits.clock_ppm = limits.number("clock_ppm", 0, any_number, true);
        if (limits.has("duplicate_tolerance"))
            trial.limits.duplicate_tolerance = limits.number("duplicate_tolerance", 0, any_number);
        limits.finish();
    }
    if (r.has("stop_when_failed")) trial.stops_when_failed = r.boolean("stop_when_failed");
    if (trial.stops_when_failed && (trial.burst || trial.then))
        r.refuse("stop_when_failed", "bursts, or a second load, in a trial that may stop early",
                 "Want one or the other.");
    if (r.has("delays")) {
        constexpr std::uint64_t most_tagged = 1'000'000;
        auto delays = r.object("delays");
        trial.delays.emplace();
        if (delays.has("from_s")) trial.delays->from_s = delays.number("from_s", 0, longest_s);
        if (delays.has("tagged_frames")) trial.delays->tagged_frames = delays.whole("tagged_frames", 0, most_tagged);
        if (delays.has("variation")) trial.delays->has_variation = delays.boolean("variation");
        delays.finish();
    }
    return trial;
}

FramesRequest read_frames(ObjectReader& r) {
    FramesRequest frames;
    constexpr std::uint64_t most_frames = 1'000'000;
    frames.plan = read_plan(r.object("plan"));
    frames.frame_size = read_frame_size(r);
    frames.vlans = read_vlans(r);
    frames.mix = read_mix(r, frames.plan);
    frames.seed = r.whole("seed", 0, any_whole);
    frames.direction = r.choice("direction", directions);
    frames.count = r.whole("count", 1, most_frames);
    if (r.has("first")) frames.first = r.whole("first", 0, frame::sequence_mask - most_frames);
    if (r.has("trial")) frames.trial = static_cast<std::uint16_t>(r.whole("trial", 0, 65535));
    if (r.has("streams")) frames.streams = static_cast<unsigned>(r.whole("streams", 1, frame::most_streams));
    frames.host_macs = read_host_macs(r, frames.plan);
    if (r.has("source_mac")) frames.source_mac = r.mac("source_mac");
    if (r.has("destination_mac")) frames.destination_mac = r.mac("destination_mac");
    return frames;
}

proof::ProofRequest read_prove(ObjectReader& r) {
    proof::ProofRequest request;
    request.plan = read_plan(r.object("plan"));
    request.seed = r.whole("seed", 0, any_whole);
    request.direction = r.choice("direction", directions);
    request.frames = r.whole("frames", 1, proof::most_frames);
    if (r.has("first"))
        request.first = r.whole("first", 0, frame::sequence_mask - proof::most_frames * frame::most_streams);
    if (r.has("streams")) request.streams = static_cast<unsigned>(r.whole("streams", 1, frame::most_streams));
    if (r.has("stream")) request.stream = static_cast<unsigned>(r.whole("stream", 0, request.streams - 1));
    if (r.has("generator")) request.generator = r.choice("generator", generators);
    return request;
}

Json read_line(std::string_view line) {
    return read_document(line, {.name = "the line",
                                .most_octets = longest_line,
                                .next = "Send one JSON object a line, as contract/request.schema.json has it."});
}

}  // namespace

std::optional<std::int64_t> read_id(std::string_view line) {
    try {
        const Json json = read_line(line);
        if (!json.contains("id") || !json["id"].is_number_integer()) return std::nullopt;
        const Json& id = json["id"];
        if (id.is_number_unsigned() &&
            id.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return std::nullopt;
        return id.get<std::int64_t>();
    } catch (const Fault&) {
        return std::nullopt;
    }
}

Request read_request(std::string_view line) {
    const Json json = read_line(line);
    ObjectReader r{json, ""};
    Request request;
    request.id = static_cast<std::int64_t>(
        r.whole("id", 0, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
    using Read = AnyRequest (*)(ObjectReader&);
    static constexpr std::array<std::pair<const char*, Read>, 11> kinds{{
        {"about", [](ObjectReader&) -> AnyRequest { return AboutRequest{}; }},
        {"stop", [](ObjectReader&) -> AnyRequest { return StopRequest{}; }},
        {"counters", [](ObjectReader&) -> AnyRequest { return CountersRequest{}; }},
        {"close", [](ObjectReader&) -> AnyRequest { return CloseRequest{}; }},
        {"resolve",
         [](ObjectReader& reader) -> AnyRequest {
             ResolveRequest resolve;
             if (reader.has("timeout_s")) resolve.timeout_s = reader.number("timeout_s", 0, 3600, true);
             return resolve;
         }},
        {"frames", [](ObjectReader& reader) -> AnyRequest { return read_frames(reader); }},
        {"prove", [](ObjectReader& reader) -> AnyRequest { return read_prove(reader); }},
        {"open", [](ObjectReader& reader) -> AnyRequest { return read_open(reader); }},
        {"trial", [](ObjectReader& reader) -> AnyRequest { return read_trial(reader); }},
        {"learn", [](ObjectReader& reader) -> AnyRequest { return read_learn(reader); }},
        {"watch", [](ObjectReader& reader) -> AnyRequest { return read_watch(reader); }},
    }};
    const Read read = r.choice("request", kinds);
    request.body = read(r);
    r.finish();
    return request;
}

}  // namespace evenhand::contract
