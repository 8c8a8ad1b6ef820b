// SPDX-License-Identifier: Apache-2.0
// Contract: the preview of a direction's frames.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>

#include "contract/reply.hpp"
#include "contract/reply_parts.hpp"
#include "fault.hpp"
#include "frame/envelope.hpp"
#include "frame/host_mac_source.hpp"
#include "frame/mix_source.hpp"
#include "frame/source.hpp"
#include "plan/sent_flows.hpp"

namespace evenhand::contract {
namespace {

std::string hexadecimal(std::span<const std::byte> octets) {
    std::string text;
    text.reserve(2 * octets.size());
    for (const auto octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned>(octet));
    return text;
}

/// The addresses of frame k, as text.
struct AddressTexts {
    std::string source;
    std::string destination;
};
AddressTexts addresses_of(const plan::AddressPlan& plan, plan::Direction direction, const plan::FlowDraw& draw,
                          std::uint64_t k, const plan::Flow& flow) {
    if (plan.has_lists()) {
        const auto whole = draw.whole_addresses(k).value();
        return {plan::to_string(whole.source), plan::to_string(whole.destination)};
    }
    const auto [from, to] = plan.sent(direction);
    return {plan::to_string(from.address(flow.source)), plan::to_string(to.address(flow.destination))};
}

/// Like the sender's sources, for everything that a plan can send.
using SentSource = frame::DrawnFrameSource<plan::SentFlows, frame::TestFrameExpectation>;

/// Frames are written like the sender's and have the same flows, so that the preview shows what is sent.
template <plan::IpVersion V>
Ordered preview(const FramesRequest& r) {
    plan::SentFlows draw{r.plan, r.direction, r.seed};
    const plan::HostSet hosts{r.plan.sent(r.direction).sources};
    const plan::HostMacs macs{r.seed, plan::sending_side(r.direction)};
    Ordered frames = Ordered::array();
    const std::size_t sent_size = r.frame_size + r.plan.side(plan::sending_side(r.direction)).added_octets;
    const std::size_t untagged = sent_size - std::min(sent_size, r.envelope.counted_octets());
    frame::check_frame_size(V, untagged);
    frame::check_length(r.frame_size, sent_size + r.envelope.tunnel().octets(), "frame_size");
    std::vector<std::byte> octets(sent_size + r.envelope.tunnel().octets() - frame::fcs_octets);
    frame::write_pattern(V, std::span{octets}.subspan(r.envelope.octets()));
    for (std::uint64_t k = r.first; k < r.first + r.count; ++k) {
        const auto stream = static_cast<std::uint8_t>(k % r.streams);
        const auto shape =
            frame::make_template(r.plan, untagged, {.direction = r.direction, .stream = stream, .trial = r.trial},
                                 r.source_mac, r.destination_mac);
        SentSource source{shape, draw, {.first = k, .stride = r.streams}};
        std::byte* const buffer = octets.data() + r.envelope.octets();
        if (r.host_macs == run::HostMacMode::pseudorandom) {
            frame::HostMacSource<SentSource, V>{source, hosts, macs}.write_next({&buffer, 1}, 0);
        } else {
            source.write_next({&buffer, 1}, 0);
        }
        r.envelope.put(octets.data(), octets.size());
        const auto flow = draw.draw(k);
        const auto [from, to] = addresses_of(r.plan, r.direction, plan::FlowDraw{r.plan, r.direction, r.seed}, k, flow);
        frames.push_back({{"sequence", k},
                          {"stream", stream},
                          {"source", from},
                          {"destination", to},
                          {"source_port", flow.source_port},
                          {"destination_port", flow.destination_port},
                          {"octets", hexadecimal(octets)}});
    }
    return frames;
}

/// The same for frames of several classes.
Ordered preview_mix(const FramesRequest& r) {
    const auto& mix = r.mix->mix;
    const frame::MixedPlans untagged{.mix = mix.without_tags(r.envelope.counted_octets()),
                                     .other_plan = r.mix->other_plan};
    frame::check_mix(r.plan, untagged);
    const auto side = plan::sending_side(r.direction);
    for (std::size_t c = 0; c < mix.classes().size(); ++c) {
        const auto& of = mix.classes()[c];
        const auto added = r.mix->plan(r.plan, of.plan).side(side).added_octets + r.envelope.tunnel().octets();
        frame::check_length(of.frame_size, of.frame_size + added, fmt::format("mix.classes[{}].frame_size", c));
    }
    const auto host_macs =
        r.host_macs == run::HostMacMode::pseudorandom ? std::optional{plan::HostMacs{r.seed, side}} : std::nullopt;
    std::vector<frame::TaggedSource<frame::MixSource>> sources;
    for (unsigned stream = 0; stream < r.streams; ++stream) {
        // The first frame from `first` on that this stream sends.
        const std::uint64_t first = r.first + (stream + r.streams - r.first % r.streams) % r.streams;
        sources.emplace_back(
            frame::MixSource{frame::make_mix_parts(
                r.plan, untagged, r.seed,
                {.direction = r.direction, .stream = static_cast<std::uint8_t>(stream), .trial = r.trial},
                {.first = first, .stride = r.streams},
                {.source_mac = r.source_mac, .dut_macs = {r.destination_mac, r.destination_mac}, .hosts = host_macs})},
            r.envelope);
    }
    const auto added =
        std::max(r.plan.side(side).added_octets, r.mix->other_plan ? r.mix->other_plan->side(side).added_octets : 0U);
    std::vector<std::byte> buffer(mix.largest_frame_size() + added + r.envelope.tunnel().octets() - frame::fcs_octets);
    frame::write_pattern(frame::pattern_of(r.plan.side(side).version(), mix.has_two_plans()),
                         std::span{buffer}.subspan(r.envelope.octets()));
    std::vector<plan::FlowDraw> draws;
    draws.reserve(2);
    for (std::size_t p = 0; p < (r.mix->other_plan ? 2U : 1U); ++p)
        draws.push_back(frame::draw_of(r.mix->plan(r.plan, p), mix, r.direction, r.seed));
    Ordered frames = Ordered::array();
    for (std::uint64_t k = r.first; k < r.first + r.count; ++k) {
        auto& source = sources[k % r.streams];
        const auto octets = std::span{buffer}.first(source.frame_octets(0));
        std::byte* const at = buffer.data();
        source.write_next({&at, 1}, 0);
        const auto& of_class = mix.classes()[mix.class_of(k)];
        const auto& plan = r.mix->plan(r.plan, of_class.plan);
        const auto& draw = draws[of_class.plan];
        const auto flow = draw.draw(k);
        const auto [from, to] = addresses_of(plan, r.direction, draw, k, flow);
        frames.push_back({{"sequence", k},
                          {"stream", k % r.streams},
                          {"source", from},
                          {"destination", to},
                          {"source_port", of_class.fields.source_port.value_or(flow.source_port)},
                          {"destination_port", of_class.fields.destination_port.value_or(flow.destination_port)},
                          {"octets", hexadecimal(octets)}});
    }
    return frames;
}

Ordered preview_any(const FramesRequest& r) {
    if (r.mix) return preview_mix(r);
    const auto version = r.plan.side(plan::sending_side(r.direction)).version();
    return version == plan::IpVersion::v4 ? preview<plan::IpVersion::v4>(r) : preview<plan::IpVersion::v6>(r);
}

}  // namespace

std::string write_frames(std::int64_t id, const FramesRequest& request) {
    return line_of({{"id", id}, {"response", "frames"}, {"frames", preview_any(request)}});
}

}  // namespace evenhand::contract
