// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the learning frames, one to each host that has not been reached yet. Not optimized: some thousand
// frames a second suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "frame/source.hpp"
#include "plan/host_set.hpp"

namespace evenhand::frame {

/// Smallest test frames of trial 0, from one host of the sending side to hosts of the receiving side. The sequence
/// number is the number of the host, so that a receiver that marks sequence numbers marks the hosts that were reached.
class LearningSource {
   public:
    using Expectation = TestFrameExpectation;

    /// Frame i is sent to host `pending[share.sequence(i)]`; `pending` outlives this. The UDP ports are the first of
    /// the plan's ranges. `source_mac` is that of the sending side's host 0.
    LearningSource(const plan::AddressPlan& plan, StreamIdentity identity, const plan::HostSet& from, plan::HostSet to,
                   std::span<const std::uint32_t> pending, StreamShare share, const plan::MacAddress& source_mac,
                   const plan::MacAddress& destination_mac);

    /// The length of a learning frame of this IP version, without FCS.
    [[nodiscard]] static std::size_t octets_of(IpVersion version) noexcept;

    [[nodiscard]] std::size_t frame_octets(std::size_t /*ahead*/) const noexcept { return octets_of(version_); }

    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept;

   private:
    template <IpVersion V>
    void write(std::byte* frame, std::uint32_t host, std::uint64_t time) const noexcept;

    IpVersion version_;
    FrameTemplate template_;
    plan::HostSet to_;
    std::span<const std::uint32_t> pending_;
    StreamShare share_;
    std::uint64_t next_ = 0;
};

}  // namespace evenhand::frame
