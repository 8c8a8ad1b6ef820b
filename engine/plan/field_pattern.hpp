// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: how the fields of one flow's frames take their values, where the flow says more of a field than one
// value.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/address_list.hpp"
#include "plan/ranges.hpp"

namespace evenhand::plan {

/// The fields that a flow can have a pattern for.
enum class FlowField : std::uint8_t {
    left_host,
    right_host,
    source_port,
    destination_port,
    traffic_class,
    flow_label,
    vlan_priority,
    vlan,
};
constexpr std::size_t flow_fields = 8;

/// The values of a list, or first, first + step, ..., and how the next one is chosen: drawn, each equally likely, or in
/// turn, frame by frame of the flow.
struct FieldPattern {
    static constexpr std::size_t longest_list = 1024;

    /// Hosts have addresses instead of numbers: all of a list, or the first of a range.
    std::vector<IpAddress> addresses;
    /// Or they are those of prefixes, drawn as the list says.
    std::shared_ptr<const AddressList> prefixes = nullptr;
    std::vector<std::uint32_t> list;  // empty: first, count and step say which
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    std::uint32_t step = 1;
    Mode mode = Mode::pseudorandom;
    /// All fields of a flow that have this, and then as many values and the same mode, have values of one number: the
    /// first of each, the second of each, and so on.
    bool is_in_lock_step = false;

    friend bool operator==(const FieldPattern&, const FieldPattern&) = default;

    /// How many values there are to choose from. With prefixes, a number chooses an entry if each is equally likely.
    [[nodiscard]] std::uint32_t values() const noexcept {
        if (prefixes) return prefixes->choice() == Choice::entry ? static_cast<std::uint32_t>(prefixes->size()) : 1;
        if (addresses.size() > 1) return static_cast<std::uint32_t>(addresses.size());
        return list.empty() ? count : static_cast<std::uint32_t>(list.size());
    }
    /// The value of this number, below values().
    [[nodiscard]] std::uint32_t value(std::uint32_t number) const noexcept {
        return list.empty() ? first + number * step : list[number];
    }
    /// All values lie in this range. Not for addresses.
    [[nodiscard]] FieldRange bounds() const noexcept {
        const std::uint32_t least = list.empty() ? first : *std::ranges::min_element(list);
        const std::uint32_t most = list.empty() ? value(count - 1) : *std::ranges::max_element(list);
        return {.first = least, .count = most - least + 1};
    }
};

/// Those of a flow; nothing for a field that has none.
struct FieldPatterns {
    std::array<std::optional<FieldPattern>, flow_fields> of{};

    friend bool operator==(const FieldPatterns&, const FieldPatterns&) = default;

    [[nodiscard]] const std::optional<FieldPattern>& operator[](FlowField f) const {
        return of.at(static_cast<std::size_t>(f));
    }
    [[nodiscard]] std::optional<FieldPattern>& operator[](FlowField f) { return of.at(static_cast<std::size_t>(f)); }
    [[nodiscard]] bool is_empty() const {
        return std::ranges::none_of(of, [](const auto& pattern) { return pattern.has_value(); });
    }
    /// Whether a field varies that FlowBlock::marks has.
    [[nodiscard]] bool has_marks() const {
        using enum FlowField;
        return (*this)[traffic_class] || (*this)[flow_label] || (*this)[vlan_priority];
    }
};

}  // namespace evenhand::plan
