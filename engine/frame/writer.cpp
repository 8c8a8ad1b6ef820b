// SPDX-License-Identifier: Apache-2.0
#include "frame/writer.hpp"

#include <string_view>

#include "frame/checksum.hpp"
#include "frame/frame_words.hpp"

namespace evenhand::frame {
namespace {

/// Writes the number's octets at their places; returns what they add to a sum, which is in memory order.
inline std::uint64_t store_octets(std::byte* frame, HostPlace place, std::uint32_t number) noexcept {
    const auto high = static_cast<std::uint8_t>(number >> 8U);
    const auto low = static_cast<std::uint8_t>(number);
    frame[place.high] = std::byte{high};
    frame[place.low] = std::byte{low};
    const auto counted = [](std::uint8_t octet, std::size_t at) { return std::uint64_t{octet} << at % 2 * 8; };
    return counted(high, place.high) + counted(low, place.low);
}

/// The octet `at` of the tag: the stream combined with the check of the time.
inline std::uint8_t stream_of(const FrameTemplate& t, std::size_t at, const Stamp& stamp) noexcept {
    return static_cast<std::uint8_t>(static_cast<std::uint8_t>(t.head[at]) ^ time_check(stamp.time));
}
/// What `stream`, at its place, adds to a sum in host order, modulo 65535.
inline std::uint16_t checked_stream(const FrameTemplate& t, std::size_t at, std::uint8_t stream) noexcept {
    return fold(0xFFFFU + stream - static_cast<std::uint8_t>(t.head[at]));
}

/// For any CPU, and the reference for the other writers' output: writes field after field, 3.1 ns a frame of 64 octets
/// on a Xeon of 2023.
template <IpVersion V, Varying kind>
void write_plain(const FrameShape& shape, const plan::FlowBlock& block, std::size_t at,
                 std::span<std::byte* const> frames, const Stamp& stamp) noexcept {
    using L = Layout<V>;
    // A local copy: the compiler must assume that a store through std::byte* changes any object, so that it would read
    // members again for each frame.
    const FrameTemplate t = shape.frame_template;
    const std::uint64_t stride = stamp.stride;
    const std::uint64_t time = stamp.time;
    std::uint64_t sequence = stamp.sequence;
    const std::uint8_t stream = stream_of(t, L::tag + tag_stream, stamp);
    const auto checked = big(checked_stream(t, L::tag + tag_stream, stream));
    for (std::byte* const frame : frames) {
        // All in network order.
        const auto ports = big(block.source_port(at) << 16U | block.destination_port(at));
        const auto sequence_and_time = big(sequence << 16U | time >> 32U);  // tag octets 6-13
        const auto time_low = big(static_cast<std::uint32_t>(time));        // tag octets 14-17
        std::uint64_t addresses = 0;
        std::memcpy(frame, t.head.data(), L::tag + tag_sequence);
        frame[L::tag + tag_stream] = std::byte{stream};
        if constexpr (kind == Varying::host_octets) {
            addresses = store_octets(frame, t.source, block.source(at)) +
                        store_octets(frame, t.destination, block.destination(at));
        } else {
            const auto source = big(static_cast<std::uint16_t>(block.source(at)));
            const auto destination = big(static_cast<std::uint16_t>(block.destination(at)));
            addresses = std::uint64_t{source} + destination;
            if constexpr (kind == Varying::whole_addresses) {
                std::memcpy(frame + L::source, block.addresses[at].data(), plan::FlowBlock::pair_octets);
            } else {
                store(frame + t.source.high, source);
                store(frame + t.destination.high, destination);
            }
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
        store(frame + L::udp_checksum, udp_checksum(t.udp_sum + checked + addresses + ports + tag));
        store(frame + L::tag + tag_sequence, sequence_and_time);
        store(frame + L::tag + tag_time + 2, time_low);
        sequence += stride;
        ++at;
    }
}

constexpr std::size_t tail_octets = 16;  // of the tag; they include everything that varies in it
template <IpVersion V>
constexpr std::size_t tail_at = Layout<V>::tag_end - tail_octets;

#if defined(__x86_64__)
// Takes 1.3 ns a frame where the plain writer takes 3.1: three stores, wherever the fields are. AVX-512 gains nothing
// here, since most of the time goes into these stores.

/// What the checksums contain besides addresses and ports, in host order.
struct Sums {
    std::uint32_t ip;    // of the template
    std::uint32_t udp;   // what the template and the tag leave of a multiple of 65535, as if the tag were that of the
                         // block's first frame
    std::uint32_t step;  // by which the tag's sum grows from frame to frame
};

/// Checksums are sums modulo 65535, and 2^16 = 1 modulo 65535. So a sequence number can be added as it is, without
/// being cut into words; and subtracting a sum from a multiple of 65535 gives the UDP checksum at once: 1 .. 65535,
/// never 0.
inline Sums sums_of(const FrameTemplate& t, std::size_t at, const Stamp& stamp, std::uint16_t stream) noexcept {
    // The subtracted numbers are template, tag, four words of addresses, two ports and up to 31 steps, each at most
    // 65535.
    constexpr std::uint32_t most_subtracted = 8 + plan::FlowBlock::size;
    const std::uint32_t step = fold(stamp.stride);
    const std::uint32_t tag = fold(std::uint64_t{fold(stamp.sequence)} + fold(stamp.time) + stream);
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
    const FlowLanes flow = flow_lanes<kind>(block, begin, shape.counted);
    const auto step = static_cast<int>(sums.step);
    const __m256i steps = _mm256_set_epi32(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
    const __m256i fixed = _mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(sums.udp - begin * sums.step)), steps);
    const __m256i udp = fold_lanes(
        _mm256_sub_epi32(fixed, _mm256_add_epi32(flow.addresses, _mm256_add_epi32(flow.from_port, flow.to_port))));
    __m256i ip = _mm256_setzero_si256();
    if constexpr (V == IpVersion::v4)
        ip = _mm256_andnot_si256(
            fold_lanes(_mm256_add_epi32(flow.addresses, _mm256_set1_epi32(static_cast<int>(sums.ip)))), low);
    put_words<kind>(flow, ip, udp, words + begin);
}

template <IpVersion V, Varying kind>
__attribute__((target("avx2"))) void write_avx2(const FrameShape& shape, const plan::FlowBlock& block, std::size_t at,
                                                std::span<std::byte* const> frames, const Stamp& stamp) noexcept {
    Words words[plan::FlowBlock::size];
    const std::uint8_t stream = stream_of(shape.frame_template, Layout<V>::tag + tag_stream, stamp);
    const Sums sums = sums_of(shape.frame_template, at, stamp,
                              checked_stream(shape.frame_template, Layout<V>::tag + tag_stream, stream));
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
    static_assert(tail_at<V> + 3 == Layout<V>::tag + tag_stream);
    const std::uint64_t constant = (big(load<std::uint32_t>(head + tail_at<V>)) & ~0xFFU) | stream;
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
        if constexpr (kind == Varying::whole_addresses)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame + Layout<V>::source),
                                _mm256_load_si256(reinterpret_cast<const __m256i*>(block.addresses[at].data())));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(frame + tail_at<V>), _mm_shuffle_epi8(tail, tail_from));
        tail = _mm_add_epi64(tail, step);
        ++at;
    }
}

