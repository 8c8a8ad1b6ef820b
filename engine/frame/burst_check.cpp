// SPDX-License-Identifier: Apache-2.0
#include "frame/burst_check.hpp"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "frame/checksum.hpp"

namespace evenhand::frame {

namespace {

using plan::IpVersion;

constexpr unsigned whole_word = 0xFFFF;
constexpr unsigned octet_bits = 8;
constexpr unsigned upper_octet = 0xFF00;
constexpr unsigned lower_octet = 0x00FF;
constexpr std::size_t half_octets = 16;

/// What is behind the tag at `at`: words less 0x8000, eight sums. Meanwhile the next frame's is fetched: at the rate
/// that these sums have, a frame of 1,518 octets outlasts the way from the last cache.
template <class Behind>
__attribute__((target("avx2"), always_inline)) inline __m256i sum_behind_avx2(const Behind& behind, const std::byte* at,
                                                                              const std::byte* next) noexcept {
    constexpr std::size_t part_octets = BurstCheck::part_octets;
    constexpr std::size_t step = 2 * part_octets;
    const __m256i high_bits = _mm256_set1_epi16(static_cast<short>(0x8000));
    const __m256i ones = _mm256_set1_epi16(1);
    const auto sum = [&](const std::byte* octets, __m256i covered) __attribute__((target("avx2"), always_inline)) {
        return _mm256_madd_epi16(
            _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(octets)), high_bits), covered);
    };
    __m256i first = _mm256_setzero_si256();
    __m256i second = _mm256_setzero_si256();
    for (std::size_t left = behind.steps; left != 0; --left, at += step, next += step) {
        _mm_prefetch(next, _MM_HINT_T0);
        first = _mm256_add_epi32(first, sum(at, ones));
        second = _mm256_add_epi32(second, sum(at + part_octets, ones));
    }
    _mm_prefetch(next, _MM_HINT_T0);
    _mm_prefetch(next + step, _MM_HINT_T0);
    // The rest is read up to its end, from before its beginning.
    for (std::size_t i = 0; i < behind.rest_parts; ++i) {
        const __m256i covered =
            _mm256_load_si256(reinterpret_cast<const __m256i*>(&behind.rest_words[i * part_octets / 2]));
        first = _mm256_add_epi32(first, sum(at + behind.rest_octets - (i + 1) * part_octets, covered));
    }
    if (behind.has_odd_octet) {
        const auto odd = static_cast<int>(at[behind.rest_octets]);
        second = _mm256_add_epi32(second, _mm256_castsi128_si256(_mm_cvtsi32_si128(odd)));
    }
    return _mm256_add_epi32(first, second);
}

}  // namespace

std::size_t BurstCheck::part_of(std::size_t at) const noexcept {
    std::size_t part = 0;
    while (at >= part_at_[part] + part_octets) ++part;
    return part;
}

/// The word at this even place, masked, is one of `count` numbers from `first` on.
void BurstCheck::require(std::size_t at, unsigned mask, unsigned first, unsigned count, Order order) noexcept {
    const std::size_t part = part_of(at);
    const std::size_t word = (at - part_at_[part]) / 2;
    parts_[part].mask[word] = static_cast<std::uint16_t>(mask);
    parts_[part].first[word] = static_cast<std::uint16_t>(first & mask);
    parts_[part].most[word] = static_cast<std::uint16_t>(count - 1);
    if (order == as_it_stands) std::swap(parts_[part].order[2 * word], parts_[part].order[2 * word + 1]);
}

bool BurstCheck::require(const plan::HostRange& hosts, std::size_t address_at) noexcept {
    const bool has_networks = hosts.has_network_octets();
    if (hosts.shares_octets() || !hosts.is_word() || (has_networks && hosts.network->offset % 2 != 0)) return false;
    const std::size_t octets = plan::address_octets(hosts.base.version);
    for (std::size_t i = 0; i < octets; i += 2) {
        const auto word = big(load<std::uint16_t>(reinterpret_cast<const std::byte*>(hosts.base.octets.data()) + i));
        require(address_at + i, whole_word, word);
    }
    require(address_at + hosts.offset, whole_word, hosts.host.first, hosts.host.count);
    if (has_networks) require(address_at + hosts.network->offset, whole_word, hosts.first_network(), hosts.networks());
    return true;
}

