// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: finds in a burst the test frames of a trial that are as they were sent, with vector
// instructions. All other frames are left to reader.hpp and TestFrameExpectation, which say what they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "frame/class_fields.hpp"
#include "frame/connection_flows.hpp"
#include "frame/frame_words.hpp"
#include "frame/layout.hpp"
#include "frame/template.hpp"
#include "frame/traffic.hpp"
#include "plan/draw.hpp"
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
    /// Bit i: frames i - 1 and i are known, and their times differ.
    std::uint64_t new_time = 0;
    /// Bit i: the same, and the number of frame i is not a greater one of the same stream.
    std::uint64_t new_rise = 0;
    /// For each known frame: stream << stream_shift | sequence number.
    alignas(register_octets) std::array<std::uint64_t, most_frames> numbers;
    /// For each known frame: the low 48 bits of the ticks when it was built.
    alignas(register_octets) std::array<std::uint64_t, most_frames> times;
    /// For each known frame, where there are classes: its own.
    std::array<std::uint8_t, most_frames> classes;

    [[nodiscard]] std::uint64_t sequence(unsigned i) const noexcept { return numbers[i] & sequence_mask; }
    [[nodiscard]] std::uint8_t stream(unsigned i) const noexcept {
        return static_cast<std::uint8_t>(numbers[i] >> stream_shift);
    }
};

/// The classes of a mix: those whose frames are of one plan, with lengths or fields of their own.
struct BurstClasses {
    struct OfClass {
        std::size_t octets = 0;  // of each of its frames, without FCS; 0 for a class of the other plan
        std::uint32_t mark = 0;  // ClassFields::mark()
        PortChoice source_port;
        PortChoice destination_port;
    };
    std::vector<OfClass> classes;
    bool has_mark_patterns = false;   // the draw says the mark of each frame, and `mark` is 0
    std::vector<std::uint8_t> cycle;  // the class of frame k is that at k modulo the length
};

/// What the frames of a burst are compared with.
struct BurstFlows {
    /// Draws the flows that arrive.
    std::variant<plan::FlowDraw, ConnectionFlows> draw;
    std::uint64_t streams = 1;  // of the direction
    /// The DUT translates: an IPv4 header may have any identification, and may allow fragments or not (RFC 7915, 5.1).
    bool is_translated = false;
    /// The frames open connections: the DUT chooses their source among those that arrive.
    bool chooses_source = false;
    /// The frames are of these classes; null: all are alike.
    std::shared_ptr<const BurstClasses> classes = nullptr;
};

/// Stands for a frame of a length that no frame of the trial has.
inline constexpr std::array<std::byte, largest_frame_size> no_frame{};

/// Checks at once what look_at() and TestFrameExpectation check one after the other for frames of one trial and
/// direction: the flows of many frames are drawn side by side from their numbers, the frames are put together as the
/// writer does it (but for MACs, hop limit and time), and compared octet by octet.
class BurstCheck {
   public:
    static constexpr unsigned most_frames = FoundBurst::most_frames;
    static constexpr std::size_t part_octets = 32;
    static constexpr std::size_t parts = 2;

    /// Nothing if this CPU has no AVX2. `mac`: the destination that each frame must have; nothing if any will do.
    [[nodiscard]] static std::optional<BurstCheck> make(const LinkFrames& arrives,
                                                        const std::optional<plan::MacAddress>& mac, StreamIdentity of,
                                                        const BurstFlows& flows);

    /// The length of each frame, without FCS; of classes, that of the longest.
    [[nodiscard]] std::size_t octets() const noexcept { return octets_; }
    /// That of the shortest.
    [[nodiscard]] std::size_t least_octets() const noexcept { return least_octets_; }
    [[nodiscard]] plan::IpVersion version() const noexcept { return version_; }

