// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: finds in a burst the test frames of a trial that are as they were sent, with vector
// instructions. All other frames are left to reader.hpp and TestFrameExpectation, which say what they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

/// The classes of a mix whose frames have the same length and the same plan, but fields of their own.
struct BurstClasses {
    struct OfClass {
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

/// Checks at once what look_at() and TestFrameExpectation check one after the other for frames of one trial, direction
/// and length: the flows of many frames are drawn side by side from their numbers, the frames are put together as the
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

    /// The length of each frame, without FCS.
    [[nodiscard]] std::size_t octets() const noexcept { return octets_; }
    [[nodiscard]] plan::IpVersion version() const noexcept { return version_; }

    /// Finds the known frames among `frames`, which all have octets() octets; `n` is 1 .. most_frames.
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found) noexcept {
        find_(*this, frames, n, found);
    }

   private:
    using Find = void (*)(BurstCheck&, const std::byte* const*, unsigned, FoundBurst&) noexcept;
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

    BurstCheck(const FrameTemplate& t, const LinkFrames& arrives, const BurstFlows& flows,
               const std::optional<plan::MacAddress>& mac);

    void fill_behind(std::size_t tag_end, std::uint8_t first) noexcept;
    void fill_classes(const FrameTemplate& t);

    /// Determines the flows of a block's frames, whose numbers are known. Returns for which of them there is none.
    [[nodiscard, gnu::noinline]] std::uint32_t find_connections(ConnectionFlows& connections,
                                                                const std::byte* const* frames, unsigned n,
                                                                const std::uint64_t* numbers,
                                                                plan::FlowBlock& block) const noexcept;
    /// The constant octets of a class's frames in front of the tag, where they differ from class to class.
    struct ClassPart {
        alignas(part_octets) Octets expected{};  // of the first part
        std::uint32_t header_sum = 0;            // as header_sum_
        PortChoice source_port;
        PortChoice destination_port;
    };

    /// The constant octets of a frame's first part, with the mark that was drawn for it.
    [[nodiscard]] Octets with_mark(const ClassPart& part, std::uint32_t marks) const noexcept;

    /// Puts the class of each of a block's first `n` frames into `classes`, and their own ports into the block.
    /// `numbers`: with the stream above the sequence number.
    void find_classes(const std::uint64_t* numbers, unsigned n, std::uint8_t* classes, plan::FlowBlock& block) noexcept;

    /// `HasMore`: there are octets behind the tag. `IsTranslated`: see BurstFlows; for IPv4. `HasClasses`: the frames
    /// are of classes.
    template <plan::IpVersion V, Varying kind, bool HasMore, bool IsTranslated, bool HasClasses = false>
    static void find_avx2(BurstCheck& check, const std::byte* const* frames, unsigned n, FoundBurst& found) noexcept;
    template <plan::IpVersion V>
    [[nodiscard]] Find find_for(Varying kind) const noexcept;
    static void note_runs_avx2(unsigned n, FoundBurst& found) noexcept;

    std::array<Part, parts> parts_{};
    std::array<std::size_t, parts> part_at_{};
    std::uint32_t tag_head_ = 0;  // IPv6: the octets of the tag that are in no part, as they lie in memory
    Behind behind_;
    Find find_ = nullptr;
    plan::IpVersion version_;
    std::size_t octets_;
    CountedOctets counted_;
    std::uint32_t udp_sum_;     // in host order: what the template leaves of a multiple of 65535
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
    std::vector<std::uint8_t> cycle_;     // of the classes, repeated, so that it seldom begins anew
    std::uint64_t cycle_first_ = 0;       // the number that the first place of the cycle stands for at present
    bool has_class_ports_ = false;
    bool has_mark_patterns_ = false;
};

/// The checks of one trial: one for frames to the receiving side's own MAC, as a DUT sends them, and perhaps one for
/// frames to the other side's, as a cable passes them on. The check that last knew a frame is tried first; when it
/// knows none of a whole burst, the next burst is given to the other one.
class BurstChecks {
   public:
    BurstChecks() = default;
    explicit BurstChecks(const BurstCheck& only) : first_{only} {}
    BurstChecks(const BurstCheck& first, const BurstCheck& second) : first_{first}, second_{second} {}

    /// Whether there are any; the rest may be called only then.
    explicit operator bool() const noexcept { return first_.has_value(); }
    /// The length of the frames, without FCS.
    [[nodiscard]] std::size_t octets() const noexcept { return first_->octets(); }
    [[nodiscard]] plan::IpVersion version() const noexcept { return first_->version(); }

    /// As BurstCheck::find().
    void find(const std::byte* const* frames, unsigned n, FoundBurst& found) noexcept {
        (is_second_ ? *second_ : *first_).find(frames, n, found);
        if (found.known == 0 && second_) is_second_ = !is_second_;
    }

   private:
    std::optional<BurstCheck> first_;
    std::optional<BurstCheck> second_;  // with the same octets() and version()
    bool is_second_ = false;
};

}  // namespace evenhand::frame
