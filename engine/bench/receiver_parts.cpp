// SPDX-License-Identifier: Apache-2.0
// Bench: where the receiver loop spends its time on one CPU. Its parts alone and the whole are measured in turn, many
// times, on frames that are in memory as a driver hands them over. bench/receiver_rate.py runs it.
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "connections.hpp"
#include "flows.hpp"
#include "frame/connections.hpp"
#include "frame/mix_expectation.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "frame/template.hpp"
#include "frame/translation.hpp"
#include "gateway_plan.hpp"
#include "own_plan.hpp"
#include "pace/clock.hpp"
#include "parts.hpp"
#include "pool_port.hpp"
#include "run/receiver.hpp"

namespace {

using namespace evenhand;
using bench::NoAnswers;
using bench::Part;
using bench::PoolPort;
using pace::TickClock;
using pace::Ticks;
using plan::IpVersion;

/// What a responder does with the frames of connections, where the DUT keeps state.
enum class Use : std::uint8_t { none, learn, established };

struct Case {
    unsigned cpu = 0;
    std::size_t frame_size = 0;
    std::uint64_t rounds = 0;
    /// How many queues share the map of the direction. This one gets a random share of the frames, as with a port's
    /// hash.
    unsigned queues = 1;
    unsigned sent_together = 1;  // frames with the same time in their tags, as a sender's turn writes them
    /// How many a round has, each in a buffer of its own: how much memory they take determines which cache they come
    /// from. A round of 1,024 frames takes some 10 us, so that most rounds pass without another program on the CPU.
    unsigned frames = 0;
    Use use = Use::none;
    std::uint64_t connections = 0;  // of a DUT that keeps state
    bool has_delays = false;        // the delay of every frame is noted by itself, and its variation
    std::uint32_t prefixes = 0;     // of one's own; 0: none
    /// The mix, where frames are not all alike.
    enum class Mix : std::uint8_t { flows, sizes, versions } mix = Mix::flows;
};

[[nodiscard]] frame::MixedPlans mix_of(const Case& c, IpVersion version) {
    switch (c.mix) {
        case Case::Mix::sizes: return bench::sizes_of(c.frame_size);
        case Case::Mix::versions: return bench::both_versions(version, c.frame_size);
        default: return bench::flows_of(c.frame_size);
    }
}

/// What arrives of each class.
[[nodiscard]] frame::MixExpectation expectation_of(const frame::MixedPlans& mixed, const plan::AddressPlan& first,
                                                   const plan::MacAddress& own_mac) {
    std::vector<frame::MixExpectation::Class> classes;
    std::array<std::optional<frame::TestFrameExpectation>, 2> known;  // of each plan
    const auto pattern = frame::pattern_of(first.version(), mixed.mix.has_two_plans());
    for (const auto& c : mixed.mix.classes()) {
        const auto& plan = mixed.plan(first, c.plan);
        auto arrives = frame::traffic_of(plan, plan::Direction::forward, c.frame_size).arrives;
        arrives.first_of_pattern = frame::first_of_pattern(arrives.version, pattern);
        arrives.destination_ports = c.fields.narrow({arrives.source_ports, arrives.destination_ports}).destinations;
        classes.push_back({.frames = {arrives, own_mac, own_mac}});
        auto& same = known.at(c.plan);
        if (same)
            classes.back().frames.know_as(*same);
        else
            classes.back().frames.know({plan, plan::Direction::forward, bench::seed}, 1);
        if (!same) same.emplace(classes.back().frames);
    }
    return {mixed.mix, std::move(classes)};
}

template <class All>
void measure(Part& part, unsigned frames, All all) {
    const Ticks begin = TickClock::now();
    all();
    part.ticks_per_frame.push_back(static_cast<double>(TickClock::now() - begin) / frames);
}

/// Writes the frames of a round that come to this queue; frames of the other queues are written to a place that nobody
/// reads.
template <class Source>
void write_round(Source& source, std::span<PoolPort::Frame> frames, const Case& c, std::mt19937_64& random,
                 std::uint64_t& next, std::vector<std::uint64_t>& sequences) {
    static std::array<std::byte, frame::largest_frame_size> elsewhere{};
    std::vector<std::byte*> together;
    sequences.clear();
    for (std::size_t at = 0; at < frames.size();) {
        together.clear();
        while (together.size() < c.sent_together) {
            const bool is_ours = at < frames.size() && (c.queues == 1 || random() % c.queues == 0);
            if (is_ours) {
                frames[at].length = source.frame_octets(together.size());
                sequences.push_back(next);
            }
            together.push_back(is_ours ? frames[at++].octets.data() : elsewhere.data());
            ++next;
        }
        source.write_next(together, TickClock::now());
    }
}

/// `Frames`: what arrives is translated, or belongs to connections; else it is as it was sent.
template <IpVersion V, class Frames>
int measure_all(const Case& c) {
    constexpr bool is_translated = std::is_same_v<Frames, frame::TranslationExpectation>;
    constexpr bool has_state = std::is_same_v<Frames, frame::ConnectionExpectation>;
    constexpr bool is_mix = std::is_same_v<Frames, frame::MixExpectation>;
    const auto plan = is_translated ? bench::translated_plan(V)
                      : has_state   ? bench::plan_with_state(V)
                      : c.prefixes  ? bench::own_plan(V, c.prefixes)
                                    : bench::gateway_plan(V);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(c.cpu, &here);
    if (sched_setaffinity(0, sizeof here, &here) != 0) {
        fmt::print(stderr, "CPU {} cannot be used\n", c.cpu);
        return 3;
    }
    const double ticks_per_second = pace::calibrate_ticks_per_second();
    const plan::MacAddress own_mac{2, 0, 0, 0, 0, 2};
    const auto shape =
        frame::make_template(plan, c.frame_size, {.trial = bench::trial_number}, {2, 0, 0, 0, 0, 1}, own_mac);
    const plan::FlowDraw draw{plan, plan::Direction::forward, bench::seed};
    // As if the DUT translated each connection to its own addresses.
    const auto state =
        has_state ? bench::state_table(plan, c.connections, bench::seed, c.use == Use::established) : nullptr;
    const plan::ConnectionDraw of_connections{
        c.use == Use::established ? plan::ConnectionUse::drawn : plan::ConnectionUse::each_once,
        plan::Direction::forward, has_state ? c.connections : 1, bench::seed};
    const auto mixed = mix_of(c, V);
    auto source = [&] {
        if constexpr (has_state)
            return frame::ConnectionSource{
                shape,
                frame::ConnectionFlows{*state, of_connections, plan::Direction::forward, frame::LinkEnd::sent},
                {}};
        else if constexpr (is_mix)
            return frame::MixSource{
                frame::make_mix_parts(plan, mixed, bench::seed, {.trial = bench::trial_number}, {},
                                      {.source_mac = {2, 0, 0, 0, 0, 1}, .dut_macs = {own_mac, own_mac}, .hosts = {}})};
        else
            return frame::TestFrameSource{shape, draw, {}};
    }();

    PoolPort port{c.frames};
    std::vector<std::byte*> octets;
    const auto pattern = is_mix ? frame::pattern_of(V, mixed.mix.has_two_plans()) : V;
    const std::size_t most_octets = is_mix ? mixed.mix.largest_frame_size() - frame::fcs_octets : shape.octets;
    for (auto& frame : port.all()) {
        frame::write_pattern(pattern, {frame.octets.data(), most_octets});
        octets.push_back(frame.octets.data());
    }
    const std::uint64_t frames = (c.rounds + bench::rounds_before) * c.frames;
    const std::uint64_t most = 2 * frames * c.queues + c.sent_together;  // twice what one queue's share makes likely
    // Each of several queues has a part of its own, so this one works as if it were alone.
    const auto map = std::make_unique<tally::SequenceMap>(most, false);
    const auto map_alone = std::make_unique<tally::SequenceMap>(most, false);
    auto marks_alone = map_alone->part(0);
    const auto tally = std::make_unique<tally::ReceiverTally>();
    const auto tally_alone = std::make_unique<tally::ReceiverTally>();
    tally_alone->delay_by_slice.begin(most);
    tally::SliceDelays::Place place_alone{};
    NoAnswers responder;
    run::Receiver<PoolPort, NoAnswers> receiver{port, 0, responder};
    const Ticks start = TickClock::now();
    constexpr double an_hour_s = 3600;
    const auto hour = static_cast<Ticks>(an_hour_s * ticks_per_second);
    const auto arrives = frame::traffic_of(plan, plan::Direction::forward, c.frame_size).arrives;
    frame::TestFrameExpectation expected{arrives, own_mac, own_mac};
    if (!is_translated && !has_state) expected.know(draw, 1);
    const auto again = [&] {
        if constexpr (is_mix) {
            if (mixed.mix.has_flows()) tally->flows.resize(mixed.mix.classes().size());
            return expectation_of(mixed, plan, own_mac);
        } else if constexpr (has_state)
            return Frames{expected, arrives, *state, of_connections, plan::Direction::forward, c.use == Use::learn, 1};
        else
            return frame::TranslationExpectation{expected, arrives, draw, 1};
    };
    // The part and the whole have one each, since they keep the flows that they have drawn.
    const auto of_part = again();
    run::ExpectedFrames of_whole{expected};
    if constexpr (is_translated || has_state || is_mix) of_whole = again();
    const auto holds = [&](const PoolPort::Frame& one) {
        const std::byte* const at = one.octets.data();
        if constexpr (is_mix) {
            const auto look = frame::look_at(at, one.length);
            return of_part.holds(of_part.class_of(look.tag.sequence), at, look.version);
        }
        if constexpr (is_translated || has_state) return of_part.holds(0, at, V);
        return expected.holds(0, at, V);
    };
    tally::DelayTracks tracks{{.tag_every = 1000, .tagged = 1000, .has_variation = true}, false};
    const auto variation = std::make_unique<tally::VariationHistogram>();
    const auto spread = std::make_unique<tally::DelaySpread>();
    receiver.arm({.trial = bench::trial_number,
                  .frames = of_whole,
                  .start = start,
                  .residual_end = start + hour,
                  .ring_lasts = hour,
                  .burst_lasts = 1,
                  .delays = c.has_delays ? &tracks : nullptr,
                  .variation = variation.get(),
                  .spread = spread.get(),
                  .schedule = pace::EvenSchedule{start, ticks_per_second, 1e9},
                  .overdue_after = hour},
                 *map, *tally, start);

    enum Which : std::uint8_t { looking, checking, finding, marking, delaying, whole };
    std::array<Part, 6> parts{Part{"look"}, Part{"check"}, Part{"burst"}, Part{"map"}, Part{"delay"}, Part{"all"}};
    auto burst_checks = [&] {
        if constexpr (is_translated || has_state || is_mix) return of_part.burst_checks({.trial = bench::trial_number});
        return expected.burst_checks({.trial = bench::trial_number});
    }();
    frame::FoundBurst found;
    std::uint64_t held = 0;
    std::uint64_t beginnings = 0;  // of the frames that were sent together
    for (unsigned k = 0; k < run::receive_burst; k += c.sent_together) beginnings |= std::uint64_t{1} << k;
    std::uint64_t next = 0;
    std::vector<std::uint64_t> sequences;
    std::vector<std::uint16_t> lengths(c.frames);
    std::mt19937_64 random{bench::seed};
    TickClock clock;
    for (std::uint64_t round = 0; round < c.rounds + bench::rounds_before; ++round) {
        write_round(source, port.all(), c, random, next, sequences);
        std::ranges::transform(port.all(), lengths.begin(),
                               [](const PoolPort::Frame& one) { return static_cast<std::uint16_t>(one.length); });
        measure(parts[looking], c.frames, [&] {
            for (const auto& one : port.all()) held += frame::look_at(one.octets.data(), one.length).tag.sequence & 1U;
        });
        measure(parts[checking], c.frames, [&] {
            for (const auto& one : port.all()) held += static_cast<std::uint64_t>(holds(one));
        });
        measure(parts[finding], c.frames, [&] {
            for (std::size_t i = 0; burst_checks && i < octets.size(); i += run::receive_burst)
                burst_checks.find(&octets[i], run::receive_burst, found, &lengths[i]), held += found.known;
        });
        measure(parts[marking], c.frames, [&] {
            for (unsigned i = 0; i < c.frames; i += run::receive_burst)
                held += marks_alone.mark_rising(&sequences[i], run::receive_burst);
        });
        const Ticks now = TickClock::now() & 0xFFFFU;
        measure(parts[delaying], c.frames, [&] {
            for (unsigned i = 0; i < c.frames; i += run::receive_burst) {
                tally::DelayBurst delays{&tally_alone->delay_by_slice, &tally_alone->latency, place_alone};
                (void)delays.is_one_slice(sequences[i], sequences[i + run::receive_burst - 1]);
                delays.note_runs(tally::BurstRuns{beginnings, 0, run::receive_burst}, run::receive_burst,
                                 [&](unsigned k) { return now + Ticks{16} * (i + k); });
            }
        });
        port.rewind();
        measure(parts[whole], c.frames, [&] {
            while (receiver.turn<Frames>(TickClock::now(), clock) != 0) {}
        });
        if (round < bench::rounds_before) {
            for (auto& part : parts) part.ticks_per_frame.clear();
        }
    }
    bench::print(parts, ticks_per_second);
    if (c.has_delays && spread->count() == 0) {
        fmt::print(stderr, "no delay was noted: the bench is wrong\n");
        return 1;
    }
    if (tally->received_frames != frames || held == 0) {
        fmt::print(stderr, "{} of {} frames were counted: the bench is wrong\n", tally->received_frames, frames);
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int wanted = 8;
    constexpr int wanted_with_state = 10;
    if (argc != wanted && argc != wanted_with_state) {
        fmt::print(
            stderr,
            "usage: {0} CPU 4|6|6to4|4to6|(flows|sizes|versions|delays|prefix|table)(4|6) OCTETS ROUNDS QUEUES "
            "TOGETHER BURSTS\n"
            "       {0} CPU learn4|learn6|use4|use6 OCTETS ROUNDS QUEUES TOGETHER BURSTS CONNECTIONS huge|small\n",
            argv[0]);
        return 2;
    }
    using frame::ConnectionExpectation;
    using frame::TestFrameExpectation;
    using frame::TranslationExpectation;
    const std::string kind{argv[2]};
    const auto number = [&](int i) { return static_cast<unsigned>(std::max(0, std::atoi(argv[i]))); };
    Case wanted_case{.cpu = number(1),
                     .frame_size = number(3),
                     .rounds = number(4),
                     .queues = std::max(1U, number(5)),
                     .sent_together = std::max(1U, number(6)),
                     .frames = std::max(1U, number(7)) * run::receive_burst,
                     .has_delays = kind.starts_with("delays"),
                     .prefixes = kind.starts_with("prefix")  ? 1U
                                 : kind.starts_with("table") ? bench::prefixes_of_a_table
                                                             : 0U,
                     .mix = kind.starts_with("sizes")      ? Case::Mix::sizes
                            : kind.starts_with("versions") ? Case::Mix::versions
                                                           : Case::Mix::flows};
    if (argc == wanted_with_state) {
        wanted_case.use = kind.starts_with("learn") ? Use::learn : Use::established;
        wanted_case.connections = number(8);
        // For this process alone: madvise() then gets it no huge pages.
        if (std::string_view{argv[9]} == "small") ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        return kind.ends_with('6') ? measure_all<IpVersion::v6, ConnectionExpectation>(wanted_case)
                                   : measure_all<IpVersion::v4, ConnectionExpectation>(wanted_case);
    }
    const bool is_v6 = kind.ends_with('6');
    const bool is_mix = kind.starts_with("flows") || kind.starts_with("sizes") || kind.starts_with("versions");
    const auto measure = kind == "6to4"    ? measure_all<IpVersion::v4, TranslationExpectation>
                         : kind == "4to6"  ? measure_all<IpVersion::v6, TranslationExpectation>
                         : is_mix && is_v6 ? measure_all<IpVersion::v6, frame::MixExpectation>
                         : is_mix          ? measure_all<IpVersion::v4, frame::MixExpectation>
                         : is_v6           ? measure_all<IpVersion::v6, TestFrameExpectation>
                                           : measure_all<IpVersion::v4, TestFrameExpectation>;
    return measure(wanted_case);
}
