// SPDX-License-Identifier: Apache-2.0
#include "proof/proof.hpp"

#include "proof/contrast.hpp"

namespace evenhand::proof {

ProofResult prove(const ProofRequest& request, ProofObserver& observer) {
    const auto fields = fields_of(request.plan, request.direction);
    FlowCounts counts{fields, request.frames};
    switch (request.generator) {
        case Generator::fifteen_bit:
            return prove(FifteenBitDraw{fields, request.seed}, std::move(counts), request, observer);
        case Generator::modulo:
            return prove(ModuloDraw{fields, request.direction, request.seed}, std::move(counts), request, observer);
        case Generator::philox: break;
    }
    return prove(plan::FlowDraw{request.plan, request.direction, request.seed}, std::move(counts), request, observer);
}

}  // namespace evenhand::proof
