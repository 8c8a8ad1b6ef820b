// SPDX-License-Identifier: Apache-2.0
#include "frame/burst_check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "frame/checksum.hpp"
#include "frame/pattern.hpp"
#include "plan/flow_patterns.hpp"
#include "simd.hpp"

namespace evenhand::frame {

namespace {

using plan::IpVersion;

constexpr unsigned whole_word = 0xFFFF;
constexpr std::size_t half_octets = 16;
constexpr std::size_t in_a_half_register = 4;  // numbers of a tag

[[nodiscard]] std::size_t tag_end_of(const FrameTemplate& t) noexcept {
    return t.version == IpVersion::v4 ? Layout<IpVersion::v4>::tag_end : Layout<IpVersion::v6>::tag_end;
}

/// In host order, what is left of the sum of an IPv4 header, without hop limit and protocol.
[[nodiscard]] std::uint32_t header_sum_of(const FrameTemplate& t) noexcept {
    constexpr std::uint32_t hops_and_protocol = unsigned{sent_ttl} << 8U | protocol_udp;
    return whole_word + big(fold(t.ip_sum)) - hops_and_protocol;
}

/// Compares the octets from `at`, right behind the tag, to `end`: 0 where they are the pattern. Prefetches the next
/// frame's octets meanwhile: to compare a frame of 1,518 octets takes longer than to read from the last cache.
template <class Behind>
__attribute__((target("avx2"), always_inline)) inline __m256i compare_behind_avx2(const Behind& behind,
                                                                                  const std::byte* at,
                                                                                  const std::byte* end,
                                                                                  const std::byte* next) noexcept {
    constexpr std::size_t part_octets = BurstCheck::part_octets;
    constexpr std::size_t step = 2 * part_octets;
    const std::byte* const pattern = pattern_octets.data() + behind.first;
    const auto differ = [](const std::byte* a, const std::byte* b) __attribute__((target("avx2"), always_inline)) {
        return _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
    };
    __m256i first = _mm256_setzero_si256();
    __m256i second = _mm256_setzero_si256();
    std::size_t of_pattern = 0;
    for (std::size_t left = behind.steps; left != 0; --left, at += step, next += step) {
        _mm_prefetch(next, _MM_HINT_T0);
        first = _mm256_or_si256(first, differ(at, pattern + of_pattern));
        second = _mm256_or_si256(second, differ(at + part_octets, pattern + of_pattern + part_octets));
        of_pattern = (of_pattern + step) % pattern_period;
    }
    _mm_prefetch(next, _MM_HINT_T0);
    _mm_prefetch(next + step, _MM_HINT_T0);
    if (behind.has_part) first = _mm256_or_si256(first, differ(at, pattern + of_pattern));
    if (behind.has_rest)
        second = _mm256_or_si256(
            second, _mm256_and_si256(differ(end - part_octets, reinterpret_cast<const std::byte*>(behind.rest.data())),
                                     _mm256_load_si256(reinterpret_cast<const __m256i*>(behind.rest_mask.data()))));
    return _mm256_or_si256(first, second);
}

/// A 64-bit number for each of eight frames.
struct Eight {
    __m256i low;
    __m256i high;
};

/// What the varying fields of eight tags add to a checksum.
struct TagLanes {
    __m256i sums;      // 32 bits each; too small by tag_sums_less
    unsigned streams;  // bit i: frame i's stream is the one that sends frames of this number
};

constexpr unsigned stream_as_read = 48;  // where the stream's octet is before the check of the time is taken out of it
constexpr std::uint32_t turned = 0x8000;
/// The multiply-add instruction takes words as signed numbers: with its highest bit flipped, a word is 0x8000 too
/// small. A tag has eight words.
constexpr std::uint32_t tag_sums_less = 8 * turned;

/// For each of four frames: whether its stream s sends its number; stream s sends s, s + streams, ...
__attribute__((target("avx2"), always_inline)) inline unsigned is_of_stream_avx2(__m256i sequences, __m256i stream,
                                                                                 std::uint64_t streams) noexcept {
    // Integers below 2^52 are exact as doubles: written into the lower bits of 2^52, they are added to it.
    const __m256d shift = _mm256_set1_pd(0x1p52);
    const __m256i rest = _mm256_sub_epi64(sequences, stream);
    const __m256d of_stream = _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(rest), shift), shift);
    const __m256d all = _mm256_set1_pd(static_cast<double>(streams));
    const __m256d rounds =
        _mm256_round_pd(_mm256_div_pd(of_stream, all), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const int whole = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_mul_pd(rounds, all), of_stream, _CMP_EQ_OQ));
    const __m256i none =
        _mm256_or_si256(_mm256_cmpgt_epi64(stream, _mm256_set1_epi64x(static_cast<long long>(streams - 1))),
                        _mm256_cmpgt_epi64(stream, sequences));
    return static_cast<unsigned>(whole & ~_mm256_movemask_pd(_mm256_castsi256_pd(none)));
}

