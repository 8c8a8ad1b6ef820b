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

/// The lowest `n` bits, 1 .. 64.
[[nodiscard]] constexpr std::uint64_t first_bits(unsigned n) noexcept { return ~std::uint64_t{0} >> (64U - n); }

/// What was found in a burst, and what the tags of its frames say.
struct FoundBurst {
    static constexpr unsigned most_frames = 64;
    static constexpr unsigned stream_shift = 56;
    static constexpr std::size_t register_octets = 32;

    std::uint64_t known = 0;  // bit i: frame i is a test frame of the trial, as it was sent
    /// Bit i, if it and the frame before are known: their times differ.
    std::uint64_t new_time = 0;
    /// The same: its number is not one of the same stream above that of the frame before.
    std::uint64_t new_rise = 0;
    /// Of each known frame: stream << stream_shift | sequence number.
    alignas(register_octets) std::array<std::uint64_t, most_frames> numbers;
    /// The same: low 48 bits of the ticks when it was built.
    alignas(register_octets) std::array<std::uint64_t, most_frames> times;

    [[nodiscard]] std::uint64_t sequence(unsigned i) const noexcept { return numbers[i] & sequence_mask; }
    [[nodiscard]] std::uint8_t stream(unsigned i) const noexcept {
        return static_cast<std::uint8_t>(numbers[i] >> stream_shift);
    }
};

/// All that the two ask of a frame of one trial, direction and length, one after the other, is asked at once: the
/// words of headers and tag, each masked, lie in a range (a fixed word in one of a single value), and both checksums
/// are right.
class BurstCheck {
   public:
    static constexpr unsigned most_frames = FoundBurst::most_frames;
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

    /// Which of `frames` are such ones. All have octets() octets; `n` is 1 .. most_frames.
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found) const noexcept {
        find_(*this, frames, n, found);
    }

   private:
    using Words = std::array<std::uint16_t, part_octets / 2>;
    using Find = void (*)(const BurstCheck&, const std::byte* const*, unsigned, FoundBurst&) noexcept;

    /// What is read at once, and what of it.
    struct alignas(part_octets) Part {
        std::array<std::uint8_t, part_octets> order{};  // where each octet of the words comes from
        Words mask{};                                   // of each word
        Words first{};                                  // the smallest that it may be
        Words most{};                                   // by how much it may be larger
        Words udp{};                                    // 1 for each word that the UDP checksum covers
        Words header{};                                 // the IPv4 header's
    };

    /// What is behind the tag: whole steps of two parts, then parts of which these words count, the last part first,
    /// and perhaps one octet more.
    struct Behind {
        std::size_t steps = 0;
        std::size_t rest_octets = 0;  // an even number
        std::size_t rest_parts = 0;
        bool has_odd_octet = false;
        alignas(part_octets) std::array<std::uint16_t, part_octets> rest_words{};
    };

    /// Of the octets of a word: as in a number of the network, or the other way round.
    enum Order : bool { as_a_number, as_it_stands };

    BurstCheck() = default;
    void require(std::size_t at, unsigned mask, unsigned first, unsigned count = 1, Order order = as_a_number) noexcept;
    [[nodiscard]] bool require(const plan::HostRange& hosts, std::size_t address_at) noexcept;
    [[nodiscard]] std::size_t part_of(std::size_t at) const noexcept;

    /// `HasMore`: there is something behind the tag.
    template <plan::IpVersion V, bool HasMore>
    static void find_avx2(const BurstCheck& check, const std::byte* const* frames, unsigned n,
                          FoundBurst& found) noexcept;
    static void note_runs_avx2(unsigned n, FoundBurst& found) noexcept;

    std::array<Part, parts> parts_{};
    std::array<std::size_t, parts> part_at_{};  // may overlap with the one before; what is there belongs to that
    Find find_ = nullptr;
    plan::IpVersion version_ = plan::IpVersion::v4;
    std::size_t octets_ = 0;
    std::size_t tag_at_ = 0;
    Behind behind_;
    std::uint32_t udp_rest_ = 0;  // what a sum lacks: the pseudo-header but its addresses, and what was taken off words
    std::uint32_t header_rest_ = 0;  // the same of the IPv4 header
};

/// The checks of one trial, one or two: of frames to the receiving side's own MAC, as a DUT sends them, and of frames
/// to the other side's, as a cable brings them. A burst is found by the one that last knew a frame; where it knows none
/// of a whole burst, the next burst is the other's.
class BurstChecks {
   public:
    BurstChecks() = default;
    explicit BurstChecks(const BurstCheck& only) : first_{only} {}
    BurstChecks(const BurstCheck& first, const BurstCheck& second) : first_{first}, second_{second} {}

    /// Whether there are any; the rest may be called only then.
    explicit operator bool() const noexcept { return first_.has_value(); }
    /// Of the frames, without FCS.
    [[nodiscard]] std::size_t octets() const noexcept { return first_->octets(); }
    [[nodiscard]] plan::IpVersion version() const noexcept { return first_->version(); }

    /// BurstCheck::find().
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found) noexcept {
        (is_second_ ? *second_ : *first_).find(frames, n, found);
        if (found.known == 0 && second_) is_second_ = !is_second_;
    }

   private:
    std::optional<BurstCheck> first_;
    std::optional<BurstCheck> second_;  // of the same octets() and version()
    bool is_second_ = false;
};

}  // namespace evenhand::frame
