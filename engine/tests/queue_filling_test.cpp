// SPDX-License-Identifier: Apache-2.0
// Station 6: delays over a trial, and whether they say that a queue was filling.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "slow.hpp"
#include "tally/queue_filling.hpp"

namespace queue_filling_test {

using namespace evenhand;
using tally::QueueFilling;
using tally::SliceDelays;

namespace {

constexpr double ticks_per_second = 1e9;
constexpr double capacity_fps = 20'000;
constexpr double trial_s = 1;

/// A device with one queue: frame k is sent at `sent_s(k)`, and served in `service_s()`.
struct Device {
    std::size_t queue_frames = 1'000'000;
    std::function<double()> service_s = [] { return 1 / capacity_fps; };
    std::function<double(double)> extra_s = [](double) { return 20e-6; };       // on the way, by the time of leaving
    std::function<double(double)> held_until_s = [](double at) { return at; };  // a device that is away serves later

    [[nodiscard]] std::optional<QueueFilling> offer(double load_fps, double seconds = trial_s) const {
        const auto frames = static_cast<std::uint64_t>(std::llround(load_fps * seconds));
        SliceDelays delays;
        delays.begin(frames);
        double free_s = 0;
        std::optional<std::uint64_t> first_lost;
        for (std::uint64_t k = 0; k < frames; ++k) {
            const double sent = static_cast<double>(k) / load_fps;
            if (free_s - sent > static_cast<double>(queue_frames) / capacity_fps) {
                if (!first_lost) first_lost = k;
                continue;
            }
            free_s = held_until_s(std::max(free_s, sent)) + service_s();
            delays.note(k, static_cast<pace::Ticks>((free_s + extra_s(free_s) - sent) * ticks_per_second));
        }
        return tally::find_queue_filling(delays, seconds / SliceDelays::slices, load_fps, frames, first_lost,
                                         ticks_per_second);
    }
};

}  // namespace

TEST_CASE("each frame is in the slice of its number, and the slices are equal") {
    for (const std::uint64_t frames : {1ULL, 7ULL, 50ULL, 999ULL, 21'000ULL, 1ULL << 35U}) {
        CAPTURE(frames);
        SliceDelays delays;
        delays.begin(frames);
        const std::uint64_t step = std::max<std::uint64_t>(1, frames / 1000);
        std::array<std::uint64_t, SliceDelays::slices> expected{};
        for (std::uint64_t k = 0; k < frames; k += step) {
            delays.note(k, 5 + k % 3);
            ++expected.at(k * SliceDelays::slices / frames);
        }
        for (std::size_t i = 0; i < SliceDelays::slices; ++i) {
            const auto got = delays.all()[i].frames;
            CHECK((got >= expected.at(i) ? got - expected.at(i) : expected.at(i) - got) <= 1);
        }
    }
}

TEST_CASE("5 % beyond capacity are told within 1 % by a trial of a second, whatever the queue holds") {
    for (const std::size_t queue : {200U, 500U, 900U, 1'000U, 5'000U, 100'000U}) {
        CAPTURE(queue);
        const auto found = Device{.queue_frames = queue}.offer(1.05 * capacity_fps);
        REQUIRE(found);
        CHECK(std::abs(found->sustainable_fps / capacity_fps - 1) < 0.01);
        CHECK(std::abs(found->slope - 0.05) < 0.005);
    }
}

TEST_CASE("a queue that is full at once says nothing: what is received tells the capacity") {
    for (const std::size_t queue : {16U, 100U}) CHECK_FALSE(Device{.queue_frames = queue}.offer(1.05 * capacity_fps));
}

TEST_CASE("at 99 % of capacity no queue is filling") { CHECK_FALSE(Device{}.offer(0.99 * capacity_fps)); }

TEST_CASE("jitter, stalls, another route and clocks that drift are no queue that fills") {
    std::mt19937_64 random{1};  // NOLINT: the same each time
    std::exponential_distribution<double> jitter{1e4};
    CHECK_FALSE(Device{.extra_s = [&](double) { return jitter(random); }}.offer(0.9 * capacity_fps));
    for (const double begin : {0.0, 0.2, 0.5, 0.9}) {
        for (const double lasts : {0.02, 0.1, 0.4}) {
            CAPTURE(begin);
            CAPTURE(lasts);
            const auto stall = [=](double at) { return at >= begin && at < begin + lasts ? begin + lasts : at; };
            CHECK_FALSE(Device{.held_until_s = stall}.offer(0.5 * capacity_fps));
            CHECK_FALSE(Device{.held_until_s = stall}.offer(0.95 * capacity_fps));
        }
        const auto flap = [=](double at) { return at < begin ? 100e-6 : 5e-3; };
        CHECK_FALSE(Device{.extra_s = flap}.offer(0.9 * capacity_fps));
    }
    CHECK_FALSE(Device{.extra_s = [](double at) { return 20e-6 + 100e-6 * at; }}.offer(0.9 * capacity_fps));  // 100 ppm
}

TEST_CASE("a stall does not hide that a queue is filling") {
    const auto stall = [](double at) { return at >= 0.4 && at < 0.45 ? 0.45 : at; };
    const auto found = Device{.held_until_s = stall}.offer(1.05 * capacity_fps);
    REQUIRE(found);
    CHECK(std::abs(found->sustainable_fps / capacity_fps - 1) < 0.01);
}

TEST_CASE("service times that vary make no note at 99 %, and leave it at 110 %") {
    std::mt19937_64 random{7};  // NOLINT: the same each time
    std::exponential_distribution<double> service{capacity_fps};
    const Device device{.service_s = [&] { return service(random); }};
    int wrong = 0;
    int right = 0;
    constexpr int trials = tests::is_slow ? 50 : 300;
    for (int i = 0; i < trials; ++i) {
        wrong += device.offer(0.99 * capacity_fps) ? 1 : 0;
        const auto found = device.offer(1.10 * capacity_fps);
        right += found && std::abs(found->sustainable_fps / capacity_fps - 1) < 0.03 ? 1 : 0;
    }
    MESSAGE("false notes: " << wrong << ", right ones: " << right << " of " << trials);
    CHECK(wrong == 0);
    CHECK(right > trials * 9 / 10);
}

}  // namespace queue_filling_test
