// SPDX-License-Identifier: Apache-2.0
#include "frame/translation.hpp"

namespace evenhand::frame {

TranslatedFrames::TranslatedFrames(const TestFrameExpectation& frames, const LinkFrames& arrives)
    : frames_{frames}, version_{arrives.version} {
    const bool is_v4 = version_ == IpVersion::v4;
    tag_at_ = is_v4 ? Layout<IpVersion::v4>::tag : Layout<IpVersion::v6>::tag;
    ports_at_ = is_v4 ? Layout<IpVersion::v4>::udp : Layout<IpVersion::v6>::udp;
    source_at_ = (is_v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source) + arrives.sources.offset;
    destination_at_ =
        (is_v4 ? Layout<IpVersion::v4>::destination : Layout<IpVersion::v6>::destination) + arrives.destinations.offset;
}

bool TranslationExpectation::has_its_flow(const std::byte* frame) const noexcept {
    const auto flow = flows_.of(numbers_at(frame + tag_at_));
    if (!flow) return false;
    const plan::FlowBlock& flows = *flow->block;
    const std::size_t at = flow->at;
    return number(frame, source_at_) == (flows.source(at) & 0xFFFFU) &&
           number(frame, destination_at_) == (flows.destination(at) & 0xFFFFU) &&
           number(frame, ports_at_) == flows.source_port(at) &&
           number(frame, ports_at_ + 2) == flows.destination_port(at);
}

std::optional<TranslationFault> TranslatedFrames::fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept {
    if (version != version_) return std::nullopt;
    if (is_without_checksum(frame, version)) return TranslationFault::no_checksum;
    const auto hops = hop_limit_of(frame, version);
    if (!is_intact(frame, frame_octets(frame_class), version) || hops == 0 || hops > sent_ttl) return std::nullopt;
    return has_traffic_class(frame) ? TranslationFault::address_or_port : TranslationFault::traffic_class;
}

}  // namespace evenhand::frame
