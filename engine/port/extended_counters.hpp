// SPDX-License-Identifier: Apache-2.0
// Station 4, port: the names that drivers give their counters, and which of them count each frame.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace evenhand::port {

/// Whether this extended statistic counts frames of Ethernet flow control, according to its name.
[[nodiscard]] bool is_pause_counter(std::string_view name) noexcept;

/// Whether this extended statistic counts received frames that the port dropped. Some drivers report these nowhere
/// else: mlx5 shows frames that did not fit into the NIC's buffer as `rx_discards_phy` only.
[[nodiscard]] bool is_hidden_drop_counter(std::string_view name) noexcept;

/// The sum of counters; all ones if one of them has an impossible value, which a sum would hide.
[[nodiscard]] std::uint64_t total_of(std::span<const std::uint64_t> counters) noexcept;

/// Whether `ipackets` of this driver counts every frame that it hands over or should hand over, once and immediately.
/// The count of any other driver proves nothing: it may lag by a second, or include frames that another function of the
/// NIC got.
[[nodiscard]] bool tells_each_frame(std::string_view driver) noexcept;

}  // namespace evenhand::port
