// SPDX-License-Identifier: Apache-2.0
#include "proof/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fault.hpp"
#include "plan/address_list.hpp"
#include "plan/sent_flows.hpp"
#include "proof/listed_flows.hpp"
#include "proof/probability.hpp"

namespace evenhand::proof {
namespace {

// Going through a batch once for each table keeps batch and table in the cache. All tables at once, frame by frame,
// would not fit.
constexpr std::size_t batch = 4096;

constexpr std::uint32_t coarse_side = 256;
constexpr std::uint64_t most_exact_cells = std::uint64_t{1} << 20U;

/// Value v of n is counted in cell v * cells / n. The factor has 52 fractional bits, so that the cell is exact for all
/// v < 2^22.
constexpr unsigned factor_bits = 52;

double square(double x) { return x * x; }

/// `occurred` of `cells` equally likely values occurred in `draws` draws. `chosen_once_of`: see FlowCounts.
Coverage make_coverage(std::uint64_t cells, std::uint64_t occurred, std::uint64_t draws,
                       std::optional<std::uint64_t> chosen_once_of) {
    const auto n = static_cast<double>(cells);
    double missing = 0;
    if (!chosen_once_of) {
        missing = n * std::exp(static_cast<double>(draws) * std::log1p(-1 / n));
    } else {
        // None of the flows that have the value was chosen: the mean of the first and the last choice represents each
        // of them well enough.
        const double of_value = static_cast<double>(*chosen_once_of) / n;
        const double left = static_cast<double>(*chosen_once_of) - (of_value - 1) / 2;
        if (static_cast<double>(draws) < left)
            missing = n * std::exp(of_value * std::log1p(-static_cast<double>(draws) / left));
    }
    // The variance of the number of missing values is at most that of a Poisson variable.
    return {.occurred = occurred, .expected = n - missing, .p = poisson_tail(cells - occurred, missing)};
}

struct Moments {
    double mean = 0;
    double variance = 0;
};

/// The moments of a field's values, doubled and centred: 2 v - (n - 1).
Moments moments_of(const std::vector<std::uint32_t>& hits, std::uint64_t draws) {
    double sum = 0;
    double squares = 0;
    const double centre = static_cast<double>(hits.size() - 1);
    for (std::size_t v = 0; v < hits.size(); ++v) {
        const double x = 2 * static_cast<double>(v) - centre;
        sum += x * hits[v];
        squares += x * x * hits[v];
    }
    const auto n = static_cast<double>(draws);
    return {.mean = sum / n, .variance = squares / n - square(sum / n)};
}

/// Independence of rows and columns, given how often each of them occurred; rows and columns that never occurred are
/// left out.
std::optional<ChiSquare> contingency(const std::vector<std::uint32_t>& hits, std::uint32_t rows, std::uint32_t columns,
                                     std::uint64_t draws, double left) {
    std::vector<double> row_sums(rows);
    std::vector<double> column_sums(columns);
    for (std::uint32_t r = 0; r < rows; ++r) {
        for (std::uint32_t c = 0; c < columns; ++c) {
            const double count = hits[std::size_t{r} * columns + c];
            row_sums[r] += count;
            column_sums[c] += count;
        }
    }
    const auto occupied = [](const std::vector<double>& sums) {
        return static_cast<std::uint64_t>(std::ranges::count_if(sums, [](double sum) { return sum > 0; }));
    };
    if (occupied(row_sums) < 2 || occupied(column_sums) < 2) return std::nullopt;
    double chi_square = 0;
    for (std::uint32_t r = 0; r < rows; ++r) {
        for (std::uint32_t c = 0; c < columns; ++c) {
            const double expected = row_sums[r] * column_sums[c] / static_cast<double>(draws);
            if (expected > 0) chi_square += square(hits[std::size_t{r} * columns + c] - expected) / expected;
        }
    }
    const auto freedom = (occupied(row_sums) - 1) * (occupied(column_sums) - 1);
    chi_square /= left;
    return ChiSquare{.value = chi_square, .degrees_of_freedom = freedom, .p = chi_square_tail(chi_square, freedom)};
}

}  // namespace

std::vector<Field> fields_of(const plan::AddressPlan& plan, plan::Direction direction) {
    std::vector<Field> fields;
    const auto add_address = [&](const plan::HostRange& hosts, std::size_t lane, const char* whole, const char* network,
                                 const char* host, const char* entry, const char* part) {
        if (hosts.list) {
            const bool is_drawn = hosts.host.mode == plan::Mode::pseudorandom;
            const bool has_entries = is_drawn && hosts.list->choice() == plan::Choice::entry;
            const auto parts = !is_drawn ? 1 : has_entries ? parts_of_entry : parts_of_list;
            if (has_entries) {
                const auto entries = static_cast<std::uint32_t>(hosts.list->size());
                fields.push_back({.name = entry, .range = {.count = entries}, .lane = lane, .shift = bits_of_part});
            }
            fields.push_back({.name = part,
                              .range = {.count = parts, .mode = hosts.host.mode},
                              .lane = lane,
                              .mask = has_entries ? parts_of_entry - 1 : ~std::uint32_t{0}});
            return;
        }
        if (!hosts.network) {
            fields.push_back({.name = whole, .range = hosts.host, .lane = lane});
            return;
        }
        const unsigned host_bits = hosts.shares_octets() ? 8 : 16;
        fields.push_back(
            {.name = network,
             .range = {.first = hosts.first_network(), .count = hosts.networks(), .mode = hosts.network->mode},
             .lane = lane,
             .shift = host_bits});
        fields.push_back({.name = host, .range = hosts.host, .lane = lane, .mask = (1U << host_bits) - 1});
    };
    const plan::FlowRanges ranges = plan::ranges_of(plan, direction);
    add_address(ranges.source, 0, "source", "source_network", "source_host", "source_entry", "source_part");
    add_address(ranges.destination, 1, "destination", "destination_network", "destination_host", "destination_entry",
                "destination_part");
    fields.push_back({.name = "source_port", .range = ranges.source_port, .lane = 2});
    fields.push_back({.name = "destination_port", .range = ranges.destination_port, .lane = 3});
    return fields;
}

FlowCounts::FlowCounts(const std::vector<Field>& fields, std::uint64_t frames,
                       std::optional<std::uint64_t> chosen_once_of)
    : chosen_once_of_{chosen_once_of} {
    const auto side =
        static_cast<std::uint32_t>(std::sqrt(static_cast<double>(frames) / static_cast<double>(least_expected)));
    for (const auto& field : fields) {
        Column column{.field = field,
                      .values = std::vector<std::uint32_t>(batch + 1),
                      .cells = std::vector<std::uint32_t>(batch + 1),
                      .hits = {}};
        column.cell_count = std::min({field.range.count, coarse_side, std::max(side, 1U)});
        column.cell_factor = (std::uint64_t{column.cell_count} << factor_bits) / field.range.count + 1;
        column.hits.resize(field.range.count);
        columns_.push_back(std::move(column));
    }
    for (std::size_t first = 0; first < columns_.size(); ++first) {
        add_grid(first, first, 1, frames);
        for (std::size_t second = first + 1; second < columns_.size(); ++second) add_grid(first, second, 0, frames);
    }
}

void FlowCounts::add_grid(std::size_t first, std::size_t second, std::size_t lag, std::uint64_t frames) {
    const auto& a = columns_[first];
    const auto& b = columns_[second];
    if (!a.field.is_drawn() || !b.field.is_drawn()) return;
    const std::uint64_t pairs = std::uint64_t{a.field.range.count} * b.field.range.count;
    Grid grid{.first = first,
              .second = second,
              .lag = lag,
              .is_exact = pairs <= most_exact_cells && frames / least_expected >= pairs,
              .hits = {}};
    grid.rows = grid.is_exact ? a.field.range.count : a.cell_count;
    grid.columns = grid.is_exact ? b.field.range.count : b.cell_count;
    grid.hits.resize(std::size_t{grid.rows} * grid.columns);
    grids_.push_back(std::move(grid));
}

void FlowCounts::take(const plan::FlowBlock& block, std::size_t used) {
    if (waiting_ + used > batch) count_batch();
    for (auto& column : columns_) {
        const auto& lane = block.lanes.field[column.field.lane];
        for (std::size_t j = 0; j < used; ++j) column.values[1 + waiting_ + j] = column.field.value_in(lane[j]);
    }
    waiting_ += used;
}

void FlowCounts::count_batch() {
    if (waiting_ == 0) return;
    for (auto& column : columns_) {
        for (std::size_t i = 1; i <= waiting_; ++i) {
            const std::uint32_t value = column.values[i];
            // The drawn and the counted flows must be of the same plan, or the counts would mean nothing.
            if (value >= column.hits.size()) [[unlikely]] {
                throw Fault{
                    FaultCode::internal,
                    fmt::format("{} of a flow is {}, which is not among its {} values from {} on", column.field.name,
                                value + column.field.range.first, column.hits.size(), column.field.range.first),
                    "plan", "Report this, with the plan."};
            }
            column.cells[i] = static_cast<std::uint32_t>(value * column.cell_factor >> factor_bits);
            ++column.hits[value];
        }
    }
    for (auto& grid : grids_) count_grid(grid);
    for (auto& column : columns_) {
        column.values[0] = column.values[waiting_];
        column.cells[0] = column.cells[waiting_];
    }
    counted_ += waiting_;
    waiting_ = 0;
}

void FlowCounts::count_grid(Grid& grid) const {
    const auto& a = columns_[grid.first];
    const auto& b = columns_[grid.second];
    // The very first frame has no predecessor.
    const std::size_t from = counted_ == 0 && grid.lag != 0 ? 2 : 1;
    const std::uint32_t* const row = (grid.is_exact ? a.values : a.cells).data() - grid.lag;
    const std::uint32_t* const column = (grid.is_exact ? b.values : b.cells).data();
    for (std::size_t i = from; i <= waiting_; ++i) ++grid.hits[std::size_t{row[i]} * grid.columns + column[i]];
    const std::uint32_t* const x = a.values.data() - grid.lag;
    const std::uint32_t* const y = b.values.data();
    const auto centre_x = static_cast<std::int64_t>(a.field.range.count) - 1;
    const auto centre_y = static_cast<std::int64_t>(b.field.range.count) - 1;
    std::int64_t sum = 0;  // at most 2^44 times the batch
    for (std::size_t i = from; i <= waiting_; ++i)
        sum += (2 * std::int64_t{x[i]} - centre_x) * (2 * std::int64_t{y[i]} - centre_y);
    grid.product_sum += static_cast<double>(sum);
}

double FlowCounts::left() const {
    if (!chosen_once_of_) return 1;
    return 1 - static_cast<double>(counted_) / static_cast<double>(*chosen_once_of_);
}

ProofResult FlowCounts::result() {
    count_batch();
    ProofResult result{.frames = counted_, .fields = {}, .pairs = {}};
    for (const auto& column : columns_) result.fields.push_back(prove_field(column));
    for (const auto& grid : grids_) {
        if (grid.lag == 0) {
            result.pairs.push_back(prove_pair(grid));
        } else {
            result.fields[grid.first].serial = prove_pair(grid);
        }
    }
    return result;
}

FieldProof FlowCounts::prove_field(const Column& column) const {
    const auto& hits = column.hits;
    const std::uint64_t values = hits.size();
    FieldProof proof{.name = column.field.name, .range = column.field.range, .is_proven = column.field.is_drawn()};
    const auto [least, most] = std::ranges::minmax(hits);
    proof.least_hits = least;
    proof.most_hits = most;
    proof.coverage = make_coverage(values, values - static_cast<std::uint64_t>(std::ranges::count(hits, 0U)), counted_,
                                   chosen_once_of_);
    proof.expected_per_value = static_cast<double>(counted_) / static_cast<double>(values);
    if (!proof.is_proven || counted_ < least_expected * values || left() <= 0) return proof;
    const double square_sum = std::accumulate(hits.begin(), hits.end(), 0.0, [&](double total, std::uint32_t count) {
        return total + square(count - proof.expected_per_value) / proof.expected_per_value;
    });
    const double sum = square_sum / left();
    proof.chi_square = ChiSquare{.value = sum, .degrees_of_freedom = values - 1, .p = chi_square_tail(sum, values - 1)};
    return proof;
}

PairProof FlowCounts::prove_pair(const Grid& grid) const {
    const std::uint64_t draws = counted_ - std::min<std::uint64_t>(counted_, grid.lag);
    // Two consecutive frames are two choices, and as independent of each other as if each could be any flow.
    const bool is_of_choices = grid.lag == 0;
    PairProof proof{
        .first = columns_[grid.first].field.name,
        .second = columns_[grid.second].field.name,
        .rows = grid.rows,
        .columns = grid.columns,
        .is_exact = grid.is_exact,
        .coverage = std::nullopt,
        .chi_square = counted_ < least_expected * grid.hits.size() || (is_of_choices && left() <= 0)
                          ? std::nullopt
                          : contingency(grid.hits, grid.rows, grid.columns, draws, is_of_choices ? left() : 1),
        .correlation = correlate(grid)};
    if (grid.is_exact)
        proof.coverage = make_coverage(grid.hits.size(),
                                       grid.hits.size() - static_cast<std::uint64_t>(std::ranges::count(grid.hits, 0U)),
                                       draws, is_of_choices ? chosen_once_of_ : std::nullopt);
    return proof;
}

std::optional<Correlation> FlowCounts::correlate(const Grid& grid) const {
    if (counted_ < least_expected) return std::nullopt;
    const auto a = moments_of(columns_[grid.first].hits, counted_);
    const auto b = moments_of(columns_[grid.second].hits, counted_);
    if (a.variance <= 0 || b.variance <= 0 || (grid.lag == 0 && left() <= 0)) return std::nullopt;
    const auto draws = static_cast<double>(counted_ - grid.lag) / (grid.lag == 0 ? left() : 1);
    const double value = (grid.product_sum / static_cast<double>(counted_ - grid.lag) - a.mean * b.mean) /
                         std::sqrt(a.variance * b.variance);
    return Correlation{.value = value, .spread = 1 / std::sqrt(draws), .p = normal_tails(value * std::sqrt(draws))};
}

}  // namespace evenhand::proof
