// SPDX-License-Identifier: Apache-2.0
// Config: addresses with a prefix length, which several parts of the configuration have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "contract/reader.hpp"
#include "plan/address.hpp"

namespace evenhand::router {

/// 198.18.0.0/16: an address and the length of its prefix; nothing if the text is none.
[[nodiscard]] std::optional<std::pair<plan::IpAddress, unsigned>> parse_prefix(std::string_view text);

/// The same of a key's text. Throws Fault{bad_request}, like the next function.
[[nodiscard]] std::pair<plan::IpAddress, unsigned> read_prefix(contract::ObjectReader& r, std::string_view key,
                                                               const std::string& text);

/// A prefix of one IP version without host bits.
[[nodiscard]] std::pair<plan::IpAddress, unsigned> read_network(contract::ObjectReader& r, std::string_view key,
                                                                plan::IpVersion version);

}  // namespace evenhand::router
