// SPDX-License-Identifier: Apache-2.0
// Config: what is wrong is named with its place and value; nothing is taken for granted.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/route_files.hpp"
#include "contract/limits.hpp"
#include "fault.hpp"

namespace config_test {

using namespace evenhand;
using namespace evenhand::router;
using Json = nlohmann::json;

namespace {

Json good() {
    return Json::parse(R"({
      "ports": {"left": {"device": "net_ring0", "addresses": ["10.0.0.1/24", "2001:2:0:1000::1/64"]},
                "right": {"device": "net_ring1", "mac": "02:00:00:00:d0:02", "vlan": [200, 100],
                           "addresses": ["10.0.1.1/24"]}},
      "cpu": 1, "largest_frame_size": 9216,
      "routes": [{"network": "198.18.0.0/16", "via": "10.0.0.2"},
                  {"network": "2001:2::/64", "via": "2001:2:0:1000::2"}],
      "elements": {"count": 36, "rate_fps": 50000, "queue_frames": 512, "hash": "type2",
                   "key": "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"},
      "neighbors": {"limit": 1000, "free_entries": 500, "growth": 0.2,
                     "static": [{"address": "10.0.0.2", "mac": "02:00:00:00:00:01"}]},
      "defects": {"seed": 3, "loss": {"ratio": 0.01}, "reordering": {"at": [7, 9]}},
      "extra_delay_us": 25, "delayed_load_fps": 4e5, "longer_delay": {"every": 100, "us": 500},
                   "stall": {"every_ms": 1000, "for_ms": 20, "queue_frames": 64}
    })");
}

/// The place that the fault names; "" if the configuration is taken.
std::string place(const Json& config) {
    try {
        (void)read_config(config.dump());
    } catch (const Fault& fault) {
        CHECK(kind_of(fault.code) == "bad_request");
        CHECK_FALSE(fault.what_text.empty());
        CHECK_FALSE(fault.next.empty());
        return fault.where;
    }
    return "";
}

}  // namespace

TEST_CASE("both ports of a pair may be one device, in two VLANs") {
    auto config = good();
    config["ports"]["right"]["device"] = config["ports"]["left"]["device"];
    CHECK(place(config).empty());
    config["ports"]["left"]["vlan"] = config["ports"]["right"]["vlan"];
    CHECK(place(config) == "ports.right.vlan");
    config["ports"]["left"].erase("vlan");
    config["ports"]["right"].erase("vlan");
    CHECK(place(config) == "ports.right.vlan");
    config = good();
    config["ports"]["right"]["device"] = "net_ring0,nodeaction=x:0:CREATE";
    CHECK_FALSE(place(config).empty());
    config = good();
    config["ports"]["right"]["device"] = config["ports"]["left"]["device"];
    config["ports"]["right"]["receive_ring_frames"] = 64;
    CHECK(place(config) == "ports.right.device");
}

TEST_CASE("further pairs of ports are read, and named by their place") {
    auto config = good();
    const Json more = config["ports"];
    config["more_ports"] = {more, more};
    const auto read = read_config(config.dump());
    REQUIRE(read.ports.size() == 6);
    CHECK(read.ports[5].vlans == std::vector<std::uint16_t>{200, 100});
    config["more_ports"][1]["right"]["addresses"] = Json::array();
    CHECK(place(config) == "more_ports[1].right.addresses");
    config["more_ports"][1]["right"]["device"] = "";
    CHECK(place(config) == "more_ports[1].right.device");
    config["more_ports"] = {more, more, more, more};
    CHECK(place(config) == "more_ports");
    config["more_ports"] = {more};
    config["nat"] = {{"inside", "left"}, {"pool", {{"first", "198.18.0.1"}, {"count", 10}, {"offset", 1}}}};
    CHECK(place(config) == "");
    CHECK(read_config(config.dump()).nat->pool.count == 10);
}

TEST_CASE("a configuration is read as it is written") {
    const auto config = read_config(good().dump());
    CHECK(config.ports[0].addresses.size() == 2);
    CHECK(config.ports[0].addresses[1].prefix_length == 64);
    CHECK_FALSE(config.ports[0].mac);
    CHECK(plan::to_string(*config.ports[1].mac) == "02:00:00:00:d0:02");
    CHECK(config.ports[0].vlans.empty());
    CHECK(config.ports[1].vlans == std::vector<std::uint16_t>{200, 100});
    CHECK(config.largest_frame_size == 9216);
    CHECK(config.routes.size() == 2);
    CHECK(config.routes[0].prefix_length == 16);
    REQUIRE(config.model);
    CHECK(config.model->elements.count == 36);
    CHECK(config.model->spread.table.size() == 128);  // round robin by itself (RSS-04)
    CHECK(config.model->spread.table[37] == 1);
    CHECK(config.neighbor_cost.free_entries == 500);
    CHECK(config.static_neighbors.size() == 1);
    CHECK(config.defects.ratios[0] == 0.01);
    CHECK(config.defects.at[2] == std::vector<std::uint64_t>{7, 9});
    CHECK(config.extra_delay_us == 25);
    CHECK(config.delayed_load_fps == 4e5);
    CHECK(config.longer_delay.every == 100);
    CHECK(config.longer_delay.us == 500);
    CHECK(config.stall.every_ms == 1000);
    CHECK(config.stall.for_ms == 20);
    CHECK(config.stall.queue_frames == 64);
}

