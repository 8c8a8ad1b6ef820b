// SPDX-License-Identifier: Apache-2.0
// Session: serves one request after the other, from the first line to the end of stdin (D2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "contract/request.hpp"
#include "run/tester.hpp"
#include "session/line_channel.hpp"

namespace evenhand::session {

/// What link requests must know of a trial that runs, and what they have done meanwhile.
struct TrialLinks {
    plan::PerSide<bool> sends{};
    std::vector<run::LinkSwitch> switches;
};

/// A stop request ends the running request and all requests that wait before the stop. An end_sending request is for
/// the running trial. A link request is answered at once while a trial runs, and waits for other requests.
[[nodiscard]] LineKind kind_of(const std::string& line);

class Session {
   public:
    explicit Session(LineChannel& channel) : channel_{channel} {}

    /// Serves until the client is gone.
    void serve();

   private:
    void serve_line(const std::string& line);
    std::string answer(std::int64_t id, const contract::AboutRequest& request);
    std::string answer(std::int64_t id, const contract::StopRequest& request);
    std::string answer(std::int64_t id, const contract::EndSendingRequest& request);
    std::string answer(std::int64_t id, const contract::CountersRequest& request);
    std::string answer(std::int64_t id, const contract::CloseRequest& request);
    std::string answer(std::int64_t id, const contract::ResolveRequest& request);
    std::string answer(std::int64_t id, const contract::FramesRequest& request);
    std::string answer(std::int64_t id, const proof::ProofRequest& request);
    std::string answer(std::int64_t id, const run::OpenRequest& request);
    std::string answer(std::int64_t id, const run::TrialRequest& request);
    std::string answer(std::int64_t id, const run::LearnRequest& request);
    std::string answer(std::int64_t id, const run::WatchRequest& request);
    std::string answer(std::int64_t id, const tally::TogetherRequest& request);
    std::string answer(std::int64_t id, const contract::ClockRequest& request);
    std::string answer(std::int64_t id, const contract::LinkRequest& request);
    [[nodiscard]] run::Tester& opened();

    LineChannel& channel_;
    std::unique_ptr<run::Tester> tester_;
    TrialLinks* running_ = nullptr;  // of the trial that runs
};

}  // namespace evenhand::session
