// SPDX-License-Identifier: Apache-2.0
#include "run/deviations.hpp"

#include <fmt/format.h>

#include "run/load.hpp"

namespace evenhand::run {

std::vector<tally::Deviation> deviations_of(const TrialRequest& request, Hosts hosts) {
    const Waits rfc;
    std::vector<tally::Deviation> found{{"R2544-14", "the DUT's routes are static; no routing update was sent"}};
    if (hosts == Hosts::on_the_link) {
        found.push_back({"R2544-34",
                         "no learning frames were sent for the hosts on the link; the DUT asks for them, at the latest "
                         "in this trial"});
    } else if (hosts == Hosts::learnt_before) {
        found.push_back(
            {"R2544-34",
             "learning frames for the hosts on the link were sent once for all trials, not again before this one"});
    }
    const auto shorter = [&](const char* id, double waited, double wanted, const char* what) {
        if (waited < wanted) found.push_back({id, fmt::format("waited {} s instead of {} s {}", waited, wanted, what)});
    };
    shorter("R2544-18", request.waits.after_routing_s, rfc.after_routing_s, "after the routing phase");
    shorter("R2544-18", request.waits.after_learning_s, rfc.after_learning_s, "after the learning frames");
    shorter("R2544-18", request.waits.residual_s, rfc.residual_s, "for residual frames");
    shorter("R2544-18", request.waits.restabilize_s, rfc.restabilize_s, "for the DUT to restabilize");
    constexpr double full_length_s = 60;
    // Such trials have a given length, and trials of connections have the one direction that RFC 9693 prescribes.
    const bool is_single_burst = request.burst && bursts_of(request) == 1;
    const bool is_of_each_connection =
        request.connections && request.connections->use != ConnectionRequest::Use::established;
    const double duration_s = request.clean ? request.clean->wanted_s : request.duration_s;
    if (duration_s < full_length_s && !is_single_burst && !is_of_each_connection)
        found.push_back({"R2544-20", fmt::format("sent for {} s instead of 60 s", duration_s)});
    if (request.clean)
        found.push_back({"R2544-20",
                         "what the tester's or its machine's lapses may have touched is not judged; sent for longer "
                         "instead"});
    const auto limit = [&](double value, double standard, const char* what) {
        if (value != standard) found.push_back({"R2544-39", fmt::format(fmt::runtime(what), value, standard)});
    };
    // The text is about the limit, not about the trial, since the same sentence is shown with PASS, FAIL and INVALID.
    constexpr tally::Limits usual;
    limit(100 * request.limits.offered_tolerance, 100 * usual.offered_tolerance,
          "a valid trial may have an offered load that is off by up to {:g} % instead of {:g} %");
    limit(request.limits.overdue_after_us, tally::usual_overdue_after_us(peak_fps(request)),
          "a frame counted as overdue from {:g} us on instead of {:g} us");
    limit(100 * request.limits.overdue_tolerance, 100 * usual.overdue_tolerance,
          "a valid trial may have up to {:g} % of its frames overdue instead of {:g} %");
    limit(request.limits.longest_overdue_us, usual.longest_overdue_us,
          "a valid trial may have frames that left up to {:g} us late instead of {:g} us");
    limit(request.limits.clock_ppm, usual.clock_ppm,
          "a valid trial may have a clock that is off by up to {:g} ppm instead of {:g} ppm");
    if (request.directions.size() < 2 && !is_of_each_connection)
        found.push_back({"R5180-13", "traffic in one direction only"});
    return found;
}

}  // namespace evenhand::run