/// Four frames at a time: their sums are brought together, folded and compared in one register.
template <IpVersion V, bool HasMore>
__attribute__((target("avx2"))) void BurstCheck::find_avx2(const BurstCheck& check, const std::byte* const* frames,
                                                           unsigned n, FoundBurst& found) noexcept {
    using L = Layout<V>;
    constexpr unsigned together = 4;
    constexpr std::size_t used_parts = V == IpVersion::v4 ? 2 : 3;
    const __m256i high_bits = _mm256_set1_epi16(static_cast<short>(0x8000));
    const __m128i lower_words = _mm_set1_epi32(whole_word);
    const __m128i tag_order = _mm_setr_epi8(9, 8, 7, 6, 5, 4, -1, 3, 15, 14, 13, 12, 11, 10, -1, -1);
    const __m128i no_direction = _mm_set1_epi64x(~(std::int64_t{direction_bit} << FoundBurst::stream_shift));
    const auto of = [](const auto& array) __attribute__((target("avx2"), always_inline)) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(array.data()));
    };
    /// The sums of four frames, each in its lane.
    const auto join = [](const auto& sums) __attribute__((target("avx2"), always_inline)) {
        const __m256i halves =
            _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
        return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    };
    /// Whether each sum, folded, is 0xFFFF: it is, of words that are not all 0, if it is divisible by 0xFFFF.
    const auto are_good = [&](__m128i sums) __attribute__((target("avx2"), always_inline)) {
        for (int carry = 0; carry < 2; ++carry)
            sums = _mm_add_epi32(_mm_and_si128(sums, lower_words), _mm_srli_epi32(sums, 16));
        return _mm_cmpeq_epi32(sums, lower_words);
    };
    const __m128i udp_rest = _mm_set1_epi32(static_cast<int>(check.udp_rest_));
    const __m128i header_rest = _mm_set1_epi32(static_cast<int>(check.header_rest_));
    std::uint64_t known = 0;
    for (unsigned i = 0; i < n; i += together) {
        std::array<const std::byte*, together> of_four;
        for (unsigned k = 0; k < together; ++k) of_four[k] = frames[std::min(i + k, n - 1)];
        __m256i udp[together];     // NOLINT(modernize-avoid-c-arrays): std::array forgets how a register is aligned
        __m256i header[together];  // NOLINT(modernize-avoid-c-arrays)
        __m128i tags[together];    // NOLINT(modernize-avoid-c-arrays)
        unsigned right = 0;
        for (unsigned k = 0; k < together; ++k) {
            __m256i wrong = _mm256_setzero_si256();
            udp[k] = _mm256_setzero_si256();
            header[k] = _mm256_setzero_si256();
            for (std::size_t p = 0; p < used_parts; ++p) {
                const Part& part = check.parts_[p];
                const __m256i octets =
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_four[k] + check.part_at_[p]));
                const __m256i words = _mm256_and_si256(_mm256_shuffle_epi8(octets, of(part.order)), of(part.mask));
                wrong =
                    _mm256_or_si256(wrong, _mm256_subs_epu16(_mm256_sub_epi16(words, of(part.first)), of(part.most)));
                // A multiply-add takes words as signed numbers: with their highest bit turned they are 0x8000 less.
                const __m256i turned = _mm256_xor_si256(octets, high_bits);
                udp[k] = _mm256_add_epi32(udp[k], _mm256_madd_epi16(turned, of(part.udp)));
                if constexpr (V == IpVersion::v4)
                    header[k] = _mm256_add_epi32(header[k], _mm256_madd_epi16(turned, of(part.header)));
            }
            right |= static_cast<unsigned>(_mm256_testz_si256(wrong, wrong) != 0) << k;
            if constexpr (HasMore) {
                const std::byte* const next = frames[std::min(i + k + 1, n - 1)];
                udp[k] = _mm256_add_epi32(udp[k],
                                          sum_behind_avx2(check.behind_, of_four[k] + L::tag_end, next + L::tag_end));
            }
            const auto* const numbers_of_tag = reinterpret_cast<const __m128i*>(of_four[k] + L::tag_end - half_octets);
            tags[k] = _mm_shuffle_epi8(_mm_loadu_si128(numbers_of_tag), tag_order);
        }
        for (unsigned k = 0; k < together; k += 2) {
            _mm_store_si128(reinterpret_cast<__m128i*>(&found.numbers[i + k]),
                            _mm_and_si128(_mm_unpacklo_epi64(tags[k], tags[k + 1]), no_direction));
            _mm_store_si128(reinterpret_cast<__m128i*>(&found.times[i + k]), _mm_unpackhi_epi64(tags[k], tags[k + 1]));
        }
        __m128i good = are_good(_mm_add_epi32(join(udp), udp_rest));
        if constexpr (V == IpVersion::v4)
            good = _mm_and_si128(good, are_good(_mm_add_epi32(join(header), header_rest)));
        right &= static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(good)));
        known |= std::uint64_t{right} << i;
    }
    found.known = n < most_frames ? known & ((std::uint64_t{1} << n) - 1) : known;
    note_runs_avx2(n, found);
}

/// Four frames at a time, against those that stand one place before.
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
        /// Of the frame before: moved up by one place, the last one of those before in front.
        const auto before = [](__m256i last, __m256i these) __attribute__((target("avx2"), always_inline)) {
            return _mm256_alignr_epi8(these, _mm256_permute2x128_si256(last, these, 0x21), 8);
        };
        same_time |= std::uint64_t{zeros(_mm256_xor_si256(times, before(last_times, times)))} << i;
        // Within a stream a number is larger by 1 .. 2^48 - 1; everything else has higher bits.
        const __m256i more = _mm256_sub_epi64(_mm256_sub_epi64(numbers, before(last_numbers, numbers)), one);
        rises |= std::uint64_t{zeros(_mm256_srli_epi64(more, 48))} << i;
        last_numbers = numbers;
        last_times = times;
    }
    found.new_time = ~same_time;
    found.new_rise = ~rises;
}

