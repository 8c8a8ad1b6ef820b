// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: the varying octets in front of a frame's tag as 16-bit words in registers, for the writer, which
// puts them into frames, and for the receiver, which compares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/layout.hpp"
#include "frame/template.hpp"
#include "plan/draw.hpp"
#include "simd.hpp"

namespace evenhand::frame {

/// What varies in addresses. Each case has code of its own, so that the usual case does not pay for the others.
enum class Varying : std::uint8_t {
    hosts,               // their numbers are words
    hosts_and_networks,  // the same, and the numbers of the networks are words, too
    host_octets,         // their numbers are not words
    whole_addresses      // all of them, in IPv6
};

[[nodiscard]] inline Varying varying_of(const FrameTemplate& t) noexcept {
    // IPv4 networks share the octets of the host number, which is a word. Whole IPv4 addresses are two words each, as
    // if the first were that of a network.
    if (t.version == IpVersion::v4) return t.has_whole_addresses ? Varying::hosts_and_networks : Varying::hosts;
    if (t.has_whole_addresses) return Varying::whole_addresses;
    if (t.has_network_octets) return Varying::hosts_and_networks;
    return t.has_words() ? Varying::hosts : Varying::host_octets;
}

// The words that vary in front of the tag, for each frame: eight 16-bit words in host order.
enum Word : std::uint8_t {
    source_host,
    destination_host,
    source_port,
    destination_port,
    ip_sum,
    udp_sum,
    source_network,
    destination_network,
    words_of_a_frame
};

constexpr std::uint8_t of_template = 0x80;

/// For each octet up to the end of the tag: which octet of the words it is, or `of_template`.
using WordPlaces = std::array<std::uint8_t, FrameTemplate::room>;
[[nodiscard]] WordPlaces word_places(const FrameTemplate& t) noexcept;

/// For host numbers that are not words: where the octets of source and destination count in the checksum. Shuffle masks
/// for four 32-bit numbers, each of which becomes two words with one octet each.
using CountedOctets = std::array<std::array<std::uint8_t, 16>, 2>;
[[nodiscard]] CountedOctets counted_octets(const FrameTemplate& t) noexcept;

#if defined(__x86_64__)
using Words = __m128i;  // of one frame
static_assert(sizeof(Words) == words_of_a_frame * sizeof(std::uint16_t));
constexpr std::size_t lanes = sizeof(__m256i) / sizeof(std::uint32_t);  // frames whose words are made side by side

__attribute__((target("avx2"), always_inline)) inline __m256i load_lanes(const plan::DrawLanes::Values& values,
                                                                         std::size_t begin) noexcept {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(values.data() + begin));
}

/// Folds sums below 2^22 to 16 bits; 0 only if the sum is 0.
__attribute__((target("avx2"), always_inline)) inline __m256i fold_lanes(__m256i sum) noexcept {
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    sum = _mm256_add_epi32(_mm256_and_si256(sum, low), _mm256_srli_epi32(sum, 16));
    return _mm256_add_epi32(_mm256_and_si256(sum, low), _mm256_srli_epi32(sum, 16));
}

/// What host numbers add to a sum, where their octets count in it.
__attribute__((target("avx2"), always_inline)) inline __m256i sum_octets_lanes(
    __m256i numbers, const std::array<std::uint8_t, 16>& counted) noexcept {
    const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(counted.data()));
    const __m256i words = _mm256_shuffle_epi8(numbers, _mm256_broadcastsi128_si256(order));
    return _mm256_add_epi32(_mm256_and_si256(words, _mm256_set1_epi32(0xFFFF)), _mm256_srli_epi32(words, 16));
}

/// The flows of eight frames of a block, and what their addresses add to a checksum.
struct FlowLanes {
    __m256i from;
    __m256i to;
    __m256i from_port;
    __m256i to_port;
    __m256i addresses;
};

/// Reads the flows of frames begin .. begin + 7; `begin` is a multiple of 8.
template <Varying kind>
__attribute__((target("avx2"), always_inline)) inline FlowLanes flow_lanes(const plan::FlowBlock& block,
                                                                           std::size_t begin,
                                                                           const CountedOctets& counted) noexcept {
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    // Where whole IPv6 addresses vary, a block has their sums, which count as hosts do.
    FlowLanes flow{.from = load_lanes(block.lanes.field[0], begin),
                   .to = load_lanes(block.lanes.field[1], begin),
                   .from_port = load_lanes(block.lanes.field[2], begin),
                   .to_port = load_lanes(block.lanes.field[3], begin),
                   .addresses = {}};
    if constexpr (kind == Varying::host_octets)
        flow.addresses =
            _mm256_add_epi32(sum_octets_lanes(flow.from, counted[0]), sum_octets_lanes(flow.to, counted[1]));
    else
        flow.addresses = _mm256_add_epi32(_mm256_and_si256(flow.from, low), _mm256_and_si256(flow.to, low));
    if constexpr (kind == Varying::hosts_and_networks)
        flow.addresses = _mm256_add_epi32(
            flow.addresses, _mm256_add_epi32(_mm256_srli_epi32(flow.from, 16), _mm256_srli_epi32(flow.to, 16)));
    return flow;
}

/// Makes the words of eight frames. `ip`, `udp`: their checksums.
template <Varying kind>
__attribute__((target("avx2"), always_inline)) inline void put_words(const FlowLanes& flow, __m256i ip, __m256i udp,
                                                                     Words* words) noexcept {
    __m256i networks = _mm256_setzero_si256();
    if constexpr (kind == Varying::hosts_and_networks)
        networks = _mm256_blend_epi16(_mm256_srli_epi32(flow.from, 16), flow.to, 0xAA);
    const __m256i hosts =
        _mm256_or_si256(_mm256_and_si256(flow.from, _mm256_set1_epi32(0xFFFF)), _mm256_slli_epi32(flow.to, 16));
    const __m256i ports = _mm256_or_si256(flow.from_port, _mm256_slli_epi32(flow.to_port, 16));
    const __m256i checksums = _mm256_or_si256(ip, _mm256_slli_epi32(udp, 16));
    // Transposes four vectors, which hold a pair of words of each of eight frames, into the words of each frame. The
    // two halves of a vector are transposed separately.
    const __m256i low_pairs = _mm256_unpacklo_epi32(hosts, ports);
    const __m256i high_pairs = _mm256_unpackhi_epi32(hosts, ports);
    const __m256i low_others = _mm256_unpacklo_epi32(checksums, networks);
    const __m256i high_others = _mm256_unpackhi_epi32(checksums, networks);
    const __m256i frames[lanes / 2] = {
        _mm256_unpacklo_epi64(low_pairs, low_others), _mm256_unpackhi_epi64(low_pairs, low_others),
        _mm256_unpacklo_epi64(high_pairs, high_others), _mm256_unpackhi_epi64(high_pairs, high_others)};
    for (std::size_t i = 0; i < lanes / 2; ++i) {
        _mm_store_si128(words + i, _mm256_castsi256_si128(frames[i]));
        _mm_store_si128(words + lanes / 2 + i, _mm256_extracti128_si256(frames[i], 1));
    }
}
#endif

}  // namespace evenhand::frame
