// SPDX-License-Identifier: Apache-2.0
#include "frame/writer.hpp"

#include <string_view>

#include "frame/checksum.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace evenhand::frame {
namespace {

/// What varies in addresses. Each has writers of its own, so that what is usual pays for nothing else.
enum class Varying : std::uint8_t {
    hosts,               // whose numbers are words
    hosts_and_networks,  // the same, and words with the numbers of the networks
    host_octets          // hosts whose numbers are no words
};

/// The number's octets at their places; returns what they add to a sum, which is in memory order.
inline std::uint64_t store_octets(std::byte* frame, HostPlace place, std::uint32_t number) noexcept {
    const auto high = static_cast<std::uint8_t>(number >> 8U);
    const auto low = static_cast<std::uint8_t>(number);
    frame[place.high] = std::byte{high};
    frame[place.low] = std::byte{low};
    const auto counted = [](std::uint8_t octet, std::size_t at) { return std::uint64_t{octet} << at % 2 * 8; };
    return counted(high, place.high) + counted(low, place.low);
}

/// For any CPU, and the measure of what another writer writes: field after field, 3.1 ns a frame of 64 octets on a Xeon
/// of 2023.
template <IpVersion V, Varying kind>
void write_plain(const FrameShape& shape, const plan::FlowBlock& block, std::size_t at,
                 std::span<std::byte* const> frames, const Stamp& stamp) noexcept {
    using L = Layout<V>;
    // A local copy: a store through std::byte* may change any object, so members would be read again for each frame.
    const FrameTemplate t = shape.frame_template;
    const std::uint64_t stride = stamp.stride;
    const std::uint64_t time = stamp.time;
    std::uint64_t sequence = stamp.sequence;
    for (std::byte* const frame : frames) {
        // All in network order.
        const auto ports = big(block.source_port(at) << 16U | block.destination_port(at));
        const auto sequence_and_time = big(sequence << 16U | time >> 32U);  // tag octets 6-13
        const auto time_low = big(static_cast<std::uint32_t>(time));        // tag octets 14-17
        std::uint64_t addresses = 0;
        std::memcpy(frame, t.head.data(), L::tag + tag_sequence);
        if constexpr (kind == Varying::host_octets) {
            addresses = store_octets(frame, t.source, block.source(at)) +
                        store_octets(frame, t.destination, block.destination(at));
        } else {
            const auto source = big(static_cast<std::uint16_t>(block.source(at)));
            const auto destination = big(static_cast<std::uint16_t>(block.destination(at)));
            addresses = std::uint64_t{source} + destination;
            store(frame + t.source.high, source);
            store(frame + t.destination.high, destination);
        }
        if constexpr (kind == Varying::hosts_and_networks) {
            const auto source_network = big(static_cast<std::uint16_t>(block.source(at) >> 16U));
            const auto destination_network = big(static_cast<std::uint16_t>(block.destination(at) >> 16U));
            addresses += std::uint64_t{source_network} + destination_network;
            store(frame + t.source_network_at, source_network);
            store(frame + t.destination_network_at, destination_network);
        }
        const std::uint64_t tag = (sequence_and_time & 0xFFFFFFFFU) + (sequence_and_time >> 32U) + time_low;
        if constexpr (V == IpVersion::v4) store(frame + L::ipv4_checksum, ip_checksum(t.ip_sum + addresses));
        store(frame + L::udp, ports);
        store(frame + L::udp_checksum, udp_checksum(t.udp_sum + addresses + ports + tag));
        store(frame + L::tag + tag_sequence, sequence_and_time);
        store(frame + L::tag + tag_time + 2, time_low);
        sequence += stride;
        ++at;
    }
}

// What varies in front of the tag, for each frame: eight 16-bit words in host order.
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

constexpr std::size_t tail_octets = 16;  // of the tag; all that varies in it is there
template <IpVersion V>
constexpr std::size_t tail_at = Layout<V>::tag_end - tail_octets;

#if defined(__x86_64__)
// 1.3 ns a frame where the plain writer takes 3.1: three stores, wherever the fields stand. AVX-512 gains nothing here:
// most of the time goes into these stores.

using Words = __m128i;  // of one frame
static_assert(sizeof(Words) == words_of_a_frame * sizeof(std::uint16_t));
constexpr std::size_t lanes = sizeof(__m256i) / sizeof(std::uint32_t);  // frames whose words are made side by side

__attribute__((target("avx2"), always_inline)) inline __m256i load_lanes(const plan::DrawLanes::Values& values,
                                                                         std::size_t begin) noexcept {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(values.data() + begin));
}

