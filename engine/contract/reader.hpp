// SPDX-License-Identifier: Apache-2.0
// Contract: reads one JSON object with the path of every value, so that a fault can name the place and the nearest
// valid key.
#pragma once

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/limits.hpp"
#include "fault.hpp"
#include "plan/address.hpp"

namespace evenhand::contract {

using Json = nlohmann::json;

/// A kind of document, as its faults describe it.
struct DocumentForm {
    const char* name;         // "the line"
    std::size_t most_octets;  // longer ones are refused without reading them
    const char* next;         // what to do if it cannot be read
};

/// Reads one JSON object. Throws Fault{bad_json} for anything else, and if brackets are nested deeper than
/// deepest_nesting. All text from outside is turned into JSON here.
[[nodiscard]] Json read_document(std::string_view text, const DocumentForm& form);

/// The key among `known` that `key` was probably meant to be; empty if none is similar.
[[nodiscard]] std::string nearest(std::string_view key, const std::vector<std::string>& known);

/// One object of a request. Every getter throws Fault{bad_request} that names path and value. finish() refuses keys
/// that nobody asked for.
class ObjectReader {
   public:
    /// `object` outlives this.
    ObjectReader(const Json& object, std::string path);

    [[nodiscard]] std::string where(std::string_view key) const {
        return path_.empty() ? std::string{key} : fmt::format("{}.{}", path_, key);
    }
    /// Whether an optional key exists. From then on finish() accepts the key, and may suggest it in place of a wrong
    /// one.
    [[nodiscard]] bool has(std::string_view key);

    [[nodiscard]] const Json& value(std::string_view key);
    [[nodiscard]] ObjectReader object(std::string_view key) { return {value(key), where(key)}; }
    [[nodiscard]] const Json& array(std::string_view key);
    [[nodiscard]] std::string text(std::string_view key);
    [[nodiscard]] bool boolean(std::string_view key);
    /// An integer from `least` to `most`.
    [[nodiscard]] std::uint64_t whole(std::string_view key, std::uint64_t least, std::uint64_t most);
    /// A number from `least` to `most`; `least` itself is not allowed if `above`.
    [[nodiscard]] double number(std::string_view key, double least, double most, bool above = false);

    /// The value that one of these words stands for. `otherwise`: the next step if the text is similar to none of them.
    template <class T, std::size_t N>
    [[nodiscard]] T choice(std::string_view key, const std::array<std::pair<const char*, T>, N>& choices,
                           std::string_view otherwise = "Use one of them.") {
        const std::string chosen = text(key);
        std::vector<std::string> words;
        for (const auto& [word, value] : choices) {
            if (chosen == word) return value;
            words.emplace_back(word);
        }
        refuse_choice(key, chosen, words, otherwise);
    }

    [[nodiscard]] plan::IpAddress address(std::string_view key);
    [[nodiscard]] plan::MacAddress mac(std::string_view key);
    /// A MAC that a port can have: not a group address, and not all zeros.
    [[nodiscard]] plan::MacAddress port_mac(std::string_view key);

    [[noreturn]] void refuse(std::string_view key, const std::string& what, const std::string& next) const;

    /// Throws Fault{bad_request} for the first key that nobody asked for.
    void finish() const;

   private:
    [[noreturn]] void refuse_choice(std::string_view key, const std::string& chosen,
                                    const std::vector<std::string>& words, std::string_view otherwise) const;

    const Json* object_;
    std::string path_;
    std::vector<std::string> known_;
};

}  // namespace evenhand::contract
