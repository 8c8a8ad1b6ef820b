// SPDX-License-Identifier: Apache-2.0
#include "tables/neighbor_table.hpp"

#include <fmt/format.h>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "split_mix.hpp"

namespace evenhand::router {
namespace {

using plan::IpAddress;
using plan::MacAddress;

void check_count(const char* key, std::size_t value, std::size_t most) {
    if (value >= 1 && value <= most) return;
    throw Fault{FaultCode::bad_request, fmt::format("{} is {}", key, value), "neighbors",
                fmt::format("Use 1 to {}.", most)};
}

Ticks ticks_of(const char* key, double seconds, double ticks_per_second) {
    constexpr double longest_s = 86400 * 365;
    if (seconds > 0 && seconds <= longest_s) return static_cast<Ticks>(seconds * ticks_per_second);
    throw Fault{FaultCode::bad_request, fmt::format("{} is {}", key, seconds), "neighbors",
                "Use a number of seconds above 0, at most a year."};
}

}  // namespace

NeighborTable::NeighborTable(const Options& options, double ticks_per_second)
    : options_{options},
      reachable_ticks_{ticks_of("reachable_s", options.reachable_s, ticks_per_second)},
      retry_ticks_{ticks_of("retry_s", options.retry_s, ticks_per_second)},
      stale_ticks_{ticks_of("stale_s", options.stale_s, ticks_per_second)} {
    constexpr std::size_t most = std::size_t{1} << 24U;
    check_count("limit", options.limit, most);
    check_count("tries", options.tries, 100);
    check_count("queue_frames", options.queue_frames, 65535);
    check_count("all_queues_frames", options.all_queues_frames, most);
    check_count("questions_per_turn", options.questions_per_turn, most);
    check_count("expiries_per_turn", options.expiries_per_turn, most);
    index_ = Index{options.limit};
    entries_.reserve(options.limit);
    waiting_.resize(options.all_queues_frames);
    for (std::uint32_t i = 0; i < waiting_.size(); ++i) waiting_[i].next = i + 1 < waiting_.size() ? i + 1 : none;
    free_waiting_ = 0;
}

std::uint32_t NeighborTable::hash(unsigned interface, const IpAddress& address) noexcept {
    const auto* const octets = reinterpret_cast<const std::byte*>(address.octets.data());
    // Multiplied, so that the number does not affect the bits in which addresses of two interfaces differ: 198.18.0.9
    // and 198.19.0.9 must not collide.
    const std::uint64_t place =
        (std::uint64_t{interface} << 8U | static_cast<std::uint64_t>(address.version)) * golden_multiplier;
    // Uses both halves of a 128-bit product, so that each bit of either word affects the whole result. The constants
    // are the fractional parts of sqrt(2) and sqrt(3).
    const std::uint64_t a = frame::load<std::uint64_t>(octets) ^ 0x6A09E667F3BCC909U ^ place;
    const std::uint64_t b = frame::load<std::uint64_t>(octets + 8) ^ 0xBB67AE8584CAA73BU;
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U)) * golden_multiplier;
    return static_cast<std::uint32_t>(mixed >> 32U);
}

std::uint32_t NeighborTable::look_up(unsigned interface, const IpAddress& address) const noexcept {
    return index_.find(hash(interface, address), [&](std::uint32_t index) {
        return entries_[index].interface == interface && entries_[index].address == address;
    });
}

std::uint32_t NeighborTable::create(unsigned interface, const IpAddress& address) noexcept {
    if (free_entry_ == none && entries_.size() == options_.limit) {
        const std::uint32_t oldest = list(ListName::stale).head;
        if (oldest == none) return none;
        counters_.evicted.add();
        remove(oldest);
    }
    std::uint32_t index = free_entry_;
    if (index != none) {
        free_entry_ = entries_[index].next;
        entries_[index] = Entry{};
    } else {
        index = static_cast<std::uint32_t>(entries_.size());
        entries_.emplace_back();
    }
    entries_[index].interface = interface;
    entries_[index].address = address;
    index_.add(hash(interface, address), index);
    counters_.created.add();
    size_.store(size() + 1, std::memory_order_relaxed);
    return index;
}

