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
    if (hosts.shares_octets() || hosts.offset % 2 != 0 || (has_networks && hosts.network->offset % 2 != 0))
        return false;
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
template <IpVersion V>
__attribute__((target("avx2"))) std::uint64_t BurstCheck::find_avx2(const BurstCheck& check,
                                                                    const std::byte* const* frames,
                                                                    unsigned n) noexcept {
    using L = Layout<V>;
    constexpr unsigned together = 4;
    constexpr std::size_t used_parts = V == IpVersion::v4 ? 2 : 3;
    // A multiply-add takes words as signed numbers: with their highest bit turned they are 0x8000 less.
    constexpr int bias_of_part = 0x8000 * static_cast<int>(part_octets) / 2;
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i high_bits = _mm256_set1_epi16(static_cast<short>(0x8000));
    const __m128i lower_words = _mm_set1_epi32(whole_word);
    const std::size_t behind_tag = check.octets_ - L::tag_end;
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
    std::uint64_t found = 0;
    for (unsigned i = 0; i < n; i += together) {
        std::array<const std::byte*, together> of_four;
        for (unsigned k = 0; k < together; ++k) of_four[k] = frames[std::min(i + k, n - 1)];
        __m256i udp[together];     // NOLINT(modernize-avoid-c-arrays): std::array forgets how a register is aligned
        __m256i header[together];  // NOLINT(modernize-avoid-c-arrays)
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
                const auto sum = [&](const auto& covered) __attribute__((target("avx2"), always_inline)) {
                    return _mm256_madd_epi16(_mm256_xor_si256(_mm256_and_si256(octets, of(covered)), high_bits), ones);
                };
                udp[k] = _mm256_add_epi32(udp[k], sum(part.udp));
                if constexpr (V == IpVersion::v4) header[k] = _mm256_add_epi32(header[k], sum(part.header));
            }
            right |= static_cast<unsigned>(_mm256_testz_si256(wrong, wrong) != 0) << k;
        }
        __m128i udp_sums = _mm_add_epi32(
            join(udp), _mm_set1_epi32(static_cast<int>(check.udp_sum_) + bias_of_part * static_cast<int>(used_parts)));
        if (behind_tag != 0) {
            alignas(16) std::array<std::uint32_t, together> behind;
            for (unsigned k = 0; k < together; ++k) behind[k] = fold(sum_octets(of_four[k] + L::tag_end, behind_tag));
            udp_sums = _mm_add_epi32(udp_sums, _mm_load_si128(reinterpret_cast<const __m128i*>(behind.data())));
        }
        __m128i good = are_good(udp_sums);
        if constexpr (V == IpVersion::v4) {
            constexpr int bias = bias_of_part * static_cast<int>(used_parts);
            good = _mm_and_si128(good, are_good(_mm_add_epi32(join(header), _mm_set1_epi32(bias))));
        }
        right &= static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(good)));
        found |= std::uint64_t{right} << i;
    }
    return n < most_frames ? found & ((std::uint64_t{1} << n) - 1) : found;
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
        check.find_ = find_avx2<V>;
        check.tag_at_ = L::tag;
        check.part_at_ = is_v4 ? std::array<std::size_t, parts>{0, L::tag_end - part_octets, L::tag_end}
                               : std::array<std::size_t, parts>{0, part_octets, L::tag_end - part_octets};
        for (auto& part : check.parts_) {
            for (std::size_t i = 0; i < part_octets; ++i)
                part.order[i] = static_cast<std::uint8_t>((i % half_octets) ^ 1U);  // within each half of a register
        }
        const std::size_t udp_length = check.octets_ - L::udp;
        check.udp_sum_ = pseudo_header_sum(protocol_udp, udp_length);
        for (std::size_t at = 0; at < L::tag_end; ++at) {
            const std::size_t part = check.part_of(at);
            const std::size_t in_part = at - check.part_at_[part];
            if (at >= L::source) check.parts_[part].udp[in_part] = lower_octet;
            if (is_v4 && at >= L::ip && at < L::udp) check.parts_[part].header[in_part] = lower_octet;
        }
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
