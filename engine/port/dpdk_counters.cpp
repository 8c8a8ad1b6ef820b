// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_counters.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <utility>

#include "port/extended_counters.hpp"

namespace evenhand::port {

bool is_driver_link_up(std::uint16_t id) noexcept {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::optional<double> link_rate_bps(std::uint16_t id) noexcept {
    rte_eth_link link{};
    constexpr double bits_per_megabit = 1e6;
    if (rte_eth_link_get_nowait(id, &link) != 0 || link.link_speed == RTE_ETH_SPEED_NUM_NONE ||
        link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN) {
        return std::nullopt;
    }
    return bits_per_megabit * link.link_speed;
}

DpdkCounters::DpdkCounters(std::uint16_t id, const std::vector<std::string>& kernel_interfaces, std::string bus_name)
    : id_{id}, events_{std::move(bus_name)} {
    for (const auto& name : kernel_interfaces) {
        const auto link = read_kernel_link(name);
        interfaces_.push_back({.name = name, .index = link.index, .carrier_changes = link.carrier_changes});
    }
    const int count = rte_eth_xstats_get_names(id_, nullptr, 0);
    if (count <= 0) return;
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    if (rte_eth_xstats_get_names(id_, names.data(), static_cast<unsigned>(count)) != count) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name{static_cast<const char*>(names[i].name)};
        if (is_pause_counter(name)) {
            pause_counters_.push_back(i);
        } else if (is_hidden_drop_counter(name)) {
            drop_counters_.push_back(i);
            drop_names_.push_back(name);
        }
    }
}

/// Nothing if there are none, or if the driver does not report them.
std::vector<std::uint64_t> DpdkCounters::extended(const std::vector<std::uint64_t>& ids) const {
    std::vector<std::uint64_t> values(ids.size());
    const auto count = static_cast<int>(values.size());
    if (count == 0 || rte_eth_xstats_get_by_id(id_, ids.data(), values.data(), static_cast<unsigned>(count)) != count)
        return {};
    return values;
}

bool DpdkCounters::is_removed() const {
    const auto has_gone = [](const Interface& interface) {
        const auto link = read_kernel_link(interface.name);
        return interface.index != 0 && link.is_known && link.index != interface.index;
    };
    return events_.is_wanted_back() || std::ranges::any_of(interfaces_, has_gone);
}

bool DpdkCounters::is_link_up() const noexcept {
    return is_driver_link_up(id_) && std::ranges::all_of(interfaces_, [](const Interface& interface) {
               return read_kernel_link(interface.name).is_up();
           });
}

std::optional<LinkFault> DpdkCounters::kernel_link_fault() const {
    for (const auto& interface : interfaces_) {
        const auto link = read_kernel_link(interface.name);
        if (!link.is_up()) return explain_link(interface.name, link);
    }
    return std::nullopt;
}

void DpdkCounters::expect_link(bool is_up) noexcept {
    note_link();
    note_kernel_link();
    expected_ = is_up ? Expected::coming_up : Expected::down;
}

void DpdkCounters::begin_with_link_up() noexcept {
    note_kernel_link();
    link_was_up_ = true;
    link_changes_ = 0;
}

/// Where the kernel reports the link's state as well, the kernel's report is used.
void DpdkCounters::note_link() noexcept {
    if (!interfaces_.empty()) return;
    const bool is_up = is_driver_link_up(id_);
    if (expected_ == Expected::no_change) link_changes_ += static_cast<std::uint64_t>(is_up != link_was_up_);
    if (expected_ == Expected::coming_up && is_up) expected_ = Expected::no_change;
    link_was_up_ = is_up;
}

/// When an interface disappears, so does its count. An interface that is switched off without losing its carrier, such
/// as a tap, counts nothing: then the changes that were seen count.
void DpdkCounters::note_kernel_link() noexcept {
    bool are_up = !interfaces_.empty();
    for (auto& interface : interfaces_) {
        const auto link = read_kernel_link(interface.name);
        are_up = are_up && link.is_up();
        if (!link.is_there || link.index != interface.index) continue;
        const auto by_carrier = link.carrier_changes - std::min(link.carrier_changes, interface.carrier_changes);
        const auto seen = static_cast<std::uint64_t>(link.is_enabled != interface.was_enabled);
        if (expected_ == Expected::no_change) link_changes_ += std::max(by_carrier, seen);
        interface.carrier_changes = link.carrier_changes;
        interface.was_enabled = link.is_enabled;
    }
    if (expected_ == Expected::coming_up && are_up) expected_ = Expected::no_change;
}

void DpdkCounters::keep_watch() noexcept {
    constexpr unsigned watches_between_counters = 50;
    note_link();
    note_kernel_link();
    rte_eth_stats stats{};
    if (++watches_ % watches_between_counters == 0) (void)rte_eth_stats_get(id_, &stats);
}

tally::PortCounters DpdkCounters::read() {
    note_link();
    note_kernel_link();
    rte_eth_stats stats{};
    const bool is_read = rte_eth_stats_get(id_, &stats) == 0;
    const auto pauses = extended(pause_counters_);
    const auto drops = extended(drop_counters_);
    std::vector<tally::NamedCount> hidden_drops;
    hidden_drops.reserve(drops.size());
    for (std::size_t i = 0; i < drops.size(); ++i) hidden_drops.push_back({.name = drop_names_[i], .frames = drops[i]});
    return {.received_frames = stats.ipackets,
            .transmitted_frames = stats.opackets,
            .missed_frames = stats.imissed,
            .receive_errors = stats.ierrors,
            .transmit_errors = stats.oerrors,
            .no_buffer_frames = stats.rx_nombuf,
            .link_changes = link_changes_,
            .pause_frames = total_of(pauses),
            .counts_pause = !pauses.empty(),
            .hidden_drops = std::move(hidden_drops),
            .link_up = is_link_up(),
            .is_removed = is_removed(),
            .is_read = is_read};
}

}  // namespace evenhand::port
