// SPDX-License-Identifier: Apache-2.0
#include "frame/translation.hpp"

#include <utility>

namespace evenhand::frame {

TranslatedFrames::TranslatedFrames(TestFrameExpectation frames, const LinkFrames& arrives)
    : frames_{std::move(frames)}, version_{arrives.version} {
    const bool is_v4 = version_ == IpVersion::v4;
    at_.tag = is_v4 ? Layout<IpVersion::v4>::tag : Layout<IpVersion::v6>::tag;
    at_.ports = is_v4 ? Layout<IpVersion::v4>::udp : Layout<IpVersion::v6>::udp;
    at_.source = host_place(arrives.sources, is_v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source);
    at_.destination = host_place(arrives.destinations,
                                 is_v4 ? Layout<IpVersion::v4>::destination : Layout<IpVersion::v6>::destination);
}

bool TranslationExpectation::has_its_flow(const std::byte* frame) const noexcept {
    const auto flow = flows_->of(numbers_at(frame + at().tag));
    if (!flow) return false;
    const plan::FlowBlock& flows = *flow->block;
    const std::size_t i = flow->at;
    return number(frame, at().source) == (flows.source(i) & 0xFFFFU) &&
           number(frame, at().destination) == (flows.destination(i) & 0xFFFFU) &&
           number(frame, at().ports) == flows.source_port(i) &&
           number(frame, at().ports + 2) == flows.destination_port(i);
}

std::optional<TranslationFault> TranslatedFrames::fault_of(std::size_t frame_class, const std::byte* frame,
                                                           IpVersion version) const noexcept {
    if (version != version_) return std::nullopt;
    if (is_without_checksum(frame, version)) return TranslationFault::no_checksum;
    const auto other = frames_.frame_fault(frame_class, frame, version);
    if (other && *other != FrameFault::address && *other != FrameFault::port) return std::nullopt;
    return has_traffic_class(frame) ? TranslationFault::address_or_port : TranslationFault::traffic_class;
}

}  // namespace evenhand::frame
