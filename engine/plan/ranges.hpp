// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: ranges of numbers in addresses and UDP headers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "plan/address.hpp"

namespace evenhand::plan {

class AddressList;

/// How a field takes its values. All but pseudorandom are for comparison runs (SEED-40).
enum class Mode : std::uint8_t { pseudorandom, fixed, increment, decrement };

[[nodiscard]] constexpr bool is_stepped(Mode mode) noexcept {
    return mode == Mode::increment || mode == Mode::decrement;
}
/// Which of `count` values a field that is_stepped() has in this turn, counted from 0.
[[nodiscard]] constexpr std::uint64_t stepped(Mode mode, std::uint64_t turn, std::uint32_t count) noexcept {
    return mode == Mode::increment ? turn % count : count - 1 - turn % count;
}

/// The values first .. first + count - 1 of a 16-bit field; `fixed` is always first.
struct FieldRange {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    Mode mode = Mode::pseudorandom;

    friend bool operator==(const FieldRange&, const FieldRange&) = default;
};

constexpr std::uint32_t most_networks = 256;

/// Networks 0 .. count - 1 of one side (SEED-30). A network's number is added to the number that `base` has at its
/// place: the octet at `offset` if that is the offset of the host number, too (IPv4: the 16-bit number there is
/// network, then host), otherwise the 16-bit number at `offset` (IPv6).
struct NetworkRange {
    std::uint32_t offset = 0;  // even
    std::uint32_t count = 1;
    Mode mode = Mode::pseudorandom;

    friend bool operator==(const NetworkRange&, const NetworkRange&) = default;
};

/// One host of a side, both counted from 0.
struct HostIndex {
    std::uint32_t network = 0;
    std::uint32_t host = 0;

    friend bool operator==(const HostIndex&, const HostIndex&) = default;
};

/// The addresses of one side: `base` with the 16-bit big-endian number at octet `offset` taken from `host`, in each of
/// the networks.
///
/// The octets of an IPv4 address behind a prefix (RFC 6052, 2.2) begin at even or odd offsets, and may be on both sides
/// of octet 8, which is zero. The octets of the host number may so, too, in IPv6 and without networks.
///
/// What varies in an address is one number, its *value*: the 16-bit number at `offset`, and above it the 16-bit number
/// of the network, if the networks have octets of their own.
///
/// Or the hosts are those of a list of ranges, in which whole addresses vary. Then only `base`, the list's first
/// address, the mode of `host`, and contains() mean something.
struct HostRange {
    IpAddress base;
    std::uint32_t offset = 0;  // of the upper octet
    FieldRange host;
    std::optional<NetworkRange> network = std::nullopt;  // nothing: one network, so that only the host number varies
    std::uint32_t gap = 0;                               // octets between the two of the number: 0 or 1
    std::shared_ptr<const AddressList> list = nullptr;

    /// The hosts of this list.
    [[nodiscard]] static HostRange of(std::shared_ptr<const AddressList> list, Mode mode = Mode::pseudorandom);

    [[nodiscard]] std::uint32_t low_offset() const { return offset + 1 + gap; }
    /// Whether the host number is a whole word of a checksum.
    [[nodiscard]] bool is_word() const { return offset % 2 == 0 && gap == 0; }

    [[nodiscard]] std::uint32_t networks() const { return network ? network->count : 1; }
    [[nodiscard]] std::uint32_t addresses() const { return networks() * host.count; }
    /// Whether network and host are the two octets of one number, as in IPv4 (SEED-34).
    [[nodiscard]] bool shares_octets() const { return network && network->offset == offset; }
    /// Whether the network has octets of its own, as in IPv6.
    [[nodiscard]] bool has_network_octets() const { return network && network->offset != offset; }

    /// The number of network 0, as it is in `base`.
    [[nodiscard]] std::uint32_t first_network() const;
    [[nodiscard]] std::uint32_t value(HostIndex index) const;
    /// The host that has this value, which must be in the range.
    [[nodiscard]] HostIndex index(std::uint32_t value) const;
    /// The address that has this value, which need not be in the range.
    [[nodiscard]] IpAddress address(std::uint32_t value) const;
    [[nodiscard]] bool contains(const IpAddress& wanted) const;
};

}  // namespace evenhand::plan
