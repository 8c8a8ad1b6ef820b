// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: gives each frame of a source the MAC of the host that it is sent by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "frame/layout.hpp"
#include "plan/host_macs.hpp"
#include "plan/host_set.hpp"

namespace evenhand::frame {

/// A source around another one, chosen before the start, so that trials whose hosts share the port's MAC do not pay for
/// it. The MAC follows from the source address in the frame and is thus the one that neighbour answers give for this
/// address. No checksum covers it.
template <class Source, IpVersion V>
class HostMacSource {
   public:
    using Expectation = typename Source::Expectation;

    /// `hosts` and `macs` are those of the sending side.
    HostMacSource(Source source, plan::HostSet hosts, const plan::HostMacs& macs) noexcept
        : source_{std::move(source)}, hosts_{std::move(hosts)}, macs_{macs} {}

    [[nodiscard]] std::size_t frame_octets(std::size_t ahead) const noexcept { return source_.frame_octets(ahead); }

    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        source_.write_next(frames, now_ticks);
        // Local copies: the compiler must assume that a store through std::byte* changes any object.
        const plan::HostSet hosts = hosts_;
        const plan::HostMacs macs = macs_;
        constexpr std::size_t source_mac = 6;
        for (std::byte* const frame : frames) {
            const auto host = hosts.find(frame + Layout<V>::source);
            if (!host) continue;
            const auto mac = macs.mac(*host);
            std::memcpy(frame + source_mac, mac.data(), mac.size());
        }
    }

   private:
    Source source_;
    plan::HostSet hosts_;
    plan::HostMacs macs_;
};

}  // namespace evenhand::frame
