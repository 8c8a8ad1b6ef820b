// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: hosts as a list of address ranges, such as the prefixes of a routing table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "plan/address.hpp"
#include "wide.hpp"

namespace evenhand::plan {

struct HostRange;

/// An address as a number: IPv4 has 32 bits, IPv6 all 128.
[[nodiscard]] Wide number_of(const IpAddress& address) noexcept;
[[nodiscard]] Wide number_of(IpVersion version, const std::byte* octets) noexcept;
[[nodiscard]] IpAddress address_of(IpVersion version, Wide number) noexcept;

/// How the pseudorandom addresses of a list are chosen.
enum class Choice : std::uint8_t {
    entry,  // each entry is equally likely, and each address within it
    host    // each address of all entries is equally likely
};

/// The addresses first .. last. Aligned so that an entry is in one line of the cache: one that is in two takes twice as
/// long, and only half of it would be fetched.
template <class Number>
struct alignas(2 * sizeof(Number)) AddressEntry {
    Number first;
    Number last;
};

/// The entries of one IP version, whose addresses are a `Number`. All addresses of all entries are numbered in their
/// order, from 0.
template <class Number>
class AddressEntries {
   public:
    using Entry = AddressEntry<Number>;

    /// `entries`: at least one, ascending, without overlaps. `finds_fast`: entry_with() is asked for each frame.
    AddressEntries(std::vector<Entry> entries, bool finds_fast);

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const Entry& operator[](std::size_t i) const noexcept { return entries_[i]; }
    [[nodiscard]] std::span<const Entry> all() const noexcept { return entries_; }

    /// Whether each entry has all addresses of a prefix.
    [[nodiscard]] bool are_all_prefixes() const noexcept { return are_all_prefixes_; }
    /// The bits in which addresses of the same entry may differ, if all entries are prefixes.
    [[nodiscard]] Number varying() const noexcept { return varying_; }

    /// The number of the last address: how many there are, less 1.
    [[nodiscard]] Number last_number() const noexcept { return last_number_; }
    /// How many addresses are in the entries before this one.
    [[nodiscard]] Number before(std::size_t entry) const noexcept { return starts_[entry].before; }

    /// The address of this number. With `finds_fast`, few entries are looked at.
    [[nodiscard]] Number address(Number number) const noexcept {
        const bool is_fast = !first_of_bucket_.empty();
        const std::size_t first = is_fast ? first_of_bucket_[bucket_of(number)] : 0;
        const std::size_t last = is_fast ? first_of_bucket_[bucket_of(number) + 1] : size() - 1;
        const Start* const begin = starts_.data();
        const Start* const after = std::upper_bound(begin + first + 1, begin + last + 1, number,
                                                    [](Number n, const Start& start) { return n < start.before; });
        return std::prev(after)->first + (number - std::prev(after)->before);
    }

    // What a draw of many addresses reads may be fetched before it is needed: an entry, or with `finds_fast`, what
    // address() reads, in this order.
    // Always inlined: GCC drops calls of a function that does nothing but prefetch.
    [[gnu::always_inline]] inline void fetch(std::size_t entry) const noexcept { __builtin_prefetch(&entries_[entry]); }
    [[gnu::always_inline]] inline void fetch_bucket(Number number) const noexcept {
        __builtin_prefetch(&first_of_bucket_[bucket_of(number)]);
    }
    [[gnu::always_inline]] inline void fetch_start(Number number) const noexcept {
        __builtin_prefetch(&starts_[first_of_bucket_[bucket_of(number)]]);
    }

    /// The entry that this address is in; nothing if it is in none.
    [[nodiscard]] std::optional<std::size_t> find(Number address) const noexcept {
        const auto after =
            std::ranges::upper_bound(entries_, address, {}, [](const Entry& entry) { return entry.first; });
        if (after == entries_.begin() || std::prev(after)->last < address) return std::nullopt;
        return static_cast<std::size_t>(after - entries_.begin()) - 1;
    }

    /// Whether an entry has any of the addresses first .. last.
    [[nodiscard]] bool meets(Number first, Number last) const noexcept {
        const auto at = std::ranges::lower_bound(entries_, first, {}, [](const Entry& entry) { return entry.last; });
        return at != entries_.end() && at->first <= last;
    }

   private:
    /// Where an entry begins, among all addresses and among those of the list.
    struct alignas(2 * sizeof(Number)) Start {
        Number before;
        Number first;
    };