/// Eight of a cycle's numbers, from any place on.
__attribute__((target("avx2"), always_inline)) inline __m256i load_places(const std::vector<std::uint32_t>& numbers,
                                                                          std::size_t place) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers.data() + place));
}

/// make_words() for frames of several classes. `udp`: as Sums, without what the templates have. `place`: that of the
/// block's first frame.
template <IpVersion V, Varying kind>
__attribute__((target("avx2"), always_inline)) inline void make_words_of_classes(
    const ClassShapes::Places& of, std::size_t place, const CountedOctets& counted, const plan::FlowBlock& block,
    std::size_t begin, std::uint32_t udp_sum, std::uint32_t step_of_frames, Words* words) noexcept {
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    FlowLanes flow = flow_lanes<kind>(block, begin, counted);
    place += begin;
    flow.from_port = _mm256_or_si256(_mm256_and_si256(flow.from_port, load_places(of.drawn_sources, place)),
                                     load_places(of.fixed_sources, place));
    flow.to_port = _mm256_or_si256(_mm256_and_si256(flow.to_port, load_places(of.drawn_destinations, place)),
                                   load_places(of.fixed_destinations, place));
    const auto step = static_cast<int>(step_of_frames);
    const __m256i steps = _mm256_set_epi32(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
    const __m256i fixed = _mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(udp_sum - begin * step_of_frames)),
                                           _mm256_add_epi32(steps, load_places(of.udp_sums, place)));
    const __m256i udp = fold_lanes(
        _mm256_sub_epi32(fixed, _mm256_add_epi32(flow.addresses, _mm256_add_epi32(flow.from_port, flow.to_port))));
    __m256i ip = _mm256_setzero_si256();
    if constexpr (V == IpVersion::v4)
        ip = _mm256_andnot_si256(fold_lanes(_mm256_add_epi32(flow.addresses, load_places(of.ip_sums, place))), low);
    put_words<kind>(flow, ip, udp, words + begin);
}

