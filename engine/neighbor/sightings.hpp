// SPDX-License-Identifier: Apache-2.0
// Neighbours: what comes to one side while the tester looks for its DUT. A DUT that is cabled or set up otherwise than
// the tester thinks shows it here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plan/address.hpp"

namespace evenhand::neighbor {

/// Of one frame, outermost first: EtherType << 16 | VLAN.
using Tags = std::vector<std::uint32_t>;

struct IcmpError {
    plan::IpVersion version = plan::IpVersion::v4;
    std::uint8_t type = 0;
    std::uint8_t code = 0;
};

struct Seen {
    std::vector<plan::IpAddress> asked;          // whose MAC others wanted, each once, in order
    std::vector<plan::IpAddress> told;           // who told his MAC
    std::array<std::uint64_t, 2> test_frames{};  // of trial 0, by direction
    std::optional<Tags> other_tags;              // of the last frame that had others than those of this side
    std::optional<IcmpError> icmp;               // the last one
};

/// Notes from begin() to end(); what is noted stays until the next begin().
class Sightings {
   public:
    /// `own_mac`: frames from it are the tester's, or of the host that it runs on, and no sighting. `tags`: of all
    /// frames on the link.
    Sightings(const plan::MacAddress& own_mac, Tags tags) : own_mac_{own_mac}, tags_{std::move(tags)} {}

    void begin();
    void end() noexcept { notes_.store(false, std::memory_order_relaxed); }
    [[nodiscard]] bool notes() const noexcept { return notes_.load(std::memory_order_relaxed); }
    /// A frame as it came, with its tags. Only if notes(); from any receiving worker, never in a trial.
    void note(std::span<const std::byte> frame);
    [[nodiscard]] Seen seen() const;

   private:
    void note_untagged(std::span<const std::byte> frame);

    plan::MacAddress own_mac_;
    Tags tags_;
    std::atomic<bool> notes_{false};
    mutable std::mutex mutex_;
    Seen seen_;
};

}  // namespace evenhand::neighbor
