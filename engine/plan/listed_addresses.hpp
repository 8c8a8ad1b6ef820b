// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: the addresses of a block's frames from the numbers of their entries in a list and drawn words, many
// at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/address_list.hpp"
#include "plan/draw.hpp"
#include "wide.hpp"

namespace evenhand::plan {

/// An address of an IPv6 prefix, chosen bit by bit: the bits in which the first and the last differ are those of
/// `bits`. This is exact, and takes no multiplication of 128 bits.
[[nodiscard]] constexpr Wide selected(const AddressEntry<Wide>& entry, Wide bits) noexcept {
    return entry.first ^ (bits & (entry.first ^ entry.last));
}

/// The words that make the bits of each frame's address, the lowest first. In IPv4 they are two. If only half of an
/// IPv6 address varies, two of them stand twice.
using WordsOfBits = std::array<const DrawLanes::Values*, 4>;

/// Replaces the numbers of entries in field `end` of a block (0: source, 1: destination) by addresses of these entries:
/// in IPv4 as scaled() says, in IPv6 as selected(). `words` must not be of the block. Uses the widest vector unit of
/// this CPU; all give the same results.
void put_listed(const EntriesV4& entries, const WordsOfBits& words, std::size_t end, FlowBlock& block) noexcept;
void put_listed(const EntriesV6& entries, const WordsOfBits& words, std::size_t end, FlowBlock& block) noexcept;

template <class Number>
using ListedVariant = void (*)(std::span<const AddressEntry<Number>>, const WordsOfBits&, std::size_t,
                               FlowBlock&) noexcept;

/// The variants "plain" and "avx2", for tests; null if this CPU cannot.
template <class Number>
[[nodiscard]] ListedVariant<Number> listed_variant(const char* name) noexcept;

/// The sum of the eight words of an IPv6 address, folded to 16 bits as in a checksum.
[[nodiscard]] std::uint32_t sum_of(Wide address) noexcept;

/// Puts the source (0) or the destination (1) of frame j into a block.
void put_address_v6(FlowBlock& block, std::size_t end, std::size_t j, Wide address) noexcept;

}  // namespace evenhand::plan
