// SPDX-License-Identifier: Apache-2.0
// Contract: how uniform and independent the draws of a plan are.
#include "contract/reply.hpp"
#include "contract/reply_parts.hpp"

namespace evenhand::contract {
namespace {

const char* name_of(plan::Mode mode) {
    switch (mode) {
        case plan::Mode::pseudorandom: return "pseudorandom";
        case plan::Mode::fixed: return "fixed";
        case plan::Mode::increment: return "increment";
        case plan::Mode::decrement: break;
    }
    return "decrement";
}

const char* name_of(proof::Generator generator) {
    switch (generator) {
        case proof::Generator::philox: return "philox";
        case proof::Generator::fifteen_bit: return "fifteen_bit";
        case proof::Generator::modulo: break;
    }
    return "modulo";
}

Ordered chi_square(const std::optional<proof::ChiSquare>& c) {
    if (!c) return nullptr;
    return {{"value", c->value}, {"degrees_of_freedom", c->degrees_of_freedom}, {"p", c->p}};
}

Ordered coverage(const proof::Coverage& c) { return {{"occurred", c.occurred}, {"expected", c.expected}, {"p", c.p}}; }

Ordered pair_proof(const proof::PairProof& pair) {
    const auto& c = pair.correlation;
    return {{"first", pair.first},
            {"second", pair.second},
            {"rows", pair.rows},
            {"columns", pair.columns},
            {"exact", pair.is_exact},
            {"coverage", pair.coverage ? coverage(*pair.coverage) : Ordered(nullptr)},
            {"chi_square", chi_square(pair.chi_square)},
            {"correlation", c ? Ordered{{"value", c->value}, {"spread", c->spread}, {"p", c->p}} : Ordered(nullptr)}};
}

Ordered field_proof(const proof::FieldProof& field) {
    return {{"field", field.name},
            {"first", field.range.first},
            {"values", field.range.count},
            {"mode", name_of(field.range.mode)},
            {"proven", field.is_proven},
            {"coverage", coverage(field.coverage)},
            {"expected_per_value", field.expected_per_value},
            {"least_hits", field.least_hits},
            {"most_hits", field.most_hits},
            {"chi_square", chi_square(field.chi_square)},
            {"serial", field.serial ? pair_proof(*field.serial) : Ordered(nullptr)}};
}

}  // namespace

std::string write_proving(std::int64_t id, const proof::ProofRequest& request, std::uint64_t drawn_frames) {
    return line_of({{"id", id},
                    {"event", "proving"},
                    {"direction", name_of(request.direction)},
                    {"drawn_frames", drawn_frames},
                    {"frames", request.frames}});
}

std::string write_prove(std::int64_t id, const proof::ProofRequest& request, const proof::ProofResult& result) {
    Ordered fields = Ordered::array();
    for (const auto& field : result.fields) fields.push_back(field_proof(field));
    Ordered pairs = Ordered::array();
    for (const auto& pair : result.pairs) pairs.push_back(pair_proof(pair));
    return line_of({{"id", id},
                    {"response", "prove"},
                    {"generator", name_of(request.generator)},
                    {"direction", name_of(request.direction)},
                    {"seed", request.seed},
                    {"first", request.first},
                    {"streams", request.streams},
                    {"stream", request.stream},
                    {"frames", result.frames},
                    {"stopped", result.frames < request.frames},
                    {"fields", fields},
                    {"pairs", pairs}});
}

}  // namespace evenhand::contract