    /// Finds the known frames among `frames`; `n` is 1 .. most_frames. All have octets() octets, or, if there are
    /// classes, `lengths` has the length of each, least_octets() .. octets(), or 0 for no_frame.
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found,
              const std::uint16_t* lengths = nullptr) noexcept {
        find_(*this, frames, lengths, n, found);
    }

    /// Fills new_time and new_rise of what was found in `n` frames.
    static void note_runs_avx2(unsigned n, FoundBurst& found) noexcept;

   private:
    using Find = void (*)(BurstCheck&, const std::byte* const*, const std::uint16_t*, unsigned, FoundBurst&) noexcept;
    using Octets = std::array<std::uint8_t, part_octets>;

    /// One register's width of a frame in front of the tag's numbers: each octet must be that of the frame's words or
    /// of the template, or larger by at most `most`.
    struct alignas(part_octets) Part {
        Octets from{};      // word_places()
        Octets expected{};  // where nothing varies, or the smallest that it may be
        Octets most{};      // by how much it may be larger
    };

    /// How the octets behind the tag are compared: in whole steps of two parts, then perhaps one more part, then a last
    /// part that ends where the frame ends and of which only some octets count.
    struct Behind {
        std::size_t steps = 0;
        bool has_part = false;
        bool has_rest = false;
        std::uint8_t first = 0;  // of the pattern
        alignas(part_octets) Octets rest{};
        alignas(part_octets) Octets rest_mask{};
    };

    /// What frames of one length have in common.
    struct Size {
        Behind behind;
        alignas(part_octets) Octets second{};  // the constant octets of the second part
        std::uint32_t udp_sum = 0;             // in host order: what the template leaves of a multiple of 65535
        std::uint32_t octets = 0;
    };

    BurstCheck(const FrameTemplate& t, const LinkFrames& arrives, const BurstFlows& flows, StreamIdentity of,
               const std::optional<plan::MacAddress>& mac);

    [[nodiscard]] Part part_of(const FrameTemplate& t, std::size_t number,
                               const std::optional<plan::MacAddress>& mac) const noexcept;
    [[nodiscard]] Size size_of(const FrameTemplate& t, std::uint8_t first_of_pattern,
                               const std::optional<plan::MacAddress>& mac) const noexcept;
    void fill_classes(const LinkFrames& arrives, StreamIdentity of, const std::optional<plan::MacAddress>& mac);

    /// Determines the flows of a block's frames, whose numbers are known. Returns for which of them there is none.
    [[nodiscard, gnu::noinline]] std::uint32_t find_connections(ConnectionFlows& connections,
                                                                const std::byte* const* frames, unsigned n,
                                                                const std::uint64_t* numbers,
                                                                plan::FlowBlock& block) const noexcept;
    /// The constant octets of a class's frames in front of the tag, where they differ from class to class.
    struct ClassPart {
        alignas(part_octets) Octets expected{};  // of the first part
        std::uint32_t header_sum = 0;            // as header_sum_
        std::uint16_t octets = 0;                // the length of its frames; 0 for a class of the other plan
        std::uint8_t size = 0;                   // in sizes_
        PortChoice source_port;
        PortChoice destination_port;
    };

    /// The constant octets of a frame's first part, with the mark that was drawn for it.
    [[nodiscard]] Octets with_mark(const ClassPart& part, std::uint32_t marks) const noexcept;

    /// Puts the class of each of a block's first `n` frames into `classes`, and their own ports into the block.
    /// `numbers`: with the stream above the sequence number.
    void find_classes(const std::uint64_t* numbers, unsigned n, std::uint8_t* classes, plan::FlowBlock& block) noexcept;

    /// What the frames are of: `of_sizes` are classes with lengths of their own.
    enum class Classes : std::uint8_t { none, of_one_size, of_sizes };

    /// `HasMore`: there are octets behind the tag. `IsTranslated`: see BurstFlows; for IPv4.
    template <plan::IpVersion V, Varying kind, bool HasMore, bool IsTranslated, Classes classes = Classes::none>
    static void find_avx2(BurstCheck& check, const std::byte* const* frames, const std::uint16_t* lengths, unsigned n,
                          FoundBurst& found) noexcept;
    template <plan::IpVersion V>
    [[nodiscard]] Find find_for(Varying kind) const noexcept;
    std::array<Part, parts> parts_{};
    std::array<std::size_t, parts> part_at_{};
    std::uint32_t tag_head_ = 0;  // IPv6: the octets of the tag that are in no part, as they lie in memory
    Size size_;
    Find find_ = nullptr;
    plan::IpVersion version_;
    std::size_t octets_;
    std::size_t least_octets_;
    CountedOctets counted_;
    std::uint32_t header_sum_;  // in host order, of the template's IPv4 header but hop limit and protocol
    std::variant<plan::FlowDraw, ConnectionFlows> draw_;
    std::uint64_t streams_;
    bool is_translated_;
    bool chooses_source_;
    HostPlace source_at_;
    std::size_t ports_at_;
    plan::FieldRange sources_;  // that the DUT may choose
    std::shared_ptr<const BurstClasses> classes_;
    std::vector<ClassPart> class_parts_;  // empty if all frames are alike
    std::vector<Size> sizes_;             // of the classes, each once
    std::vector<std::uint8_t> cycle_;     // of the classes, repeated, so that it seldom begins anew
    std::uint64_t cycle_first_ = 0;       // the number that the first place of the cycle stands for at present
    bool has_class_ports_ = false;
    bool has_mark_patterns_ = false;
};

