// SPDX-License-Identifier: Apache-2.0
#include "tally/reason.hpp"

namespace evenhand::tally {
namespace {

std::string name_of(const TrialResult& result, const char* name) {
    return result.tester.empty() ? name : fmt::format("{} of {}", name, result.tester);
}

}  // namespace

std::string name_of(const TrialResult& result, plan::Direction direction) {
    return name_of(result, direction == plan::Direction::forward ? "forward" : "reverse");
}

std::string name_of(const TrialResult& result, plan::Side side) {
    return name_of(result, side == plan::Side::left ? "left" : "right");
}

std::string who(const TrialResult& result) { return result.tester.empty() ? "" : result.tester + ": "; }

}  // namespace evenhand::tally