TEST_CASE("files of prefixes are read with the configuration, and what is wrong in one is named with its line") {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("evenhand-routes-{}.txt", getpid());
    const auto write = [&](std::string_view text) { std::ofstream{path, std::ios::binary} << text; };
    Json config = good();
    config["route_files"] = {{{"path", path}, {"via", "10.0.0.2"}}};
    write("# of the left side\n198.18.0.0/24\r\n\n 198.18.1.0/25\t\n0.0.0.0/0");
    const auto files = read_config(config.dump()).route_files;
    REQUIRE(files.size() == 1);
    CHECK(plan::to_string(files[0].via) == "10.0.0.2");
    REQUIRE(files[0].prefixes.size() == 3);
    CHECK(plan::to_string(files[0].prefixes[1].network) == "198.18.1.0");
    CHECK(files[0].prefixes[1].prefix_length == 25);
    CHECK(files[0].prefixes[2].prefix_length == 0);
    const auto fault = [&](std::string_view text) {
        write(text);
        try {
            (void)read_config(config.dump());
        } catch (const Fault& found) {
            CHECK(found.where == "route_files[0].path");
            CHECK_FALSE(found.next.empty());
            return found.what_text;
        }
        return std::string{};
    };
    CHECK(fault("198.18.0.0/24\n198.18.1.0\n") ==
          fmt::format(R"(line 2 of {}: "198.18.1.0" is not an IPv4 prefix)", path.string()));
    CHECK(fault("2001:2::/48") == fmt::format(R"(line 1 of {}: "2001:2::/48" is not an IPv4 prefix)", path.string()));
    CHECK_FALSE(fault("198.18.0.0/33").empty());
    std::string many;
    for (std::size_t i = 0; i <= most_v6_prefixes; ++i) many += "::/0\n";
    config["route_files"][0]["via"] = "2001:2:0:1000::2";
    CHECK(fault(many) == "1000001 IPv6 prefixes so far");
    many.resize(5 * most_v6_prefixes);
    CHECK(fault(many).empty());
    CHECK(fault(std::string((std::size_t{96} << 20U) + 1, '\n')) ==
          fmt::format("{} has more than 96 MiB", path.string()));
    std::filesystem::remove(path);
    CHECK(place(config) == "route_files[0].path");
    config["route_files"][0]["via"] = "x";
    CHECK(place(config) == "route_files[0].via");
}

TEST_CASE("what is wrong in a configuration is named") {
    const auto with = [](const char* pointer, const Json& value) {
        Json config = good();
        config[Json::json_pointer(pointer)] = value;
        return config;
    };
    CHECK(place(with("/prots", 1)) == "prots");
    CHECK(place(with("/ports/left/addresses", Json::array())) == "ports.left.addresses");
    CHECK(place(with("/ports/left/addresses", {"10.0.0.1"})) == "ports.left.addresses");
    CHECK(place(with("/ports/left/addresses", {"10.0.0.1/33"})) == "ports.left.addresses");
    CHECK(place(with("/ports/right/mac", "02:00")) == "ports.right.mac");
    CHECK(place(with("/routes/1/via", "nowhere")) == "routes[1].via");
    CHECK(place(with("/elements/count", 0)) == "elements.count");
    CHECK(place(with("/elements/count", 513)) == "elements.count");
    CHECK(place(with("/elements/rate_fps", 0)) == "elements.rate_fps");
    CHECK(place(with("/elements/hash", "type3")) == "elements.hash");
    CHECK(place(with("/elements/key", "6d5a")) == "elements.key");
    CHECK(place(with("/elements/key", std::string(80, 'x'))) == "elements.key");
    CHECK(place(with("/elements/table", {0, 1, 2})) == "elements.table");
    CHECK(place(with("/elements/table", {0, 36})) == "elements.table");
    CHECK(place(with("/defects/loss/ratio", 1.5)) == "defects.loss.ratio");
    CHECK(place(with("/longer_delay/every", 0)) == "longer_delay.every");
    CHECK(place(with("/longer_delay/ms", 1)) == "longer_delay.ms");
    CHECK(place(with("/delayed_load_fps", 0)) == "delayed_load_fps");
    CHECK(place(with("/stall/for_ms", 1000)) == "stall.for_ms");
    CHECK(place(with("/stall/every_ms", 0)) == "stall.every_ms");
    CHECK(place(with("/defects/losses", Json::object())) == "defects.losses");
    CHECK(place(with("/neighbors/static/0/mac", "x")) == "neighbors.static[0].mac");
    CHECK_THROWS_AS((void)read_config("{"), Fault);
    CHECK_THROWS_AS((void)read_config("[]"), Fault);
    try {
        (void)read_config(with("/elements/hash", "typ2").dump());
        FAIL("typ2 was taken");
    } catch (const Fault& fault) {
        CHECK(fault.what_text == R"("typ2" is none of ["type1","type2"])");
        CHECK(fault.next == "Did you mean type2?");
    }
}

