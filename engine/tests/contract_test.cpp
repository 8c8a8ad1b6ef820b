// SPDX-License-Identifier: Apache-2.0
// Contract: what is read, what is refused and where, and what the replies hold. SEED-24, SEED-44, D2, D3.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "contract/reader.hpp"
#include "contract/reply.hpp"
#include "contract/request.hpp"
#include "frame/reader.hpp"
#include "frame/source.hpp"
#include "octets.hpp"
#include "plan/address_list.hpp"
#include "plans.hpp"
#include "run/load.hpp"
#include "run/sent_traffic.hpp"
#include "slow.hpp"

namespace contract_test {

using namespace evenhand;
using contract::Json;
using plan::Direction;
using plan::Side;

namespace {

/// The lines of a file, with the folder of the contract in place of /contract.
std::vector<std::string> lines_of(const char* name) {
    const std::string named = "/contract/golden/hosts-";
    std::ifstream file{std::string{CONTRACT_FOLDER} + "/golden/" + name};
    REQUIRE_MESSAGE(file.good(), name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        if (const auto at = line.find(named); at != std::string::npos)
            line.replace(at, named.size(), std::string{CONTRACT_FOLDER} + "/golden/hosts-");
        lines.push_back(line);
    }
    return lines;
}

std::string line_with(const char* name, const char* part) {
    for (const auto& line : lines_of(name)) {
        if (line.find(part) != std::string::npos) return line;
    }
    FAIL("no line with ", part);
    return {};
}

template <class T>
T read_as(const std::string& line) {
    // A reference: g++ 12 takes the end of an object on the stack for that of one on the heap.
    const auto& request = contract::read_request(line);
    REQUIRE(std::holds_alternative<T>(request.body));
    return std::get<T>(request.body);
}

/// The fault of a line; a line that is read has none. A preview is written as well: its frame size is only looked at
/// then.
std::optional<Fault> fault_of(const std::string& line) {
    try {
        const auto request = contract::read_request(line);
        if (const auto* const frames = std::get_if<contract::FramesRequest>(&request.body))
            (void)contract::write_frames(request.id, *frames);
        if (const auto* const open = std::get_if<run::OpenRequest>(&request.body)) run::check_frame_sizes(*open);
    } catch (const Fault& fault) {
        return fault;
    }
    return std::nullopt;
}

/// As much of JSON Schema as reply.schema.json uses, with the path of what does not fit; empty if all does.
class Schema {
   public:
    Schema() { std::ifstream{std::string{CONTRACT_FOLDER} + "/reply.schema.json"} >> root_; }

    [[nodiscard]] std::string misfit(const Json& value, const char* definition) const {
        return misfit(value, root_["$defs"].at(definition), definition);
    }

   private:
    [[nodiscard]] std::string misfit(const Json& value, const Json& schema, const std::string& path) const {
        if (const auto ref = schema.find("$ref"); ref != schema.end()) {
            if (auto found = misfit(value, root_.at(Json::json_pointer{ref->get<std::string>().substr(1)}), path);
                !found.empty())
                return found;
        }
        if (schema.contains("const") && value != schema["const"]) return path + " is " + value.dump();
        if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
            return path + " is " + value.dump();
        if (schema.contains("minimum") && value.is_number() && value < schema["minimum"])
            return path + " is " + value.dump();
        if (schema.contains("type") && !has_type(value, schema["type"])) return path + " has another type";
        if (value.is_null()) return {};  // of a type that may be null
        const auto required = schema.value("required", Json::array());
        for (const auto& key : required) {
            if (!value.contains(key.get<std::string>())) return path + " lacks " + key.get<std::string>();
        }
        if (schema.contains("properties")) {
            for (const auto& [key, part] : value.items()) {
                const auto known = schema["properties"].find(key);
                if (known == schema["properties"].end()) return path + " has the unknown " + key;
                if (auto found = misfit(part, *known, path + "." + key); !found.empty()) return found;
            }
        }
        if (schema.contains("items") && value.is_array()) {
            for (const auto& part : value) {
                if (auto found = misfit(part, schema["items"], path + "[]"); !found.empty()) return found;
            }
        }
        return {};
    }

