// SPDX-License-Identifier: Apache-2.0
// Proof: what was counted of the draws, and how likely that is if they are uniform and independent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace evenhand::proof {

/// A chi-square statistic with the probability that chance alone makes it this large. Near 0: too uneven. Near 1: too
/// even.
struct ChiSquare {
    double value = 0;
    std::uint64_t degrees_of_freedom = 0;
    double p = 1;
};

/// How many of the possible values occurred, and how likely it is that so many or more are missing.
struct Coverage {
    std::uint64_t occurred = 0;
    double expected = 0;
    double p = 1;
};

/// Of two series: `spread` is the standard deviation that chance alone gives; p of being as far from 0 as this.
struct Correlation {
    double value = 0;
    double spread = 0;
    double p = 1;
};

/// Whether two fields of a frame, or a field of two frames in a row, know of each other.
struct PairProof {
    std::string first;
    std::string second;
    std::uint32_t rows = 0;  // cells of the first; a cell is one value, or a range of values beside each other
    std::uint32_t columns = 0;
    bool is_exact = false;                // every value has its own cell
    std::optional<Coverage> coverage;     // of the pairs; only if exact
    std::optional<ChiSquare> chi_square;  // of independence; none if there were too few draws for it
    std::optional<Correlation> correlation;
};

struct FieldProof {
    std::string name;
    plan::FieldRange range;
    bool is_proven = false;  // pseudorandom with more than one value; of others nothing is asked
    Coverage coverage;
    double expected_per_value = 0;
    std::uint64_t least_hits = 0;  // of the values
    std::uint64_t most_hits = 0;
    std::optional<ChiSquare> chi_square;  // against an even spread; none if there were too few draws for it
    std::optional<PairProof> serial;      // with the same field of the next frame of the stream
};

struct ProofResult {
    std::uint64_t frames = 0;  // really drawn
    std::vector<FieldProof> fields;
    std::vector<PairProof> pairs;  // of the proven fields
};

}  // namespace evenhand::proof