template <IpVersion V, Varying kind>
__attribute__((target("avx2"))) void write_classes_avx2(const ClassShapes& of, std::size_t place, BlockClasses classes,
                                                        const plan::FlowBlock& block, std::size_t at,
                                                        std::span<std::byte* const> frames,
                                                        const Stamp& stamp) noexcept {
    Words words[plan::FlowBlock::size];
    const FrameShape& shape = of.first.front();
    const ClassShapes::Head* const heads = of.heads.data();
    // The tag is the same in all of them.
    const std::uint8_t stream = stream_of(shape.frame_template, Layout<V>::tag + tag_stream, stamp);
    const Sums sums = sums_of(shape.frame_template, at, stamp,
                              checked_stream(shape.frame_template, Layout<V>::tag + tag_stream, stream));
    const std::uint32_t without_template = sums.udp + big(fold(shape.frame_template.udp_sum));
    for (std::size_t begin = at / lanes * lanes; begin < at + frames.size(); begin += lanes)
        make_words_of_classes<V, kind>(of.places, place, shape.counted, block, begin, without_template, sums.step,
                                       words);

    constexpr std::size_t second_at = tail_at<V> - FrameShape::part_octets;
    const __m256i first_from = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.from[0].data()));
    const __m256i second_from = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.from[1].data()));
    const std::uint64_t constant =
        (big(load<std::uint32_t>(shape.frame_template.head.data() + tail_at<V>)) & ~0xFFU) | stream;
    __m128i tail = _mm_set_epi64x(static_cast<long long>(stamp.sequence << 16U | stamp.time >> 32U),
                                  static_cast<long long>(constant << 32U | (stamp.time & 0xFFFFFFFFU)));
    const __m128i step = _mm_set_epi64x(static_cast<long long>(stamp.stride << 16U), 0);
    const __m128i tail_from = _mm_set_epi8(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7);
    for (std::byte* const frame : frames) {
        const std::byte* const head = heads[classes[at]].octets.data();
        const __m256i varying = _mm256_broadcastsi128_si256(words[at]);
        const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(head));
        const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(head + second_at));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame),
                            _mm256_or_si256(first, _mm256_shuffle_epi8(varying, first_from)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame + second_at),
                            _mm256_or_si256(second, _mm256_shuffle_epi8(varying, second_from)));
        if constexpr (kind == Varying::whole_addresses)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(frame + Layout<V>::source),
                                _mm256_load_si256(reinterpret_cast<const __m256i*>(block.addresses[at].data())));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(frame + tail_at<V>), _mm_shuffle_epi8(tail, tail_from));
        tail = _mm_add_epi64(tail, step);
        ++at;
    }
}
#endif

template <IpVersion V, Varying kind>
ClassWriter writer_of_classes() noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") != 0) return write_classes_avx2<V, kind>;
#endif
    return nullptr;
}

template <IpVersion V, Varying kind>
FrameWriter writer(std::string_view name) noexcept {
#if defined(__x86_64__)
    if (name == "avx2" && __builtin_cpu_supports("avx2") != 0) return write_avx2<V, kind>;
#endif
    return name == "plain" ? write_plain<V, kind> : nullptr;
}

template <IpVersion V>
void fill_from(FrameShape& shape) noexcept {
    const WordPlaces places = word_places(shape.frame_template);
    for (std::size_t i = 0; i < FrameShape::part_octets; ++i) {
        shape.from[0][i] = places[i];
        shape.from[1][i] = places[tail_at<V> - FrameShape::part_octets + i];
    }
}

template <IpVersion V>
FrameWriter writer_of(const FrameTemplate& t, std::string_view name) noexcept {
    if (varying_of(t) == Varying::hosts_and_networks) return writer<V, Varying::hosts_and_networks>(name);
    if constexpr (V == IpVersion::v6) {
        if (varying_of(t) == Varying::host_octets) return writer<V, Varying::host_octets>(name);
        if (varying_of(t) == Varying::whole_addresses) return writer<V, Varying::whole_addresses>(name);
    }
    return writer<V, Varying::hosts>(name);
}

}  // namespace