/// Sums below 2^22 to 16 bits; 0 only if they are 0.
__attribute__((target("avx2"), always_inline)) inline __m256i fold_lanes(__m256i sum) noexcept {
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    sum = _mm256_add_epi32(_mm256_and_si256(sum, low), _mm256_srli_epi32(sum, 16));
    return _mm256_add_epi32(_mm256_and_si256(sum, low), _mm256_srli_epi32(sum, 16));
}

/// What host numbers add to a sum, if their octets count there.
__attribute__((target("avx2"), always_inline)) inline __m256i sum_octets_lanes(
    __m256i numbers, const std::array<std::uint8_t, FrameShape::part_octets / 2>& counted) noexcept {
    const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(counted.data()));
    const __m256i words = _mm256_shuffle_epi8(numbers, _mm256_broadcastsi128_si256(order));
    return _mm256_add_epi32(_mm256_and_si256(words, _mm256_set1_epi32(0xFFFF)), _mm256_srli_epi32(words, 16));
}

/// What the checksums have besides addresses and ports, in host order.
struct Sums {
    std::uint32_t ip;    // of the template
    std::uint32_t udp;   // what the template and the tag leave of a multiple of 65535, as if the tag were that of the
                         // block's first frame
    std::uint32_t step;  // by which the tag's sum grows from frame to frame
};

/// Checksums are sums modulo 65535, and 2^16 = 1 modulo 65535. So a sequence number counts as it is, without being cut
/// into words, and to subtract a sum from a multiple of 65535 gives the UDP checksum at once: 1 .. 65535, never 0.
inline Sums sums_of(const FrameTemplate& t, std::size_t at, const Stamp& stamp) noexcept {
    // Subtracted are template, tag, four words of addresses, two ports and up to 31 steps, each at most 65535.
    constexpr std::uint32_t most_subtracted = 8 + plan::FlowBlock::size;
    const std::uint32_t step = fold(stamp.stride);
    const std::uint32_t tag = fold(std::uint64_t{fold(stamp.sequence)} + fold(stamp.time));
    return {.ip = big(fold(t.ip_sum)),
            .udp = most_subtracted * 0xFFFFU - big(fold(t.udp_sum)) - tag + static_cast<std::uint32_t>(at) * step,
            .step = step};
}

