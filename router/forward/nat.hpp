// SPDX-License-Identifier: Apache-2.0
// Forward: translation of network addresses and ports by connections: NAT44 and NAT66 (RFC 3022, 4787), NAT64 (RFC
// 6146), with deliberate defects on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forward/ip_translation.hpp"
#include "forward/nat_options.hpp"
#include "forward/packet.hpp"
#include "tables/connection_table.hpp"

namespace evenhand::router {

enum class NatWay : std::uint8_t {
    past,      // not to be translated
    outgoing,  // from an inside host
    incoming   // to an address of the pool
};

/// What is known about a frame before an element has worked on it.
struct NatCrossing {
    NatWay way = NatWay::past;
    ConnectionTable::Entry entry = ConnectionTable::none;
    plan::IpAddress destination;  // where it goes
    std::uint8_t pair = 0;        // of ports

    [[nodiscard]] bool makes_entry() const noexcept {
        return way == NatWay::outgoing && entry == ConnectionTable::none;
    }
};

/// One worker's translator, with one table for all pairs of ports. Each pair is a network of its own: connections of
/// different pairs may have the same addresses and ports. Times are ticks since the router began.
class Nat {
   public:
    Nat(const NatOptions& options, double ticks_per_second);

    /// How a packet that arrived on this interface of its pair is to be translated. An outgoing packet may still be for
    /// the router, or for the inside: its route decides.
    [[nodiscard]] NatWay way_of(const Packet& packet, unsigned in) const noexcept;
    /// The destination of an outgoing packet, as it is outside.
    [[nodiscard]] plan::IpAddress outside_destination(const Packet& packet) const noexcept;

    /// Finds the connection, or finds that there is none yet. Nothing: the frame is to be dropped, which is counted
    /// here.
    [[nodiscard]] std::optional<NatCrossing> look_up(const Packet& packet, NatWay way, std::uint8_t pair,
                                                     Ticks now) noexcept;

    /// Translates the frame in place, and makes the connection if there was none. `packet` and `crossing` are the
    /// frame's, and nothing was looked up since. Returns its octets; 0 if it is to be dropped, which is counted here.
    [[nodiscard]] std::size_t translate(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                                        const NatCrossing& crossing, Ticks now) noexcept;

    /// Frees entries that have timed out, if there are any. To be called about every millisecond.
    void turn(Ticks now) noexcept { table_.reclaim(now, most_looks); }
    /// Removes all connections; returns how many there were.
    std::size_t flush() noexcept;

    [[nodiscard]] NatCounters counters() const noexcept;

   private:
    static constexpr std::size_t most_looks = 1024;

    /// What represents a connection outside.
    struct Outside {
        std::uint16_t number = 0;  // of the pool address
        std::uint16_t port = 0;
        bool is_shared = false;      // deliberately the same as another connection's
        bool has_wrong_sum = false;  // the checksum of this frame is made wrong
    };
    /// A pool address that had no free port for a peer, and has none as long as nothing is removed.
    struct Exhausted {
        std::uint64_t key = 0;
        std::uint64_t removals = ~std::uint64_t{0};
    };

    [[nodiscard]] bool is_of_pool(const Packet& packet) const noexcept;
    [[nodiscard]] InsideTuple inside_tuple(const Packet& packet, std::uint8_t pair) const noexcept;
    [[nodiscard]] bool is_due(std::uint64_t every) const noexcept {
        return every != 0 && (counters_.created + 1) % every == 0;
    }
    [[nodiscard]] std::optional<Outside> make_connection(const InsideTuple& inside, Ticks now) noexcept;
    [[nodiscard]] std::optional<Outside> choose_outside(const InsideTuple& inside, Ticks now) noexcept;
    [[nodiscard]] std::optional<Outside> other_with_peer(const InsideTuple& inside, Ticks now) noexcept;
    [[nodiscard]] std::optional<std::uint16_t> free_port(std::uint16_t number, const InsideTuple& inside,
                                                         Ticks now) noexcept;
    [[nodiscard]] Outside use(ConnectionTable::Entry entry, Ticks now) noexcept;
    [[nodiscard]] std::size_t send_out(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                                       const NatCrossing& crossing, Ticks now) noexcept;
    [[nodiscard]] std::size_t let_in(std::span<std::byte> room, std::size_t octets, const Packet& packet,
                                     const NatCrossing& crossing, Ticks now) noexcept;
    void count(const Outside& outside) noexcept;

    NatOptions options_;
    ConnectionTable table_;
    NatCounters counters_;
    HeaderTranslation headers_;
    std::vector<Exhausted> exhausted_;
    std::vector<OutsideTuple> recent_;  // indexed by the hash of the peer; empty if no tuple is to be shared
    bool shares_next_ = false;
};

}  // namespace evenhand::router
