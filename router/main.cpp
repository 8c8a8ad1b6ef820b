// SPDX-License-Identifier: Apache-2.0
// evenhand-router: a real IPv4/IPv6 forwarder whose elements, hash and limits are set by hand, so that the truth about
// it is known.
//
// The way of a frame: run/router.cpp -> forward/forwarder.hpp -> elements/ -> forward/departures.hpp -> port.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>

#include "build_facts.hpp"
#include "config/config.hpp"
#include "config/delays.hpp"
#include "contract/limits.hpp"
#include "fault.hpp"
#include "port/dpdk_host.hpp"
#include "run/router.hpp"
#include "session/line_channel.hpp"
#include "units.hpp"

namespace {

using namespace evenhand;

constexpr int bad_request = 2;
constexpr int host_not_ready = 3;
constexpr int bug = 4;

constexpr const char* usage =
    "evenhand-router: the reference router. It forwards between DPDK ports as its configuration says, until stdin "
    "ends or a signal comes.\n"
    "People use `evenhand router`, which writes the configuration and starts it.\n"
    "\n"
    "  evenhand-router CONFIG.json   see contract/router-config.schema.json\n"
    "\n"
    "stdout: {\"event\":\"ready\",...}, then an answer for each line of stdin ({\"request\":\"counters\"}, "
    "{\"request\":\"flush\"},\n"
    "{\"request\":\"stop\"}), at the end {\"event\":\"stopped\",...} with the last counters.\n";

int exit_code(FaultCode code) {
    const auto kind = kind_of(code);
    return kind == "bad_request" ? bad_request : kind == "host_not_ready" ? host_not_ready : bug;
}

std::string read_file(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file)
        throw Fault{FaultCode::bad_request, fmt::format("{} cannot be read", path), "CONFIG.json", "Check the path."};
    std::string text;
    std::array<char, 65536> chunk;
    // One octet more than is allowed is enough to refuse it, also if it never ends.
    while (text.size() <= contract::longest_configuration && file.read(chunk.data(), chunk.size()).gcount() > 0)
        text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    return text;
}

void write_fault(session::LineChannel& channel, const Fault& fault) {
    channel.write_line(
        router::fault_line(to_string(fault.code), kind_of(fault.code), fault.what_text, fault.where, fault.next));
    std::fprintf(stderr, "evenhand-router: %s%s%s. %s\n", fault.where.c_str(), fault.where.empty() ? "" : ": ",
                 fault.what_text.c_str(), fault.next.c_str());
}

/// Requests until there are no more.
void serve(session::LineChannel& channel, router::Router& router) {
    while (!channel.is_ended()) {
        constexpr int forever = -1;
        const auto line = channel.read_line(forever);
        if (!line || line->empty()) continue;
        try {
            switch (router::read_router_request(*line)) {
                case router::RouterRequest::counters:
                    channel.write_line(
                        router::counters_line("counters", router.counters(), router.macs().size(), router.context()));
                    break;
                case router::RouterRequest::flush: channel.write_line(router::flushed_line(router.flush())); break;
                case router::RouterRequest::stop: return;
            }
        } catch (const Fault& fault) {
            write_fault(channel, fault);
        }
    }
}

/// Loud, because a number measured on a router that was away says something about this machine as well.
void tell_time_kept(const router::RouterConfig& config, const router::RouterCounters& counters,
                    const router::CountersContext& context) {
    const auto& model = counters.forward.model;
    const double to_us = us_per_second / context.ticks_per_second;
    if (model.overflow_frames != 0) {
        const bool is_stated = config.delayed_load_fps.has_value();
        fmt::print(
            stderr,
            "evenhand-router: WARNING: {} frames were lost because the router had no room for them to wait in: "
            "more came than {}. {}\n",
            model.overflow_frames,
            is_stated || !config.model ? fmt::format("the {:.0f} fps per direction that its delay has room for",
                                                     config.delayed_load_fps.value_or(router::usual_delayed_load_fps))
                                       : "its elements serve",
            is_stated || !config.model ? "State a higher load: delayed_load_fps, or evenhand router --delayed-load."
                                       : "This is a bug.");
    }
    if (model.overdue_frames != 0) {
        fmt::print(stderr,
                   "evenhand-router: WARNING: could not keep its model's time: {} of {} frames left more than {} us "
                   "after their time, the worst {:.0f} us late; "
                   "the longest time away from the ports was {:.0f} us. Latencies of this run are this "
                   "machine's too.\n",
                   model.overdue_frames, model.departed_frames, context.overdue_after_us,
                   static_cast<double>(model.longest_overdue) * to_us, static_cast<double>(model.longest_gap) * to_us);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 || std::string_view{argv[1]}.starts_with('-')) {
        std::fputs(usage, stderr);
        return bad_request;
    }
    (void)port::allowed_cpus();  // read before DPDK moves this thread
    session::end_by_signals();
    session::LineChannel channel{STDIN_FILENO, session::take_stdout(), nullptr};
    try {
        const router::RouterConfig config = router::read_config(read_file(argv[1]));
        {
            router::Router router{config};
            channel.write_line(router::ready_line(config, router.macs(), router.thread_id(), build_facts::version,
                                                  port::dpdk_version()));
            serve(channel, router);
            const auto counters = router.counters();
            channel.write_line(router::counters_line("stopped", counters, router.macs().size(), router.context()));
            tell_time_kept(config, counters, router.context());
        }
        port::stop_dpdk();
        return 0;
    } catch (const Fault& fault) {
        write_fault(channel, fault);
        return exit_code(fault.code);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "evenhand-router: %s\n", error.what());
        return bug;
    }
}