/// Takes the numbers and times of eight frames as they are in the tags, with the stream's octet at stream_as_read.
/// Removes the check of the time from the numbers, and puts the stream where FoundBurst has it.
__attribute__((target("avx2"), always_inline)) inline TagLanes look_at_tags_avx2(Eight& numbers, const Eight& times,
                                                                                 std::uint64_t streams) noexcept {
    // Shuffles that take, from two vectors of four elements each, the lower or the upper halves of all eight elements;
    // in_order() sorts them.
    constexpr int lower_halves = 0x88;
    constexpr int upper_halves = 0xDD;
    const auto halves = [](__m256i a, __m256i b, auto which) __attribute__((target("avx2"), always_inline)) {
        return _mm256_castps_si256(
            _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), decltype(which)::value));
    };
    const auto in_order = [](__m256i of) __attribute__((target("avx2"), always_inline)) {
        return _mm256_permute4x64_epi64(of, 0xD8);
    };
    using Lower = std::integral_constant<int, lower_halves>;
    using Upper = std::integral_constant<int, upper_halves>;

    const auto add_words = [](__m256i number, __m256i time) __attribute__((target("avx2"), always_inline)) {
        const __m256i ones = _mm256_set1_epi16(1);
        const __m256i high_bits = _mm256_set1_epi16(static_cast<short>(turned));
        return _mm256_add_epi32(_mm256_madd_epi16(_mm256_xor_si256(number, high_bits), ones),
                                _mm256_madd_epi16(_mm256_xor_si256(time, high_bits), ones));
    };
    const __m256i first = add_words(numbers.low, times.low);
    const __m256i second = add_words(numbers.high, times.high);
    const __m256i sums = in_order(_mm256_add_epi32(halves(first, second, Lower{}), halves(first, second, Upper{})));

    // time_check()
    const auto fold_time = [](__m256i time) __attribute__((target("avx2"), always_inline)) {
        return _mm256_xor_si256(time, _mm256_srli_epi64(time, 32));
    };
    __m256i folded = halves(fold_time(times.low), fold_time(times.high), Lower{});
    folded = _mm256_and_si256(_mm256_xor_si256(folded, _mm256_srli_epi32(folded, 16)), _mm256_set1_epi32(whole_word));
    const __m256i check = _mm256_and_si256(
        _mm256_xor_si256(_mm256_xor_si256(folded, _mm256_srli_epi32(folded, 7)), _mm256_srli_epi32(folded, 14)),
        _mm256_set1_epi32(0x7F));
    const __m256i as_it_stands = _mm256_srli_epi32(halves(numbers.low, numbers.high, Upper{}), stream_as_read - 32);
    const __m256i sequence_bits = _mm256_set1_epi64x(static_cast<long long>(sequence_mask));
    numbers = {.low = _mm256_and_si256(numbers.low, sequence_bits),
               .high = _mm256_and_si256(numbers.high, sequence_bits)};
    if (streams == 1) {
        const __m256i is_zero = in_order(_mm256_cmpeq_epi32(as_it_stands, check));
        return {.sums = sums, .streams = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(is_zero)))};
    }
    const __m256i stream = _mm256_xor_si256(as_it_stands, check);
    const __m256i low = _mm256_unpacklo_epi32(stream, _mm256_setzero_si256());
    const __m256i high = _mm256_unpackhi_epi32(stream, _mm256_setzero_si256());
    const unsigned bits = is_of_stream_avx2(numbers.low, low, streams) | is_of_stream_avx2(numbers.high, high, streams)
                                                                             << in_a_half_register;
    numbers = {.low = _mm256_or_si256(numbers.low, _mm256_slli_epi64(low, FoundBurst::stream_shift)),
               .high = _mm256_or_si256(numbers.high, _mm256_slli_epi64(high, FoundBurst::stream_shift))};
    return {.sums = sums, .streams = bits};
}

}  // namespace

