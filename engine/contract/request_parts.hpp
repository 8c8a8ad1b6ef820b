// SPDX-License-Identifier: Apache-2.0
// Contract: parts of several requests, and the long requests. For the files that read them: others see no JSON. Each
// function throws Fault{bad_request, bad_plan}.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/reader.hpp"
#include "frame/mix.hpp"
#include "plan/plan.hpp"
#include "run/request.hpp"
#include "tally/together.hpp"

namespace evenhand::contract {

constexpr std::uint64_t any_whole = std::numeric_limits<std::uint64_t>::max();
constexpr double any_number = std::numeric_limits<double>::max();

constexpr std::uint64_t largest_cpu = 65535;

constexpr std::array<std::pair<const char*, plan::Direction>, 2> directions{
    {{"forward", plan::Direction::forward}, {"reverse", plan::Direction::reverse}}};

constexpr std::array<std::pair<const char*, plan::Side>, 2> sides{
    {{"left", plan::Side::left}, {"right", plan::Side::right}}};

/// A list of integers.
[[nodiscard]] std::vector<std::uint64_t> read_wholes(ObjectReader& r, std::string_view key, std::uint64_t least,
                                                     std::uint64_t most);

[[nodiscard]] std::size_t read_frame_size(ObjectReader& r);
[[nodiscard]] plan::AddressPlan read_plan(ObjectReader r);
/// None, one, or two: the outer one first.
[[nodiscard]] std::vector<std::uint16_t> read_vlans(ObjectReader& r);
/// The tunnel of a side, and the MACs inside it, which are of VXLAN only.
struct ReadTunnel {
    frame::TunnelEnds ends;
    std::optional<plan::MacAddress> mac;      // the tester's
    std::optional<plan::MacAddress> dut_mac;  // the DUT's
};
[[nodiscard]] ReadTunnel read_tunnel(ObjectReader r);
/// The mix of a request that has this plan.
[[nodiscard]] std::optional<frame::MixedPlans> read_mix(ObjectReader& r, const plan::AddressPlan& plan);
/// The flows of the reverse direction, where they are others than `forward`.
[[nodiscard]] std::optional<frame::FrameMix> read_reverse_mix(ObjectReader& r, const plan::AddressPlan& plan,
                                                              const std::optional<frame::MixedPlans>& forward);
/// The mode for a request that has this plan; the port's MAC by default.
[[nodiscard]] run::HostMacMode read_host_macs(ObjectReader& r, const plan::AddressPlan& plan);

[[nodiscard]] run::OpenRequest read_open(ObjectReader& r);
[[nodiscard]] run::TrialRequest read_trial(ObjectReader& r);
[[nodiscard]] run::LearnRequest read_learn(ObjectReader& r);
[[nodiscard]] tally::TogetherRequest read_judge(ObjectReader& r);
[[nodiscard]] run::WatchRequest read_watch(ObjectReader& r);

/// A list of directions, each once, at least one.
[[nodiscard]] std::vector<plan::Direction> read_directions(ObjectReader& r, const char* list_key = "directions");

}  // namespace evenhand::contract