TEST_CASE("a translation is a prefix of RFC 6052 and mappings of equal length") {
    Json config = good();
    config["translation"] = {{"prefix", "2001:2:0:64::/96"},
                             {"mappings", {{{"ipv4", "198.18.0.0/16"}, {"ipv6", "2001:2::/112"}}}},
                             {"wrong_address_every", 1000}};
    const auto read = read_config(config.dump()).translation;
    REQUIRE(read);
    CHECK(read->prefix_length == 96);
    CHECK(read->mappings.at(0).ipv4_length == 16);
    CHECK(read->mappings.at(0).ipv6 == plan::parse_address("2001:2::").value());
    CHECK(read->wrong_address_every == 1000);
    const auto with = [&](const char* pointer, const Json& value) {
        Json changed = config;
        changed[Json::json_pointer(pointer)] = value;
        return changed;
    };
    CHECK(place(with("/translation/prefix", "2001:2::/80")) == "translation.prefix");
    CHECK(place(with("/translation/prefix", "198.18.0.0/16")) == "translation.prefix");
    CHECK(place(with("/translation/prefix", "2001:2::1/96")) == "translation.prefix");
    CHECK(place(with("/translation/prefix", "2001:2:0:0:100::/96")) == "translation.prefix");
    CHECK(place(with("/translation/mappings/0/ipv4", "198.18.0.0/15")) == "translation.mappings[0].ipv6");
    CHECK(place(with("/translation/mappings/0/ipv6", "10.0.0.0/16")) == "translation.mappings[0].ipv6");
    CHECK(place(with("/translation/no_checksum_every", 0)) == "translation.no_checksum_every");
    CHECK(place(with("/translation/suffix", 1)) == "translation.suffix");
    Json behind = config;
    behind["translation"]["mappings"][0].erase("ipv6");
    CHECK_FALSE(read->mappings.at(0).is_behind_prefix);
    CHECK(read_config(behind.dump()).translation.value().mappings.at(0).is_behind_prefix);
}