/// The words of the frames begin .. begin + 7 of a block; `begin` is a multiple of 8.
template <IpVersion V, Varying kind>
__attribute__((target("avx2"), always_inline)) inline void make_words(const FrameShape& shape,
                                                                      const plan::FlowBlock& block, std::size_t begin,
                                                                      const Sums& sums, Words* words) noexcept {
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    const __m256i from = load_lanes(block.lanes.field[0], begin);
    const __m256i to = load_lanes(block.lanes.field[1], begin);
    const __m256i from_port = load_lanes(block.lanes.field[2], begin);
    const __m256i to_port = load_lanes(block.lanes.field[3], begin);
    const __m256i from_host = _mm256_and_si256(from, low);
    __m256i addresses = _mm256_add_epi32(from_host, _mm256_and_si256(to, low));
    if constexpr (kind == Varying::host_octets)
        addresses = _mm256_add_epi32(sum_octets_lanes(from, shape.counted[0]), sum_octets_lanes(to, shape.counted[1]));
    __m256i networks = _mm256_setzero_si256();
    if constexpr (kind == Varying::hosts_and_networks) {
        addresses =
            _mm256_add_epi32(addresses, _mm256_add_epi32(_mm256_srli_epi32(from, 16), _mm256_srli_epi32(to, 16)));
        networks = _mm256_blend_epi16(_mm256_srli_epi32(from, 16), to, 0xAA);
    }
    const auto step = static_cast<int>(sums.step);
    const __m256i steps = _mm256_set_epi32(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
    const __m256i fixed = _mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(sums.udp - begin * sums.step)), steps);
    const __m256i udp =
        fold_lanes(_mm256_sub_epi32(fixed, _mm256_add_epi32(addresses, _mm256_add_epi32(from_port, to_port))));
    __m256i ip = _mm256_setzero_si256();
    if constexpr (V == IpVersion::v4)
        ip = _mm256_andnot_si256(fold_lanes(_mm256_add_epi32(addresses, _mm256_set1_epi32(static_cast<int>(sums.ip)))),
                                 low);

    const __m256i hosts = _mm256_or_si256(from_host, _mm256_slli_epi32(to, 16));
    const __m256i ports = _mm256_or_si256(from_port, _mm256_slli_epi32(to_port, 16));
    const __m256i checksums = _mm256_or_si256(ip, _mm256_slli_epi32(udp, 16));
    // From four vectors with a pair of words of eight frames each to the words of each frame; a vector's halves are
    // transposed alone.
    const __m256i low_pairs = _mm256_unpacklo_epi32(hosts, ports);
    const __m256i high_pairs = _mm256_unpackhi_epi32(hosts, ports);
    const __m256i low_others = _mm256_unpacklo_epi32(checksums, networks);
    const __m256i high_others = _mm256_unpackhi_epi32(checksums, networks);
    const __m256i frames[lanes / 2] = {
        _mm256_unpacklo_epi64(low_pairs, low_others), _mm256_unpackhi_epi64(low_pairs, low_others),
        _mm256_unpacklo_epi64(high_pairs, high_others), _mm256_unpackhi_epi64(high_pairs, high_others)};
    for (std::size_t i = 0; i < lanes / 2; ++i) {
        _mm_store_si128(words + begin + i, _mm256_castsi256_si128(frames[i]));
        _mm_store_si128(words + begin + lanes / 2 + i, _mm256_extracti128_si256(frames[i], 1));
    }
}

template <IpVersion V, Varying kind>
__attribute__((target("avx2"))) void write_avx2(const FrameShape& shape, const plan::FlowBlock& block, std::size_t at,
                                                std::span<std::byte* const> frames, const Stamp& stamp) noexcept {
    Words words[plan::FlowBlock::size];
    const Sums sums = sums_of(shape.frame_template, at, stamp);
    for (std::size_t begin = at / lanes * lanes; begin < at + frames.size(); begin += lanes)
        make_words<V, kind>(shape, block, begin, sums, words);

    const std::byte* const head = shape.frame_template.head.data();
    constexpr std::size_t second_at = tail_at<V> - FrameShape::part_octets;
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(head));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(head + second_at));
    const __m256i first_from = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.from[0].data()));
    const __m256i second_from = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.from[1].data()));

    // In host order: below, four octets that do not vary and the low 32 bits of the time; above, the sequence number
    // and the rest of the time.
    const std::uint64_t constant = big(load<std::uint32_t>(head + tail_at<V>));
    __m128i tail = _mm_set_epi64x(static_cast<long long>(stamp.sequence << 16U | stamp.time >> 32U),
                                  static_cast<long long>(constant << 32U | (stamp.time & 0xFFFFFFFFU)));
    const __m128i step = _mm_set_epi64x(static_cast<long long>(stamp.stride << 16U), 0);
    const __m128i tail_from = _mm_set_epi8(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7);

    for (std::byte* const frame : frames) {
        const __m256i varying = _mm256_broadcastsi128_si256(words[at]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame),
                            _mm256_or_si256(first, _mm256_shuffle_epi8(varying, first_from)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame + second_at),
                            _mm256_or_si256(second, _mm256_shuffle_epi8(varying, second_from)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(frame + tail_at<V>), _mm_shuffle_epi8(tail, tail_from));
        tail = _mm_add_epi64(tail, step);
        ++at;
    }
}
#endif

