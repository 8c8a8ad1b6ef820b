// SPDX-License-Identifier: Apache-2.0
#include "tally/frame_capture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace {

using namespace evenhand;
using tally::FrameCapture;
using tally::Kept;

std::vector<std::byte> octets_of(std::size_t count, unsigned value) {
    return std::vector<std::byte>(count, std::byte(value));
}

}  // namespace

TEST_CASE("the first frames of each kind are kept") {
    FrameCapture capture;
    CHECK_FALSE(capture.is_on());
    CHECK(capture.kept().empty());
    capture.begin(2);
    CHECK(capture.is_on());
    for (unsigned i = 0; i < 5; ++i) {
        auto octets = octets_of(60 + i, i);
        for (const auto kind : {Kept::foreign, Kept::late})
            capture.keep({.kind = kind, .number = i, .received = 100 + i, .length = octets.size(), .octets = octets});
        std::ranges::fill(octets, std::byte{0xEE});  // what was kept is a copy
    }
    capture.end();
    CHECK_FALSE(capture.is_on());
    const auto kept = capture.kept();
    REQUIRE(kept.size() == 4);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        CHECK(kept[i].kind == (i < 2 ? Kept::foreign : Kept::late));
        CHECK(kept[i].number == i % 2);
        CHECK(kept[i].length == 60 + i % 2);
        CHECK(std::ranges::equal(kept[i].octets, octets_of(60 + i % 2, static_cast<unsigned>(i % 2))));
    }
}

TEST_CASE("a long frame is cut, and its length is that of the whole") {
    FrameCapture capture;
    capture.begin(tally::most_kept_frames + 1);
    const auto octets = octets_of(9000, 7);
    for (std::size_t i = 0; i <= tally::most_kept_frames; ++i)
        capture.keep({.kind = Kept::corrupted,
                      .fault = frame::FrameFault::udp_checksum,
                      .length = octets.size(),
                      .octets = octets});
    const auto kept = capture.kept();
    REQUIRE(kept.size() == tally::most_kept_frames);
    CHECK(kept.back().length == 9000);
    CHECK(kept.back().octets.size() == tally::most_kept_octets);
    CHECK(kept.back().fault == frame::FrameFault::udp_checksum);
}

TEST_CASE("a trial that keeps none keeps none of the one before") {
    FrameCapture capture;
    capture.begin(1);
    capture.keep({.octets = octets_of(60, 1)});
    capture.begin(0);
    CHECK_FALSE(capture.is_on());
    CHECK(capture.kept().empty());
    capture.keep({.octets = octets_of(60, 1)});
    CHECK(capture.kept().empty());
}

TEST_CASE("frames that are as they were sent are kept only if asked for, and take no room of the others") {
    FrameCapture capture;
    const auto octets = octets_of(60, 1);
    const auto keep = [&](Kept kind, unsigned count) {
        for (unsigned i = 0; i < count; ++i) capture.keep({.kind = kind, .number = i, .octets = octets});
    };
    capture.begin(1);
    CHECK_FALSE(capture.keeps_received());
    keep(Kept::received, 1);
    CHECK(capture.kept().empty());
    capture.begin(1, 3);
    CHECK(capture.keeps_received());
    keep(Kept::late, 2);
    keep(Kept::received, 5);
    const auto kept = capture.kept();
    REQUIRE(kept.size() == 4);
    CHECK(kept.front().kind == Kept::late);
    for (std::size_t i = 1; i < kept.size(); ++i) {
        CHECK(kept[i].kind == Kept::received);
        CHECK(kept[i].number == i - 1);
    }
    capture.begin(0, 1);
    keep(Kept::foreign, 1);
    keep(Kept::received, 1);
    CHECK(capture.kept().size() == 1);
    capture.end();
    CHECK_FALSE(capture.keeps_received());
}
