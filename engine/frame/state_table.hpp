// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: what the DUT translated each connection to (R9693-02).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "frame/share.hpp"
#include "plan/four_tuples.hpp"

namespace evenhand::frame {

/// The state table of the responder. A frame's number says which connection it belongs to, so the table is an array.
/// The destination is that of the connection's four tuple, so that only the translated source address and port are
/// kept: 4 octets in both IP versions, since the DUT's pool has at most 2^16 addresses.
///
/// Each of several testers has only the connections that its own frames open, since these arrive at its own ports. A
/// connection is known by the place of its frame among these (TesterShare).
///
/// The receivers of the responder write each entry once; other threads read it after that without a lock.
class StateTable {
   public:
    /// What an initiator's host and port were translated to: a number in the pool, and a port.
    struct Entry {
        std::uint16_t host = 0;
        std::uint16_t port = 0;  // 0: not known

        friend bool operator==(const Entry&, const Entry&) = default;
    };

    /// `tuples`: the connections of all testers. Allocates and touches all memory, in huge pages if the kernel has any.
    /// Throws std::bad_alloc.
    explicit StateTable(const plan::FourTuples& tuples, const TesterShare& own = {});

    [[nodiscard]] const plan::FourTuples& tuples() const noexcept { return tuples_; }
    [[nodiscard]] const TesterShare& own() const noexcept { return own_; }
    /// How many connections this tester has.
    [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

    void record(std::uint64_t place, Entry entry) noexcept {
        std::atomic_ref{entries_[place]}.store(std::uint32_t{entry.host} << 16U | entry.port,
                                               std::memory_order_relaxed);
    }
    [[nodiscard]] Entry entry(std::uint64_t place) const noexcept {
        const std::uint32_t word = std::atomic_ref{entries_[place]}.load(std::memory_order_relaxed);
        return {.host = static_cast<std::uint16_t>(word >> 16U), .port = static_cast<std::uint16_t>(word)};
    }
    /// The entries of a block's connections, as entry() gives them, side by side.
    void entries(const plan::FourTuples::Numbers& places, plan::DrawLanes::Values& hosts,
                 plan::DrawLanes::Values& ports) const noexcept {
        read_(entries_.get(), places, hosts, ports);
    }
    /// Into the first cache only: a large table's line is hardly ever needed twice.
    void prefetch(std::uint64_t place) const noexcept {
        constexpr int to_read = 0;
        constexpr int not_again = 0;
        __builtin_prefetch(&entries_[place], to_read, not_again);
    }

    /// Counts the connections that are known, by reading all entries. To be called when the trial that established them
    /// is over, so that no entry is written any more.
    void count_recorded() noexcept;
    /// The result of the last count_recorded().
    [[nodiscard]] std::uint64_t recorded() const noexcept { return recorded_; }

    /// How many connections have the same translated four tuple as an earlier one, so that the DUT cannot tell their
    /// answers apart. Compares this tester's own connections only: those of another tester arrive at another port, by
    /// which the DUT can tell them apart. Sorts the tuples, some millions at a time: about 0.2 us each.
    [[nodiscard]] std::uint64_t shared_tuples() const;

   private:
    struct Unmap {
        std::size_t octets;
        void operator()(std::uint32_t* entries) const noexcept;
    };

    using Read = void (*)(const std::uint32_t* entries, const plan::FourTuples::Numbers& places,
                          plan::DrawLanes::Values& hosts, plan::DrawLanes::Values& ports) noexcept;
    [[nodiscard]] static Read reader_of(std::uint64_t connections) noexcept;

    plan::FourTuples tuples_;
    TesterShare own_;
    std::uint64_t connections_;
    std::uint64_t recorded_ = 0;
    Read read_;
    std::unique_ptr<std::uint32_t[], Unmap> entries_{nullptr, Unmap{0}};
};

}  // namespace evenhand::frame