std::uint32_t BurstCheck::find_connections(ConnectionFlows& connections, const std::byte* const* frames, unsigned n,
                                           const std::uint64_t* numbers, plan::FlowBlock& block) const noexcept {
    connections.draw_listed(numbers, block);
    auto& [sources, destinations, source_ports, destination_ports] = block.lanes.field;
    std::uint32_t none = 0;
    for (unsigned i = 0; i < n; ++i) {
        if (chooses_source_) {
            const std::byte* const frame = frames[i];
            sources[i] = static_cast<std::uint32_t>(frame[source_at_.high]) << 8U |
                         static_cast<std::uint32_t>(frame[source_at_.low]);
            source_ports[i] = big(load<std::uint16_t>(frame + ports_at_));
            none |= std::uint32_t{sources[i] - sources_.first >= sources_.count} << i;
        }
        // The addresses of a connection that is not known yet are 0, and so are its ports.
        none |= std::uint32_t{source_ports[i] == 0 || destination_ports[i] == 0} << i;
    }
    return none;
}

[[gnu::always_inline]] inline void BurstCheck::find_classes(const std::uint64_t* numbers, unsigned n,
                                                            std::uint8_t* classes, plan::FlowBlock& block) noexcept {
    const std::uint64_t length = cycle_.size();
    std::fill(classes + n, classes + plan::FlowBlock::size, std::uint8_t{0});
    for (unsigned i = 0; i < n; ++i) {
        const std::uint64_t number = numbers[i] & sequence_mask;
        std::uint64_t at = number - cycle_first_;
        if (at >= length) [[unlikely]] {
            at = number % length;
            cycle_first_ = number - at;
        }
        classes[i] = cycle_[at];
    }
    if (!has_class_ports_) return;
    auto& source_ports = block.lanes.field[2];
    auto& destination_ports = block.lanes.field[3];
    for (std::size_t i = 0; i < plan::FlowBlock::size; ++i) {
        const ClassPart& its = class_parts_[classes[i]];
        source_ports[i] = its.source_port(source_ports[i]);
        destination_ports[i] = its.destination_port(destination_ports[i]);
    }
}

BurstCheck::Octets BurstCheck::with_mark(const ClassPart& part, std::uint32_t marks) const noexcept {
    Octets octets = part.expected;
    const std::uint32_t mark = marks & plan::FlowPatterns::mark_mask;
    auto* const at = reinterpret_cast<std::byte*>(octets.data() + ethernet_octets);
    store(at, load<std::uint32_t>(at) | big(version_ == IpVersion::v4 ? mark << 16U : mark));
    return octets;
}