std::optional<BurstCheck> BurstCheck::make(const LinkFrames& arrives, const std::optional<plan::MacAddress>& mac,
                                           StreamIdentity of) {
    if (__builtin_cpu_supports("avx2") == 0) return std::nullopt;
    BurstCheck check;
    check.version_ = arrives.version;
    check.octets_ = arrives.frame_size - fcs_octets;
    const auto fill = [&]<IpVersion V>() {
        using L = Layout<V>;
        constexpr bool is_v4 = V == IpVersion::v4;
        check.find_ = check.octets_ == L::tag_end ? find_avx2<V, false> : find_avx2<V, true>;
        check.tag_at_ = L::tag;
        check.part_at_ = is_v4 ? std::array<std::size_t, parts>{0, L::tag_end - part_octets, L::tag_end}
                               : std::array<std::size_t, parts>{0, part_octets, L::tag_end - part_octets};
        for (auto& part : check.parts_) {
            for (std::size_t i = 0; i < part_octets; ++i)
                part.order[i] = static_cast<std::uint8_t>((i % half_octets) ^ 1U);  // within each half of a register
        }
        const std::size_t udp_length = check.octets_ - L::udp;
        check.udp_rest_ = static_cast<std::uint32_t>(pseudo_header_sum(protocol_udp, udp_length));
        constexpr std::uint32_t turned = 0x8000;  // so much each word is less for a multiply-add
        for (std::size_t at = 0; at < L::tag_end; at += 2) {
            const std::size_t part = check.part_of(at);
            const std::size_t in_part = at - check.part_at_[part];
            if (at >= L::source) {
                check.parts_[part].udp[in_part / 2] = 1;
                check.udp_rest_ += turned;
            }
            if (is_v4 && at >= L::ip && at < L::udp) {
                check.parts_[part].header[in_part / 2] = 1;
                check.header_rest_ += turned;
            }
        }
        const std::size_t behind = check.octets_ - L::tag_end;
        constexpr std::size_t step = 2 * part_octets;
        Behind& b = check.behind_;
        b.steps = behind / step;
        b.has_odd_octet = behind % 2 != 0;
        b.rest_octets = behind % step / 2 * 2;
        b.rest_parts = (b.rest_octets + part_octets - 1) / part_octets;
        for (std::size_t i = 0; i < b.rest_octets / 2; ++i) {
            constexpr std::size_t words = part_octets / 2;
            b.rest_words[i / words * words + words - 1 - i % words] = 1;
        }
        check.udp_rest_ += static_cast<std::uint32_t>(behind / 2 * turned);
        if (mac) {
            for (std::size_t i = 0; i < mac->size(); i += 2)
                check.require(i, whole_word, static_cast<unsigned>((*mac)[i]) << octet_bits | (*mac)[i + 1]);
        }
        constexpr std::size_t ethertype_at = 12;
        check.require(ethertype_at, whole_word, is_v4 ? ethertype_ipv4 : ethertype_ipv6);
        if constexpr (is_v4) {
            constexpr unsigned version_and_length = 0x4500;  // no options
            constexpr unsigned fragment_bits = 0x3FFF;       // more fragments, and the offset
            check.require(L::ip, upper_octet, version_and_length);
            check.require(L::ip + 2, whole_word, static_cast<unsigned>(check.octets_ - L::ip));
            check.require(L::ip + 6, fragment_bits, 0);
            // Of the hop limit and the protocol behind it the latter is the upper one here.
            check.require(L::ip + 8, whole_word, unsigned{protocol_udp} << octet_bits | 1U, sent_ttl, as_it_stands);
        } else {
            constexpr unsigned version_bits = 0xF000;
            constexpr unsigned version_6 = 0x6000;
            check.require(L::ip, version_bits, version_6);
            check.require(L::ip + 4, whole_word, static_cast<unsigned>(udp_length));
            check.require(L::ip + 6, whole_word, unsigned{protocol_udp} << octet_bits | 1U, sent_ttl);
        }
        check.require(L::udp, whole_word, arrives.source_ports.first, arrives.source_ports.count);
        check.require(L::udp + 2, whole_word, arrives.destination_ports.first, arrives.destination_ports.count);
        check.require(L::udp_length, whole_word, static_cast<unsigned>(udp_length));
        check.require(L::tag, whole_word, tag_magic >> octet_bits);
        check.require(L::tag + 2, whole_word, (tag_magic & lower_octet) << octet_bits | of.trial >> octet_bits);
        const unsigned direction = of.direction == plan::Direction::reverse ? unsigned{direction_bit} : 0U;
        check.require(L::tag + 4, upper_octet | direction_bit, (of.trial & lower_octet) << octet_bits | direction);
        return check.require(arrives.sources, L::source) && check.require(arrives.destinations, L::destination);
    };
    const bool is_possible =
        arrives.version == IpVersion::v4 ? fill.operator()<IpVersion::v4>() : fill.operator()<IpVersion::v6>();
    if (!is_possible) return std::nullopt;
    return check;
}

}  // namespace evenhand::frame
