// SPDX-License-Identifier: Apache-2.0
#include "plan/draw.hpp"

#include <bit>

#include "plan/flow_patterns.hpp"
#include "plan/sent_flows.hpp"
#include "plan/whole_draw.hpp"

namespace evenhand::plan {
namespace {

/// The numbers of a block's frames.
class BlockNumbers {
   public:
    BlockNumbers(std::uint64_t first, std::uint64_t stride) noexcept {
        for (std::size_t j = 0; j < numbers_.size(); ++j) numbers_[j] = first + j * stride;
    }
    [[nodiscard]] const std::uint64_t* data() const noexcept { return numbers_.data(); }

   private:
    std::array<std::uint64_t, FlowBlock::size> numbers_;
};

constexpr std::size_t a_part = FlowBlock::size / 4;  // of a block, whose entries are fetched together

}  // namespace

NetworkSplit::NetworkSplit(const HostRange& range) noexcept
    : first_{range.value({})},
      networks_{range.network->mode == Mode::pseudorandom ? range.network->count : 1},
      hosts_{range.host.mode == Mode::pseudorandom ? range.host.count : 1},
      network_{*range.network},
      host_{range.host},
      network_shift_{range.shares_octets() ? 8U : 16U} {
    network_step_ = (std::uint64_t{1} << network_shift_) - hosts_;
    reciprocal_ = ((std::uint64_t{1} << reciprocal_bits) + hosts_ - 1) / hosts_;
}

std::uint64_t NetworkSplit::step(std::uint64_t k) const noexcept {
    std::uint64_t sum = 0;
    std::uint64_t turn = k;
    if (is_stepped(host_.mode)) {
        sum += stepped(host_.mode, k, host_.count);
        turn /= host_.count;
    }
    if (is_stepped(network_.mode)) sum += stepped(network_.mode, turn, network_.count) << network_shift_;
    return sum;
}

FlowDraw::FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
      direction_{static_cast<std::uint32_t>(direction)} {
    const FlowRanges ranges = ranges_of(plan, direction);
    const std::array<HostRange, address_fields> hosts{ranges.source, ranges.destination};
    has_common_network_ = plan.common_network;
    if (hosts[0].list || hosts[1].list) {
        whole_ = std::make_shared<const WholeDraw>(hosts[0], hosts[1], direction, key_);
        for (std::size_t i = 0; i < hosts.size(); ++i) set_field(i, whole_->drawn(i));
        all_pseudorandom_ = false;
        has_ahead_ = whole_->is_slow_to_fetch();
    } else {
        set_addresses(hosts);
    }
    set_field(address_fields, ranges.source_port);
    set_field(address_fields + 1, ranges.destination_port);
}

FlowDraw::FlowDraw(const AddressPlan& plan, Direction direction, std::uint64_t seed,
                   std::shared_ptr<const FlowPatterns> patterns)
    : FlowDraw{plan, direction, seed} {
    patterns_ = std::move(patterns);
}

void FlowDraw::set_addresses(const std::array<HostRange, address_fields>& hosts) noexcept {
    has_networks_ = hosts[0].network.has_value();  // both sides have networks or neither has, as check_plan ensures
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (!has_networks_) {
            set_field(i, hosts[i].host);
            continue;
        }
        splits_[i] = NetworkSplit{hosts[i]};
        set_field(i, {.first = 0, .count = splits_[i].drawn(), .mode = Mode::pseudorandom});
        all_pseudorandom_ = all_pseudorandom_ && !is_stepped(hosts[i].host.mode) && !is_stepped(hosts[i].network->mode);
    }
}

void FlowDraw::set_field(std::size_t field, const FieldRange& range) noexcept {
    modes_[field] = range.mode;
    // A fixed value is drawn from a range of one.
    bounds_.set(field, range.first, range.mode == Mode::fixed ? 1 : range.count);
    all_pseudorandom_ = all_pseudorandom_ && !is_stepped(range.mode);
}