template <IpVersion V, Varying kind, bool HasMore, bool IsTranslated, BurstCheck::Classes of_classes>
__attribute__((target("avx2"))) void BurstCheck::find_avx2(BurstCheck& check, const std::byte* const* frames,
                                                           [[maybe_unused]] const std::uint16_t* lengths, unsigned n,
                                                           FoundBurst& found) noexcept {
    using L = Layout<V>;
    constexpr bool has_classes = of_classes != Classes::none;
    constexpr bool has_sizes = of_classes == Classes::of_sizes;
    constexpr unsigned block = plan::FlowBlock::size;
    const __m128i tag_order = _mm_setr_epi8(9, 8, 7, 6, 5, 4, 3, -1, 15, 14, 13, 12, 11, 10, -1, -1);
    const __m128i no_direction = _mm_set1_epi64x(~(std::int64_t{direction_bit} << stream_as_read));
    const auto of = [](const auto& array) __attribute__((target("avx2"), always_inline)) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(array.data()));
    };
    const auto at = [](std::uint64_t* place)
                        __attribute__((target("avx2"), always_inline)) { return reinterpret_cast<__m256i*>(place); };
    const unsigned padded = (n + block - 1) / block * block;
    // Hop limit, protocol and checksum of the IPv4 header. Written here, long before several are loaded together: a
    // wide load right after narrow stores would wait for each of them.
    alignas(part_octets) std::array<std::uint32_t, V == IpVersion::v4 ? most_frames : 0> heads;
    // The same of a translator: identification, flags and fragment offset.
    alignas(part_octets) std::array<std::uint32_t, IsTranslated ? most_frames : 0> fragments;
    for (unsigned i = 0; i < n; ++i) {
        if constexpr (V == IpVersion::v4) heads[i] = load<std::uint32_t>(frames[i] + L::ip + 8);
        if constexpr (IsTranslated) fragments[i] = load<std::uint32_t>(frames[i] + L::ip + 4);
        if constexpr (V == IpVersion::v6) _mm_prefetch(frames[i], _MM_HINT_T0);
        const auto* const numbers_of_tag = reinterpret_cast<const __m128i*>(frames[i] + L::tag_end - half_octets);
        const __m128i tag = _mm_shuffle_epi8(_mm_loadu_si128(numbers_of_tag), tag_order);
        const __m128i number = _mm_and_si128(tag, no_direction);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(&found.numbers[i]), number);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(&found.times[i]), _mm_unpackhi_epi64(tag, tag));
    }
    for (unsigned i = n; i < padded; ++i) {
        found.numbers[i] = found.times[i] = 0;
        if constexpr (V == IpVersion::v4) heads[i] = 0;
        if constexpr (IsTranslated) fragments[i] = 0;
    }

    std::uint64_t known = 0;
    for (unsigned begin = 0; begin < n; begin += block) {
        const unsigned in_block = std::min(block, n - begin);
        const std::byte* const* of_block = frames + begin;
        alignas(part_octets) std::array<std::uint32_t, block> tag_sums;
        std::uint32_t right = 0;
        for (unsigned i = 0; i < block; i += lanes) {
            const unsigned first = begin + i;
            const unsigned second = first + in_a_half_register;
            Eight numbers{.low = _mm256_load_si256(at(&found.numbers[first])),
                          .high = _mm256_load_si256(at(&found.numbers[second]))};
            const Eight times{.low = _mm256_load_si256(at(&found.times[first])),
                              .high = _mm256_load_si256(at(&found.times[second]))};
            const TagLanes tags = look_at_tags_avx2(numbers, times, check.streams_);
            _mm256_store_si256(at(&found.numbers[first]), numbers.low);
            _mm256_store_si256(at(&found.numbers[second]), numbers.high);
            _mm256_store_si256(reinterpret_cast<__m256i*>(&tag_sums[i]), tags.sums);
            right |= tags.streams << i;
        }
        plan::FlowBlock flows;
        if (auto* const draw = std::get_if<plan::FlowDraw>(&check.draw_)) [[likely]]
            draw->draw_listed(&found.numbers[begin], flows);
        else
            right &= ~check.find_connections(*std::get_if<ConnectionFlows>(&check.draw_), of_block, in_block,
                                             &found.numbers[begin], flows);
        alignas(part_octets) std::array<std::uint32_t, V == IpVersion::v4 && has_classes ? block : 0> header_sums;
        alignas(part_octets) std::array<std::uint32_t, has_sizes ? block : 0> udp_sums;
        std::array<const std::byte*, has_sizes ? block : 0> of_right_length;
        if constexpr (has_classes) {
            check.find_classes(&found.numbers[begin], in_block, &found.classes[begin], flows);
            if constexpr (V == IpVersion::v4) {
                for (unsigned i = 0; i < block; ++i)
                    header_sums[i] = check.class_parts_[found.classes[begin + i]].header_sum;
                if (check.has_mark_patterns_) {
                    for (unsigned i = 0; i < block; ++i)
                        header_sums[i] += flows.marks[i] & plan::FlowPatterns::mark_mask;
                }
            }
        }
        if constexpr (has_sizes) {
            for (unsigned i = 0; i < block; ++i)
                udp_sums[i] = check.sizes_[check.class_parts_[found.classes[begin + i]].size].udp_sum;
            for (unsigned i = 0; i < in_block; ++i) {
                const bool is_right = lengths[begin + i] == check.class_parts_[found.classes[begin + i]].octets;
                of_right_length[i] = is_right ? of_block[i] : no_frame.data();
                right &= ~(std::uint32_t{!is_right} << i);
            }
            of_block = of_right_length.data();
        }
        Words words[block];
        for (unsigned i = 0; i < in_block; i += lanes) {
            const FlowLanes flow = flow_lanes<kind>(flows, i, check.counted_);
            const __m256i sums = _mm256_add_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(&tag_sums[i])),
                                                  _mm256_add_epi32(flow.from_port, flow.to_port));
            __m256i udp_sum;
            if constexpr (has_sizes)
                udp_sum = _mm256_load_si256(reinterpret_cast<const __m256i*>(&udp_sums[i]));
            else
                udp_sum = _mm256_set1_epi32(static_cast<int>(check.size_.udp_sum));
            const __m256i udp = fold_lanes(_mm256_sub_epi32(udp_sum, _mm256_add_epi32(flow.addresses, sums)));
            put_words<kind>(flow, _mm256_setzero_si256(), udp, words + i);
            if constexpr (V == IpVersion::v4) {
                // Hop limit, protocol and checksum of the header are two words; they are added to the sum of the
                // header's other words.
                const __m256i order =
                    _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
                const __m256i read = _mm256_load_si256(reinterpret_cast<const __m256i*>(&heads[begin + i]));
                const __m256i both = _mm256_shuffle_epi8(read, order);
                const __m256i low = _mm256_set1_epi32(whole_word);
                __m256i others_of_header;
                if constexpr (has_classes)
                    others_of_header = _mm256_load_si256(reinterpret_cast<const __m256i*>(&header_sums[i]));
                else
                    others_of_header = _mm256_set1_epi32(static_cast<int>(check.header_sum_));
                __m256i header =
                    _mm256_add_epi32(_mm256_add_epi32(_mm256_and_si256(both, low), _mm256_srli_epi32(both, 16)),
                                     _mm256_add_epi32(flow.addresses, others_of_header));
                if constexpr (IsTranslated) {
                    const __m256i two = _mm256_shuffle_epi8(
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(&fragments[begin + i])), order);
                    header = _mm256_add_epi32(header,
                                              _mm256_add_epi32(_mm256_and_si256(two, low), _mm256_srli_epi32(two, 16)));
                    // No flag but "don't fragment" may be set, and no offset.
                    const __m256i others = _mm256_and_si256(two, _mm256_set1_epi32(static_cast<int>(0xBFFF0000)));
                    const __m256i whole = _mm256_cmpeq_epi32(others, _mm256_setzero_si256());
                    right &= ~(0xFFU << i) | static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(whole))) << i;
                }
                const __m256i good = _mm256_cmpeq_epi32(fold_lanes(header), low);
                right &= ~(0xFFU << i) | static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(good))) << i;
            }
        }
        // Not 0 if a frame is not as it was sent.
        const auto compare = [&](unsigned i) __attribute__((target("avx2"), always_inline)) {
            const std::byte* const frame = of_block[i];
            const __m256i varying = _mm256_broadcastsi128_si256(words[i]);
            __m256i wrong = _mm256_setzero_si256();
            const Size* size = &check.size_;
            if constexpr (has_sizes) size = &check.sizes_[check.class_parts_[found.classes[begin + i]].size];
            for (std::size_t p = 0; p < parts; ++p) {
                const Part& part = check.parts_[p];
                const __m256i octets = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(frame + check.part_at_[p]));
                __m256i constant = of(part.expected);
                if constexpr (has_classes) {  // what differs is in front of octet 32, but for the length
                    if (p == 0) {
                        const ClassPart& its = check.class_parts_[found.classes[begin + i]];
                        constant = of(its.expected);
                        if (check.has_mark_patterns_) [[unlikely]] {
                            alignas(part_octets) const Octets marked = check.with_mark(its, flows.marks[i]);
                            constant = of(marked);
                        }
                    } else if constexpr (has_sizes) {
                        constant = of(size->second);
                    }
                }
                const __m256i expected = _mm256_or_si256(_mm256_shuffle_epi8(varying, of(part.from)), constant);
                wrong = _mm256_or_si256(wrong, _mm256_subs_epu8(_mm256_sub_epi8(octets, expected), of(part.most)));
            }
            if constexpr (kind == Varying::whole_addresses) {
                const __m256i octets = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(frame + L::source));
                wrong = _mm256_or_si256(wrong, _mm256_xor_si256(octets, of(flows.addresses[i])));
            }
            if constexpr (V == IpVersion::v6) {
                const auto head = load<std::uint32_t>(frame + L::tag_end - half_octets) ^ check.tag_head_;
                constexpr std::uint32_t no_stream = 0x80FFFFFF;  // the stream was checked above
                wrong = _mm256_or_si256(wrong,
                                        _mm256_castsi128_si256(_mm_cvtsi32_si128(static_cast<int>(head & no_stream))));
            }
            if constexpr (HasMore) {
                const std::byte* const next = frames[std::min(begin + i + 1, n - 1)];
                wrong = _mm256_or_si256(wrong, compare_behind_avx2(size->behind, frame + L::tag_end,
                                                                   frame + size->octets, next + L::tag_end));
            }
            return wrong;
        };
        // Nearly always all frames are right. Only if one is not, each is compared by itself.
        __m256i wrong_of_any = _mm256_setzero_si256();
        for (unsigned i = 0; i < in_block; ++i) wrong_of_any = _mm256_or_si256(wrong_of_any, compare(i));
        if (_mm256_testz_si256(wrong_of_any, wrong_of_any) == 0) [[unlikely]] {
            for (unsigned i = 0; i < in_block; ++i) {
                const __m256i wrong = compare(i);
                right &= ~(std::uint32_t{_mm256_testz_si256(wrong, wrong) == 0} << i);
            }
        }
        known |= std::uint64_t{right} << begin;
    }
    found.known = known & first_bits(n);
    note_runs_avx2(n, found);
}

