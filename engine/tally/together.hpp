// SPDX-License-Identifier: Apache-2.0
// Station 6, tally: one trial that several testers made together becomes one result, judged once.
#pragma once

#include <string>
#include <vector>

#include "tally/result.hpp"

namespace evenhand::tally {

/// How far a tester's CLOCK_REALTIME is ahead of the client's, and the uncertainty of that.
struct ComparedClock {
    double offset_us = 0;
    double uncertainty_us = 0;
};

/// What one tester counted, and its clock as compared with the client's before and after the trial.
struct TrialPart {
    TrialResult result;  // with the tester's name, its share and its start
    ComparedClock before;
    ComparedClock after;
};

/// A tester that cannot report a result.
struct LostTester {
    std::string tester;
    std::string what;  // "its connection broke"
};

struct TogetherRequest {
    std::vector<TrialPart> parts;
    std::vector<LostTester> lost;
    double start_difference_us = 1000;  // the largest in a valid trial, including its uncertainty
};

struct TogetherResult {
    TrialResult whole;
    std::vector<TrialPart> parts;     // in the order of their shares
    double start_difference_us = 0;   // between the first tester that started and the last one
    double start_uncertainty_us = 0;  // of start_difference_us
    double start_difference_limit_us = 0;
};

/// Adds up what the testers counted, and judges it. Delays of the sum are in nanoseconds: its ticks_per_second is 10^9.
/// Throws Fault{bad_request} if the parts are not of one trial, if shares overlap, or if shares are missing though no
/// tester is lost.
[[nodiscard]] TogetherResult judge_together(TogetherRequest request);

}  // namespace evenhand::tally