void NeighborTable::remove(std::uint32_t index) noexcept {
    index_.remove(hash(entries_[index].interface, entries_[index].address), index);
    move(index, ListName::free_or_fixed);
    release(entries_[index], lost_);
    entries_[index].next = free_entry_;
    free_entry_ = index;
    size_.store(size() - 1, std::memory_order_relaxed);
}

void NeighborTable::move(std::uint32_t index, ListName to) noexcept {
    Entry& entry = entries_[index];
    if (entry.list != ListName::free_or_fixed) {
        List& from = list(entry.list);
        (entry.previous == none ? from.head : entries_[entry.previous].next) = entry.next;
        (entry.next == none ? from.tail : entries_[entry.next].previous) = entry.previous;
    }
    entry.list = to;
    entry.next = none;
    entry.previous = none;
    if (to == ListName::free_or_fixed) return;
    List& target = list(to);
    entry.previous = target.tail;
    (target.tail == none ? target.head : entries_[target.tail].next) = index;
    target.tail = index;
}

void NeighborTable::set(std::uint32_t index, NeighborState state, ListName to, Ticks deadline) noexcept {
    entries_[index].state = state;
    entries_[index].deadline = deadline;
    move(index, to);
}

void NeighborTable::set_known(std::uint32_t index, bool reachable, Ticks now) noexcept {
    Entry& entry = entries_[index];
    if (entry.state == NeighborState::incomplete) counters_.resolved.add();
    entry.tries = 0;
    if (reachable) {
        set(index, NeighborState::reachable, ListName::reachable, now + reachable_ticks_);
    } else {
        set(index, NeighborState::stale, ListName::stale, now + stale_ticks_);
    }
    release(entry, ready_);
}

const MacAddress* NeighborTable::find(unsigned interface, const IpAddress& next_hop, Ticks now) noexcept {
    const std::uint32_t index = look_up(interface, next_hop);
    if (index == none) return nullptr;
    Entry& entry = entries_[index];
    switch (entry.state) {
        case NeighborState::incomplete: return nullptr;
        case NeighborState::probe:
        case NeighborState::fixed: break;
        case NeighborState::reachable:
            if (now < entry.deadline) break;
            [[fallthrough]];  // stale, but age() has not handled it yet
        case NeighborState::stale: set(index, NeighborState::probe, ListName::due, now); break;
    }
    return &entry.mac;
}

HoldResult NeighborTable::hold(unsigned interface, const IpAddress& next_hop, void* frame, Ticks now) noexcept {
    std::uint32_t index = look_up(interface, next_hop);
    if (index == none) {
        index = create(interface, next_hop);
        if (index == none) {
            counters_.refused_frames.add();
            return HoldResult::table_full;
        }
        set(index, NeighborState::incomplete, ListName::due, now);
    }
    Entry& entry = entries_[index];
    if (free_waiting_ == none || entry.waiting_frames == options_.queue_frames) {
        counters_.refused_frames.add();
        return HoldResult::too_many_waiting;
    }
    const std::uint32_t place = free_waiting_;
    free_waiting_ = waiting_[place].next;
    waiting_[place] = {.frame = frame, .interface = interface};
    (entry.waiting.tail == none ? entry.waiting.head : waiting_[entry.waiting.tail].next) = place;
    entry.waiting.tail = place;
    ++entry.waiting_frames;
    counters_.held_frames.add();
    if (entry.state != NeighborState::incomplete) release(entry, ready_);
    return HoldResult::held;
}

void NeighborTable::learn(unsigned interface, const IpAddress& neighbor, const MacAddress& mac, Ticks now,
                          Evidence evidence) noexcept {
    std::uint32_t index = look_up(interface, neighbor);
    if (index == none) {
        if (!evidence.may_create) return;
        index = create(interface, neighbor);
        if (index == none) return;
    }
    Entry& entry = entries_[index];
    if (entry.state == NeighborState::fixed) return;
    if (entry.state == NeighborState::incomplete) {
        entry.mac = mac;
        set_known(index, evidence.solicited, now);
        return;
    }
    const bool differs = entry.mac != mac;
    if (differs && !evidence.overrides) {
        // RFC 4861, 7.2.5: keeps the known MAC, but has it probed.
        if (entry.state == NeighborState::reachable) set_known(index, false, now);
        return;
    }
    entry.mac = mac;
    if (differs || evidence.solicited) set_known(index, evidence.solicited, now);
}

