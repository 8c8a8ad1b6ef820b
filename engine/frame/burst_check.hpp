// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the frames of a burst that are test frames of a trial as they were sent, found in
// registers. What is not found here is looked at by reader.hpp and TestFrameExpectation, which say what it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/layout.hpp"
#include "frame/template.hpp"
#include "frame/traffic.hpp"
#include "plan/plan.hpp"

namespace evenhand::frame {

/// All that the two ask of a frame of one trial, direction and length, one after the other, is asked at once: the
/// words of headers and tag, each masked, lie in a range (a fixed word in one of a single value), and both checksums
/// are right.
class BurstCheck {
   public:
    static constexpr unsigned most_frames = 64;
    static constexpr std::size_t part_octets = 32;
    static constexpr std::size_t parts = 3;  // those of IPv4 are two

    /// Nothing if this CPU has no AVX2, or if numbers of the plan do not stand in words of their own: two share one, or
    /// one lies across two. `mac`: of each frame's destination; nothing if any will do.
    [[nodiscard]] static std::optional<BurstCheck> make(const LinkFrames& arrives,
                                                        const std::optional<plan::MacAddress>& mac, StreamIdentity of);

    /// Without FCS, of each frame.
    [[nodiscard]] std::size_t octets() const noexcept { return octets_; }
    /// Where the tag begins.
    [[nodiscard]] std::size_t tag_at() const noexcept { return tag_at_; }
    [[nodiscard]] plan::IpVersion version() const noexcept { return version_; }

    /// Bit i: `frames[i]` is one of them. All have octets() octets; `n` is most_frames at the most.
    [[nodiscard]] std::uint64_t find(const std::byte* const* frames, unsigned n) const noexcept {
        return find_(*this, frames, n);
    }

   private:
    using Words = std::array<std::uint16_t, part_octets / 2>;
    using Find = std::uint64_t (*)(const BurstCheck&, const std::byte* const*, unsigned) noexcept;

    /// What is read at once, and what of it.
    struct alignas(part_octets) Part {
        std::array<std::uint8_t, part_octets> order{};   // where each octet of the words comes from
        Words mask{};                                    // of each word
        Words first{};                                   // the smallest that it may be
        Words most{};                                    // by how much it may be larger
        std::array<std::uint8_t, part_octets> udp{};     // octets that the UDP checksum covers
        std::array<std::uint8_t, part_octets> header{};  // the IPv4 header's
    };

    /// Of the octets of a word: as in a number of the network, or the other way round.
    enum Order : bool { as_a_number, as_it_stands };

    BurstCheck() = default;
    void require(std::size_t at, unsigned mask, unsigned first, unsigned count = 1, Order order = as_a_number) noexcept;
    [[nodiscard]] bool require(const plan::HostRange& hosts, std::size_t address_at) noexcept;
    [[nodiscard]] std::size_t part_of(std::size_t at) const noexcept;

    template <plan::IpVersion V>
    static std::uint64_t find_avx2(const BurstCheck& check, const std::byte* const* frames, unsigned n) noexcept;

    std::array<Part, parts> parts_{};
    std::array<std::size_t, parts> part_at_{};  // may overlap with the one before; what is there belongs to that
    Find find_ = nullptr;
    plan::IpVersion version_ = plan::IpVersion::v4;
    std::size_t octets_ = 0;
    std::size_t tag_at_ = 0;
    std::uint64_t udp_sum_ = 0;  // of the pseudo-header but its addresses
};

}  // namespace evenhand::frame