/// Compares four frames at a time with those that came one place before them.
__attribute__((target("avx2"))) void BurstCheck::note_runs_avx2(unsigned n, FoundBurst& found) noexcept {
    constexpr unsigned together = 4;
    const __m256i one = _mm256_set1_epi64x(1);
    const auto at = [](const std::uint64_t* place) __attribute__((target("avx2"), always_inline)) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(place));
    };
    const auto zeros = [](__m256i of) __attribute__((target("avx2"), always_inline)) {
        return static_cast<unsigned>(
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(of, _mm256_setzero_si256()))));
    };
    std::uint64_t same_time = 0;
    std::uint64_t rises = 0;
    __m256i last_numbers = _mm256_setzero_si256();
    __m256i last_times = _mm256_setzero_si256();
    for (unsigned i = 0; i < n; i += together) {
        const __m256i numbers = at(&found.numbers[i]);
        const __m256i times = at(&found.times[i]);
        /// The numbers of the frames before: moved up by one place, with the last of the previous four in front.
        const auto before = [](__m256i last, __m256i these) __attribute__((target("avx2"), always_inline)) {
            return _mm256_alignr_epi8(these, _mm256_permute2x128_si256(last, these, 0x21), 8);
        };
        same_time |= std::uint64_t{zeros(_mm256_xor_si256(times, before(last_times, times)))} << i;
        // Within a stream a number is larger by 1 .. 2^48 - 1; otherwise the difference has higher bits.
        const __m256i more = _mm256_sub_epi64(_mm256_sub_epi64(numbers, before(last_numbers, numbers)), one);
        rises |= std::uint64_t{zeros(_mm256_srli_epi64(more, 48))} << i;
        last_numbers = numbers;
        last_times = times;
    }
    found.new_time = ~same_time;
    found.new_rise = ~rises;
}

