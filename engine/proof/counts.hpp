// SPDX-License-Identifier: Apache-2.0
// Proof: counts the values of flows, alone and in pairs, as fast as they are drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/draw.hpp"
#include "proof/result.hpp"

namespace evenhand::proof {

/// A field of the flows, and where a block has it: the number in a lane has the network above the host
/// (plan::HostRange::value).
struct Field {
    const char* name = "";
    plan::FieldRange range;
    std::size_t lane = 0;
    unsigned shift = 0;
    std::uint32_t mask = 0xFFFFFFFF;

    [[nodiscard]] bool is_drawn() const noexcept { return range.mode == plan::Mode::pseudorandom && range.count > 1; }
    /// The field's value, counted from 0.
    [[nodiscard]] std::uint32_t value_in(std::uint64_t number) const noexcept {
        return (static_cast<std::uint32_t>(number) >> shift & mask) - range.first;
    }
};

/// The fields of a direction's flows; network and host are two fields where a side has networks (SEED-33). Plans
/// with lists of hosts have the fields of ListedFlows.
[[nodiscard]] std::vector<Field> fields_of(const plan::AddressPlan& plan, plan::Direction direction);

/// Counters have 32 bits: larger ones would not fit into the cache, which makes counting fast.
constexpr std::uint64_t most_frames = 4'000'000'000;

/// With fewer expected hits in a cell, the chi-square statistic would not have its distribution (SEED-43).
constexpr std::uint64_t least_expected = 10;

/// Counts the flows of one stream in their order: every value of every field, and on a grid every pair of fields, and
/// every field with itself one frame later. A grid has a cell for each pair of values if their number and that of the
/// draws allow it (SEED-41); otherwise it has at most 256 x 256 cells, each for a range of adjacent values.
class FlowCounts {
   public:
    /// `frames`: how many frames will be drawn, at most `most_frames`; this determines how fine the grids are.
    /// `chosen_once_of`: the number of flows, if none is chosen twice (as with connections). The counts are then more
    /// even than those of independent draws, the more so the fewer flows are left. Nothing: each draw is from all
    /// flows.
    FlowCounts(const std::vector<Field>& fields, std::uint64_t frames,
               std::optional<std::uint64_t> chosen_once_of = std::nullopt);

    /// Takes the first `used` flows of a block. Throws Fault{internal} for a value that its field does not have.
    void take(const plan::FlowBlock& block, std::size_t used);

    /// The result for everything that was taken so far.
    [[nodiscard]] ProofResult result();

   private:
    struct Column {
        Field field;
        std::vector<std::uint32_t> values;  // of the batch, counted from 0, after the last value of the previous batch
        std::vector<std::uint32_t> cells;   // the same values as cells of the coarse grids
        std::uint64_t cell_factor = 0;
        std::uint32_t cell_count = 0;
        std::vector<std::uint32_t> hits;  // one for each value
    };
    struct Grid {
        std::size_t first = 0;  // index of a column
        std::size_t second = 0;
        std::size_t lag = 0;  // 1: `first` is taken from the previous frame
        bool is_exact = false;
        std::uint32_t rows = 0;
        std::uint32_t columns = 0;
        std::vector<std::uint32_t> hits;
        double product_sum = 0;  // of both values, doubled and centred
    };

    /// By this factor the variances of counts are smaller than those of independent draws: the share of the flows that
    /// were not chosen.
    [[nodiscard]] double left() const;
    void add_grid(std::size_t first, std::size_t second, std::size_t lag, std::uint64_t frames);
    void count_batch();
    void count_grid(Grid& grid) const;
    [[nodiscard]] FieldProof prove_field(const Column& column) const;
    [[nodiscard]] PairProof prove_pair(const Grid& grid) const;
    [[nodiscard]] std::optional<Correlation> correlate(const Grid& grid) const;

    std::optional<std::uint64_t> chosen_once_of_;
    std::vector<Column> columns_;
    std::vector<Grid> grids_;
    std::size_t waiting_ = 0;    // flows of the batch that are not counted yet
    std::uint64_t counted_ = 0;  // flows
};

}  // namespace evenhand::proof
