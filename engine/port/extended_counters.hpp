// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what drivers call their counters, and which of them count each frame.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace evenhand::port {

/// Of Ethernet flow control, by its name among the extended statistics.
[[nodiscard]] bool is_pause_counter(std::string_view name) noexcept;

/// Of frames that came in and were dropped by the port. Some drivers have such a count in no other place: mlx5 shows
/// frames that did not fit into the NIC's buffer as `rx_discards_phy` only.
[[nodiscard]] bool is_hidden_drop_counter(std::string_view name) noexcept;

/// The sum of counters; all ones if one of them reads what is no count, which a sum would hide.
[[nodiscard]] std::uint64_t total_of(std::span<const std::uint64_t> counters) noexcept;

/// Whether the driver counts in `ipackets` every frame that it hands over or ought to, once, and says so at once. For
/// any other driver the count proves nothing: it may lag by a second, or include frames that another function of the
/// NIC got.
[[nodiscard]] bool tells_each_frame(std::string_view driver) noexcept;

}  // namespace evenhand::port