std::array<std::uint32_t, drawn_fields> FlowDraw::draw_words(std::uint64_t k, std::uint32_t attempt) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), direction_, attempt}, key_);
}

std::uint32_t FlowDraw::settle(std::size_t field, std::uint64_t k, std::uint32_t word) const noexcept {
    const std::uint32_t first = bounds_.first[field];
    const std::uint32_t count = bounds_.count[field];
    if (is_stepped(modes_[field])) return first + static_cast<std::uint32_t>(stepped(modes_[field], k, count));
    for (std::uint32_t attempt = 1;; ++attempt) {
        const std::uint64_t product = std::uint64_t{word} * count;
        if (static_cast<std::uint32_t>(product) >= bounds_.threshold[field])
            return first + static_cast<std::uint32_t>(product >> 32U);
        word = draw_words(k, attempt)[field];
    }
}

std::array<std::uint32_t, drawn_fields> FlowDraw::draw_fields(std::uint64_t k) const noexcept {
    const auto words = draw_words(k, 0);
    std::array<std::uint32_t, drawn_fields> values{};
    for (std::size_t i = 0; i < drawn_fields; ++i) values[i] = settle(i, k, words[i]);
    return values;
}

std::optional<FlowAddresses> FlowDraw::whole_addresses(std::uint64_t k) const noexcept {
    if (!whole_) return std::nullopt;
    const auto values = draw_fields(k);
    auto addresses = whole_->addresses(k, {values[0], values[1]});
    if (patterns_) patterns_->apply(k, addresses);
    return addresses;
}

Flow FlowDraw::draw(std::uint64_t k) const noexcept {
    Flow flow = draw_of_plan(k);
    if (!patterns_) return flow;
    patterns_->apply(k, flow);
    if (const auto whole = whole_addresses(k)) {
        const auto [source, destination] = WholeDraw::values(*whole);
        flow.source = source;
        flow.destination = destination;
    }
    return flow;
}

Flow FlowDraw::draw_of_plan(std::uint64_t k) const noexcept {
    if (!whole_) return draw_of_ranges(k);
    const auto fields = draw_fields(k);
    const auto [source, destination] = WholeDraw::values(whole_->addresses(k, {fields[0], fields[1]}));
    return {source, destination, fields[2], fields[3]};
}

Flow FlowDraw::draw_of_ranges(std::uint64_t k) const noexcept {
    auto values = draw_fields(k);
    if (has_networks_) {
        for (std::size_t i = 0; i < address_fields; ++i)
            values[i] = static_cast<std::uint32_t>(splits_[i].value(values[i]) + splits_[i].step(k));
        if (has_common_network_) values[1] += static_cast<std::uint32_t>(splits_[0].network_part(values[0]));
    }
    return {values[0], values[1], values[2], values[3]};
}

void FlowDraw::add_networks(FlowBlock& block) const noexcept {
    for (std::size_t i = 0; i < address_fields; ++i) {
        const NetworkSplit split = splits_[i];  // a copy, since the stores below could change *this
        for (auto& number : block.lanes.field[i]) number = static_cast<std::uint32_t>(split.value(number));
    }
    if (!has_common_network_) return;
    const NetworkSplit split = splits_[0];
    for (std::size_t j = 0; j < FlowBlock::size; ++j)
        block.lanes.field[1][j] += static_cast<std::uint32_t>(split.network_part(block.lanes.field[0][j]));
}

void FlowDraw::put(FlowBlock& block, std::size_t j, const Flow& flow) noexcept {
    block.lanes.field[0][j] = flow.source;
    block.lanes.field[1][j] = flow.destination;
    block.lanes.field[2][j] = flow.source_port;
    block.lanes.field[3][j] = flow.destination_port;
}

void FlowDraw::settle_for_whole(const std::uint64_t* numbers, const LaneBits& biased, FlowBlock& block) const noexcept {
    for (std::size_t i = 0; i < drawn_fields; ++i) {
        const std::uint32_t wanted = is_stepped(modes_[i]) ? ~std::uint32_t{0} : biased[i];
        for (std::uint32_t left = wanted; left != 0; left &= left - 1) {
            const auto j = static_cast<std::size_t>(std::countr_zero(left));
            const std::uint64_t k = numbers[j];
            block.lanes.field[i][j] = settle(i, k, is_stepped(modes_[i]) ? 0 : draw_words(k, 0)[i]);
        }
    }
}

