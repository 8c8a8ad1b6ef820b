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

/// Counts whether its receiver has a part in the trial or not: a DUT sends its errors back to the side that the frames
/// came from. note() is the receiver's, the rest the session's.
class IcmpErrors {
   public:
    /// `hosts`: of both sides, of which at least source and destination of a quoted frame must be, where its tag is not
    /// quoted. Those a NAT has chosen are not known.
    explicit IcmpErrors(std::vector<plan::HostSet> hosts) : hosts_{std::move(hosts)} {}

    /// From now on those of this trial, by the number in its tags.
    void begin(std::uint16_t trial) noexcept;

    /// Whether this frame is an error about a test frame of ours. One about another trial's is, and is not counted.
    /// Allocates nothing.
    bool note(const std::byte* frame, std::size_t octets) noexcept;

    /// Adds what was counted to those of other queues.
    void add_to(std::vector<IcmpErrorCount>& counts) const;

   private:
    /// Of one version, type and code. Written by the receiver, read by the session: each word by itself.
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
    std::array<Kind, most_kinds> kinds_;  // those beyond are not told apart from the last
};

/// Adds one count to those that there are of the same kind.
void add(std::vector<IcmpErrorCount>& counts, const IcmpErrorCount& count);

/// What it says, such as "packet too big, MTU 1280", and what to do about it.
struct IcmpMeaning {
    std::string what;
    std::string next;
};
[[nodiscard]] IcmpMeaning meaning_of(const IcmpErrorCount& count);

}  // namespace evenhand::tally