    void make_buckets();
    [[nodiscard]] std::size_t bucket_of(Number number) const noexcept {
        return static_cast<std::size_t>(number >> bucket_bits_);
    }

    std::vector<Entry> entries_;
    std::vector<Start> starts_;
    Number last_number_ = 0;
    bool are_all_prefixes_ = true;
    Number varying_ = 0;
    unsigned bucket_bits_ = 0;
    /// For all numbers whose upper bits are the same, which make a bucket: the entry that has the first of them. One
    /// more at the end.
    std::vector<std::uint32_t> first_of_bucket_;
};

using EntriesV4 = AddressEntries<std::uint32_t>;
using EntriesV6 = AddressEntries<Wide>;
template <IpVersion V>
using EntriesOf = std::conditional_t<V == IpVersion::v4, EntriesV4, EntriesV6>;

/// A list of hosts as a plan has it. Never changes, so that all copies of a plan share one.
class AddressList {
   public:
    static constexpr std::size_t most_entries_v4 = 2'000'000;
    static constexpr std::size_t most_entries_v6 = 1'000'000;
    [[nodiscard]] static constexpr std::size_t most_entries(IpVersion version) noexcept {
        return version == IpVersion::v4 ? most_entries_v4 : most_entries_v6;
    }

    /// Reads the file of a request: for each entry its first and its last address, in network order. Throws
    /// Fault{bad_plan} that names the file or the record; `where`: the place of the list in the request.
    [[nodiscard]] static std::shared_ptr<const AddressList> read(const std::string& path, IpVersion version,
                                                                 std::uint64_t entries, Choice choice,
                                                                 const std::string& where);
    /// The same from the file's content.
    [[nodiscard]] static std::shared_ptr<const AddressList> of_records(std::span<const std::byte> records,
                                                                       IpVersion version, Choice choice,
                                                                       const std::string& where);

    [[nodiscard]] IpVersion version() const noexcept {
        return std::holds_alternative<EntriesV4>(entries_) ? IpVersion::v4 : IpVersion::v6;
    }
    [[nodiscard]] Choice choice() const noexcept { return choice_; }

    /// The entries; the list must be of this version.
    template <IpVersion V>
    [[nodiscard]] const EntriesOf<V>& entries() const noexcept {
        return *std::get_if<EntriesOf<V>>(&entries_);
    }
    [[nodiscard]] std::size_t size() const noexcept {
        return std::visit([](const auto& e) { return e.size(); }, entries_);
    }
    [[nodiscard]] Wide first(std::size_t entry) const noexcept {
        return std::visit([&](const auto& e) { return Wide{e[entry].first}; }, entries_);
    }
    [[nodiscard]] Wide last(std::size_t entry) const noexcept {
        return std::visit([&](const auto& e) { return Wide{e[entry].last}; }, entries_);
    }
    /// The number of the last address: how many there are, less 1.
    [[nodiscard]] Wide last_number() const noexcept {
        return std::visit([](const auto& e) { return Wide{e.last_number()}; }, entries_);
    }
    /// The address of this number, which is at most last_number().
    [[nodiscard]] IpAddress address(Wide number) const noexcept;

    [[nodiscard]] bool contains(const IpAddress& address) const noexcept {
        return address.version == version() && contains(reinterpret_cast<const std::byte*>(address.octets.data()));
    }
    /// The same for an address of this IP version in a frame.
    [[nodiscard]] bool contains(const std::byte* octets) const noexcept { return place(octets).has_value(); }
    /// The number of an address in a frame; nothing if it is not in the list.
    [[nodiscard]] std::optional<Wide> number(const std::byte* octets) const noexcept;

    struct Place {
        std::size_t entry;
        Wide offset;  // from the entry's first address
    };
    /// The place of an address in a frame; nothing if it is not in the list.
    [[nodiscard]] std::optional<Place> place(const std::byte* octets) const noexcept;

    /// Whether both have any address.
    [[nodiscard]] bool meets(const AddressList& other) const noexcept;
    /// Whether any address of the range, which has no gap, is in the list.
    [[nodiscard]] bool meets(const HostRange& range) const noexcept;

   private:
    AddressList(std::variant<EntriesV4, EntriesV6> entries, Choice choice)
        : entries_{std::move(entries)}, choice_{choice} {}

    [[nodiscard]] bool meets(Wide first, Wide last) const noexcept;

    std::variant<EntriesV4, EntriesV6> entries_;
    Choice choice_;
};

}  // namespace evenhand::plan
