// SPDX-License-Identifier: Apache-2.0
// Station 6: R2544-39, D5. Counters of ports that wrap, jump, stand still, or count the same frame twice.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "port/extended_counters.hpp"
#include "results.hpp"
#include "tally/port_change.hpp"
#include "tally/verdict.hpp"

namespace lying_counters_test {

using namespace evenhand;
using plan::Direction;
using tally::PortCounters;
using tally::TrialResult;
using tally::Verdict;
using tests::Codes;
using tests::codes_of;

namespace {

constexpr std::uint64_t frames = 1'000'000;
constexpr std::uint64_t ones_64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t ones_32 = std::numeric_limits<std::uint32_t>::max();

/// -n, as a driver writes it that subtracts more than it has counted.
constexpr std::uint64_t negative(std::uint64_t n) { return std::uint64_t{0} - n; }

/// A trial seen from one of its directions; the case is the same in the other.
struct Seen {
    TrialResult& trial;
    Direction direction;

    tally::DirectionResult& frames() const { return trial.directions[static_cast<std::size_t>(direction)]; }
    auto& sender() const { return trial.ports[plan::sending_side(direction)]; }
    auto& receiver() const { return trial.ports[plan::receiving_side(direction)]; }
    PortCounters& before() const { return receiver().before; }
    PortCounters& after() const { return receiver().after; }

