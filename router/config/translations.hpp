// SPDX-License-Identifier: Apache-2.0
// Config: the two kinds of translation, stateless and by connections.
#pragma once

#include "contract/reader.hpp"
#include "forward/nat_options.hpp"
#include "forward/translation.hpp"

namespace evenhand::router {

/// Each reads one object to its end and throws Fault{bad_request} that names the place and the value.
[[nodiscard]] TranslationOptions read_translation(contract::ObjectReader r);
[[nodiscard]] NatOptions read_nat(contract::ObjectReader r);

}  // namespace evenhand::router
