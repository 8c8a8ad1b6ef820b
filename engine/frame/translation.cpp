// SPDX-License-Identifier: Apache-2.0
#include "frame/translation.hpp"

namespace evenhand::frame {

TranslationExpectation::TranslationExpectation(const TestFrameExpectation& frames, const LinkFrames& arrives,
                                               const plan::FlowDraw& draw, std::uint64_t streams)
    : frames_{frames}, version_{arrives.version}, draw_{draw}, streams_{streams} {
    const bool is_v4 = version_ == IpVersion::v4;
    tag_at_ = is_v4 ? Layout<IpVersion::v4>::tag : Layout<IpVersion::v6>::tag;
    ports_at_ = is_v4 ? Layout<IpVersion::v4>::udp : Layout<IpVersion::v6>::udp;
    source_at_ = (is_v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source) + arrives.sources.offset;
    destination_at_ =
        (is_v4 ? Layout<IpVersion::v4>::destination : Layout<IpVersion::v6>::destination) + arrives.destinations.offset;
}

bool TranslationExpectation::has_its_flow(const std::byte* frame) const noexcept {
    const TagNumbers tag = numbers_at(frame + tag_at_);
    // Frame i of stream s is frame s + i * streams of the direction, and blocks begin at multiples of their size.
    if (tag.stream >= streams_ || tag.sequence % streams_ != tag.stream) return false;
    const std::uint64_t i = tag.sequence / streams_;
    const std::size_t at = i % plan::FlowBlock::size;
    const std::uint64_t first = tag.sequence - at * streams_;
    // Streams side by side have blocks of their own.
    KeptBlock& kept = kept_[(i / plan::FlowBlock::size + std::size_t{5} * tag.stream) % kept_blocks];
    if (kept.first != first) {
        draw_.draw_block(first, streams_, kept.flows);
        kept.first = first;
    }
    const auto number = [&](std::size_t offset) { return std::uint32_t{big(load<std::uint16_t>(frame + offset))}; };
    return number(source_at_) == (kept.flows.source(at) & 0xFFFFU) &&
           number(destination_at_) == (kept.flows.destination(at) & 0xFFFFU) &&
           number(ports_at_) == kept.flows.source_port(at) && number(ports_at_ + 2) == kept.flows.destination_port(at);
}

std::optional<TranslationFault> TranslationExpectation::fault_of(std::size_t frame_class, const std::byte* frame,
                                                                 IpVersion version) const noexcept {
    if (version != version_) return std::nullopt;
    if (is_without_checksum(frame, version)) return TranslationFault::no_checksum;
    const auto hops = hop_limit_of(frame, version);
    if (!is_intact(frame, frame_octets(frame_class), version) || hops == 0 || hops > sent_ttl) return std::nullopt;
    return has_traffic_class(frame) ? TranslationFault::address_or_port : TranslationFault::traffic_class;
}

}  // namespace evenhand::frame
