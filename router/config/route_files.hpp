// SPDX-License-Identifier: Apache-2.0
// Config: routes that are too many for the configuration itself, in files of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "config/config.hpp"
#include "contract/reader.hpp"

namespace evenhand::router {

/// The most prefixes of all files together.
constexpr std::size_t most_v4_prefixes = 2'000'000;
constexpr std::size_t most_v6_prefixes = 1'000'000;

/// The list `route_files`, with all that its files say. Throws Fault{bad_request} that names the file, and the line if
/// one is wrong.
[[nodiscard]] std::vector<RouteFileConfig> read_route_files(contract::ObjectReader& r);

}  // namespace evenhand::router
