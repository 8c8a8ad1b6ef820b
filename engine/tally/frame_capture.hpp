// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: the octets of the first frames of each kind that were not what was sent, as one receive queue sees
// them; and of those that were, where they are asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frame/frame_fault.hpp"
#include "pace/clock.hpp"

namespace evenhand::tally {

/// Why a received frame is kept.
enum class Kept : std::uint8_t {
    foreign,     // neither a test frame nor neighbour traffic
    icmp_error,  // quotes one of our frames
    returned,    // a test frame on the port that had sent it
    stale,       // of another trial
    strayed,     // sent by another tester
    wrong_time,
    wrong_length,
    corrupted,
    wrong_address,
    wrong_port,
    wrong_payload,
    mistranslated,
    duplicated,
    late,
    received  // as it was sent: kept only if asked for
};
/// The contract's names for them, in their order.
inline constexpr std::array kept_names{"foreign",       "icmp_error",    "returned",   "stale",         "strayed",
                                       "wrong_time",    "wrong_length",  "corrupted",  "wrong_address", "wrong_port",
                                       "wrong_payload", "mistranslated", "duplicated", "late",          "received"};
constexpr std::size_t kept_kinds = kept_names.size();

/// One kept frame.
struct KeptFrame {
    Kept kind = Kept::foreign;
    std::optional<frame::FrameFault> fault = std::nullopt;  // of a corrupted one
    std::optional<std::uint64_t> number = std::nullopt;     // in its direction, where its tag says it
    pace::Ticks received = 0;
    std::size_t length = 0;             // with VLAN tags, without FCS
    std::span<const std::byte> octets;  // the first ones, at most most_kept_octets
};

constexpr std::size_t most_kept_octets = 2048;
constexpr std::size_t most_kept_frames = 64;  // of a kind
constexpr std::size_t most_kept_received = 8192;

/// Keeps nothing until begin() was called. The receiver calls is_on() and keep(), the session everything else.
class FrameCapture {
   public:
    /// From now on the first `frames` of each kind are kept, and the first `received` of those that are as they were
    /// sent, in memory that is taken here. 0: none.
    void begin(std::size_t frames, std::size_t received = 0);
    /// From now on no more are kept. Those that were kept stay until begin().
    void end() noexcept { is_on_.store(false, std::memory_order_release); }

    [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_acquire); }
    /// Whether frames that are as they were sent are kept too. To be asked when a trial begins.
    [[nodiscard]] bool keeps_received() const noexcept { return is_on() && received_ != 0; }
    /// Copies the frame, if it is among the first of its kind. Allocates nothing.
    void keep(const KeptFrame& frame) noexcept;

    /// All that were kept, by kind and in their order. Their octets live until begin().
    [[nodiscard]] std::vector<KeptFrame> kept() const;

   private:
    std::atomic<bool> is_on_{false};
    [[nodiscard]] std::size_t room_of(std::size_t kind) const noexcept {
        return kind == static_cast<std::size_t>(Kept::received) ? received_ : frames_;
    }

    std::size_t frames_ = 0;
    std::size_t received_ = 0;
    std::array<std::atomic<std::size_t>, kept_kinds> counts_{};  // each up to room_of() its kind
    std::vector<KeptFrame> slots_;                               // frames_ for each kind, those received last
    std::vector<std::byte> octets_;
};

}  // namespace evenhand::tally
