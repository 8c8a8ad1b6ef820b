// SPDX-License-Identifier: Apache-2.0
#include "frame/state_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "frame/repeats.hpp"

namespace evenhand::frame {

void StateTable::Unmap::operator()(std::uint32_t* entries) const noexcept { ::munmap(entries, octets); }

StateTable::StateTable(const plan::FourTuples& tuples, const TesterShare& own)
    : tuples_{tuples}, own_{own}, connections_{own.count(tuples.connections())} {
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
