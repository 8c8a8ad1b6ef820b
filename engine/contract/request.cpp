// SPDX-License-Identifier: Apache-2.0
#include "contract/request.hpp"

#include <array>
#include <limits>

#include "contract/reader.hpp"
#include "contract/request_parts.hpp"
#include "frame/envelope.hpp"
#include "frame/layout.hpp"
#include "plan/sent_flows.hpp"

namespace evenhand::contract {
namespace {

constexpr std::array<std::pair<const char*, proof::Generator>, 3> generators{
    {{"philox", proof::Generator::philox},
     {"fifteen_bit", proof::Generator::fifteen_bit},
     {"modulo", proof::Generator::modulo}}};

/// With state each frame of a direction belongs to a connection of its own, so there are no more frames than
/// connections.
void check_frames(const ObjectReader& r, const plan::AddressPlan& plan, const char* key, std::uint64_t first,
                  std::uint64_t end) {
    const auto most = plan::SentFlows::most_frames(plan);
    if (!most || end <= *most) return;
    r.refuse(key,
             fmt::format("frames {} to {} are each of a connection of its own, but the plan's addresses and ports make "
                         "{} connections",
                         first, end - 1, *most),
             "Want fewer frames, or more hosts or ports.");
}

FramesRequest read_frames(ObjectReader& r) {
    FramesRequest frames;
    constexpr std::uint64_t most_frames = 1'000'000;
    frames.plan = read_plan(r.object("plan"));
    frames.frame_size = read_frame_size(r);
    const frame::VlanTags tags{read_vlans(r)};
    frames.mix = read_mix(r, frames.plan);
    frames.seed = r.whole("seed", 0, any_whole);
    frames.direction = r.choice("direction", directions);
    frames.count = r.whole("count", 1, most_frames);
    if (r.has("first")) frames.first = r.whole("first", 0, frame::sequence_mask - most_frames);
    if (r.has("trial")) frames.trial = static_cast<std::uint16_t>(r.whole("trial", 0, 65535));
    if (r.has("streams")) frames.streams = static_cast<unsigned>(r.whole("streams", 1, frame::most_streams));
    if (frames.plan.has_state && frames.direction == plan::Direction::reverse) {
        r.refuse("direction", "the right side answers to the addresses and ports that the DUT translates to",
                 "Ask for \"forward\": which frames go back, only a trial can know.");
    }
    check_frames(r, frames.plan, "count", frames.first, frames.first + frames.count);
    frames.host_macs = read_host_macs(r, frames.plan);
    if (r.has("source_mac")) frames.source_mac = r.mac("source_mac");
    if (r.has("destination_mac")) frames.destination_mac = r.mac("destination_mac");
    frames.envelope = tags;
    if (r.has("tunnel")) {
        const auto of = read_tunnel(r.object("tunnel"));
        const auto side = plan::sending_side(frames.direction);
        frame::check_tunnel(of.ends, frames.plan, side, "tunnel");
        if (frames.mix && frames.mix->other_plan) frame::check_tunnel(of.ends, *frames.mix->other_plan, side, "tunnel");
        const frame::Tunnel tunnel{of.ends};
        // The MACs of the request are those of the link, like those of a port.
        frames.envelope = {tags, tunnel.between(frames.source_mac, frames.destination_mac)};
        if (tunnel.has_ethernet()) {
            frames.source_mac = of.mac.value_or(frames.source_mac);
            frames.destination_mac = of.dut_mac.value_or(plan::MacAddress{});
        }
    }
    return frames;
}

proof::ProofRequest read_prove(ObjectReader& r) {
    proof::ProofRequest request;
    request.plan = read_plan(r.object("plan"));
    request.seed = r.whole("seed", 0, any_whole);
    request.direction = r.choice("direction", directions);
    request.frames = r.whole("frames", 1, proof::most_frames);
    if (r.has("first"))
        request.first = r.whole("first", 0, frame::sequence_mask - proof::most_frames * frame::most_streams);
    if (r.has("streams")) request.streams = static_cast<unsigned>(r.whole("streams", 1, frame::most_streams));
    if (r.has("stream")) request.stream = static_cast<unsigned>(r.whole("stream", 0, request.streams - 1));
    if (r.has("generator")) request.generator = r.choice("generator", generators);
    check_frames(r, request.plan, "frames", request.first, request.first + request.frames * request.streams);
    return request;
}

LinkRequest read_link(ObjectReader& r) {
    constexpr std::array<std::pair<const char*, bool>, 2> states{{{"down", false}, {"up", true}}};
    if (!r.has("side") && !r.has("state")) return {};
    return {.change = LinkRequest::Change{.side = r.choice("side", sides), .is_up = r.choice("state", states)}};
}

Json read_line(std::string_view line) {
    return read_document(line, {.name = "the line",
                                .most_octets = longest_line,
                                .next = "Send one JSON object a line, as contract/request.schema.json has it."});
}

}  // namespace

std::optional<std::int64_t> read_id(std::string_view line) {
    try {
        const Json json = read_line(line);
        if (!json.contains("id") || !json["id"].is_number_integer()) return std::nullopt;
        const Json& id = json["id"];
        if (id.is_number_unsigned() &&
            id.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return std::nullopt;
        return id.get<std::int64_t>();
    } catch (const Fault&) {
        return std::nullopt;
    }
}

Request read_request(std::string_view line) {
    const Json json = read_line(line);
    ObjectReader r{json, ""};
    Request request;
    request.id = static_cast<std::int64_t>(
        r.whole("id", 0, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
    using Read = AnyRequest (*)(ObjectReader&);
    static constexpr std::array<std::pair<const char*, Read>, 15> kinds{{
        {"about", [](ObjectReader&) -> AnyRequest { return AboutRequest{}; }},
        {"stop", [](ObjectReader&) -> AnyRequest { return StopRequest{}; }},
        {"end_sending",
         [](ObjectReader& reader) -> AnyRequest {
             return EndSendingRequest{.after_s = reader.number("after_s", 0, any_number, true)};
         }},
        {"counters", [](ObjectReader&) -> AnyRequest { return CountersRequest{}; }},
        {"close", [](ObjectReader&) -> AnyRequest { return CloseRequest{}; }},
        {"resolve",
         [](ObjectReader& reader) -> AnyRequest {
             ResolveRequest resolve;
             if (reader.has("timeout_s")) resolve.timeout_s = reader.number("timeout_s", 0, 3600, true);
             if (reader.has("try_directions")) resolve.try_directions = read_directions(reader, "try_directions");
             return resolve;
         }},
        {"frames", [](ObjectReader& reader) -> AnyRequest { return read_frames(reader); }},
        {"prove", [](ObjectReader& reader) -> AnyRequest { return read_prove(reader); }},
        {"open", [](ObjectReader& reader) -> AnyRequest { return read_open(reader); }},
        {"trial", [](ObjectReader& reader) -> AnyRequest { return read_trial(reader); }},
        {"learn", [](ObjectReader& reader) -> AnyRequest { return read_learn(reader); }},
        {"judge", [](ObjectReader& reader) -> AnyRequest { return read_judge(reader); }},
        {"clock", [](ObjectReader&) -> AnyRequest { return ClockRequest{}; }},
        {"link", [](ObjectReader& reader) -> AnyRequest { return read_link(reader); }},
        {"watch", [](ObjectReader& reader) -> AnyRequest { return read_watch(reader); }},
    }};
    const Read read = r.choice("request", kinds);
    request.body = read(r);
    r.finish();
    return request;
}

}  // namespace evenhand::contract