TEST_CASE("the translation of connections is a side, a pool, and what differs from the defaults") {
    Json config = good();
    config["nat"] = {{"inside", "left"}, {"pool", {{"first", "198.18.0.1"}, {"count", 65535}}}};
    const auto plain = read_config(config.dump()).nat;
    REQUIRE(plain);
    CHECK(plain->inside == 0);
    CHECK(plain->pool.first == 1);
    CHECK(plain->pool.offset == 2);
    CHECK(plain->pool.contains(plan::parse_address("198.18.255.255").value()));
    CHECK_FALSE(plain->pool.contains(plan::parse_address("198.18.0.0").value()));
    CHECK_FALSE(plain->pool.contains(plan::parse_address("198.19.0.1").value()));
    CHECK_FALSE(plain->is_nat64());
    CHECK(plain->first_port == 1024);
    CHECK(plain->last_port == 65535);
    CHECK(plain->capacity == NatOptions::default_connections);
    CHECK(plain->when_full == WhenFull::refuse);
    CHECK(plain->reuse_ports);
    config["nat"] = {{"inside", "right"},
                     {"pool", {{"first", "198.18.1.0"}, {"count", 2}}},
                     {"prefix", "2001:2:0:64::/96"},
                     {"ports", {{"first", 7}, {"last", 7}}},
                     {"capacity", 100},
                     {"when_full", "replace"},
                     {"timeout_s", 0.5},
                     {"entry_cost", 3},
                     {"reuse_ports", false},
                     {"flush_us_per_entry", 2.5},
                     {"same_tuple_every", 1},
                     {"lost_entry_every", 2},
                     {"other_address_every", 3},
                     {"wrong_checksum_every", 0}};
    const auto read = read_config(config.dump()).nat;
    REQUIRE(read);
    CHECK(read->inside == 1);
    CHECK(read->pool.first == 256);
    CHECK(plan::to_string(read->pool.address(257)) == "198.18.1.1");
    CHECK(read->is_nat64());
    CHECK(read->last_port == 7);
    CHECK(read->capacity == 100);
    CHECK(read->when_full == WhenFull::replace);
    CHECK(read->timeout_s == 0.5);
    CHECK(read->entry_cost == 3);
    CHECK_FALSE(read->reuse_ports);
    CHECK(read->flush_us_per_entry == 2.5);
    CHECK(read->same_tuple_every == 1);
    CHECK(read->lost_entry_every == 2);
    CHECK(read->other_address_every == 3);
    CHECK(read->wrong_checksum_every == 0);
    const auto with = [&](const char* pointer, const Json& value) {
        Json changed = config;
        changed[Json::json_pointer(pointer)] = value;
        return changed;
    };
    CHECK(place(with("/nat/pool", {{"first", "2001:2::1:0"}, {"count", 9}})) == "nat.prefix");
    CHECK(place(with("/nat/pool/count", 0)) == "nat.pool.count");
    CHECK(place(with("/nat/pool/count", 65281)) == "nat.pool.count");
    CHECK(place(with("/nat/pool/offset", 3)) == "nat.pool.offset");
    CHECK(place(with("/nat/pool/first", "198.18.0.0")) == "nat.other_address_every");
    CHECK(place(with("/nat/pool/first", "10.0.0.1")) == "nat.pool");
    CHECK(place(with("/nat/prefix", "2001:2::/80")) == "nat.prefix");
    CHECK(place(with("/nat/ports/last", 6)) == "nat.ports.last");
    CHECK(place(with("/nat/capacity", (1U << 27U) + 1)) == "nat.capacity");
    CHECK(place(with("/nat/when_full", "drop")) == "nat.when_full");
    CHECK(place(with("/nat/timeout_s", -1)) == "nat.timeout_s");
    CHECK(place(with("/nat/entry_cost", 0)) == "nat.entry_cost");
    CHECK(place(with("/nat/lost_entries_every", 1)) == "nat.lost_entries_every");
    CHECK(place(with("/translation", {{"prefix", "2001:2:0:64::/96"}, {"mappings", Json::array()}})) == "nat");
}

TEST_CASE("a request is counters, flush or stop") {
    CHECK(read_router_request(R"({"request":"counters"})") == RouterRequest::counters);
    CHECK(read_router_request(R"({"request":"flush"})") == RouterRequest::flush);
    CHECK(read_router_request(R"({"request":"stop"})") == RouterRequest::stop);
    CHECK_THROWS_AS((void)read_router_request(R"({"request":"count"})"), Fault);
    CHECK_THROWS_AS((void)read_router_request(R"({"request":"stop","now":1})"), Fault);
    CHECK_THROWS_AS((void)read_router_request("stop"), Fault);
}

TEST_CASE("what is too deep or too long is refused before it is read, in the configuration and in requests") {
    const auto code_of = [](const auto& read, const std::string& text) {
        try {
            (void)read(text);
        } catch (const Fault& fault) {
            return fault.code;
        }
        return FaultCode::internal;
    };
    const std::string brackets(200'000, '[');
    const std::string closed = R"({"x":)" + brackets + std::string(brackets.size(), ']') + "}";
    for (const auto& text : {brackets, closed}) {
        CHECK(code_of(read_config, text) == FaultCode::bad_json);
        CHECK(code_of(read_router_request, text) == FaultCode::bad_json);
    }
    std::string request = R"({"request":"counters"})";
    request.resize(contract::longest_line, ' ');
    CHECK(read_router_request(request) == RouterRequest::counters);
    CHECK(code_of(read_router_request, request + " ") == FaultCode::bad_json);
    std::string config = good().dump();
    config.resize(2 * contract::longest_line, ' ');  // more than a line may have
    CHECK(read_config(config).cpu == 1);
    config.resize(contract::longest_configuration + 1, ' ');
    CHECK(code_of(read_config, config) == FaultCode::bad_json);
}

TEST_CASE("a fault is a line of sound JSON, whatever the text was that it repeats") {
    try {
        (void)read_router_request("{\"request\":\"\xff\xfe\"}");
        FAIL("it is taken");
    } catch (const Fault& fault) {
        CHECK(Json::parse(fault_line(to_string(fault.code), kind_of(fault.code), fault.what_text, fault.where,
                                     fault.next))["fault"]["code"] == "bad_json");
    }
}

}  // namespace config_test
