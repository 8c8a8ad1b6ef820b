// SPDX-License-Identifier: Apache-2.0
#include "plan/flow_patterns.hpp"

#include <utility>

#include "plan/scaled.hpp"
#include "plan/whole_draw.hpp"

namespace evenhand::plan {
namespace {

/// Streams of philox4x32: 16 and 17 for the first four words of each direction, 18 and 19 for the others.
constexpr std::uint32_t stream_of_flows = 16;
constexpr std::uint32_t stream_of_others = 2;  // added
/// 20 and 21 for addresses of prefixes, in IPv6 those of the source; 22 and 23 for those of the destination.
constexpr std::uint32_t stream_of_prefixes = 20;
constexpr std::uint32_t prefixes_of_destinations = 2;  // added
constexpr std::uint32_t host_number = 0xFFFF;

/// An address of prefixes. `number`: of the entry, unless each address is equally likely.
Wide address_of_prefixes(const AddressList& list, std::uint32_t number, Wide bits) noexcept {
    const auto choose = [&](const auto& entries, auto drawn) -> Wide {
        if (list.choice() == Choice::host) return entries.address(scaled(drawn, entries.last_number()));
        const auto& entry = entries[number];
        return entry.first + scaled(drawn, entry.last - entry.first);
    };
    if (list.version() == IpVersion::v4) return choose(list.entries<IpVersion::v4>(), lower(bits));
    return choose(list.entries<IpVersion::v6>(), bits);
}

/// The address of this number of a pattern.
Wide address_of_pattern(const FieldPattern& pattern, std::uint32_t number) {
    if (pattern.addresses.size() > 1) return number_of(pattern.addresses[number]);
    return number_of(pattern.addresses[0]) + Wide{number} * pattern.step;
}

/// The pattern of hosts as numbers of HostRange::host.
FieldPattern as_numbers(const FieldPattern& pattern, const HostRange& hosts) {
    FieldPattern numbers = pattern;
    numbers.addresses.clear();
    const auto number = [&](std::uint32_t i) {
        const auto address = address_of(hosts.base.version, address_of_pattern(pattern, i));
        return address.octets.at(hosts.offset) * 256U + address.octets.at(hosts.low_offset());
    };
    if (pattern.addresses.size() > 1) {
        for (std::uint32_t i = 0; i < pattern.values(); ++i) numbers.list.push_back(number(i));
    } else {
        numbers.first = number(0);
        numbers.step = pattern.values() > 1 ? number(1) - number(0) : 1;
    }
    return numbers;
}

/// The lane of FlowBlock that has the field, or the one behind them for those of its marks, and the bits below it.
std::pair<std::size_t, unsigned> place_of(FlowField field, Direction direction, IpVersion version) {
    constexpr std::size_t marks = drawn_fields;
    const std::size_t left = direction == Direction::forward ? 0 : 1;
    switch (field) {
        case FlowField::left_host: return {left, 0};
        case FlowField::right_host: return {1 - left, 0};
        case FlowField::source_port: return {2, 0};
        case FlowField::destination_port: return {3, 0};
        case FlowField::traffic_class: return {marks, version == IpVersion::v4 ? 0 : 20};
        case FlowField::flow_label: return {marks, 0};
        case FlowField::vlan_priority:
        case FlowField::vlan: break;
    }
    return {marks, FlowPatterns::priority_shift};
}

}  // namespace

FlowPatterns::FlowPatterns(const std::vector<FieldPatterns>& flows, std::vector<std::uint8_t> cycle,
                           const AddressPlan& plan, Direction direction, std::uint64_t seed)
    : flows_(flows.size()),
      cycle_{std::move(cycle)},
      version_{plan.side(sending_side(direction)).version()},
      is_whole_{plan.has_lists()},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
      direction_{static_cast<std::uint32_t>(direction)} {
    for (std::size_t f = 0; f < flows.size(); ++f) {
        for (std::size_t i = 0; i < flow_fields; ++i) {
            const auto& pattern = flows[f].of[i];
            if (!pattern) continue;
            const auto field = static_cast<FlowField>(i);
            const auto [lane, shift] = place_of(field, direction, version_);
            const bool is_vlan = field == FlowField::vlan;
            const std::size_t own_word = is_vlan ? vlan_word : i;
            const std::size_t word = pattern->is_in_lock_step ? lock_step_word : own_word;
            const std::uint32_t values = pattern->values();
            Entry entry{.pattern = *pattern,
                        .word = word,
                        .lane = lane,
                        .shift = shift,
                        .threshold = (0U - values) % values,
                        .addresses = {}};
            if (pattern->prefixes) {
                needs_bits_.at(lane) = true;
                const auto& hosts = plan.side(field == FlowField::left_host ? Side::left : Side::right).hosts;
                if (!is_whole_)
                    entry.host_at = octet_bits * static_cast<unsigned>(address_octets(version_) - 2 - hosts.offset);
            } else if (is_whole_) {
                for (const auto& address : pattern->addresses) entry.addresses.push_back(number_of(address));
            } else if (!pattern->addresses.empty()) {
                entry.pattern =
                    as_numbers(*pattern, plan.side(field == FlowField::left_host ? Side::left : Side::right).hosts);
            }
            if (is_vlan) {
                flows_[f].vlan = std::move(entry);
                has_vlans_ = true;
                continue;
            }
            flows_[f].entries.push_back(std::move(entry));
            if (pattern->mode == Mode::pseudorandom && values > 1) needs_draw_[word / drawn_fields] = true;
        }
        has_marks_ = has_marks_ || flows[f].has_marks();
    }
    for (const auto flow : cycle_) turn_in_cycle_.push_back(static_cast<std::uint32_t>(flows_[flow].frames++));
}

std::array<std::uint32_t, drawn_fields> FlowPatterns::draw(std::size_t which, std::uint64_t k,
                                                           std::uint32_t attempt) const noexcept {
    const auto stream = stream_of_flows + direction_ + static_cast<std::uint32_t>(which) * stream_of_others;
    return philox4x32({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream, attempt}, key_);
}

std::uint32_t FlowPatterns::choose(const Entry& entry, std::uint64_t k, std::uint64_t turn,
                                   std::uint32_t word) const noexcept {
    const std::uint32_t values = entry.pattern.values();
    if (values == 1 || entry.pattern.mode == Mode::fixed) return 0;
    if (is_stepped(entry.pattern.mode)) return static_cast<std::uint32_t>(stepped(entry.pattern.mode, turn, values));
    for (std::uint32_t attempt = 1;; ++attempt) {  // Lemire's method, as the plan's fields are drawn
        const std::uint64_t product = std::uint64_t{word} * values;
        if (static_cast<std::uint32_t>(product) >= entry.threshold) return static_cast<std::uint32_t>(product >> 32U);
        word = draw(entry.word / drawn_fields, k, attempt)[entry.word % drawn_fields];
    }
}

std::uint32_t FlowPatterns::stream_of_end(std::size_t end) const noexcept {
    const auto own = version_ == IpVersion::v4 ? std::uint32_t{0} : static_cast<std::uint32_t>(end);
    return stream_of_prefixes + direction_ + own * prefixes_of_destinations;
}

template <class Words>
Wide FlowPatterns::bits_of(std::size_t end, const Words& words) const noexcept {
    if (version_ == IpVersion::v4) return joined(words(2 * end), words(2 * end + 1));
    return Wide{joined(words(0), words(1))} << half_bits | joined(words(2), words(3));
}

template <class WordOf, class BitsAt, class LaneOf, class PutAddress>
void FlowPatterns::put(std::uint64_t k, const WordOf& word_of, const BitsAt& bits_at, const LaneOf& lane_of,
                       const PutAddress& put_address) const noexcept {
    const std::uint64_t round = k / cycle_.size();
    const std::uint64_t at = k - round * cycle_.size();
    const OfFlow& flow = flows_[cycle_[at]];
    if (has_marks_) lane_of(mark_lane) = 0;
    if (flow.entries.empty()) return;
    const std::uint64_t turn = round * flow.frames + turn_in_cycle_[at];
    for (const Entry& entry : flow.entries) {
        const std::uint32_t number = choose(entry, k, turn, word_of(entry.word));
        if (const auto& prefixes = entry.pattern.prefixes) {
            const Wide address = address_of_prefixes(*prefixes, number, bits_at(entry.lane));
            if (is_whole_)
                put_address(entry.lane, address);
            else
                lane_of(entry.lane) = static_cast<std::uint32_t>(address >> entry.host_at) & host_number;
            continue;
        }
        if (!entry.addresses.empty()) {
            put_address(entry.lane, entry.address(number));
            continue;
        }
        const std::uint32_t value = entry.pattern.value(number);
        std::uint32_t& lane = lane_of(entry.lane);
        lane = entry.lane == mark_lane ? lane | value << entry.shift : value;
    }
}

void FlowPatterns::apply(const std::uint64_t* numbers, FlowBlock& block) const noexcept {
    std::array<DrawLanes, draws> drawn;
    for (std::size_t d = 0; d < draws; ++d) {
        const auto stream = stream_of_flows + direction_ + static_cast<std::uint32_t>(d) * stream_of_others;
        if (needs_draw_[d]) draw_listed_words(numbers, stream, key_, drawn[d]);
    }
    std::array<DrawLanes, 2> of_ends;
    for (std::size_t end = 0; end < of_ends.size(); ++end) {
        if (needs_bits_[end]) draw_listed_words(numbers, stream_of_end(end), key_, of_ends[end]);
    }
    for (std::size_t j = 0; j < FlowBlock::size; ++j) {
        const auto bits = [&](std::size_t end) {
            return bits_of(end, [&](std::size_t word) { return of_ends[end].field[word][j]; });
        };
        const auto word_of = [&](std::size_t word) -> std::uint32_t {
            const std::size_t d = word / drawn_fields;
            return needs_draw_[d] ? drawn[d].field[word % drawn_fields][j] : 0;
        };
        const auto lane_of = [&](std::size_t lane) -> std::uint32_t& {
            return lane == mark_lane ? block.marks[j] : block.lanes.field[lane][j];
        };
        put(numbers[j], word_of, bits, lane_of,
            [&](std::size_t end, Wide address) { WholeDraw::put_address(block, end, j, version_, address); });
    }
}

template <class LaneOf, class PutAddress>
void FlowPatterns::put_one(std::uint64_t k, const LaneOf& lane_of, const PutAddress& put_address) const noexcept {
    const std::array drawn{draw(0, k, 0), draw(1, k, 0)};
    const auto bits = [&](std::size_t end) {
        const auto words = philox4x32(
            {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32U), stream_of_end(end), 0}, key_);
        return bits_of(end, [&](std::size_t word) { return words[word]; });
    };
    put(
        k, [&](std::size_t word) { return drawn[word / drawn_fields][word % drawn_fields]; }, bits, lane_of,
        put_address);
}