BurstCheck::BurstCheck(const FrameTemplate& t, const LinkFrames& arrives, const BurstFlows& flows, StreamIdentity of,
                       const std::optional<plan::MacAddress>& mac)
    : version_{t.version},
      octets_{t.octets},
      least_octets_{t.octets},
      counted_{counted_octets(t)},
      header_sum_{header_sum_of(t)},
      draw_{flows.draw},
      streams_{flows.streams},
      is_translated_{flows.is_translated},
      chooses_source_{flows.chooses_source},
      source_at_{t.source},
      ports_at_{t.version == IpVersion::v4 ? Layout<IpVersion::v4>::udp : Layout<IpVersion::v6>::udp},
      sources_{arrives.sources.host},
      classes_{flows.classes} {
    const bool is_v4 = t.version == IpVersion::v4;
    const std::size_t tag_end = tag_end_of(t);
    const std::size_t tag_numbers = tag_end - half_octets + sizeof(std::uint32_t);
    part_at_ = is_v4 ? std::array{std::size_t{0}, tag_numbers - part_octets} : std::array{std::size_t{0}, part_octets};
    tag_head_ = load<std::uint32_t>(t.head.data() + tag_end - half_octets);
    for (std::size_t p = 0; p < parts; ++p) parts_[p] = part_of(t, p, mac);
    size_ = size_of(t, arrives.first_of_pattern, mac);
    if (classes_) fill_classes(arrives, of, mac);
    find_ = is_v4 ? find_for<IpVersion::v4>(varying_of(t)) : find_for<IpVersion::v6>(varying_of(t));
}