    void lose(std::uint64_t lost) const {
        frames().received_frames = frames().offered_frames - lost;
        after().received_frames -= lost;
        if (after().seen_frames) *after().seen_frames -= lost;
    }
    /// Lost between the port, which counted these frames, and the receivers, which did not see them.
    void lose_inside(std::uint64_t lost) const {
        lose(lost);
        after().received_frames += lost;
    }
    /// Both readings of this port's counter are so much higher.
    void shift(std::uint64_t PortCounters::* counter, std::uint64_t by) const {
        before().*counter += by;
        after().*counter += by;
    }
    void hide(const char* name, std::uint64_t was, std::uint64_t is) const {
        before().hidden_drops.push_back({.name = name, .frames = was});
        after().hidden_drops.push_back({.name = name, .frames = is});
    }
};

/// Ports whose count is exact, and that did not begin at 0.
TrialResult clean() {
    auto r = tests::lossless(frames);
    for (auto& port : r.ports) {
        port.before = {.received_frames = 7, .transmitted_frames = 9, .seen_frames = 5};
        port.after = {.received_frames = 7 + frames, .transmitted_frames = 9 + frames, .seen_frames = 5 + frames};
    }
    return r;
}

struct Case {
    const char* name;
    std::function<void(const Seen&)> change;
    Verdict verdict;
    Codes codes;
};

const Codes counters{"counters"};
const Codes dut{"loss"};
const Codes missed{"receive_missed", "loss"};
const Codes unseen{"receive_unseen", "loss"};

// A table, a trial a line.
// clang-format off
const std::vector<Case> cases{
    {"honest", [](auto&) {}, Verdict::pass, {}},
    {"an honest loss", [](auto& s) { s.lose(3); }, Verdict::fail, dut},
    // sizes of lies
    {"one frame that no receiver saw", [](auto& s) { s.lose_inside(1); }, Verdict::invalid, unseen},
    {"all frames that no receiver saw", [](auto& s) { s.lose_inside(frames); }, Verdict::invalid, unseen},
    {"half are lost inside and one by the DUT",
     [](auto& s) { s.lose(frames / 2 + 1); s.after().received_frames += frames / 2; }, Verdict::fail, dut},
    {"a port that counts more than 2^32 frames of which one is not seen",
     [](auto& s) { s.after().received_frames += 5'000'000'000; *s.after().seen_frames += 5'000'000'000;
                   s.lose_inside(1); }, Verdict::invalid, unseen},
    // wraps
    {"received wraps at 2^32", [](auto& s) { s.before().received_frames = ones_32 - 10; s.after().received_frames =
                               frames - 11; s.lose(3); }, Verdict::invalid, counters},
    {"transmitted wraps at 2^32", [](auto& s) { s.sender().before.transmitted_frames = ones_32 - 10;
                                  s.sender().after.transmitted_frames = frames - 11; }, Verdict::invalid, counters},
    {"missed wraps at 2^32", [](auto& s) { s.before().missed_frames = ones_32 - 2; s.after().missed_frames = 1;
                             s.lose(3); }, Verdict::invalid, counters},
    {"received errors wrap", [](auto& s) { s.before().receive_errors = ones_32 - 2; s.after().receive_errors = 1;
                             s.lose(3); }, Verdict::invalid, counters},
    {"no buffers wrap", [](auto& s) { s.before().no_buffer_frames = ones_64 - 2; s.after().no_buffer_frames = 1;
                        s.lose(3); }, Verdict::invalid, counters},
    {"a counter of 64 bits passes 2^32", [](auto& s) { s.shift(&PortCounters::received_frames, ones_32 - 100);
                                         s.lose_inside(3); }, Verdict::invalid, unseen},
    {"an extended statistic wraps", [](auto& s) { s.hide("rx_out_of_buffer", ones_32 - 2, 1); s.lose(4); },
     Verdict::fail, dut},
    // all ones
    {"all ones before", [](auto& s) { s.before().missed_frames = ones_64; }, Verdict::invalid, counters},
    {"all ones of 32 bits before, and a larger number behind",
     [](auto& s) { s.before().missed_frames = ones_32; s.after().missed_frames = ones_32 + 4; s.lose(4); },
     Verdict::invalid, counters},
    {"all ones behind", [](auto& s) { s.after().no_buffer_frames = ones_64; s.lose(4); }, Verdict::invalid, counters},
    {"all ones twice", [](auto& s) { s.before().receive_errors = s.after().receive_errors = ones_64; },
     Verdict::invalid, counters},
    {"all ones in what was sent", [](auto& s) { s.sender().after.transmitted_frames = ones_64; }, Verdict::invalid,
     counters},
    {"all ones in what came, all seen", [](auto& s) { s.after().received_frames = ones_32; }, Verdict::invalid,
     counters},
    {"an extended statistic is all ones before", [](auto& s) { s.hide("rx_discards_phy", ones_64, 4); s.lose(4); },
     Verdict::fail, dut},
    {"an extended statistic is all ones behind", [](auto& s) { s.hide("rx_discards_phy", 4, ones_64); s.lose(4); },
     Verdict::fail, dut},
    {"one extended statistic is all ones, another tells",
     [](auto& s) { s.hide("rx_discards_phy", 0, ones_32); s.hide("rx_missed_errors", 1, 5); s.lose(4); },
     Verdict::invalid, missed},
    {"PAUSE is all ones behind", [](auto& s) { s.after().pause_frames = ones_64; s.lose(4); }, Verdict::fail, dut},
    // backwards and forwards again
    {"reset, and past the first reading again",
     [](auto& s) { s.before().received_frames = 40; s.after().received_frames = 40 + frames; s.lose(3); },
     Verdict::fail, dut},
    {"reset to zero", [](auto& s) { s.lose(4); s.after().received_frames = 0; }, Verdict::invalid, counters},
    {"one back", [](auto& s) { s.before().missed_frames = 5; s.after().missed_frames = 4; }, Verdict::invalid,
     counters},
    // stands still
    {"received stays at zero", [](auto& s) { s.before().received_frames = s.after().received_frames = 0; },
     Verdict::pass, {}},
    {"received stays at zero, and the DUT loses",
     [](auto& s) { s.lose(4); s.before().received_frames = s.after().received_frames = 0; }, Verdict::fail, dut},
    {"transmitted stays at zero",
     [](auto& s) { s.sender().before.transmitted_frames = s.sender().after.transmitted_frames = 0; },
     Verdict::invalid, {"transmit_not_drained"}},
    {"all stand still at a number", [](auto& s) { s.lose(4); s.after().received_frames = s.before().received_frames; },
     Verdict::fail, dut},
    // other frames
    {"ARP and ND that receivers saw too",
     [](auto& s) { s.after().received_frames += 90; *s.after().seen_frames += 90; s.lose(4); }, Verdict::fail, dut},
    {"LLDP that the NIC keeps to itself explains as many lost frames",
     [](auto& s) { s.lose(3); s.after().received_frames += 3; }, Verdict::invalid, unseen},
    {"LLDP that the NIC keeps to itself explains no more", [](auto& s) { s.lose(400); s.after().received_frames += 3; },
     Verdict::fail, dut},
    {"LLDP that the NIC keeps to itself, and nothing is lost", [](auto& s) { s.after().received_frames += 3; },
     Verdict::pass, {}},
    {"receivers saw more than the port counted, in part", [](auto& s) { s.lose(4); s.after().received_frames -= 50; },
     Verdict::fail, dut},
    // two names of one drop
    {"two extended statistics of the same drop",
     [](auto& s) { s.hide("rx_discards_phy", 0, 4); s.hide("rx_out_of_buffer", 9, 13); s.lose(8); },
     Verdict::fail, dut},
    {"two extended statistics of the same drop explain it once",
     [](auto& s) { s.hide("rx_discards_phy", 0, 4); s.hide("rx_out_of_buffer", 9, 13); s.lose(4); }, Verdict::invalid,
     missed},
    {"four names of the same drop",
     [](auto& s) { s.hide("rx_discards_phy", 0, 4); s.hide("rx_missed_errors", 0, 4); s.after().missed_frames = 4;
                   s.after().no_buffer_frames = 4; s.lose(5); }, Verdict::fail, dut},
    {"statistics that changed places say nothing",
     [](auto& s) { s.hide("rx_discards_phy", 0, 4); s.after().hidden_drops[0].name = "rx_missed_errors"; s.lose(4); },
     Verdict::fail, dut},
    {"statistics that are gone behind say nothing",
     [](auto& s) { s.hide("rx_discards_phy", 0, 4); s.after().hidden_drops.clear(); s.lose(4); }, Verdict::fail, dut},
    // the other direction
    {"drops of the sending port explain nothing",
     [](auto& s) { s.sender().after.missed_frames = 4; s.sender().after.no_buffer_frames = 9; s.lose(4); },
     Verdict::fail, dut},
    {"the ports' counts of received frames changed places",
     [](auto& s) { s.lose(4); std::swap(s.after().received_frames, s.sender().after.received_frames); },
     Verdict::invalid, unseen},
    {"unseen frames of the other port explain nothing",
     [](auto& s) { s.sender().after.received_frames += 4; s.lose(4); }, Verdict::fail, dut},
    // negative
    {"received is negative behind", [](auto& s) { s.lose(4); s.after().received_frames = negative(5); },
     Verdict::invalid, counters},
    {"received is negative before", [](auto& s) { s.before().received_frames = negative(5); s.lose(4); },
     Verdict::invalid, counters},
    {"missed is negative behind", [](auto& s) { s.after().missed_frames = negative(2); s.lose(4); }, Verdict::invalid,
     counters},
    {"no buffers are negative twice",
     [](auto& s) { s.before().no_buffer_frames = negative(9); s.after().no_buffer_frames = negative(5); s.lose(4); },
     Verdict::invalid, counters},
    {"transmitted is negative behind", [](auto& s) { s.sender().after.transmitted_frames = negative(5); },
     Verdict::invalid, counters},
    {"an extended statistic is negative behind", [](auto& s) { s.hide("rx_discards_phy", 4, negative(1000)); s.lose(4);
                                                 }, Verdict::fail, dut},
    {"PAUSE is negative behind", [](auto& s) { s.after().pause_frames = negative(5); s.lose(4); }, Verdict::fail, dut},
    // errors beside unseen frames
    {"damaged frames that the count has not, beside unseen ones",
     [](auto& s) { s.lose_inside(10); s.after().receive_errors = 4; }, Verdict::fail, {"loss", "damaged"}},
    {"half of the mix's IP versions", [](auto& s) {
         s.frames().classes = {
             {.version = plan::IpVersion::v4, .frame_size = 64, .offered_frames = 500'000, .received_frames = 500'000},
             {.version = plan::IpVersion::v6, .frame_size = 84, .offered_frames = 500'000, .received_frames = 499'996}};
         s.lose_inside(4); }, Verdict::invalid, unseen},
};
// clang-format on

}  // namespace

TEST_CASE("counters that lie neither excuse the tester nor accuse the DUT (R2544-39)") {
    for (const auto& c : cases) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            CAPTURE(std::string{c.name});
            CAPTURE(static_cast<int>(direction));
            auto r = clean();
            c.change(Seen{r, direction});
            tally::judge(r);
            CHECK(r.verdict == c.verdict);
            CHECK(codes_of(r) == c.codes);
        }
    }
}

TEST_CASE("a PAUSE counter that is not read is not hidden among others") {
    CHECK(port::total_of(std::vector<std::uint64_t>{}) == 0);
    CHECK(port::total_of(std::vector<std::uint64_t>{1, 2, 40}) == 43);
    for (const auto lie : {ones_64, ones_32, negative(3)}) {
        const std::vector<std::uint64_t> after{1, lie, 40, lie};
        const auto change = tally::change_of({.pause_frames = 0}, {.pause_frames = port::total_of(after)});
        CHECK(change.pause_frames == 0);
        CHECK_FALSE(change.problem);
    }
}

}  // namespace lying_counters_test
