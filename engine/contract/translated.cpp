// SPDX-License-Identifier: Apache-2.0
#include "contract/translated.hpp"

#include <string>

namespace evenhand::contract {
namespace {

std::uint64_t count(ObjectReader& r, std::string_view key) { return r.whole(key, 0, any_whole); }

plan::IpAddress read_address(ObjectReader& r, std::string_view key) {
    const auto address = plan::parse_address(r.text(key));
    if (!address) r.refuse(key, "it is not an address", "Send the replies as they came.");
    return *address;
}

}  // namespace

void add_translation(Ordered& json, const tally::DirectionResult& d) {
    if (const auto& wrong = d.mistranslated_frames)
        json["mistranslated_frames"] = {
            {"no_checksum", wrong->at(0)}, {"traffic_class", wrong->at(1)}, {"address_or_port", wrong->at(2)}};
    if (const auto& seen = d.first_mistranslated)
        json["first_mistranslated"] = {{"frame", seen->sequence},
                                       {"source", to_string(seen->source)},
                                       {"source_port", seen->source_port},
                                       {"destination", to_string(seen->destination)},
                                       {"destination_port", seen->destination_port}};
    if (const auto& c = d.connections)
        json["connections"] = {{"opened", c->opened}, {"learnt", c->learnt}, {"shared_tuples", c->shared_tuples}};
}

void read_translation(ObjectReader& r, tally::DirectionResult& d) {
    if (r.has("mistranslated_frames")) {
        auto wrong = r.object("mistranslated_frames");
        d.mistranslated_frames = {count(wrong, "no_checksum"), count(wrong, "traffic_class"),
                                  count(wrong, "address_or_port")};
    }
    if (r.has("first_mistranslated")) {
        constexpr std::uint64_t last_port = 65535;
        auto seen = r.object("first_mistranslated");
        d.first_mistranslated = {
            .sequence = count(seen, "frame"),
            .source = read_address(seen, "source"),
            .destination = read_address(seen, "destination"),
            .source_port = static_cast<std::uint16_t>(seen.whole("source_port", 0, last_port)),
            .destination_port = static_cast<std::uint16_t>(seen.whole("destination_port", 0, last_port))};
    }
    if (r.has("connections")) {
        auto of = r.object("connections");
        d.connections = {
            .opened = count(of, "opened"), .learnt = count(of, "learnt"), .shared_tuples = count(of, "shared_tuples")};
    }
}

}  // namespace evenhand::contract
