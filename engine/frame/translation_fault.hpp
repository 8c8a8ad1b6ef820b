// SPDX-License-Identifier: Apache-2.0
// Station 5, seen from the frame: the ways in which a frame can be translated wrongly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace evenhand::frame {

/// What a translator can do wrong with a frame that is otherwise sound, in the order in which it is looked for.
enum class TranslationFault : std::uint8_t {
    no_checksum,     // UDP over IPv6 without a checksum (RFC 8200, 8.1)
    traffic_class,   // the DSCP or ECN bits are not those that were sent (RFC 7915, 4.1 and 5.1)
    address_or_port  // not those that the frame of this number must have
};
constexpr std::size_t translation_faults = 3;

}  // namespace evenhand::frame