namespace {

template <IpVersion V>
WordPlaces places_of(const FrameTemplate& t) noexcept {
    using L = Layout<V>;
    WordPlaces places;
    places.fill(of_template);
    const auto put_host = [&](HostPlace place, Word word) {
        places[place.high] = static_cast<std::uint8_t>(2U * word + 1);
        places[place.low] = static_cast<std::uint8_t>(2U * word);
    };
    const auto put = [&](std::size_t offset, Word word) { put_host({.high = offset, .low = offset + 1}, word); };
    if (varying_of(t) != Varying::whole_addresses) {  // they are no words, but written as they are
        put_host(t.source, source_host);
        put_host(t.destination, destination_host);
    }
    if (t.has_network_octets) {
        put(t.source_network_at, source_network);
        put(t.destination_network_at, destination_network);
    }
    put(L::udp, source_port);
    put(L::udp + 2, destination_port);
    put(L::udp_checksum, udp_sum);
    if constexpr (V == IpVersion::v4) put(L::ipv4_checksum, ip_sum);
    return places;
}

}  // namespace

WordPlaces word_places(const FrameTemplate& t) noexcept {
    return t.version == IpVersion::v4 ? places_of<IpVersion::v4>(t) : places_of<IpVersion::v6>(t);
}

/// In host order, an octet at an even offset of the frame is the upper one of its word.
CountedOctets counted_octets(const FrameTemplate& t) noexcept {
    CountedOctets counted;
    for (std::size_t end = 0; end < counted.size(); ++end) {
        const HostPlace place = end == 0 ? t.source : t.destination;
        counted[end].fill(of_template);
        for (std::size_t number = 0; number < counted[end].size(); number += sizeof(std::uint32_t)) {
            counted[end][number + (place.high + 1) % 2] = static_cast<std::uint8_t>(number + 1);
            counted[end][number + 2 + (place.low + 1) % 2] = static_cast<std::uint8_t>(number);
        }
    }
    return counted;
}

FrameShape::FrameShape(const FrameTemplate& t) noexcept : frame_template{t}, counted{counted_octets(t)} {
    if (t.version == IpVersion::v4) {
        fill_from<IpVersion::v4>(*this);
    } else {
        fill_from<IpVersion::v6>(*this);
    }
}

FrameWriter frame_writer(const char* name, const FrameTemplate& t) noexcept {
    return t.version == IpVersion::v4 ? writer_of<IpVersion::v4>(t, name) : writer_of<IpVersion::v6>(t, name);
}

ClassShapes::ClassShapes(const std::vector<FrameTemplate>& templates, const std::vector<ClassPorts>& ports,
                         std::span<const std::uint8_t> cycle) {
    first.emplace_back(templates.front());
    for (const auto& t : templates) heads.push_back({t.head});
    for (const std::size_t c : cycle) {
        const ClassPorts its = ports.empty() ? ClassPorts{} : ports[c];
        places.ip_sums.push_back(big(fold(templates[c].ip_sum)));
        places.udp_sums.push_back(big(fold(templates[c].udp_sum)));
        places.drawn_sources.push_back(its.source.drawn);
        places.fixed_sources.push_back(its.source.fixed);
        places.drawn_destinations.push_back(its.destination.drawn);
        places.fixed_destinations.push_back(its.destination.fixed);
    }
}

ClassWriter class_writer(const FrameTemplate& t) noexcept {
    const auto kind = varying_of(t);
    if (t.version == IpVersion::v4)
        return kind == Varying::hosts_and_networks ? writer_of_classes<IpVersion::v4, Varying::hosts_and_networks>()
                                                   : writer_of_classes<IpVersion::v4, Varying::hosts>();
    switch (kind) {
        case Varying::hosts_and_networks: return writer_of_classes<IpVersion::v6, Varying::hosts_and_networks>();
        case Varying::host_octets: return writer_of_classes<IpVersion::v6, Varying::host_octets>();
        case Varying::whole_addresses: return writer_of_classes<IpVersion::v6, Varying::whole_addresses>();
        default: return writer_of_classes<IpVersion::v6, Varying::hosts>();
    }
}

FrameWriter fastest_frame_writer(const FrameTemplate& t) noexcept {
    const FrameWriter wide = frame_writer("avx2", t);
    return wide != nullptr ? wide : frame_writer("plain", t);
}

}  // namespace evenhand::frame