template <IpVersion V, Varying kind>
FrameWriter writer(std::string_view name) noexcept {
#if defined(__x86_64__)
    if (name == "avx2" && __builtin_cpu_supports("avx2") != 0) return write_avx2<V, kind>;
#endif
    return name == "plain" ? write_plain<V, kind> : nullptr;
}

template <IpVersion V>
void fill_from(FrameShape& shape) noexcept {
    using L = Layout<V>;
    const FrameTemplate& t = shape.frame_template;
    const auto put_octet = [&](std::size_t offset, std::uint8_t index) {
        const std::size_t in_second = offset - (tail_at<V> - FrameShape::part_octets);  // wraps around before it
        if (offset < FrameShape::part_octets) shape.from[0][offset] = index;
        if (in_second < FrameShape::part_octets) shape.from[1][in_second] = index;
    };
    const auto put_host = [&](HostPlace place, Word word) {
        put_octet(place.high, static_cast<std::uint8_t>(2U * word + 1));
        put_octet(place.low, static_cast<std::uint8_t>(2U * word));
    };
    const auto put = [&](std::size_t offset, Word word) { put_host({.high = offset, .low = offset + 1}, word); };
    put_host(t.source, source_host);
    put_host(t.destination, destination_host);
    if (t.has_network_octets) {
        put(t.source_network_at, source_network);
        put(t.destination_network_at, destination_network);
    }
    put(L::udp, source_port);
    put(L::udp + 2, destination_port);
    put(L::udp_checksum, udp_sum);
    if constexpr (V == IpVersion::v4) put(L::ipv4_checksum, ip_sum);
}

/// See FrameShape::counted. In host order the octet at an even place of the frame is the upper one of its word.
void fill_counted(FrameShape& shape) noexcept {
    const FrameTemplate& t = shape.frame_template;
    for (std::size_t end = 0; end < shape.counted.size(); ++end) {
        const HostPlace place = end == 0 ? t.source : t.destination;
        auto& counted = shape.counted[end];
        counted.fill(FrameShape::of_template);
        for (std::size_t number = 0; number < counted.size(); number += sizeof(std::uint32_t)) {
            counted[number + (place.high + 1) % 2] = static_cast<std::uint8_t>(number + 1);
            counted[number + 2 + (place.low + 1) % 2] = static_cast<std::uint8_t>(number);
        }
    }
}

template <IpVersion V>
FrameWriter writer_of(const FrameTemplate& t, std::string_view name) noexcept {
    if constexpr (V == IpVersion::v6) {  // IPv4 networks share the octets of the host number, which is a word
        if (t.has_network_octets) return writer<V, Varying::hosts_and_networks>(name);
        if (!t.has_words()) return writer<V, Varying::host_octets>(name);
    }
    return writer<V, Varying::hosts>(name);
}

}  // namespace

FrameShape::FrameShape(const FrameTemplate& t) noexcept : frame_template{t} {
    for (auto& part : from) part.fill(of_template);
    fill_counted(*this);
    if (t.version == IpVersion::v4) {
        fill_from<IpVersion::v4>(*this);
    } else {
        fill_from<IpVersion::v6>(*this);
    }
}

FrameWriter frame_writer(const char* name, const FrameTemplate& t) noexcept {
    return t.version == IpVersion::v4 ? writer_of<IpVersion::v4>(t, name) : writer_of<IpVersion::v6>(t, name);
}

FrameWriter fastest_frame_writer(const FrameTemplate& t) noexcept {
    const FrameWriter wide = frame_writer("avx2", t);
    return wide != nullptr ? wide : frame_writer("plain", t);
}

}  // namespace evenhand::frame
