// SPDX-License-Identifier: Apache-2.0
// One opened tester: whether its ports still exist and their links are up, and the ICMP errors that a DUT sends about
// frames that it does not forward.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "fault.hpp"
#include "run/tester.hpp"

namespace evenhand::run {
namespace {

using plan::both_sides;

std::string place_of(plan::Side side) { return fmt::format("ports.{}.device", name_of(side)); }

}  // namespace

bool Tester::has_lost_a_port() const {
    return std::ranges::any_of(both_sides, [this](auto side) { return port(side).is_removed(); });
}

void Tester::check_ports() const {
    for (const auto side : both_sides) {
        if (port(side).is_taken_down()) port(side).check_link();
        if (!port(side).is_removed()) continue;
        const auto& device = port(side).device();
        throw Fault{FaultCode::no_device,
                    fmt::format("{} was removed from this machine after it had been opened: unplugged, deleted, or "
                                "asked back by the kernel",
                                device.substr(0, device.find(','))),
                    place_of(side),
                    "Put it back (a NIC has to be bound again), then start again. The kernel waits until this tester "
                    "has closed it."};
    }
}

void Tester::wait_for_links(const std::function<bool()>& goes_on) const {
    using namespace std::chrono_literals;
    const auto begin = std::chrono::steady_clock::now();
    for (const auto side : both_sides) {
        while (!port(side).is_link_up()) {
            check_ports();
            const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
            if (waited.count() > port(side).link_timeout_s()) port(side).check_link();
            if (!goes_on()) {
                throw Fault{FaultCode::stopped,
                            fmt::format("stopped before the link of the {} side was up", name_of(side)), place_of(side),
                            "Send it again."};
            }
            std::this_thread::sleep_for(20ms);
        }
    }
}

std::vector<plan::HostSet> Tester::all_hosts() const {
    std::vector<plan::HostSet> hosts;
    for (std::size_t p = 0; p < plans(); ++p) {
        for (const auto side : both_sides) hosts.emplace_back(plan(p).side(side).hosts);
    }
    return hosts;
}

void Tester::begin_icmp_errors(std::uint16_t wire_trial) noexcept {
    for (auto& side : icmp_errors_) {
        for (auto& errors : side) errors->begin(wire_trial);
    }
}

std::vector<tally::IcmpErrorCount> Tester::icmp_errors(plan::Side side) const {
    std::vector<tally::IcmpErrorCount> counts;
    for (const auto& errors : icmp_errors_[side]) errors->add_to(counts);
    return counts;
}

void Tester::begin_captures(std::size_t frames, std::size_t received) {
    for (auto& side : captures_) {
        for (auto& capture : side) capture->begin(frames, received);
    }
}

std::vector<tally::KeptFrame> Tester::end_captures(plan::Side side) {
    std::vector<tally::KeptFrame> found;
    for (auto& capture : captures_[side]) {
        capture->end();
        std::ranges::copy(capture->kept(), std::back_inserter(found));
    }
    return found;
}

}  // namespace evenhand::run
