// SPDX-License-Identifier: Apache-2.0
#include "config/route_files.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "config/networks.hpp"

namespace evenhand::router {
namespace {

using contract::Json;
using contract::ObjectReader;

/// As many octets as all prefixes can have, written at full length.
constexpr std::size_t longest_file = std::size_t{96} << 20U;

std::string read_text(const ObjectReader& r, const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) r.refuse("path", fmt::format("{} cannot be read", path), "Check the path.");
    std::string text;
    std::array<char, 65536> chunk;
    // One octet more than is allowed is enough to refuse it, also if it never ends.
    while (text.size() <= longest_file && (file.read(chunk.data(), chunk.size()), file.gcount() > 0))
        text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > longest_file)
        r.refuse("path", fmt::format("{} has more than {} MiB", path, longest_file >> 20U),
                 "Name a file with one prefix on each line.");
    return text;
}

/// Without blanks at its ends.
std::string_view trimmed(std::string_view line) {
    constexpr const char* blanks = " \t\r";
    const auto first = line.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

std::vector<RoutePrefix> read_file(ObjectReader& r, const std::string& path, plan::IpVersion version) {
    const std::string text = read_text(r, path);
    std::vector<RoutePrefix> prefixes;
    std::size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
        const auto end = rest.find('\n');
        const std::string_view line = trimmed(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        ++number;
        if (line.empty() || line.front() == '#') continue;
        constexpr std::size_t most_shown = 60;
        const auto prefix = parse_prefix(line);
        if (!prefix || prefix->first.version != version) {
            r.refuse("path",
                     fmt::format("line {} of {}: \"{}\" is not an IPv{} prefix", number, path,
                                 line.substr(0, most_shown), static_cast<int>(version)),
                     "Write one on each line, such as 198.18.0.0/24 or 2001:2::/48, of the next hop's IP version.");
        }
        prefixes.push_back({.network = prefix->first, .prefix_length = static_cast<std::uint8_t>(prefix->second)});
    }
    return prefixes;
}

}  // namespace

std::vector<RouteFileConfig> read_route_files(ObjectReader& r) {
    std::vector<RouteFileConfig> files;
    std::size_t count_v4 = 0;
    std::size_t count_v6 = 0;
    const Json& list = r.array("route_files");
    for (std::size_t i = 0; i < list.size(); ++i) {
        ObjectReader entry{list[i], fmt::format("route_files[{}]", i)};
        RouteFileConfig file{.via = entry.address("via"), .prefixes = {}};
        file.prefixes = read_file(entry, entry.text("path"), file.via.version);
        entry.finish();
        const bool is_v4 = file.via.version == plan::IpVersion::v4;
        std::size_t& count = is_v4 ? count_v4 : count_v6;
        const std::size_t most = is_v4 ? most_v4_prefixes : most_v6_prefixes;
        count += file.prefixes.size();
        if (count > most)
            entry.refuse("path", fmt::format("{} IPv{} prefixes so far", count, is_v4 ? 4 : 6),
                         fmt::format("Give at most {}.", most));
        files.push_back(std::move(file));
    }
    return files;
}

}  // namespace evenhand::router