    static bool has_type(const Json& value, const Json& type) {
        if (type.is_array()) return std::ranges::any_of(type, [&](const auto& one) { return has_type(value, one); });
        return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
               (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
               (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
               (type == "integer" && value.is_number_integer());
    }

    Json root_;
};

/// The reply of a line, if it fits the schema.
Json fitting(const std::string& line, const char* definition) {
    CHECK(line.find('\n') == std::string::npos);
    auto reply = Json::parse(line);
    CHECK(Schema{}.misfit(reply, definition) == "");
    return reply;
}

tally::TrialResult lossy_trial() {
    tally::TrialResult r{.trial = 7,
                         .verdict = tally::Verdict::invalid,
                         .started_at = "2026-11-21T02:00:00Z",
                         .frame_size = 64,
                         .intended_fps = 1000,
                         .intended_duration_s = 0.2};
    r.reasons = {{"receive_missed", "one"}, {"loss", "one of 400"}};
    r.deviations = {{"R2544-20", "short"}};
    r.phases = {{"sending", 4, 0.2}};
    r.ticks_per_second = 2e9;
    r.ports[Side::right].after = {
        .received_frames = 199, .transmitted_frames = 200, .missed_frames = 1, .link_up = true};
    for (const auto direction : {Direction::forward, Direction::reverse}) {
        r.directions.push_back({.direction = direction,
                                .intended_frames = 200,
                                .offered_frames = 200,
                                .offered_fps = 1000,
                                .received_frames = 200,
                                .lost_by_tenth = {0, 0}});
    }
    auto& forward = r.directions[0];
    forward.received_frames = 199;
    forward.duplicated_frames = 3;
    forward.lost_by_tenth = {0, 1};
    forward.first_lost = {123};
    for (std::uint64_t i = 1; i <= 199; ++i) forward.latency.record(1000 * i);
    return r;
}

}  // namespace

TEST_CASE("every golden request is read") {
    const auto lines = lines_of("requests.jsonl");
    CHECK(lines.size() >= 15);
    for (const auto& line : lines) {
        CAPTURE(line);
        CHECK(contract::read_id(line) == Json::parse(line)["id"]);
        CHECK_NOTHROW(CHECK(contract::read_request(line).id == Json::parse(line)["id"]));
        CHECK_FALSE(fault_of(line).has_value());
    }
}

TEST_CASE("golden requests mean what they say") {
    const auto lines = lines_of("requests.jsonl");
    SUBCASE("frames") {
        const auto r = read_as<contract::FramesRequest>(lines[2]);
        CHECK(r.plan.version() == plan::IpVersion::v6);
        CHECK(r.plan.right.hosts.base == tests::ip("2001:2:0:8000::2"));
        CHECK(r.plan.right.hosts.offset == 12);
        CHECK(r.plan.left.hosts.host == plan::FieldRange{.first = 0, .count = 65536});
        CHECK(r.plan.source_ports == plan::FieldRange{.first = 1024, .count = 64512});
        CHECK(r.seed == 18446744073709551615U);
        CHECK(r.direction == Direction::reverse);
        CHECK(r.first == 1'000'000);
        CHECK(r.streams == 4);
        CHECK(r.trial == 65535);
        CHECK(r.destination_mac == plan::MacAddress{2, 0, 0, 0, 0, 2});
        CHECK(r.host_macs == run::HostMacMode::port);
        const auto fixed = read_as<contract::FramesRequest>(lines[3]);
        CHECK(fixed.plan.left.hosts.host == plan::FieldRange{.first = 1, .count = 64, .mode = plan::Mode::increment});
        CHECK(fixed.plan.destination_ports == plan::FieldRange{.first = 7, .count = 1, .mode = plan::Mode::fixed});
        CHECK(fixed.frame_size == 1518);
    }
    SUBCASE("frames of a plan whose hosts are a list") {
        const auto v4 = read_as<contract::FramesRequest>(line_with("requests.jsonl", R"("id":716,)")).plan;
        REQUIRE(v4.right.hosts.list);
        CHECK(v4.right.hosts.list->size() == 4);
        CHECK(v4.right.hosts.list->choice() == plan::Choice::entry);
        CHECK(v4.right.hosts.list->contains(tests::ip("100.1.3.5")));
        CHECK(v4.right.hosts.base == tests::ip("20.0.0.1"));
        CHECK(v4.right.hosts.host.mode == plan::Mode::pseudorandom);
        CHECK_FALSE(v4.left.hosts.list);
        const auto v6 = read_as<contract::FramesRequest>(line_with("requests.jsonl", R"("id":717,)")).plan;
        REQUIRE(v6.right.hosts.list);
        CHECK(v6.right.hosts.list->size() == 3);
        CHECK(v6.right.hosts.list->version() == plan::IpVersion::v6);
        CHECK(v6.right.hosts.host.mode == plan::Mode::increment);
        const auto of_hosts = read_as<contract::FramesRequest>(line_with("requests.jsonl", R"("id":718,)"));
        CHECK(of_hosts.plan.right.hosts.list->choice() == plan::Choice::host);
        for (const char* const id : {R"("id":716,)", R"("id":717,)", R"("id":718,)"}) {
            const auto r = read_as<contract::FramesRequest>(line_with("requests.jsonl", id));
            const auto reply = fitting(contract::write_frames(1, r), "frames");
            for (const auto& one : reply["frames"]) {
                const auto octets = tests::octets_of(one["octets"].get<std::string>());
                const auto version = r.plan.version();
                const std::size_t at = version == plan::IpVersion::v4 ? 26 : 22;
                const auto text = [&](std::size_t from) {
                    return plan::to_string(plan::address_of(version, plan::number_of(version, octets.data() + from)));
                };
                CHECK(one["source"] == text(at));
                CHECK(one["destination"] == text(at + plan::address_octets(version)));
                const auto& to = r.plan.sent(r.direction).destinations;
                CHECK(to.contains(tests::ip(one["destination"].get<std::string>().c_str())));
            }
        }
    }
    SUBCASE("frames of a plan that is translated") {
        const auto plan = read_as<contract::FramesRequest>(line_with("requests.jsonl", "\"name\":\"siit\"")).plan;
        CHECK(plan.is_translated());
        CHECK(plan.left.version() == plan::IpVersion::v6);
        CHECK(plan.left.added_octets == 20);
        CHECK(plan.left.peers.value().base == tests::ip("2001:2:0:64::198.19.0.0"));
        CHECK(plan.right.version() == plan::IpVersion::v4);
        CHECK(plan.right.peers.value().base == tests::ip("198.18.0.0"));
        auto line = Json::parse(line_with("requests.jsonl", "\"name\":\"siit\""));
        line["plan"]["right"]["ip_version"] = 6;
        CHECK(fault_of(line.dump()).value().where == "plan.right.hosts.base");
        line["plan"]["right"].erase("ip_version");
        CHECK(fault_of(line.dump()).value().where == "plan.right.ip_version");
    }
    SUBCASE("frames of plans with networks, and of direct plans") {
        const auto with_macs =
            read_as<contract::FramesRequest>(line_with("requests.jsonl", "\"name\":\"nets_v4_multi_host\""));
        CHECK(with_macs.host_macs == run::HostMacMode::pseudorandom);
        const auto& v4 = with_macs.plan;
        CHECK_FALSE(v4.left.gateway.has_value());
        CHECK_FALSE(v4.fixed_source);
        CHECK(v4.right.hosts.network == plan::NetworkRange{.offset = 2, .count = 256});
        CHECK(v4.right.hosts.host == plan::FieldRange{.first = 2, .count = 253});
        const auto v6 =
            read_as<contract::FramesRequest>(line_with("requests.jsonl", "\"name\":\"nets_v6_gateway\"")).plan;
        CHECK(v6.left.gateway == tests::ip("2001:2:0:1000::2"));
        CHECK(v6.right.hosts.network == plan::NetworkRange{.offset = 6, .count = 3, .mode = plan::Mode::increment});
        CHECK(read_as<contract::FramesRequest>(line_with("requests.jsonl", "\"name\":\"nets_v4_single_host\""))
                  .plan.fixed_source);
        CHECK_FALSE(read_as<run::OpenRequest>(line_with("requests.jsonl", "\"name\":\"direct_v6\""))
                        .plan.right.gateway.has_value());
    }
    SUBCASE("open") {
        const auto r = read_as<run::OpenRequest>(lines[4]);
        CHECK(r.host.memory_mb == 512);
        CHECK_FALSE(r.host.hugepages);
        CHECK(r.host.extra_eal_arguments == std::vector<std::string>{"--no-pci"});
        CHECK(r.ports[Side::left].device == "net_ring0");
        CHECK(r.ports[Side::left].line_rate_bps == 1e10);
        CHECK(r.ports[Side::right].dut_mac == plan::MacAddress{2, 0, 0, 0, 0, 1});
        CHECK_FALSE(r.ports[Side::right].line_rate_bps.has_value());
        REQUIRE(read_as<run::OpenRequest>(lines[5]).workers.size() == 4);
        const auto worker = read_as<run::OpenRequest>(lines[5]).workers[3];
        CHECK(worker.cpu == 5);
        CHECK(worker.senders.at(0).side == plan::Side::right);
        CHECK(worker.receivers.at(0).side == plan::Side::left);
    }
    SUBCASE("open with flows of each direction") {
        const auto r = read_as<run::OpenRequest>(line_with("requests.jsonl", R"("reverse_mix":)"));
        REQUIRE(r.mix);
        REQUIRE(r.reverse_mix);
        CHECK(r.mix->mix.classes().size() == 2);
        CHECK(r.mix->mix.period() == 3);
        CHECK(r.reverse_mix->classes().at(0).name == "calls");
        CHECK(r.reverse_mix->classes().at(0).fields.patterns[plan::FlowField::traffic_class]->list ==
              std::vector<std::uint32_t>{46U << 2U, 34U << 2U});
        CHECK_FALSE(read_as<run::OpenRequest>(lines[4]).reverse_mix);
    }
    SUBCASE("open with a DUT on this machine") {
        const auto r = read_as<run::OpenRequest>(line_with("requests.jsonl", R"("dut":)"));
        REQUIRE(r.dut);
        CHECK(r.dut->ring_frames == 256);
        REQUIRE(r.dut->cpus.size() == 2);
        CHECK(r.dut->cpus[0].cpu == 0);
        CHECK(r.dut->cpus[0].threads == std::vector{4711, 4712});
        CHECK(r.dut->cpus[1].cpu == 3);
        CHECK(r.dut->cpus[1].threads.empty());
        CHECK_FALSE(read_as<run::OpenRequest>(lines[4]).dut);
    }
    SUBCASE("watch") {
        const auto r = read_as<run::WatchRequest>(line_with("requests.jsonl", R"("request":"watch")"));
        CHECK(r.seconds == 5);
        CHECK(r.cpus == std::vector<unsigned>{0, 1});
    }
    SUBCASE("trial") {
        const auto plain = read_as<run::TrialRequest>(lines[9]);
        CHECK(plain.directions == std::vector{Direction::forward, Direction::reverse});
        CHECK(plain.waits.residual_s == 2);  // R2544-18: the defaults conform
        CHECK(plain.waits.restabilize_s == 5);
        CHECK(plain.limits.loss_ratio == 0);
        CHECK_FALSE(plain.stops_when_failed);
        CHECK(read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":31,)")).stops_when_failed);
        const auto r = read_as<run::TrialRequest>(lines[10]);
        CHECK(r.trial == 65535);
        CHECK(r.rate_fps == 0.5);
        CHECK(r.directions == std::vector{Direction::forward});
        CHECK(r.waits.after_routing_s == 0);
        CHECK(r.limits.loss_ratio == 0.005);
        CHECK_FALSE(r.burst.has_value());
        CHECK_FALSE(r.then.has_value());
        const auto burst = read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":41,)"));
        REQUIRE(burst.burst.has_value());
        CHECK(burst.burst->frames == 640);
        CHECK(run::frames_of(burst) == 640);  // R9004-03
        const auto bursts = read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":42,)"));
        CHECK(run::frames_of(bursts) == 24'000 * 1024);  // R2544-17
        const auto change = read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":43,)"));
        REQUIRE(change.then.has_value());
        CHECK(change.then->rate_fps == 11'000);  // R2544-29
        CHECK(run::frames_of(change) == 60 * 33'000);
        CHECK_FALSE(change.has_rate_parts);
        const auto unlike = read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":726,)"));
        CHECK(unlike.has_rate_parts);
        CHECK(run::frames_of(run::of_direction(unlike, Direction::forward)) == 6'000'000);
        CHECK(run::frames_of(run::of_direction(unlike, Direction::reverse)) == 1'500'000);
        const auto twice = read_as<run::TrialRequest>(line_with("requests.jsonl", R"("id":727,)"));
        CHECK(run::frames_of(run::of_direction(twice, Direction::reverse)) == 2 * 60 * 150'000);
        CHECK(run::peak_fps(twice) == 200'000);
        CHECK(read_as<contract::ResolveRequest>(lines[7]).timeout_s == 5);
        CHECK(read_as<contract::ResolveRequest>(lines[8]).timeout_s == 2.5);
    }
    SUBCASE("judge: a trial that ended before its start, since a port was taken away") {
        auto judge = Json::parse(line_with("requests.jsonl", R"("id":702,)"));
        auto& result = judge["results"][0]["result"];
        CHECK_FALSE(read_as<tally::TogetherRequest>(judge.dump()).parts[0].result.ports[Side::left].after.is_removed);
        result.erase("start");
        CHECK(fault_of(judge.dump()).has_value());
        result["ports"]["left"]["after"]["is_removed"] = true;
        CHECK(read_as<tally::TogetherRequest>(judge.dump()).parts[0].result.ports[Side::left].after.is_removed);
    }
    SUBCASE("prove") {
        const auto plain = read_as<proof::ProofRequest>(line_with("requests.jsonl", R"("id":15,)"));
        CHECK(plain.frames == 100'000'000);
        CHECK(plain.streams == 1);
        CHECK(plain.generator == proof::Generator::philox);
        const auto r = read_as<proof::ProofRequest>(line_with("requests.jsonl", R"("id":16,)"));
        CHECK(r.frames == proof::most_frames);
        CHECK(r.first == 1'000'000);
        CHECK(r.stream == 3);
        CHECK(r.generator == proof::Generator::fifteen_bit);
    }
    SUBCASE("learn") {
        const auto plain = read_as<run::LearnRequest>(R"({"id":1,"request":"learn"})");
        CHECK(plain.rate_fps == 20'000);
        CHECK(plain.rounds == 5);
        CHECK(plain.wait_s == 1);
        CHECK(plain.directions == std::vector{Direction::forward, Direction::reverse});
        const auto at =
            std::ranges::find_if(lines, [](const auto& line) { return line.find("\"rounds\"") != std::string::npos; });
        REQUIRE(at != lines.end());
        const auto r = read_as<run::LearnRequest>(*at);
        CHECK(r.rate_fps == 0.5);
        CHECK(r.rounds == 1000);
        CHECK(r.wait_s == 0);
        CHECK(r.directions == std::vector{Direction::reverse});
    }
}

TEST_CASE("every bad request is refused with its code and place, and says what to do") {
    const auto lines = lines_of("bad-requests.jsonl");
    CHECK(lines.size() >= 25);
    for (const auto& text : lines) {
        const auto golden = Json::parse(text);
        const auto line = golden["line"].get<std::string>();
        CAPTURE(line);
        const auto fault = fault_of(line);
        REQUIRE(fault.has_value());
        CHECK(to_string(fault->code) == golden["code"].get<std::string>());
        CHECK(fault->where == golden["where"].get<std::string>());
        CHECK(kind_of(fault->code) == "bad_request");
        CHECK_FALSE(fault->what_text.empty());
        CHECK_FALSE(fault->next.empty());
        if (golden.contains("next")) CHECK(fault->next == golden["next"].get<std::string>());
        (void)fitting(contract::write_fault(contract::read_id(line), *fault), "fault");
    }
}

TEST_CASE("what cannot stand in a golden line is refused as well, in one line of sound UTF-8") {
    const std::vector<std::string> lines{"\xff\xfe", "{\"id\":1,\"request\":\"\xc3\x28\"}", "", std::string(1000, '[')};
    for (const auto& line : lines) {
        const auto fault = fault_of(line);
        REQUIRE(fault.has_value());
        CHECK(fault->code == FaultCode::bad_json);
        (void)fitting(contract::write_fault(contract::read_id(line), *fault), "fault");
    }
    const auto fault = fault_of("{\"id\":1,\"request\":\"frames\",\"plan\":\"" + std::string(100'000, 'x') + "\"}");
    REQUIRE(fault.has_value());
    CHECK(fault->what_text.size() < 200);
}

TEST_CASE("a line is refused before it is read if it is too long or too deep, and brackets in a text are no depth") {
    const auto nested = [](std::size_t deep, const char* begin, const char* end) {
        std::string line = R"({"id":1,"request":"about","x":)";
        for (std::size_t i = 1; i < deep; ++i) line += begin;
        line += '1';
        for (std::size_t i = 1; i < deep; ++i) line += end;
        return line + "}";
    };
    const auto code_of = [](const std::string& line) { return fault_of(line).value().code; };
    for (const auto& [begin, end] : {std::pair{"[", "]"}, std::pair{R"({"a":)", "}"}, std::pair{R"([{"a":[)", "]}]"}}) {
        const std::size_t each = std::string_view{begin}.size() == 7 ? 3 : 1;
        CHECK(code_of(nested(1 + (contract::deepest_nesting - 1) / each, begin, end)) ==
              FaultCode::bad_request);  // x is unknown
        for (const std::size_t deep : {contract::deepest_nesting + 1, std::size_t{200'000}}) {
            const auto line = nested(deep, begin, end);
            CHECK(code_of(line) == FaultCode::bad_json);
            CHECK_FALSE(contract::read_id(line));
        }
    }
    CHECK(code_of(std::string(200'000, '[')) == FaultCode::bad_json);
    CHECK(code_of(R"({"id":1,"request":"about","x":")" + std::string(1000, '[') + R"(\"[{"})") ==
          FaultCode::bad_request);

    std::string longest = R"({"id":7,"request":"about"})";
    longest.resize(contract::longest_line, ' ');
    CHECK_FALSE(fault_of(longest));
    longest += ' ';
    const auto fault = fault_of(longest).value();
    CHECK(fault.code == FaultCode::bad_json);
    CHECK(fault.what_text == "the line is longer than 16777216 octets");
    CHECK_FALSE(contract::read_id(longest));
}

TEST_CASE("a fault does not repeat a long line") {
    const std::string much(tests::is_slow ? 100'000 : 1'000'000, 'x');
    for (const auto& line : {R"({"id":1,"request":")" + much + R"("})", "\"" + much, much,
                             R"({"id":1,"request":"frames","plan":{"name":"p","ip_version":4,"left":{"dut_address":")" +
                                 much + R"("}}})"}) {
        CHECK(fault_of(line).value().what_text.size() < 500);
    }
}

TEST_CASE("the id of a line is found whatever else is wrong with it") {
    CHECK(contract::read_id(R"({"id":12,"request":"nonsense"})") == 12);
    CHECK_FALSE(contract::read_id(R"({"id":"12"})").has_value());
    CHECK_FALSE(contract::read_id(R"([12])").has_value());
    CHECK_FALSE(contract::read_id(R"({"id":9223372036854775808})").has_value());
    CHECK(contract::read_id(R"({"id":9223372036854775807})") == 9223372036854775807);
    CHECK_FALSE(contract::read_id(R"({"id":12)").has_value());
}

TEST_CASE("the schema reader of these tests takes the golden replies, and no others") {
    for (const auto& line : lines_of("replies.jsonl")) {
        auto reply = Json::parse(line);
        const auto is_plain = [&] {
            const auto response = reply["response"].get<std::string>();
            return response == "close" || response == "stop" || response == "end_sending";
        };
        const std::string kind = reply.contains("fault")   ? "fault"
                                 : reply.contains("event") ? reply["event"]
                                 : is_plain()              ? "plain"
                                                           : reply["response"];
        CHECK(Schema{}.misfit(reply, kind.c_str()) == "");
        if (kind == "trial") {
            auto changed = reply;
            changed["directions"].begin().value()["latency"].erase("p99_ns");
            CHECK(Schema{}.misfit(changed, "trial").find("latency lacks p99_ns") != std::string::npos);
        }
        reply["surplus"] = 1;
        CHECK_FALSE(Schema{}.misfit(reply, kind.c_str()).empty());
        reply.erase("surplus");
        reply.erase("id");
        CHECK_FALSE(Schema{}.misfit(reply, kind.c_str()).empty());
    }
}

TEST_CASE("small replies fit the schema") {
    for (const auto code : {FaultCode::bad_json, FaultCode::bad_request, FaultCode::bad_plan, FaultCode::bad_frame_size,
                            FaultCode::bad_rate, FaultCode::bad_order, FaultCode::no_device, FaultCode::no_permission,
                            FaultCode::no_memory, FaultCode::no_cpu, FaultCode::not_resolved, FaultCode::internal}) {
        const auto reply =
            fitting(contract::write_fault(5, {code, "what \"it\" is\n\xff", "plan.left", "next"}), "fault");
        CHECK(reply["id"] == 5);
        CHECK(reply["fault"]["code"] == to_string(code));
    }
    CHECK(fitting(contract::write_fault({}, {FaultCode::bad_json, "", "", ""}), "fault")["id"].is_null());
    CHECK(fitting(contract::write_plain(1, "close"), "plain")["response"] == "close");
    CHECK(fitting(contract::write_about(
                      2, {.version = "0.1.0", .dpdk = "22.11.11", .compiler = "gcc 12", .build_type = "release"}),
                  "about")["contract"] == contract::version);
    const auto opened = fitting(contract::write_open(3,
                                                     {{{{.device = "a",
                                                         .driver = "b",
                                                         .mac = {1, 2, 3, 4, 5, 6},
                                                         .line_rate_bps = 1e10,
                                                         .link_up = true,
                                                         .receive_ring_frames = 2048},
                                                        {}}}},
                                                     2.5e9, 7),
                                "open");
    CHECK(opened["left"]["mac"] == "01:02:03:04:05:06");
    CHECK(opened["left"]["line_rate_bps"] == 1e10);
    CHECK(opened["right"]["line_rate_bps"].is_null());
    CHECK(fitting(contract::write_resolve(4, {{{{.dut_mac = {2}, .is_static = true}, {}}}}),
                  "resolve")["left"]["static"] == true);
    CHECK(fitting(contract::write_counters(5, {{{{.port = {.missed_frames = 3}, .questions = 2, .answers = 1}, {}}}}),
                  "counters")["left"]["neighbor"]["requests"] == 2);
    CHECK(fitting(contract::write_progress(
                      6, {.trial = 1, .phase = "sending", .elapsed_s = 1.5, .total_s = 9, .sent_frames = 7}),
                  "progress")["sent_frames"] == 7);
    const run::Progress::OfDirection reverse{.sent_frames = 9,
                                             .received_frames = 6,
                                             .settled_frames = 5,
                                             .lost_frames = 2,
                                             .mean_latency_s = 3e-6,
                                             .max_latency_s = std::nullopt,
                                             .recent_latency = {{.median_s = 2e-6, .p999_s = 8e-6}},
                                             .received_of_flows = {4, 2}};
    const auto progress = fitting(
        contract::write_progress(
            6, {.trial = 1, .phase = "sending", .elapsed_s = 1.5, .total_s = 9, .directions = {std::nullopt, reverse}}),
        "progress");
    CHECK_FALSE(progress["directions"].contains("forward"));
    CHECK(progress["directions"]["reverse"]["lost_frames"] == 2);
    CHECK(progress["directions"]["reverse"]["latency"]["mean_ns"].get<double>() == doctest::Approx(3000));
    CHECK(progress["directions"]["reverse"]["latency"]["max_ns"].is_null());
    CHECK(progress["directions"]["reverse"]["recent_latency"]["median_ns"].get<double>() == doctest::Approx(2000));
    CHECK(progress["directions"]["reverse"]["recent_latency"]["p999_ns"].get<double>() == doctest::Approx(8000));
    CHECK(progress["directions"]["reverse"]["received_of_flows"] == Json::parse("[4,2]"));
    CHECK_FALSE(progress.contains("left_out"));
    const auto disturbed =
        fitting(contract::write_progress(6, {.trial = 1,
                                             .phase = "sending",
                                             .sending_s = 2.5,
                                             .left_out = {{.from_s = 1, .until_s = 2, .kinds = {true, false, true}}}}),
                "progress");
    CHECK(disturbed["sending_s"] == 2.5);
    CHECK(disturbed["left_out"] == Json::parse(R"([[1.0,2.0,["sender_overdue","dut_away"]]])"));
    const auto learning =
        fitting(contract::write_learning(7, {.round = 2, .sides = {{std::nullopt, {{.hosts = 9, .reachable = 4}}}}}),
                "learning");
    CHECK_FALSE(learning.contains("left"));
    CHECK(learning["right"]["reachable"] == 4);
    const run::LearningResult::OfSide of_side{
        .hosts = 3, .reachable = 2, .rounds = 5, .unreachable = {tests::ip("2001:2:0:0::2")}, .questions_answered = 8};
    const auto learned =
        fitting(contract::write_learn(8, {.sides = {{of_side, std::nullopt}}, .stopped = true}), "learn");
    CHECK(learned["left"]["unreachable"] == Json::array({"2001:2::2"}));
    CHECK(learned["left"]["rounds"] == 5);
    CHECK(learned["stopped"] == true);
    CHECK_FALSE(learned.contains("right"));
}

TEST_CASE("a trial's reply fits the schema and holds its counts") {
    const auto reply = fitting(contract::write_trial(11, lossy_trial()), "trial");
    CHECK(reply["verdict"] == "INVALID");
    CHECK(reply["reasons"][0]["code"] == "receive_missed");
    CHECK(reply["loss_ratio"] == doctest::Approx(1.0 / 400));
    CHECK(reply["ports"]["right"]["after"]["missed_frames"] == 1);
    const auto& forward = reply["directions"]["forward"];
    CHECK(forward["lost_frames"] == 1);
    CHECK(forward["loss_ratio"] == doctest::Approx(0.005));
    CHECK(forward["forwarding_rate_fps"] == doctest::Approx(995));
    CHECK(forward["first_lost"] == Json::array({123}));
    CHECK(forward["latency"]["count"] == 199);
    CHECK(forward["latency"]["min_ns"] == 500);  // 1000 ticks of 2 GHz
    CHECK(forward["latency"]["max_ns"] == 99'500);
    CHECK(forward["latency"]["p50_ns"].get<double>() == doctest::Approx(50'000).epsilon(0.01));
    std::uint64_t in_buckets = 0;
    for (const auto& bucket : forward["latency"]["buckets"]) in_buckets += bucket[1].get<std::uint64_t>();
    CHECK(in_buckets == 199);
    const auto& reverse = reply["directions"]["reverse"];
    CHECK(reverse["lost_frames"] == 0);
    CHECK(reverse["latency"]["p999_ns"].is_null());
    CHECK_FALSE(reply.contains("burst"));
    CHECK_FALSE(forward.contains("last_lost"));
    SUBCASE("of bursts") {
        auto r = lossy_trial();
        r.burst = {.frames = 16, .interval_s = 0.02, .rate_fps = 1000};
        CHECK(fitting(contract::write_trial(12, r), "trial")["burst"] ==
              Json::parse(R"({"frames":16,"interval_s":0.02,"rate_fps":1000.0})"));
    }
    SUBCASE("of two loads") {
        auto r = lossy_trial();
        r.then = {.rate_fps = 500, .duration_s = 0.1, .before_fps = 1000};
        r.directions[0].last_lost = {.sequence = 123, .due_s = 0.123};
        const auto changed = fitting(contract::write_trial(12, r), "trial");
        CHECK(changed["then"] == Json::parse(R"({"before_fps":1000.0,"rate_fps":500.0,"duration_s":0.1})"));
        CHECK(changed["directions"]["forward"]["last_lost"] == Json::parse(R"({"sequence":123,"due_s":0.123})"));
        CHECK(changed["directions"]["reverse"]["last_lost"].is_null());
    }
    SUBCASE("of directions with loads of their own") {
        auto r = lossy_trial();
        CHECK_FALSE(forward.contains("intended_fps"));
        r.directions[0].intended_fps = 1000;
        r.directions[1].intended_fps = 250;
        const auto unlike = fitting(contract::write_trial(12, r), "trial");
        CHECK(unlike["directions"]["forward"]["intended_fps"] == 1000);
        CHECK(unlike["directions"]["reverse"]["intended_fps"] == 250);
    }
    SUBCASE("in one direction too, and with nothing offered") {
        auto r = lossy_trial();
        r.directions.erase(r.directions.begin());
        r.directions[0].offered_frames = r.directions[0].received_frames = 0;
        const auto half = fitting(contract::write_trial(12, r), "trial");
        CHECK_FALSE(half["directions"].contains("forward"));
        CHECK(half["loss_ratio"] == 1);
    }
}

TEST_CASE("a proof's reply fits the schema, also where there is nothing to say") {
    struct StopsAt : proof::ProofObserver {
        explicit StopsAt(std::uint64_t at) : at{at} {}
        bool goes_on(std::uint64_t drawn_frames) override { return drawn_frames < at; }
        std::uint64_t at;
    };
    const proof::ProofRequest request{.plan = tests::gateway_v4(16),
                                      .seed = 7,
                                      .direction = Direction::reverse,
                                      .frames = 700'000,
                                      .streams = 2,
                                      .stream = 1};
    StopsAt never{request.frames};
    const auto whole = fitting(contract::write_prove(15, request, proof::prove(request, never)), "prove");
    CHECK(whole["direction"] == "reverse");
    CHECK(whole["frames"] == 700'000);
    CHECK(whole["stopped"] == false);
    CHECK(whole["fields"][0]["field"] == "source");
    CHECK(whole["fields"][0]["values"] == 16);
    CHECK(whole["fields"][2]["chi_square"]["degrees_of_freedom"] == 64511);
    CHECK(whole["pairs"][0]["coverage"]["occurred"] == 256);
    CHECK(whole["pairs"][5]["coverage"].is_null());
    StopsAt at_once{0};
    const auto stopped = fitting(contract::write_prove(16, request, proof::prove(request, at_once)), "prove");
    CHECK(stopped["stopped"] == true);
    CHECK(stopped["fields"][0]["chi_square"].is_null());
    CHECK(stopped["fields"][0]["serial"]["correlation"].is_null());
    CHECK(fitting(contract::write_proving(17, request, 262'144), "proving")["drawn_frames"] == 262'144);
}

TEST_CASE("a preview shows the frames that are drawn and sent (SEED-44, D3)") {
    for (const bool v6 : {false, true}) {
        for (const auto direction : {Direction::forward, Direction::reverse}) {
            const contract::FramesRequest request{.plan = v6 ? tests::nets_v6(200, 1000) : tests::gateway_v4(1000),
                                                  .frame_size = 100,
                                                  .seed = 99,
                                                  .direction = direction,
                                                  .first = 4'294'967'290,
                                                  .count = 40,
                                                  .trial = 513,
                                                  .streams = 3,
                                                  .source_mac = {2, 0, 0, 0, 0, 1},
                                                  .destination_mac = {2, 0, 0, 0, 0, 2}};
            const auto reply = fitting(contract::write_frames(8, request), "frames");
            REQUIRE(reply["frames"].size() == 40);
            const plan::FlowDraw draw{request.plan, direction, request.seed};
            const auto& from = request.plan.side(plan::sending_side(direction)).hosts;
            const auto& to = request.plan.side(plan::receiving_side(direction)).hosts;
            for (std::uint64_t i = 0; i < 40; ++i) {
                const auto& shown = reply["frames"][i];
                const auto k = request.first + i;
                const auto flow = draw.draw(k);
                CHECK(shown["sequence"] == k);
                CHECK(shown["stream"] == k % 3);
                CHECK(shown["source"] == plan::to_string(from.address(flow.source)));
                CHECK(shown["destination"] == plan::to_string(to.address(flow.destination)));
                CHECK(shown["source_port"] == flow.source_port);
                CHECK(shown["destination_port"] == flow.destination_port);

                const auto octets = tests::octets_of(shown["octets"].get<std::string>());
                REQUIRE(octets.size() == 96);
                CHECK(tests::hex(std::span{octets}.first(12)) ==
                      "020000000002"
                      "020000000001");
                const auto look = frame::look_at(octets.data(), octets.size());
                REQUIRE(look.kind == frame::FrameKind::test);
                CHECK(look.tag.sequence == k);
                CHECK(look.tag.stream == k % 3);
                CHECK(look.tag.trial == 513);
                CHECK(look.tag.direction == direction);
                CHECK(look.tag.time_ticks == 0);
                CHECK(frame::is_intact(octets.data(), octets.size(), look.version));
                const auto part = [&](std::size_t at, std::size_t length) {
                    return tests::hex(std::span{octets}.subspan(at, length));
                };
                const std::size_t address = v6 ? 16 : 4;
                const std::size_t source_at = v6 ? 22 : 26;
                CHECK(part(source_at, address) == tests::hex(std::as_bytes(from.address(flow.source).bytes())));
                CHECK(part(source_at + address, address) ==
                      tests::hex(std::as_bytes(to.address(flow.destination).bytes())));
                CHECK(part(source_at + 2 * address, 4) ==
                      fmt::format("{:04x}{:04x}", flow.source_port, flow.destination_port));
            }
        }
    }
}

}  // namespace contract_test
