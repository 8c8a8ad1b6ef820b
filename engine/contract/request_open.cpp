// SPDX-License-Identifier: Apache-2.0
// Contract: the request that opens a tester.
#include "contract/request_parts.hpp"
#include "frame/layout.hpp"
#include "port/device_string.hpp"

namespace evenhand::contract {
namespace {

constexpr std::uint64_t most_sessions = 65535;

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
    if (r.has("tunnel")) {
        auto tunnel = read_tunnel(r.object("tunnel"));
        port.tunnel = std::move(tunnel.ends);
        port.inner_mac = tunnel.mac;
        port.inner_dut_mac = tunnel.dut_mac;
    }
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

run::DutOnHost read_dut(ObjectReader r) {
    run::DutOnHost dut;
    constexpr std::uint64_t most_ring_frames = 1U << 24U;
    constexpr std::uint64_t largest_thread_id = 1U << 22U;  // Linux's largest
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
        r.refuse("cpus", "there is no CPU", "Name the CPUs of this machine that the DUT runs on, or leave dut out.");
    r.finish();
    return dut;
}

}  // namespace

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
    open.reverse_mix = read_reverse_mix(r, open.plan, open.mix);
    open.seed = r.whole("seed", 0, any_whole);
    open.host_macs = read_host_macs(r, open.plan);
    if (r.has("session")) open.session = static_cast<std::uint16_t>(r.whole("session", 0, most_sessions - 1));
    if (r.has("dut")) open.dut = read_dut(r.object("dut"));
    return open;
}

}  // namespace evenhand::contract