BurstCheck::Part BurstCheck::part_of(const FrameTemplate& t, std::size_t number,
                                     const std::optional<plan::MacAddress>& mac) const noexcept {
    const bool is_v4 = t.version == IpVersion::v4;
    const WordPlaces places = word_places(t);
    Part part;
    for (std::size_t i = 0; i < part_octets; ++i) {
        const std::size_t at = part_at_[number] + i;
        part.from[i] = places[at];
        part.expected[i] = static_cast<std::uint8_t>(t.head[at]);
        const auto may_be = [&](std::uint8_t first, unsigned count) {
            part.from[i] = of_template;
            part.expected[i] = first;
            part.most[i] = static_cast<std::uint8_t>(count - 1);
        };
        constexpr unsigned any = 256;
        constexpr std::size_t mac_octets = 6;
        const std::size_t hop_limit = is_v4 ? Layout<IpVersion::v4>::ip + 8 : Layout<IpVersion::v6>::ip + 7;
        const std::size_t checksum = Layout<IpVersion::v4>::ipv4_checksum;
        const std::size_t fragment = Layout<IpVersion::v4>::ip + 4;
        const auto stream = static_cast<std::uint8_t>(static_cast<std::uint8_t>(t.head[at]) & direction_bit);
        if (at < mac_octets && mac) part.expected[i] = (*mac)[at];
        if ((at < mac_octets && !mac) || (at >= mac_octets && at < 2 * mac_octets)) may_be(0, any);
        if (at == hop_limit) may_be(1, sent_ttl);
        // Compared by themselves.
        constexpr std::size_t addresses = Layout<IpVersion::v6>::source;
        if (varying_of(t) == Varying::whole_addresses && at >= addresses &&
            at < addresses + plan::FlowBlock::pair_octets)
            may_be(0, any);
        if (is_v4 && (at == checksum || at == checksum + 1)) may_be(0, any);
        if (is_v4 && is_translated_ && at >= fragment && at < fragment + sizeof(std::uint32_t)) may_be(0, any);
        if (at == tag_end_of(t) - tag_octets + tag_stream) may_be(stream, direction_bit);
    }
    return part;
}

BurstCheck::Size BurstCheck::size_of(const FrameTemplate& t, std::uint8_t first_of_pattern,
                                     const std::optional<plan::MacAddress>& mac) const noexcept {
    constexpr std::size_t step = 2 * part_octets;
    const std::size_t octets = t.octets - tag_end_of(t);
    const std::size_t rest = octets % part_octets;
    Size size;
    size.behind.steps = octets / step;
    size.behind.has_part = octets % step >= part_octets;
    size.behind.has_rest = rest != 0;
    size.behind.first = first_of_pattern;
    for (std::size_t i = 0; i < rest; ++i) {
        size.behind.rest[part_octets - rest + i] = static_cast<std::uint8_t>(first_of_pattern + octets - rest + i);
        size.behind.rest_mask[part_octets - rest + i] = 0xFF;
    }
    size.second = part_of(t, parts - 1, mac).expected;
    // The subtracted numbers are four words of addresses, two ports, and the sums of a tag's numbers, which are below
    // 2^20.
    constexpr std::uint32_t most_subtracted = 32;
    size.udp_sum = most_subtracted * whole_word - big(fold(t.udp_sum)) - tag_sums_less;
    size.octets = static_cast<std::uint32_t>(t.octets);
    return size;
}

void BurstCheck::fill_classes(const LinkFrames& arrives, StreamIdentity of,
                              const std::optional<plan::MacAddress>& mac) {
    has_mark_patterns_ = classes_->has_mark_patterns;
    const bool is_v4 = version_ == IpVersion::v4;
    for (const auto& c : classes_->classes) {
        // A class of the other plan has frames here as any other, but of a length that none has.
        const std::size_t octets = c.octets != 0 ? c.octets : octets_;
        const FrameTemplate t = make_arriving_template(version_, {arrives.sources, arrives.destinations},
                                                       octets + fcs_octets, of, arrives.first_of_pattern);
        const auto same = std::ranges::find(sizes_, octets, &Size::octets);
        const auto size = static_cast<std::uint8_t>(same - sizes_.begin());
        if (same == sizes_.end()) sizes_.push_back(size_of(t, arrives.first_of_pattern, mac));
        octets_ = std::max(octets_, octets);
        least_octets_ = std::min(least_octets_, octets);
        // The mark of IPv6 begins within an octet, behind the version.
        const std::uint32_t mark = is_v4 ? big(c.mark << 16U) : big(c.mark);
        ClassPart part{.expected = part_of(t, 0, mac).expected,
                       .header_sum = header_sum_of(t) + c.mark,
                       .octets = static_cast<std::uint16_t>(c.octets),
                       .size = size,
                       .source_port = c.source_port,
                       .destination_port = c.destination_port};
        for (std::size_t i = 0; i < sizeof mark; ++i)
            part.expected[ethernet_octets + i] |= static_cast<std::uint8_t>(mark >> 8U * i);
        class_parts_.push_back(part);
        has_class_ports_ |= c.source_port.drawn == 0 || c.destination_port.drawn == 0;
    }
    // Long enough that a burst seldom falls into two rounds.
    constexpr std::size_t shortest = 65'536;
    const auto& cycle = classes_->cycle;
    while (cycle_.size() < shortest) cycle_.insert(cycle_.end(), cycle.begin(), cycle.end());
}

