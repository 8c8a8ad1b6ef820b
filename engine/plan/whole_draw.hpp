// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the addresses of frames if one side's hosts are a list. Whole addresses vary then, on both sides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "plan/address_list.hpp"
#include "plan/draw.hpp"

namespace evenhand::plan {

/// Turns drawn fields into addresses. A field is the number of an entry, in which further words of the generator choose
/// an address, or what a FlowDraw draws for a range of hosts.
///
/// Entries are chosen exactly uniformly, as all fields are; so is the address where IPv4 has one entry only. Within an
/// entry, a number of 64 bits (IPv6: 128) is scaled to the size of the entry (scaled()). Where all entries are IPv6
/// prefixes, it gives the bits behind the prefix (selected()).
///
/// The four words of one counter are for both addresses in IPv4, and in IPv6 if no prefix is shorter than /64;
/// otherwise in IPv6 they are for one.
class WholeDraw {
   public:
    WholeDraw(const HostRange& source, const HostRange& destination, Direction direction, PhiloxKey key);

    /// What is to be drawn for the source (0) or the destination (1).
    [[nodiscard]] const FieldRange& drawn(std::size_t end) const noexcept { return drawn_[end]; }

    /// Whether the entries take so much memory that a sender fetches them a block ahead.
    [[nodiscard]] bool is_slow_to_fetch() const noexcept;
    /// Fetches entries for a block whose first two fields were drawn: what apply() reads for frames begin .. end - 1.
    void fetch(const FlowBlock& block, std::size_t begin, std::size_t end) const noexcept;
    /// Puts the addresses of the frames with these numbers into a block whose first two fields were drawn.
    void apply(const std::uint64_t* numbers, FlowBlock& block) const noexcept;

    using Fields = std::array<std::uint32_t, 2>;
    /// The addresses of frame k, from its first two fields.
    [[nodiscard]] FlowAddresses addresses(std::uint64_t k, const Fields& fields) const noexcept;
    /// Puts the source (0) or the destination (1) of one frame into a block, as apply() does.
    static void put_address(FlowBlock& block, std::size_t end, std::size_t j, IpVersion version, Wide address) noexcept;
    /// The first two fields of a block after apply(), for these addresses.
    [[nodiscard]] static Fields values(const FlowAddresses& addresses) noexcept;

   private:
    enum class Kind : std::uint8_t { range, only_entry, entry, prefix, host, increment, decrement, fixed };

    template <IpVersion V>
    using Number = std::conditional_t<V == IpVersion::v4, std::uint32_t, Wide>;
    template <IpVersion V>
    using Bits = std::conditional_t<V == IpVersion::v4, std::uint64_t, Wide>;

    /// The source or the destination.
    template <IpVersion V>
    struct End {
        explicit End(const HostRange& hosts);

        [[nodiscard]] bool is_of_entries() const noexcept { return kind == Kind::entry || kind == Kind::prefix; }
        [[nodiscard]] bool needs_bits() const noexcept { return is_of_entries() || kind == Kind::host; }
        [[nodiscard]] Number<V> of_range(std::uint64_t k, std::uint32_t field) const noexcept;
        [[nodiscard]] Number<V> counted(std::uint64_t k) const noexcept;
        /// The address of frame k.
        [[nodiscard]] Number<V> address(std::uint64_t k, std::uint32_t field, Bits<V> bits) const noexcept;

        Kind kind = Kind::range;
        std::shared_ptr<const AddressList> list;
        const EntriesOf<V>* entries = nullptr;  // of the list
        Number<V> rest = 0;                     // of a range: what does not vary
        unsigned host_at = 0;                   // the bit where the host number begins
        std::optional<unsigned> network_at;     // the same for a network with octets of its own
        std::optional<NetworkSplit> split;      // if there are networks
    };
    template <IpVersion V>
    using Ends = std::array<End<V>, 2>;

    static std::variant<Ends<IpVersion::v4>, Ends<IpVersion::v6>> ends_of(const HostRange& source,
                                                                          const HostRange& destination);
    template <IpVersion V>
    static void fetch_of(const Ends<V>& ends, const FlowBlock& block, std::size_t begin, std::size_t end) noexcept;
    template <IpVersion V>
    [[nodiscard]] static bool share_words(const Ends<V>& ends) noexcept;
    template <IpVersion V>
    void choose(const Ends<V>& ends, const std::uint64_t* numbers, FlowBlock& block) const noexcept;
    /// That of the words for the source (0) or the destination (1); of the source's, if both share them.
    [[nodiscard]] std::uint32_t stream_of(std::size_t end) const noexcept;

    std::variant<Ends<IpVersion::v4>, Ends<IpVersion::v6>> ends_;
    bool shares_words_;
    std::array<FieldRange, 2> drawn_;
    std::uint32_t stream_;
    PhiloxKey key_;
};

}  // namespace evenhand::plan
