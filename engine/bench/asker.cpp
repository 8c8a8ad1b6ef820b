// SPDX-License-Identifier: Apache-2.0
// Bench: a device whose neighbour entries have all become stale. It asks for one host after the other at an even rate,
// using the engine's own sender loop, and counts the answers. bench/neighbor_answers.py runs it beside a trial.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <string>

#include "fault.hpp"
#include "neighbor/messages.hpp"
#include "pace/clock.hpp"
#include "plan/host_set.hpp"
#include "port/dpdk_host.hpp"
#include "port/dpdk_port_inline.hpp"
#include "run/sender.hpp"

namespace {

using namespace evenhand;
using pace::Ticks;

constexpr plan::MacAddress own_mac{2, 0, 0, 0, 0xd0, 2};

plan::HostRange hosts_of(plan::IpVersion version) {
    if (version == plan::IpVersion::v4)
        return {.base = plan::parse_address("198.19.0.0").value(), .offset = 2, .host = {.first = 2, .count = 65533}};
    return {
        .base = plan::parse_address("2001:2:0:8000::2").value(), .offset = 12, .host = {.first = 0, .count = 65536}};
}

plan::IpAddress dut_of(plan::IpVersion version) {
    return plan::parse_address(version == plan::IpVersion::v4 ? "198.19.0.1" : "2001:2:0:8000::1").value();
}

/// Questions for host 0, 1, 2, ..., repeated from the beginning.
class QuestionSource {
   public:
    explicit QuestionSource(plan::IpVersion version)
        : hosts_{hosts_of(version)}, self_{.mac = own_mac, .ip = dut_of(version)}, version_{version} {}

    [[nodiscard]] std::size_t frame_octets(std::size_t /*ahead*/) const noexcept {
        return version_ == plan::IpVersion::v4 ? neighbor::arp_octets : neighbor::solicitation_octets;
    }

    void write_next(std::span<std::byte* const> frames, Ticks /*now*/) noexcept {
        for (std::byte* const frame : frames) {
            const auto target = hosts_.address(next_);
            const std::span room{frame, frame_octets(0)};
            (void)(version_ == plan::IpVersion::v4 ? neighbor::write_arp_request(room, self_, target)
                                                   : neighbor::write_neighbor_solicitation(room, self_, target));
            next_ = (next_ + 1) % hosts_.size();
        }
    }

   private:
    plan::HostSet hosts_;
    neighbor::Party self_;
    plan::IpVersion version_;
    std::uint32_t next_ = 0;
};

/// How many of the received frames are answers for one of the hosts.
std::uint64_t count_answers(port::DpdkPort& port, const plan::HostSet& hosts) {
    std::array<port::DpdkPort::Frame*, 64> frames;
    const unsigned n = port.receive(0, frames.data(), frames.size());
    std::uint64_t answers = 0;
    for (unsigned i = 0; i < n; ++i) {
        const auto party =
            neighbor::read_announcement({port::DpdkPort::octets(frames[i]), port::DpdkPort::length(frames[i])});
        answers += static_cast<std::uint64_t>(party && hosts.find(party->ip));
    }
    if (n != 0) port.release(frames.data(), n);
    return answers;
}

void ask(const std::string& device, unsigned cpu, plan::IpVersion version, double rate_fps, double seconds) {
    port::start_dpdk({.memory_mb = 256, .hugepages = false, .extra_eal_arguments = {}}, {});
    port::DpdkPort port{{.device = device, .where = "device", .link_timeout_s = 60},
                        [](std::span<std::byte>, unsigned) {}};
    port.wait_for_link();
    const port::WorkerThread here{cpu};
    const double ticks_per_second = pace::calibrate_ticks_per_second();
    const plan::HostSet hosts{hosts_of(version)};
    const Ticks start = pace::TickClock::now();
    const auto questions = static_cast<std::uint64_t>(rate_fps * seconds);
    const auto after = [&](double s) { return start + static_cast<Ticks>(s * ticks_per_second); };
    constexpr double for_last_answers_s = 0.5;
    run::Sender<port::DpdkPort, QuestionSource> sender{port,
                                                       0,
                                                       QuestionSource{version},
                                                       pace::EvenSchedule{start, ticks_per_second, rate_fps},
                                                       questions,
                                                       run::Punctuality{.overdue_after = after(1e-4) - start},
                                                       after(seconds)};
    std::uint64_t answers = 0;
    for (Ticks now = start; now < after(seconds + for_last_answers_s); now = pace::TickClock::now()) {
        sender.turn(now);
        answers += count_answers(port, hosts);
    }
    sender.give_back();
    fmt::print(R"({{"questions":{},"answers":{},"seconds":{},"refusals":{}}})"
               "\n",
               sender.tally().offered_frames, answers, seconds, sender.tally().refusals);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int wanted = 6;
    if (argc != wanted) {
        fmt::print(stderr, "usage: {} DEVICE CPU 4|6 QUESTIONS_PER_SECOND SECONDS\n", argv[0]);
        return 2;
    }
    try {
        ask(argv[1], static_cast<unsigned>(std::atoi(argv[2])),
            std::string{argv[3]} == "6" ? plan::IpVersion::v6 : plan::IpVersion::v4, std::atof(argv[4]),
            std::atof(argv[5]));
    } catch (const Fault& fault) {
        fmt::print(stderr, "{}: {}. {}\n", fault.where, fault.what_text, fault.next);
        return 3;
    }
    port::stop_dpdk();
    return 0;
}
