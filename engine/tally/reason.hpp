// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: how reasons and notes of a trial are written.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// The name of a direction or of a side. If several testers make the trial, it includes the tester's: "forward of b".
std::string name_of(const TrialResult& result, plan::Direction direction);
std::string name_of(const TrialResult& result, plan::Side side);

/// The prefix of a reason that concerns neither a direction nor a side: "b: ", or nothing if there is one tester.
std::string who(const TrialResult& result);

/// Appends a reason or a note.
template <class... Args>
void note(std::vector<Reason>& reasons, const char* code, fmt::format_string<Args...> text, Args&&... args) {
    reasons.push_back({.code = code, .text = fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace evenhand::tally