void FlowPatterns::apply(std::uint64_t k, Flow& flow) const noexcept {
    std::uint32_t marks = 0;
    const std::array<std::uint32_t*, all_lanes> lanes{&flow.source, &flow.destination, &flow.source_port,
                                                      &flow.destination_port, &marks};
    put_one(k, [&](std::size_t lane) -> std::uint32_t& { return *lanes[lane]; }, [](std::size_t, Wide) {});
}

void FlowPatterns::apply(std::uint64_t k, FlowAddresses& addresses) const noexcept {
    std::array<std::uint32_t, all_lanes> values{};
    put_one(
        k, [&](std::size_t lane) -> std::uint32_t& { return values[lane]; },
        [&](std::size_t end, Wide address) {
            (end == 0 ? addresses.source : addresses.destination) = address_of(version_, address);
        });
}

std::uint32_t FlowPatterns::mark(std::uint64_t k) const noexcept {
    std::array<std::uint32_t, all_lanes> values{};
    put_one(k, [&](std::size_t lane) -> std::uint32_t& { return values[lane]; }, [](std::size_t, Wide) {});
    return values[mark_lane];
}

std::uint16_t FlowPatterns::vlan(std::uint64_t k) const noexcept {
    const std::uint64_t round = k / cycle_.size();
    const std::uint64_t at = k - round * cycle_.size();
    const OfFlow& flow = flows_[cycle_[at]];
    if (!flow.vlan) return 0;
    const Entry& entry = *flow.vlan;
    const std::uint32_t word = draw(entry.word / drawn_fields, k, 0)[entry.word % drawn_fields];
    return static_cast<std::uint16_t>(
        entry.pattern.value(choose(entry, k, round * flow.frames + turn_in_cycle_[at], word)));
}