void FlowDraw::apply_patterns(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    if (patterns_) [[unlikely]]
        patterns_->apply(BlockNumbers{first, stride}.data(), block);
}

void FlowDraw::begin_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    LaneBits biased;
    (void)draw_lanes(first, stride, direction_, key_, bounds_, block.lanes, biased);
    settle_for_whole(BlockNumbers{first, stride}.data(), biased, block);
}

void FlowDraw::draw_ahead(std::uint64_t first, std::uint64_t stride, FlowBlock& block, FlowBlock& next) const noexcept {
    begin_block(first + FlowBlock::size * stride, stride, next);
    whole_->fetch(next, 0, a_part);
    whole_->apply(BlockNumbers{first, stride}.data(), block);
    whole_->fetch(next, a_part, 2 * a_part);
    apply_patterns(first, stride, block);
}

void FlowDraw::fetch_rest(const FlowBlock& next) const noexcept { whole_->fetch(next, 2 * a_part, FlowBlock::size); }

void FlowDraw::draw_block(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    draw_block_of_plan(first, stride, block);
    apply_patterns(first, stride, block);
}

void FlowDraw::draw_listed(const std::uint64_t* words, FlowBlock& block) const noexcept {
    draw_listed_of_plan(words, block);
    if (patterns_) [[unlikely]] {
        constexpr unsigned unused = 16;
        std::array<std::uint64_t, FlowBlock::size> numbers;
        for (std::size_t j = 0; j < numbers.size(); ++j) numbers[j] = words[j] << unused >> unused;
        patterns_->apply(numbers.data(), block);
    }
}

void FlowDraw::draw_block_of_plan(std::uint64_t first, std::uint64_t stride, FlowBlock& block) const noexcept {
    LaneBits which;  // hardly ever any: there are few hosts and ports, compared with 2^32
    const bool biased = draw_lanes(first, stride, direction_, key_, bounds_, block.lanes, which);
    if (!biased && all_pseudorandom_) [[likely]] {
        if (has_networks_) add_networks(block);
        return;
    }
    if (whole_) {
        const BlockNumbers numbers{first, stride};
        settle_for_whole(numbers.data(), which, block);
        whole_->fetch(block, 0, FlowBlock::size);
        whole_->apply(numbers.data(), block);
        return;
    }
    for (std::size_t j = 0; j < FlowBlock::size; ++j) put(block, j, draw_of_ranges(first + j * stride));
}

void FlowDraw::draw_listed_of_plan(const std::uint64_t* words, FlowBlock& block) const noexcept {
    constexpr unsigned unused_bits = 16;
    LaneBits which;
    const bool biased = draw_listed_lanes(words, direction_, key_, bounds_, block.lanes, which);
    if (all_pseudorandom_ && has_networks_) add_networks(block);
    if (!biased && all_pseudorandom_) [[likely]]
        return;
    if (whole_) {
        std::array<std::uint64_t, FlowBlock::size> numbers;
        for (std::size_t j = 0; j < numbers.size(); ++j) numbers[j] = words[j] << unused_bits >> unused_bits;
        settle_for_whole(numbers.data(), which, block);
        whole_->fetch(block, 0, FlowBlock::size);
        whole_->apply(numbers.data(), block);
        return;
    }
    const std::uint32_t wanted = all_pseudorandom_ ? which[0] | which[1] | which[2] | which[3] : ~std::uint32_t{0};
    for (std::uint32_t left = wanted; left != 0; left &= left - 1) {
        const auto j = static_cast<std::size_t>(std::countr_zero(left));
        put(block, j, draw_of_ranges(words[j] << unused_bits >> unused_bits));
    }
}

}  // namespace evenhand::plan