template <IpVersion V>
BurstCheck::Find BurstCheck::find_for(Varying kind) const noexcept {
    const bool has_more = octets_ != Layout<V>::tag_end;
    const bool has_sizes =
        classes_ && (sizes_.size() > 1 || is_translated_ ||
                     std::ranges::count(classes_->classes, std::size_t{0}, &BurstClasses::OfClass::octets) != 0);
    const auto of = [&]<Varying of_kind>() -> Find {
        if constexpr (V == IpVersion::v4) {
            if (is_translated_ && classes_) return find_avx2<V, of_kind, true, true, Classes::of_sizes>;
            if (is_translated_)
                return has_more ? find_avx2<V, of_kind, true, true> : find_avx2<V, of_kind, false, true>;
        }
        if (has_sizes) return find_avx2<V, of_kind, true, false, Classes::of_sizes>;
        if (classes_)
            return has_more ? find_avx2<V, of_kind, true, false, Classes::of_one_size>
                            : find_avx2<V, of_kind, false, false, Classes::of_one_size>;
        return has_more ? find_avx2<V, of_kind, true, false> : find_avx2<V, of_kind, false, false>;
    };
    if (kind == Varying::hosts_and_networks) return of.template operator()<Varying::hosts_and_networks>();
    if constexpr (V == IpVersion::v6) {
        if (kind == Varying::host_octets) return of.template operator()<Varying::host_octets>();
        if (kind == Varying::whole_addresses) return of.template operator()<Varying::whole_addresses>();
    }
    return of.template operator()<Varying::hosts>();
}

std::optional<BurstCheck> BurstCheck::make(const LinkFrames& arrives, const std::optional<plan::MacAddress>& mac,
                                           StreamIdentity of, const BurstFlows& flows) {
    if (__builtin_cpu_supports("avx2") == 0) return std::nullopt;
    of.stream = 0;
    const FrameTemplate shape = make_arriving_template(arrives.version, {arrives.sources, arrives.destinations},
                                                       arrives.frame_size, of, arrives.first_of_pattern);
    return BurstCheck{shape, arrives, flows, of, mac};
}

void BurstChecks::find_some(std::uint64_t which, const std::byte* const* frames, const std::uint16_t* lengths,
                            FoundBurst& found) noexcept {
    if (which == 0) return;
    std::array<const std::byte*, FoundBurst::most_frames> some;
    std::array<std::uint16_t, FoundBurst::most_frames> of_some;
    std::array<std::uint8_t, FoundBurst::most_frames> places;
    const std::size_t least = first_->least_octets();
    unsigned n = 0;
    for (std::uint64_t left = which; left != 0; left &= left - 1, ++n) {
        const auto place = static_cast<unsigned>(std::countr_zero(left));
        const bool can_be = lengths[place] >= least;
        places[n] = static_cast<std::uint8_t>(place);
        some[n] = can_be ? frames[place] : no_frame.data();
        of_some[n] = can_be ? lengths[place] : std::uint16_t{0};
    }
    FoundBurst of_them;
    find_alike(some.data(), n, of_them, of_some.data());
    for (unsigned i = 0; i < n; ++i) {
        found.known |= (of_them.known >> i & 1U) << places[i];
        found.numbers[places[i]] = of_them.numbers[i];
        found.times[places[i]] = of_them.times[i];
        found.classes[places[i]] = of_them.classes[i];
    }
}

void BurstChecks::find_of_both(const std::byte* const* frames, unsigned n, FoundBurst& found,
                               const std::uint16_t* lengths) noexcept {
    std::uint64_t of_version = 0;
    for (unsigned i = 0; i < n; ++i) of_version |= std::uint64_t{is_of_version(frames[i])} << i;
    found.known = 0;
    find_some(of_version, frames, lengths, found);
    other_->find_some(first_bits(n) & ~of_version, frames, lengths, found);
    BurstCheck::note_runs_avx2(n, found);
}

}  // namespace evenhand::frame