namespace {

/// Whether all addresses of an entry are hosts.
bool is_within(const AddressList& list, std::size_t entry, const HostRange& hosts) {
    const auto first = address_of(list.version(), list.first(entry));
    const auto last = address_of(list.version(), list.last(entry));
    if (!hosts.list) {
        const bool is_counted_by_one = hosts.low_offset() + 1 == address_octets(list.version());
        return hosts.contains(first) && hosts.contains(last) && (is_counted_by_one || first == last);
    }
    const auto place = [&](const IpAddress& address) {
        return hosts.list->place(reinterpret_cast<const std::byte*>(address.octets.data()));
    };
    const auto of_first = place(first);
    const auto of_last = place(last);
    return of_first && of_last && of_first->entry == of_last->entry;
}

}  // namespace

bool are_hosts(const FieldPattern& pattern, const HostRange& hosts) {
    if (pattern.prefixes) {
        for (std::size_t entry = 0; entry < pattern.prefixes->size(); ++entry) {
            if (!is_within(*pattern.prefixes, entry, hosts)) return false;
        }
        return true;
    }
    for (std::uint32_t i = 0; i < pattern.values(); ++i) {
        const Wide number = address_of_pattern(pattern, i);
        if (!hosts.contains(address_of(hosts.base.version, number))) return false;
    }
    return true;
}

}  // namespace evenhand::plan
