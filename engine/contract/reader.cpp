// SPDX-License-Identifier: Apache-2.0
#include "contract/reader.hpp"

#include <algorithm>
#include <numeric>

namespace evenhand::contract {
namespace {

/// Levenshtein distance: how many letters must be changed.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + static_cast<std::size_t>(a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row.back();
}

std::string shortened(std::string text, std::size_t most = 80) {
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

std::string shortened(const Json& value) {
    return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// Examines the text without recursion. For valid JSON, this is its depth.
bool is_deeper_than(std::string_view text, std::size_t most) noexcept {
    std::size_t depth = 0;
    bool is_in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            is_in_string = !is_in_string;
        } else if (is_in_string) {
            if (c == '\\') ++i;
        } else if (c == '[' || c == '{') {
            if (++depth > most) return true;
        } else if ((c == ']' || c == '}') && depth != 0) {
            --depth;
        }
    }
    return false;
}

}  // namespace

std::string nearest(std::string_view key, const std::vector<std::string>& known) {
    const auto best =
        std::ranges::min_element(known, {}, [&](const auto& candidate) { return distance(key, candidate); });
    constexpr std::size_t near = 3;
    return best != known.end() && distance(key, *best) <= std::max(near, key.size() / 2) ? *best : std::string{};
}

Json read_document(std::string_view text, const DocumentForm& form) {
    const auto refuse = [&](const std::string& what) {
        throw Fault{FaultCode::bad_json, fmt::format("{} {}", form.name, what), "", form.next};
    };
    if (text.size() > form.most_octets) refuse(fmt::format("is longer than {} octets", form.most_octets));
    if (is_deeper_than(text, deepest_nesting))
        refuse(fmt::format("has brackets within brackets, more than {} deep", deepest_nesting));
    Json json;
    try {
        json = Json::parse(text);
    } catch (const Json::exception& e) {
        constexpr std::size_t most_shown = 300;
        refuse(fmt::format("is not JSON: {}", shortened(e.what(), most_shown)));
    }
    if (!json.is_object()) refuse("is not a JSON object");
    return json;
}

ObjectReader::ObjectReader(const Json& object, std::string path) : object_{&object}, path_{std::move(path)} {
    if (!object.is_object()) {
        throw Fault{FaultCode::bad_request, fmt::format("{} is not an object", shortened(object)), path_,
                    "See contract/request.schema.json."};
    }
}

bool ObjectReader::has(std::string_view key) {
    known_.emplace_back(key);
    return object_->contains(key);
}

const Json& ObjectReader::value(std::string_view key) {
    known_.emplace_back(key);
    const auto at = object_->find(key);
    if (at == object_->end())
        throw Fault{FaultCode::bad_request, fmt::format("the key {} is missing", key), where(key),
                    "See contract/request.schema.json."};
    return *at;
}

const Json& ObjectReader::array(std::string_view key) {
    const Json& v = value(key);
    if (!v.is_array()) refuse(key, fmt::format("{} is not a list", shortened(v)), "See contract/request.schema.json.");
    return v;
}

std::string ObjectReader::text(std::string_view key) {
    const Json& v = value(key);
    if (!v.is_string()) refuse(key, fmt::format("{} is not a text", shortened(v)), "See contract/request.schema.json.");
    return v.get<std::string>();
}

bool ObjectReader::boolean(std::string_view key) {
    const Json& v = value(key);
    if (!v.is_boolean())
        refuse(key, fmt::format("{} is neither true nor false", shortened(v)), "See contract/request.schema.json.");
    return v.get<bool>();
}

std::uint64_t ObjectReader::whole(std::string_view key, std::uint64_t least, std::uint64_t most) {
    const Json& v = value(key);
    const bool fits = v.is_number_unsigned() && v.get<std::uint64_t>() >= least && v.get<std::uint64_t>() <= most;
    if (!fits)
        refuse(key, fmt::format("{} is not a whole number from {} to {}", shortened(v), least, most),
               fmt::format("Use {} to {}.", least, most));
    return v.get<std::uint64_t>();
}

double ObjectReader::number(std::string_view key, double least, double most, bool above) {
    const Json& v = value(key);
    const double x = v.is_number() ? v.get<double>() : least - 1;
    const bool fits = x >= least && x <= most && (!above || x != least);
    if (!fits) {
        refuse(
            key,
            fmt::format("{} is not a number {} {} and at most {}", shortened(v), above ? "above" : "from", least, most),
            fmt::format("Use {} {} to {}.", above ? "more than" : "from", least, most));
    }
    return x;
}

void ObjectReader::refuse(std::string_view key, const std::string& what, const std::string& next) const {
    throw Fault{FaultCode::bad_request, what, where(key), next};
}

void ObjectReader::refuse_choice(std::string_view key, const std::string& chosen, const std::vector<std::string>& words,
                                 std::string_view otherwise) const {
    const auto guess = nearest(chosen, words);
    refuse(key, fmt::format("{} is none of {}", shortened(Json(chosen)), Json(words).dump()),
           guess.empty() ? std::string{otherwise} : fmt::format("Did you mean {}?", guess));
}

void ObjectReader::finish() const {
    for (const auto& [key, unused] : object_->items()) {
        if (std::ranges::find(known_, key) != known_.end()) continue;
        const auto guess = nearest(key, known_);
        throw Fault{FaultCode::bad_request, fmt::format("the key {} is unknown", key), where(key),
                    guess.empty() ? "See contract/request.schema.json." : fmt::format("Did you mean {}?", guess)};
    }
}

plan::IpAddress ObjectReader::address(std::string_view key) {
    const auto value = text(key);
    const auto address = plan::parse_address(value);
    if (!address)
        refuse(key, fmt::format("{} is not an IP address", shortened(Json(value))),
               "Write it like 198.18.0.1 or 2001:2::2.");
    return *address;
}

plan::MacAddress ObjectReader::mac(std::string_view key) {
    const auto value = text(key);
    const auto mac = plan::parse_mac(value);
    if (!mac)
        refuse(key, fmt::format("{} is not a MAC address", shortened(Json(value))), "Write it like 02:00:00:00:00:01.");
    return *mac;
}

plan::MacAddress ObjectReader::port_mac(std::string_view key) {
    const auto value = mac(key);
    const bool is_group = (value[0] & 1U) != 0;
    if (is_group || value == plan::MacAddress{}) {
        refuse(key,
               fmt::format("{} is {}, which no port can have", plan::to_string(value),
                           is_group ? "a group address" : "no address"),
               "Write it like 02:00:00:00:00:01.");
    }
    return value;
}

}  // namespace evenhand::contract
