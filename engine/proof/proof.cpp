// SPDX-License-Identifier: Apache-2.0
#include "proof/proof.hpp"

#include "plan/sent_flows.hpp"
#include "proof/contrast.hpp"
#include "proof/listed_flows.hpp"

namespace evenhand::proof {

ProofResult prove(const ProofRequest& request, ProofObserver& observer) {
    const auto fields = fields_of(request.plan, request.direction);
    // The generators with faults know no connections: each draws from all flows.
    const bool is_own = request.generator == Generator::philox;
    FlowCounts counts{fields, request.frames, is_own ? plan::SentFlows::chosen_once_of(request.plan) : std::nullopt};
    switch (request.generator) {
        case Generator::fifteen_bit:
            return prove(FifteenBitDraw{fields, request.seed}, std::move(counts), request, observer);
        case Generator::modulo:
            return prove(ModuloDraw{fields, request.direction, request.seed}, std::move(counts), request, observer);
        case Generator::philox: break;
    }
    if (request.plan.has_lists())
        return prove(ListedFlows{request.plan, request.direction, request.seed}, std::move(counts), request, observer);
    return prove(plan::SentFlows{request.plan, request.direction, request.seed}, std::move(counts), request, observer);
}

}  // namespace evenhand::proof
