// SPDX-License-Identifier: Apache-2.0
#include "tally/icmp_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frame/icmp_error.hpp"

namespace evenhand::tally {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr unsigned version_shift = 16;
constexpr unsigned type_shift = 8;
constexpr unsigned octet_mask = 0xFF;

const char* const no_way =
    "The DUT has no route to the frames' destinations: check its routes (`evenhand plan show`, `evenhand dut`).";
const char* const no_neighbor =
    "The DUT got no answer about its next hop or the hosts: check the addresses and the VLAN of the side that "
    "receives.";
const char* const rejected = "A filter of the DUT rejects the frames: let them pass.";
const char* const for_itself =
    "The DUT took the frames as its own, or a filter of it rejects them: check its addresses and its filter.";

IcmpMeaning meaning_of_too_big(std::uint32_t mtu) {
    constexpr unsigned around = 18;  // Ethernet header and FCS
    if (mtu == 0) return {"packet too big", "Use smaller frames, or raise the MTU of the DUT's interfaces and routes."};
    return {fmt::format("packet too big, MTU {}", mtu),
            fmt::format("Raise the MTU of the DUT's interfaces and routes, or use frames of at most {} octets.",
                        mtu + around)};
}

IcmpMeaning meaning_of_unreachable(std::uint8_t code) {
    switch (code) {
        case 0: return {"net unreachable", no_way};
        case 1: return {"host unreachable", no_neighbor};
        case 2: return {"protocol unreachable", for_itself};
        case 3: return {"port unreachable", for_itself};
        case 9:
        case 10:
        case 13: return {"administratively prohibited", rejected};
        default: return {fmt::format("destination unreachable, code {}", code), no_way};
    }
}

IcmpMeaning meaning_of_unreachable_v6(std::uint8_t code) {
    switch (code) {
        case 0: return {"no route to destination", no_way};
        case 1: return {"administratively prohibited", rejected};
        case 3: return {"address unreachable", no_neighbor};
        case 4: return {"port unreachable", for_itself};
        case 5:
        case 6: return {"rejected", rejected};
        default: return {fmt::format("destination unreachable, code {}", code), no_way};
    }
}

IcmpMeaning meaning_of_exceeded(std::uint8_t code) {
    if (code == 1)
        return {"fragment reassembly time exceeded",
                "The DUT puts fragments together, and did not get all of them: look for what fragments before it."};
    return {"hop limit exceeded", "The frames go in a circle: look for a loop in the routes of the DUT."};
}

}  // namespace

void IcmpErrors::begin(std::uint16_t trial) noexcept {
    trial_.store(trial, relaxed);
    for (auto& kind : kinds_) {
        kind.frames.store(0, relaxed);
        kind.mtu.store(0, relaxed);
        kind.first.store(0, relaxed);
    }
}

bool IcmpErrors::is_host(plan::IpVersion version, const std::byte* address) const noexcept {
    return std::ranges::any_of(hosts_, [&](const plan::HostSet& hosts) {
        return hosts.version() == version && hosts.find(address).has_value();
    });
}

bool IcmpErrors::note(const std::byte* frame, std::size_t octets) noexcept {
    const auto error = frame::read_icmp_error(frame, octets);
    if (!error) return false;
    if (error->tag) {
        if (error->tag->trial != trial_.load(relaxed)) return true;
    } else if (!is_host(error->quoted_version, error->source) || !is_host(error->quoted_version, error->destination)) {
        return false;
    }
    const std::uint32_t key = static_cast<std::uint32_t>(error->version) << version_shift |
                              static_cast<std::uint32_t>(error->type) << type_shift | error->code;
    auto* kind = std::ranges::find_if(kinds_, [&](const Kind& k) {
        const auto own = k.key.load(relaxed);
        return own == key || own == 0;
    });
    if (kind == kinds_.end()) --kind;
    if (kind->key.load(relaxed) == 0) kind->key.store(key, relaxed);
    const auto mtu = kind->mtu.load(relaxed);
    if (error->mtu != 0 && (mtu == 0 || error->mtu < mtu)) kind->mtu.store(error->mtu, relaxed);
    if (error->tag && kind->first.load(relaxed) == 0) kind->first.store(error->tag->sequence + 1, relaxed);
    kind->frames.store(kind->frames.load(relaxed) + 1, relaxed);
    return true;
}

void IcmpErrors::add_to(std::vector<IcmpErrorCount>& counts) const {
    for (const auto& kind : kinds_) {
        const auto frames = kind.frames.load(relaxed);
        if (frames == 0) continue;
        const auto key = kind.key.load(relaxed);
        const auto first = kind.first.load(relaxed);
        add(counts, {.version = static_cast<plan::IpVersion>(key >> version_shift),
                     .type = static_cast<std::uint8_t>(key >> type_shift & octet_mask),
                     .code = static_cast<std::uint8_t>(key & octet_mask),
                     .frames = frames,
                     .mtu = kind.mtu.load(relaxed),
                     .first_frame = first == 0 ? std::nullopt : std::optional{first - 1}});
    }
}

void add(std::vector<IcmpErrorCount>& counts, const IcmpErrorCount& count) {
    const auto own = std::ranges::find_if(counts, [&](const IcmpErrorCount& c) {
        return c.version == count.version && c.type == count.type && c.code == count.code;
    });
    if (own == counts.end()) {
        counts.push_back(count);
        return;
    }
    own->frames += count.frames;
    if (count.mtu != 0 && (own->mtu == 0 || count.mtu < own->mtu)) own->mtu = count.mtu;
    if (count.first_frame)
        own->first_frame = std::min(own->first_frame.value_or(*count.first_frame), *count.first_frame);
}

IcmpMeaning meaning_of(const IcmpErrorCount& count) {
    const bool is_v4 = count.version == plan::IpVersion::v4;
    constexpr std::uint8_t fragmentation_needed = 4;
    switch (count.type) {
        case 1:
            if (!is_v4) return meaning_of_unreachable_v6(count.code);
            break;
        case 2:
            if (!is_v4) return meaning_of_too_big(count.mtu);
            break;
        case 3:
            if (!is_v4) return meaning_of_exceeded(count.code);
            return count.code == fragmentation_needed ? meaning_of_too_big(count.mtu)
                                                      : meaning_of_unreachable(count.code);
        case 4:
            if (is_v4) return {"source quench", "The DUT asks for less load."};
            return {"parameter problem", "The DUT does not understand the frames' headers."};
        case 5:
            return {"redirect",
                    "The DUT would send the frames back by the port that they came from: check its routes, "
                    "and whether left and right are swapped."};
        case 11: return meaning_of_exceeded(count.code);
        case 12: return {"parameter problem", "The DUT does not understand the frames' headers."};
        default: break;
    }
    return {fmt::format("type {}, code {}", count.type, count.code), "Look at what the DUT logs."};
}

}  // namespace evenhand::tally
