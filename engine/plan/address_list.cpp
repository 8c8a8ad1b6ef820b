// SPDX-License-Identifier: Apache-2.0
#include "plan/address_list.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "fault.hpp"
#include "plan/ranges.hpp"

namespace evenhand::plan {
namespace {

unsigned bits_of(Wide number) noexcept {
    constexpr unsigned half = 64;
    const auto high = static_cast<std::uint64_t>(number >> half);
    return static_cast<unsigned>(high != 0 ? half + std::bit_width(high)
                                           : std::bit_width(static_cast<std::uint64_t>(number)));
}

template <class Number>
Number read_number(const std::byte* octets) noexcept {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
        number = static_cast<Number>(number << octet_bits | static_cast<Number>(octets[i]));
    return number;
}

/// Room for entries that are read at random places: with small pages, the CPU would look up nearly each one's page.
template <class Entry>
std::vector<Entry> room_in_huge_pages(std::size_t entries) {
    constexpr std::size_t page = 4096;
    std::vector<Entry> room;
    room.reserve(entries);
    void* whole_pages = room.data();
    std::size_t octets = entries * sizeof(Entry);
    // Only a wish: the system may have none.
    if (std::align(page, page, whole_pages, octets) != nullptr)
        (void)::madvise(whole_pages, octets / page * page, MADV_HUGEPAGE);
    return room;
}

template <class Number>
std::vector<AddressEntry<Number>> read_entries(std::span<const std::byte> records, const std::string& where) {
    constexpr IpVersion version = sizeof(Number) == 4 ? IpVersion::v4 : IpVersion::v6;
    constexpr std::size_t record = 2 * sizeof(Number);
    const auto text = [](Number address) { return to_string(address_of(version, address)); };
    auto entries = room_in_huge_pages<AddressEntry<Number>>(records.size() / record);
    for (std::size_t at = 0; at < records.size(); at += record) {
        const auto number = at / record;
        const auto first = read_number<Number>(records.data() + at);
        const auto last = read_number<Number>(records.data() + at + sizeof first);
        if (last < first) {
            refuse_plan(fmt::format("record {} is {} to {}: the last address is below the first", number, text(first),
                                    text(last)),
                        where, "Write the first address of each entry, then the last. The first record is 0.");
        }
        if (!entries.empty() && first <= entries.back().last) {
            refuse_plan(fmt::format("record {} begins with {}, and the one before it ends with {}", number, text(first),
                                    text(entries.back().last)),
                        where, "Sort the entries, and let none overlap another. The first record is 0.");
        }
        entries.push_back({.first = first, .last = last});
    }
    return entries;
}

/// An open file that is closed in the end.
class OpenFile {
   public:
    explicit OpenFile(const std::string& path) : fd_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)} {}
    ~OpenFile() {
        if (fd_ >= 0) ::close(fd_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    /// Its size in octets; nothing if it is no file of a known size.
    [[nodiscard]] std::optional<std::uint64_t> octets() const noexcept {
        struct stat found{};
        if (::fstat(fd_, &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
        return static_cast<std::uint64_t>(found.st_size);
    }
    /// Whether all of `to` was read from here on.
    [[nodiscard]] bool read(std::span<std::byte> to) const noexcept {
        while (!to.empty()) {
            const auto n = ::read(fd_, to.data(), to.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            to = to.subspan(static_cast<std::size_t>(n));
        }
        return true;
    }

   private:
    int fd_;
};

}  // namespace

Wide number_of(IpVersion version, const std::byte* octets) noexcept {
    return version == IpVersion::v4 ? Wide{read_number<std::uint32_t>(octets)} : read_number<Wide>(octets);
}

Wide number_of(const IpAddress& address) noexcept {
    return number_of(address.version, reinterpret_cast<const std::byte*>(address.octets.data()));
}

IpAddress address_of(IpVersion version, Wide number) noexcept {
    IpAddress address{.version = version};
    for (std::size_t i = address_octets(version); i-- > 0; number >>= octet_bits)
        address.octets[i] = static_cast<std::uint8_t>(number);
    return address;
}

template <class Number>
AddressEntries<Number>::AddressEntries(std::vector<Entry> entries, bool finds_fast) : entries_{std::move(entries)} {
    starts_ = room_in_huge_pages<Start>(entries_.size());
    Number before = 0;
    for (const auto& entry : entries_) {
        starts_.push_back({.before = before, .first = entry.first});
        const Number span = entry.last ^ entry.first;
        are_all_prefixes_ = are_all_prefixes_ && (span & (span + 1)) == 0 && (entry.first & span) == 0;
        varying_ |= span;
        before += entry.last - entry.first + 1;  // 0 behind the last entry, if the list has all addresses there are
    }
    last_number_ = before - 1;
    if (finds_fast) make_buckets();
}

template <class Number>
void AddressEntries<Number>::make_buckets() {
    // About as many buckets as entries.
    const unsigned wanted = bits_of(entries_.size());
    const unsigned bits = bits_of(last_number_);
    bucket_bits_ = bits > wanted ? bits - wanted : 0;
    const auto buckets = static_cast<std::size_t>(last_number_ >> bucket_bits_) + 1;
    first_of_bucket_ = room_in_huge_pages<std::uint32_t>(buckets + 1);
    std::uint32_t entry = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        const Number first = static_cast<Number>(bucket) << bucket_bits_;
        while (entry + 1 < size() && starts_[entry + 1].before <= first) ++entry;
        first_of_bucket_.push_back(entry);
    }
    first_of_bucket_.push_back(static_cast<std::uint32_t>(size() - 1));
}

template class AddressEntries<std::uint32_t>;
template class AddressEntries<Wide>;

std::shared_ptr<const AddressList> AddressList::of_records(std::span<const std::byte> records, IpVersion version,
                                                           Choice choice, const std::string& where) {
    const std::size_t record = 2 * address_octets(version);
    if (records.empty() || records.size() % record != 0 || records.size() / record > most_entries(version)) {
        refuse_plan(fmt::format("{} octets are no list of IPv{} addresses", records.size(), static_cast<int>(version)),
                    where, fmt::format("Give 1 to {} records of {} octets.", most_entries(version), record));
    }
    const bool finds_fast = choice == Choice::host;
    if (version == IpVersion::v4) {
        EntriesV4 entries{read_entries<std::uint32_t>(records, where), finds_fast};
        return std::shared_ptr<const AddressList>{new AddressList{std::move(entries), choice}};
    }
    EntriesV6 entries{read_entries<Wide>(records, where), finds_fast};
    constexpr unsigned most_bits = 63;
    if (finds_fast && entries.last_number() >> most_bits != 0) {
        refuse_plan("the entries have more than 2^63 addresses, too many to choose each equally often", where,
                    "Choose \"entry\", or leave the largest entries out.");
    }
    return std::shared_ptr<const AddressList>{new AddressList{std::move(entries), choice}};
}

std::shared_ptr<const AddressList> AddressList::read(const std::string& path, IpVersion version, std::uint64_t entries,
                                                     Choice choice, const std::string& where) {
    const std::string at = where + ".path";
    const std::size_t record = 2 * address_octets(version);
    if (entries > most_entries(version)) {
        refuse_plan(fmt::format("{} entries of IPv{} addresses", entries, static_cast<int>(version)),
                    where + ".entries", fmt::format("Give at most {}.", most_entries(version)));
    }
    if (!path.starts_with('/'))
        refuse_plan(fmt::format("\"{}\" is no absolute path", path), at, "Give the path from the root folder on.");
    const OpenFile file{path};
    if (!file.is_open()) {
        const int error = errno;
        refuse_plan(fmt::format("cannot read {}: {}", path, std::strerror(error)), at,
                    "Give a file on the host of the engine that it may read.");
    }
    const auto octets = file.octets();
    if (!octets) refuse_plan(path + " is no regular file", at, "Give a file of records.");
    if (*octets != entries * record) {
        refuse_plan(fmt::format("{} has {} octets; {} entries of IPv{} addresses are {}", path, *octets, entries,
                                static_cast<int>(version), entries * record),
                    at, fmt::format("Write {} octets for each entry: its first and its last address.", record));
    }
    std::vector<std::byte> records(*octets);
    if (!file.read(records))
        refuse_plan(fmt::format("cannot read all of {}", path), at, "Write it, then send the request.");
    return of_records(records, version, choice, at);
}

IpAddress AddressList::address(Wide number) const noexcept {
    return std::visit(
        [&]<class Number>(const AddressEntries<Number>& e) {
            return address_of(version(), Wide{e.address(static_cast<Number>(number))});
        },
        entries_);
}

std::optional<AddressList::Place> AddressList::place(const std::byte* octets) const noexcept {
    return std::visit(
        [&]<class Number>(const AddressEntries<Number>& e) -> std::optional<Place> {
            const auto address = read_number<Number>(octets);
            const auto entry = e.find(address);
            if (!entry) return std::nullopt;
            return Place{.entry = *entry, .offset = address - e[*entry].first};
        },
        entries_);
}

std::optional<Wide> AddressList::number(const std::byte* octets) const noexcept {
    const auto found = place(octets);
    if (!found) return std::nullopt;
    return found->offset + std::visit([&](const auto& e) { return Wide{e.before(found->entry)}; }, entries_);
}

bool AddressList::meets(Wide first, Wide last) const noexcept {
    return std::visit(
        [&]<class Number>(const AddressEntries<Number>& e) {
            return e.meets(static_cast<Number>(first), static_cast<Number>(last));
        },
        entries_);
}

bool AddressList::meets(const AddressList& other) const noexcept {
    std::size_t own = 0;
    std::size_t others = 0;
    while (own < size() && others < other.size()) {
        if (last(own) < other.first(others)) {
            ++own;
        } else if (other.last(others) < first(own)) {
            ++others;
        } else {
            return true;
        }
    }
    return false;
}

bool AddressList::meets(const HostRange& range) const noexcept {
    // The hosts of a network are evenly spaced, but not always by 1: their number may stand above octets that do not
    // vary.
    const auto spacing = octet_bits * static_cast<unsigned>(address_octets(version()) - 2 - range.offset);
    for (std::uint32_t network = 0; network < range.networks(); ++network) {
        const Wide begin = number_of(range.address(range.value({.network = network, .host = 0})));
        const Wide end = begin + (Wide{range.host.count - 1} << spacing);
        if (!meets(begin, end)) continue;
        if (spacing == 0) return true;
        for (std::uint32_t host = 0; host < range.host.count; ++host) {
            const Wide address = begin + (Wide{host} << spacing);
            if (meets(address, address)) return true;
        }
    }
    return false;
}

}  // namespace evenhand::plan
