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

/// How many of the possible values occurred, and how likely it is that as many or more are missing.
struct Coverage {
    std::uint64_t occurred = 0;
    double expected = 0;
    double p = 1;
};

/// The correlation of two series. `spread`: its standard deviation if only chance is at work; `p`: the probability of
/// being at least as far from 0.
struct Correlation {
    double value = 0;
    double spread = 0;
    double p = 1;
};

/// Whether two fields of a frame, or one field of two consecutive frames, depend on each other.
struct PairProof {
    std::string first;
    std::string second;
    std::uint32_t rows = 0;  // cells of the first field; a cell is one value, or a range of adjacent values
    std::uint32_t columns = 0;
    bool is_exact = false;                // every value has its own cell
    std::optional<Coverage> coverage;     // of the pairs; only if exact
    std::optional<ChiSquare> chi_square;  // of independence; nothing if there were too few draws for it
    std::optional<Correlation> correlation;
};

struct FieldProof {
    std::string name;
    plan::FieldRange range;
    bool is_proven = false;  // true for a pseudorandom field with more than one value; nothing is tested for others
    Coverage coverage;
    double expected_per_value = 0;
    std::uint64_t least_hits = 0;  // of the value that occurred least often
    std::uint64_t most_hits = 0;
    std::optional<ChiSquare> chi_square;  // against an even spread; nothing if there were too few draws for it
    std::optional<PairProof> serial;      // with the same field of the next frame of the stream
};

struct ProofResult {
    std::uint64_t frames = 0;  // actually drawn
    std::vector<FieldProof> fields;
    std::vector<PairProof> pairs;  // of the proven fields
};

}  // namespace evenhand::proof
