// SPDX-License-Identifier: Apache-2.0
// Neighbours: what arrives on one side while the tester looks for its DUT. It shows if a DUT is cabled or configured in
// another way than the tester assumes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "frame/envelope.hpp"
#include "plan/address.hpp"
#include "plan/per_direction.hpp"

namespace evenhand::neighbor {

/// The tags of one frame, outermost first: EtherType << 16 | VLAN.
using Tags = std::vector<std::uint32_t>;

struct IcmpError {
    plan::IpVersion version = plan::IpVersion::v4;
    std::uint8_t type = 0;
    std::uint8_t code = 0;
};

struct Seen {
    std::vector<plan::IpAddress> asked;               // addresses whose MAC others wanted, each once, in order
    std::vector<plan::IpAddress> told;                // addresses whose owner announced their MAC
    plan::PerDirection<std::uint64_t> test_frames{};  // of trial 0
    std::optional<Tags> other_tags;                   // of the last frame whose tags are not those of this side
    std::optional<IcmpError> icmp;                    // the last one that arrived
};

/// Notes what arrives between begin() and end(), and keeps it until the next begin().
class Sightings {
   public:
    /// `own_mac`: frames from it were sent by the tester, or by its host, and are ignored. `envelope`: that of the
    /// frames on the link; neighbours outside a tunnel whose ends have addresses of their own are not noted.
    Sightings(const plan::MacAddress& own_mac, const frame::Envelope& envelope)
        : own_mac_{own_mac}, tags_{envelope.tags().list()}, tunnel_{envelope.tunnel()} {}

    void begin();
    void end() noexcept { notes_.store(false, std::memory_order_relaxed); }
    [[nodiscard]] bool notes() const noexcept { return notes_.load(std::memory_order_relaxed); }
    /// Notes a frame as it arrived, with its tags. Only if notes(); called by any receiving worker, never in a trial.
    void note(std::span<const std::byte> frame);
    [[nodiscard]] Seen seen() const;

   private:
    void note_untagged(std::span<const std::byte> frame);

    plan::MacAddress own_mac_;
    Tags tags_;
    frame::Tunnel tunnel_;
    std::atomic<bool> notes_{false};
    mutable std::mutex mutex_;
    Seen seen_;
};

}  // namespace evenhand::neighbor
