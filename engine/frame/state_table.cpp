// SPDX-License-Identifier: Apache-2.0
#include "frame/state_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "frame/repeats.hpp"
#include "simd.hpp"

namespace evenhand::frame {
namespace {

using plan::DrawLanes;
using plan::FourTuples;

constexpr unsigned above_port = 16;

void read_plain(const std::uint32_t* entries, const FourTuples::Numbers& places, DrawLanes::Values& hosts,
                DrawLanes::Values& ports) noexcept {
    for (std::size_t j = 0; j < places.size(); ++j) {
        const std::uint32_t word =
            std::atomic_ref{const_cast<std::uint32_t&>(entries[places[j]])}.load(std::memory_order_relaxed);
        hosts[j] = word >> above_port;
        ports[j] = static_cast<std::uint16_t>(word);
    }
}

#if defined(__x86_64__)
/// Stores whole registers: who reads the fields of a block in such does not wait then. Each lane of a gather is an
/// aligned load of 32 bits, which x86 makes at once, as that of std::atomic_ref.
__attribute__((target("avx2"))) void read_avx2(const std::uint32_t* entries, const FourTuples::Numbers& places,
                                               DrawLanes::Values& hosts, DrawLanes::Values& ports) noexcept {
    constexpr std::size_t lanes = sizeof(__m256i) / sizeof(std::uint32_t);
    for (std::size_t begin = 0; begin < places.size(); begin += lanes) {
        const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places.data() + begin));
        const __m256i words = _mm256_i32gather_epi32(reinterpret_cast<const int*>(entries), at, sizeof(std::uint32_t));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(hosts.data() + begin), _mm256_srli_epi32(words, above_port));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(ports.data() + begin),
                            _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF)));
    }
}
#endif

}  // namespace

StateTable::Read StateTable::reader_of([[maybe_unused]] std::uint64_t connections) noexcept {
#if defined(__x86_64__)
    constexpr std::uint64_t most_places = std::uint64_t{1} << 31U;  // which a gather counts with a sign
    if (connections <= most_places && __builtin_cpu_supports("avx2") != 0) return read_avx2;
#endif
    return read_plain;
}

void StateTable::Unmap::operator()(std::uint32_t* entries) const noexcept { ::munmap(entries, octets); }

StateTable::StateTable(const plan::FourTuples& tuples, const TesterShare& own)
    : tuples_{tuples}, own_{own}, connections_{own.count(tuples.connections())}, read_{reader_of(connections_)} {
    const std::size_t octets = connections_ * sizeof(std::uint32_t);
    void* const memory = ::mmap(nullptr, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc{};
    entries_ = {static_cast<std::uint32_t*>(memory), Unmap{octets}};
    (void)::madvise(memory, octets, MADV_HUGEPAGE);
    // Touches all memory now, so that a host without enough memory is noticed here, and no receiver waits for a page
    // later.
    if (::madvise(memory, octets, MADV_POPULATE_WRITE) == 0) return;
    if (errno != EINVAL) throw std::bad_alloc{};
    std::memset(memory, 0, octets);  // kernels before 5.14
}

void StateTable::count_recorded() noexcept {
    recorded_ = 0;
    for (std::uint64_t place = 0; place < connections(); ++place)
        recorded_ += static_cast<std::uint64_t>(entry(place).port != 0);
}

std::uint64_t StateTable::shared_tuples() const {
    // The whole translated tuple is one 64-bit number. One share of the connections at a time, chosen by the tuple
    // itself, since all of them at once would take twice the memory of the table.
    constexpr std::uint64_t at_a_time = std::uint64_t{1} << 23U;
    return count_repeats(connections() / at_a_time + 1, [&](auto take) {
        for (std::uint64_t first = 0; first < connections(); first += plan::FlowBlock::size) {
            plan::FourTuples::Numbers numbers;
            for (std::size_t j = 0; j < numbers.size(); ++j)
                numbers[j] = static_cast<std::uint32_t>(own_.sequence(std::min(first + j, connections() - 1)));
            plan::FlowBlock flows;
            tuples_.flows(numbers, flows);
            const std::uint64_t last = std::min<std::uint64_t>(numbers.size(), connections() - first);
            for (std::size_t j = 0; j < last; ++j) {
                const Entry translated = entry(first + j);
                if (translated.port == 0) continue;
                take(std::uint64_t{translated.host} << 48U | std::uint64_t{translated.port} << 32U |
                     std::uint64_t{flows.destination(j)} << 16U | flows.destination_port(j));
            }
        }
    });
}

}  // namespace evenhand::frame