/// The checks of one trial: one for frames to the receiving side's own MAC, as a DUT sends them, and perhaps one for
/// frames to the other side's, as a cable passes them on. The check that last knew a frame is tried first; when it
/// knows none of a whole burst, the next burst is given to the other one.
///
/// A mix of both IP versions has such checks for each.
class BurstChecks {
   public:
    BurstChecks() = default;
    explicit BurstChecks(const BurstCheck& only) : first_{only} {}
    BurstChecks(const BurstCheck& first, const BurstCheck& second) : first_{first}, second_{second} {}

    /// Adds those for the frames of the other IP version. Both know the classes of the mix.
    void add(BurstChecks other) { other_ = std::make_unique<BurstChecks>(std::move(other)); }

    /// Whether there are any; the rest may be called only then.
    explicit operator bool() const noexcept { return first_.has_value(); }
    /// The length of the frames, without FCS; of classes, that of the longest.
    [[nodiscard]] std::size_t octets() const noexcept {
        return other_ ? std::max(first_->octets(), other_->octets()) : first_->octets();
    }
    /// That of the shortest.
    [[nodiscard]] std::size_t least_octets() const noexcept {
        return other_ ? std::min(first_->least_octets(), other_->least_octets()) : first_->least_octets();
    }
    /// The IP version of the frames; of those before add(), if there are both.
    [[nodiscard]] plan::IpVersion version() const noexcept { return first_->version(); }
    /// That of a known frame.
    [[nodiscard]] plan::IpVersion version_of(const std::byte* frame) const noexcept {
        return other_ && !is_of_version(frame) ? other_->first_->version() : first_->version();
    }

    /// As BurstCheck::find().
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found,
              const std::uint16_t* lengths = nullptr) noexcept {
        if (other_) [[unlikely]]
            find_of_both(frames, n, found, lengths);
        else
            find_alike(frames, n, found, lengths);
    }

   private:
    void find_alike(const std::byte* const* frames, unsigned n, FoundBurst& found,
                    const std::uint16_t* lengths) noexcept {
        (is_second_ ? *second_ : *first_).find(frames, n, found, lengths);
        if (found.known == 0 && second_) is_second_ = !is_second_;
    }
    void find_of_both(const std::byte* const* frames, unsigned n, FoundBurst& found,
                      const std::uint16_t* lengths) noexcept;
    /// The same of those frames whose bit is set in `which`.
    void find_some(std::uint64_t which, const std::byte* const* frames, const std::uint16_t* lengths,
                   FoundBurst& found) noexcept;
    /// Whether a frame is of the IP version of first_ and second_.
    [[nodiscard]] bool is_of_version(const std::byte* frame) const noexcept {
        const auto type = first_->version() == plan::IpVersion::v4 ? ethertype_ipv4 : ethertype_ipv6;
        return load<std::uint16_t>(frame + ethernet_octets - sizeof type) == big(type);
    }

    std::optional<BurstCheck> first_;
    std::optional<BurstCheck> second_;  // with the same octets() and version()
    bool is_second_ = false;
    std::unique_ptr<BurstChecks> other_;  // of the other IP version, where there are both
};

}  // namespace evenhand::frame
