// SPDX-License-Identifier: Apache-2.0
// Proof: draws the flows of a stream as a trial would, counts them, and calculates how likely the counts are (SEED-33,
// SEED-40, SEED-43, R4814-01).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "proof/counts.hpp"

namespace evenhand::proof {

enum class Generator : std::uint8_t {
    philox,       // FlowDraw: what is sent
    fifteen_bit,  // FifteenBitDraw
    modulo,       // ModuloDraw
};

struct ProofRequest {
    plan::AddressPlan plan;
    std::uint64_t seed = 0;
    plan::Direction direction = plan::Direction::forward;
    std::uint64_t frames = 1;  // 1 .. most_frames
    std::uint64_t first = 0;   // number of the first frame of the direction
    unsigned streams = 1;  // how many the direction has; stream s has the frames first + s, first + s + streams, ...
    unsigned stream = 0;
    Generator generator = Generator::philox;
};

/// Asked every few milliseconds.
class ProofObserver {
   public:
    virtual ~ProofObserver() = default;
    /// False ends the drawing; the result is about what was drawn until then.
    virtual bool goes_on(std::uint64_t drawn_frames) = 0;
};

template <class S>
concept BlockSource = requires(S& source, std::uint64_t k, plan::FlowBlock& block) { source.draw_block(k, k, block); };

/// Draws and counts at most `frames` flows of a stream. `source`: FlowDraw, or another generator to be tested.
template <BlockSource S>
[[nodiscard]] ProofResult prove(S&& source, FlowCounts counts, const ProofRequest& request, ProofObserver& observer) {
    constexpr std::uint64_t between_looks = std::uint64_t{1} << 18U;
    const std::uint64_t first = request.first + request.stream;
    plan::FlowBlock block;
    for (std::uint64_t drawn = 0; drawn < request.frames; drawn += plan::FlowBlock::size) {
        if (drawn % between_looks == 0 && !observer.goes_on(drawn)) break;
        source.draw_block(first + drawn * request.streams, request.streams, block);
        counts.take(block, std::min<std::uint64_t>(plan::FlowBlock::size, request.frames - drawn));
    }
    return counts.result();
}

/// Uses the generator that the request names.
[[nodiscard]] ProofResult prove(const ProofRequest& request, ProofObserver& observer);

}  // namespace evenhand::proof
