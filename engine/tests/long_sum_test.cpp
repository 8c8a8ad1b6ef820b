// SPDX-License-Identifier: Apache-2.0
// The Internet checksum of long frames: the wide sum is the plain one.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "frame/checksum.hpp"

namespace long_sum_test {
using namespace evenhand;

namespace {

/// Word for word, as RFC 1071 has it.
std::uint16_t by_words(const std::byte* at, std::size_t octets) {
    std::uint64_t sum = 0;
    for (; octets >= 2; at += 2, octets -= 2) {
        std::uint16_t word = 0;
        std::memcpy(&word, at, sizeof word);
        sum += word;
    }
    if (octets == 1) sum += static_cast<std::uint8_t>(*at);
    return frame::fold(sum);
}

}  // namespace

TEST_CASE("the sum of a long frame is that of its words, wherever it lies and however long it is (R2544-40)") {
    std::mt19937_64 random{20261125};
    constexpr std::size_t longest = 9216;
    std::vector<std::byte> octets(longest + 64);
    for (const char* const name : {"plain", "avx2"}) {
        const frame::LongSum sum = frame::long_sum(name);
        if (sum == nullptr) continue;  // this CPU cannot
        CAPTURE(name);
        for (int round = 0; round < 4000; ++round) {
            const std::size_t from = random() % 64;
            const std::size_t length = round < 300 ? static_cast<std::size_t>(round) : random() % (longest + 1);
            // All words alike are where a lane could overflow, or a sign be taken wrongly.
            constexpr std::array<std::uint8_t, 6> alike{0x00, 0xFF, 0x80, 0x7F, 0x01, 0x55};
            if (const std::size_t kind = random() % 12; kind < alike.size()) {
                std::memset(octets.data(), alike[kind], octets.size());
            } else {
                for (auto& octet : octets) octet = static_cast<std::byte>(random());
            }
            const std::byte* const at = octets.data() + from;
            REQUIRE(frame::fold(sum(at, length)) == by_words(at, length));
            REQUIRE(frame::fold(frame::sum_octets(at, length)) == by_words(at, length));
        }
    }
    CHECK((frame::long_sum("none") == nullptr));
}

}  // namespace long_sum_test