void NeighborTable::confirm(unsigned interface, const IpAddress& neighbor, Ticks now) noexcept {
    const std::uint32_t index = look_up(interface, neighbor);
    if (index == none) return;
    const auto state = entries_[index].state;
    if (state != NeighborState::incomplete && state != NeighborState::fixed) set_known(index, true, now);
}

void NeighborTable::fix(unsigned interface, const IpAddress& neighbor, const MacAddress& mac) {
    std::uint32_t index = look_up(interface, neighbor);
    if (index == none) index = create(interface, neighbor);
    if (index == none) {
        throw Fault{FaultCode::no_memory,
                    fmt::format("no room in the neighbour table for {}: it holds {}", plan::to_string(neighbor),
                                options_.limit),
                    "neighbors.limit", "Raise limit above the number of static neighbours."};
    }
    Entry& entry = entries_[index];
    entry.mac = mac;
    set(index, NeighborState::fixed, ListName::free_or_fixed, 0);
    release(entry, ready_);
}

std::optional<NeighborQuestion> NeighborTable::next_question(Ticks now, std::size_t& expiries) noexcept {
    // Retries first: they have waited longer, and must be given up in time even while many new neighbours arrive.
    std::uint32_t index = list(ListName::retry).head;
    for (; index != none && now >= entries_[index].deadline && entries_[index].tries >= options_.tries;
         index = list(ListName::retry).head) {
        if (expiries == 0) return std::nullopt;
        --expiries;
        counters_.failed.add();
        remove(index);
    }
    if (index == none || now < entries_[index].deadline) index = list(ListName::due).head;
    if (index == none) return std::nullopt;
    Entry& entry = entries_[index];
    ++entry.tries;
    set(index, entry.state, ListName::retry, now + retry_ticks_);
    NeighborQuestion question{.interface = entry.interface, .target = entry.address, .to = std::nullopt};
    if (entry.state == NeighborState::probe) {
        question.to = entry.mac;
        counters_.probes.add();
    } else {
        counters_.questions.add();
    }
    return question;
}

void NeighborTable::age(Ticks now, std::size_t expiries) noexcept {
    for (; expiries != 0; --expiries) {
        const std::uint32_t index = list(ListName::reachable).head;
        if (index == none || now < entries_[index].deadline) break;
        set(index, NeighborState::stale, ListName::stale, now + stale_ticks_);
    }
    for (; expiries != 0; --expiries) {
        const std::uint32_t index = list(ListName::stale).head;
        if (index == none || now < entries_[index].deadline) break;
        counters_.expired.add();
        remove(index);
    }
}

/// Moves all waiting frames of an entry to the end of another list, with the MAC that they need there.
void NeighborTable::release(Entry& entry, List& to) noexcept {
    if (entry.waiting.head == none) return;
    for (std::uint32_t at = entry.waiting.head; at != none; at = waiting_[at].next) waiting_[at].mac = entry.mac;
    (to.tail == none ? to.head : waiting_[to.tail].next) = entry.waiting.head;
    to.tail = entry.waiting.tail;
    if (&to == &lost_) counters_.dropped_frames.add(entry.waiting_frames);
    entry.waiting = List{};
    entry.waiting_frames = 0;
}

NeighborTable::WaitingFrame NeighborTable::take_first(List& from) noexcept {
    const std::uint32_t place = from.head;
    const WaitingFrame first = waiting_[place];
    from.head = first.next;
    if (from.head == none) from.tail = none;
    waiting_[place].next = free_waiting_;
    free_waiting_ = place;
    return first;
}

void NeighborTable::give_up_all() noexcept {
    for (auto& entry : entries_) release(entry, lost_);
}

std::optional<NeighborState> NeighborTable::state(unsigned interface, const IpAddress& neighbor) const noexcept {
    const std::uint32_t index = look_up(interface, neighbor);
    if (index == none) return std::nullopt;
    return entries_[index].state;
}

}  // namespace evenhand::router
