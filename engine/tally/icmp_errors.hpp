// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: ICMP errors about test frames, by type and code, as one receive queue sees them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/host_set.hpp"
#include "tally/result.hpp"

namespace evenhand::tally {

/// Counts whether or not its receiver takes part in the trial, since a DUT sends errors back to the side that the
/// frames came from. The receiver calls note(), the session everything else.
class IcmpErrors {
   public:
    /// `hosts`: of both sides. Where the tag is not quoted, source or destination of the quoted frame must be one of
    /// them: an address that a NAT has chosen is unknown.
    explicit IcmpErrors(std::vector<plan::HostSet> hosts) : hosts_{std::move(hosts)} {}

    /// From now on errors about frames of this trial count, by the number in their tags.
    void begin(std::uint16_t trial) noexcept;

    /// Whether this frame is an error about one of our test frames. An error about another trial's frame is one, but is
    /// not counted. Allocates nothing.
    bool note(const std::byte* frame, std::size_t octets) noexcept;

    /// Adds these counts to those of other queues.
    void add_to(std::vector<IcmpErrorCount>& counts) const;

   private:
    /// The errors of one IP version, type and code. Written by the receiver and read by the session, each word
    /// separately.
    struct Kind {
        std::atomic<std::uint32_t> key{0};  // 0: free
        std::atomic<std::uint32_t> mtu{0};  // the smallest
        std::atomic<std::uint64_t> frames{0};
        std::atomic<std::uint64_t> first{0};  // number of the first quoted frame + 1
    };
    static constexpr std::size_t most_kinds = 16;

    [[nodiscard]] bool is_host(plan::IpVersion version, const std::byte* address) const noexcept;

    std::vector<plan::HostSet> hosts_;
    std::atomic<std::uint16_t> trial_{0};
    std::array<Kind, most_kinds> kinds_;  // the last one also counts all kinds beyond it
};

/// Adds a count to that of the same kind, or appends it.
void add(std::vector<IcmpErrorCount>& counts, const IcmpErrorCount& count);

/// What an error means, such as "packet too big, MTU 1280", and what to do about it.
struct IcmpMeaning {
    std::string what;
    std::string next;
};
[[nodiscard]] IcmpMeaning meaning_of(const IcmpErrorCount& count);

}  // namespace evenhand::tally
