// SPDX-License-Identifier: Apache-2.0
#include "port/device_string.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace evenhand::port {
namespace {

enum class Form : std::uint8_t {
    number,
    flag,
    yes_no,
    mac,
    mac_or_fixed,
    role,
    secret,
    interface,
    socket,
    source,
    target
};

struct Key {
    std::string_view driver;
    std::string_view name;
    Form form;
};

constexpr std::string_view pci = "pci";
constexpr std::array drivers{
    std::string_view{"net_af_packet"}, std::string_view{"net_af_xdp"}, std::string_view{"net_memif"},
    std::string_view{"net_null"},      std::string_view{"net_pcap"},   std::string_view{"net_ring"},
    std::string_view{"net_tap"},       std::string_view{"net_vhost"},  std::string_view{"net_virtio_user"}};
constexpr std::array keys{
    Key{"net_af_packet", "iface", Form::interface},
    Key{"net_af_packet", "qpairs", Form::number},
    Key{"net_af_packet", "blocksz", Form::number},
    Key{"net_af_packet", "framesz", Form::number},
    Key{"net_af_packet", "framecnt", Form::number},
    Key{"net_af_packet", "qdisc_bypass", Form::flag},
    Key{"net_af_xdp", "iface", Form::interface},
    Key{"net_af_xdp", "start_queue", Form::number},
    Key{"net_af_xdp", "queue_count", Form::number},
    Key{"net_af_xdp", "shared_umem", Form::flag},
    Key{"net_af_xdp", "force_copy", Form::flag},
    Key{"net_af_xdp", "busy_budget", Form::number},
    Key{"net_memif", "role", Form::role},
    Key{"net_memif", "id", Form::number},
    Key{"net_memif", "socket", Form::socket},
    Key{"net_memif", "socket-abstract", Form::yes_no},
    Key{"net_memif", "rsize", Form::number},
    Key{"net_memif", "bsize", Form::number},
    Key{"net_memif", "mac", Form::mac},
    Key{"net_memif", "zero-copy", Form::yes_no},
    Key{"net_memif", "secret", Form::secret},
    Key{"net_null", "size", Form::number},
    Key{"net_null", "copy", Form::flag},
    Key{"net_null", "no-rx", Form::flag},
    Key{"net_pcap", "rx_pcap", Form::source},
    Key{"net_pcap", "tx_pcap", Form::target},
    Key{"net_pcap", "rx_iface", Form::interface},
    Key{"net_pcap", "rx_iface_in", Form::interface},
    Key{"net_pcap", "tx_iface", Form::interface},
    Key{"net_pcap", "iface", Form::interface},
    Key{"net_pcap", "phy_mac", Form::flag},
    Key{"net_pcap", "infinite_rx", Form::flag},
    Key{"net_tap", "iface", Form::interface},
    Key{"net_tap", "mac", Form::mac_or_fixed},
    Key{"net_vhost", "iface", Form::socket},
    Key{"net_vhost", "queues", Form::number},
    Key{"net_vhost", "client", Form::flag},
    Key{"net_vhost", "iommu-support", Form::flag},
    Key{"net_vhost", "tso", Form::flag},
    Key{"net_vhost", "linear-buffer", Form::flag},
    Key{"net_vhost", "ext-buffer", Form::flag},
    Key{"net_virtio_user", "path", Form::socket},
    Key{"net_virtio_user", "mac", Form::mac},
    Key{"net_virtio_user", "queues", Form::number},
    Key{"net_virtio_user", "queue_size", Form::number},
    Key{"net_virtio_user", "iface", Form::interface},
    Key{"net_virtio_user", "server", Form::flag},
    Key{"net_virtio_user", "mrg_rxbuf", Form::flag},
    Key{"net_virtio_user", "in_order", Form::flag},
    Key{"net_virtio_user", "packed_vq", Form::flag},
    Key{"net_virtio_user", "vectorized", Form::flag},
    Key{pci, "safe-mode-support", Form::flag},
    Key{pci, "support-multi-driver", Form::flag},
    Key{pci, "large_llq_hdr", Form::flag},
    Key{pci, "mprq_en", Form::flag},
    Key{pci, "rxqs_min_mprq", Form::number},
    Key{pci, "rxq_cqe_comp_en", Form::number},
    Key{pci, "txq_inline_max", Form::number},
    Key{pci, "txqs_min_inline", Form::number},
};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> required{
    {{"net_af_packet", "iface"}, {"net_af_xdp", "iface"}, {"net_vhost", "iface"}, {"net_virtio_user", "path"}}};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
constexpr bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
}

bool all(std::string_view text, std::size_t most, bool (*is_good)(char)) {
    return !text.empty() && text.size() <= most && std::ranges::all_of(text, is_good);
}

bool is_number(std::string_view text) { return all(text, 9, is_digit); }

bool is_mac(std::string_view text) {
    if (text.size() != 17) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i % 3 == 2 ? text[i] != ':' : !is_hex(text[i])) return false;
    }
    return true;
}

/// Without brackets, quotes or parentheses, which have a meaning to DPDK, and without a leading '-', which means stdin
/// and stdout to libpcap.
bool is_path(std::string_view text, std::size_t most) {
    return all(text, most,
               [](char c) {
                   return static_cast<unsigned char>(c) >= ' ' && c != 0x7f &&
                          std::string_view{",=[]()\"'\\"}.find(c) == std::string_view::npos;
               }) &&
           text.front() != '-';
}

bool fits(std::string_view value, Form form) {
    constexpr std::size_t longest_secret = 24;
    constexpr std::size_t longest_interface = 15;
    constexpr std::size_t longest_socket = 107;
    constexpr std::size_t longest_path = 4095;
    switch (form) {
        case Form::number: return is_number(value);
        case Form::flag: return value == "0" || value == "1";
        case Form::yes_no: return value == "yes" || value == "no";
        case Form::mac: return is_mac(value);
        case Form::mac_or_fixed: return value == "fixed" || is_mac(value);
        case Form::role: return value == "server" || value == "client";
        case Form::secret: return all(value, longest_secret, is_word);
        case Form::interface:
            return all(value, longest_interface, [](char c) { return is_word(c) || c == '@'; }) && value != "." &&
                   value != "..";
        case Form::socket: return is_path(value, longest_socket);
        case Form::source: return is_path(value, longest_path);
        case Form::target:
            return value == "/dev/null" ||
                   (is_path(value, longest_path) && value.size() > 5 && value.ends_with(".pcap"));
    }
    return false;
}

std::string_view describe(Form form) {
    switch (form) {
        case Form::number: return "a whole number of at most 9 digits";
        case Form::flag: return "0 or 1";
        case Form::yes_no: return "yes or no";
        case Form::mac: return "a MAC like 02:00:00:00:00:01";
        case Form::mac_or_fixed: return "fixed, or a MAC like 02:00:00:00:00:01";
        case Form::role: return "server or client";
        case Form::secret: return "1 to 24 letters, digits, '.', '_' and '-'";
        case Form::interface: return "the name of an interface, 1 to 15 letters, digits, '.', '_', '@' and '-'";
        case Form::socket:
            return "a path of at most 107 octets without , = [ ] ( ) \\ and quotes, that does not begin with '-'";
        case Form::source: return "a path without , = [ ] ( ) \\ and quotes, that does not begin with '-'";
        case Form::target: return "/dev/null, or a path that ends in .pcap, without , = [ ] ( ) \\ and quotes";
    }
    return "";
}

/// `0000:01:00.0`, with or without the domain.
bool is_pci_address(std::string_view name) {
    if (name.size() == 12 && name[4] == ':' && all(name.substr(0, 4), 4, is_hex)) name.remove_prefix(5);
    return name.size() == 7 && is_hex(name[0]) && is_hex(name[1]) && name[2] == ':' &&
           (name[3] == '0' || name[3] == '1') && is_hex(name[4]) && name[5] == '.' && name[6] >= '0' && name[6] <= '7';
}

/// Found by the beginning of the name, as DPDK does; the longest one of several. Empty if there is none.
std::string_view driver_of(std::string_view name) {
    constexpr std::size_t longest_name = 63;  // of a device in DPDK
    if (is_pci_address(name)) return pci;
    std::string_view found;
    if (!all(name, longest_name, is_word)) return found;
    for (const auto driver : drivers) {
        if (name.starts_with(driver) && driver.size() > found.size()) found = driver;
    }
    return found;
}

enum class EalForm : std::uint8_t { nothing, sizes, levels, iova, interrupt, width };

constexpr std::array<std::pair<std::string_view, EalForm>, 11> eal_options{
    {{"--no-pci", EalForm::nothing},
     {"--no-hpet", EalForm::nothing},
     {"--legacy-mem", EalForm::nothing},
     {"--match-allocations", EalForm::nothing},
     {"--single-file-segments", EalForm::nothing},
     {"--log-level", EalForm::levels},
     {"--socket-mem", EalForm::sizes},
     {"--socket-limit", EalForm::sizes},
     {"--iova-mode", EalForm::iova},
     {"--vfio-intr", EalForm::interrupt},
     {"--force-max-simd-bitwidth", EalForm::width}}};

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, value) != words.end();
}

bool are_sizes(std::string_view value) {
    constexpr int most = 8;
    for (int n = 0; n < most; ++n) {
        const auto comma = value.find(',');
        if (!all(value.substr(0, comma), 7, is_digit)) return false;
        if (comma == std::string_view::npos) return true;
        value.remove_prefix(comma + 1);
    }
    return false;
}

bool fits(std::string_view value, EalForm form) {
    constexpr std::size_t longest = 100;
    switch (form) {
        case EalForm::nothing: return value.empty();
        case EalForm::sizes: return are_sizes(value);
        case EalForm::levels:
            return all(value, longest, [](char c) { return is_word(c) || c == '*' || c == ':' || c == ','; });
        case EalForm::iova: return is_one_of(value, {"pa", "va"});
        case EalForm::interrupt: return is_one_of(value, {"legacy", "msi", "msix"});
        case EalForm::width: return is_one_of(value, {"0", "64", "128", "256", "512"});
    }
    return false;
}

std::string shown(std::string_view text) { return fmt::format("\"{}\"", text.substr(0, 80)); }

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> device_arguments(std::string_view device) {
    std::vector<std::pair<std::string_view, std::string_view>> found;
    for (auto comma = device.find(','); comma != std::string_view::npos; comma = device.find(',')) {
        device.remove_prefix(comma + 1);
        const auto argument = device.substr(0, device.find(','));
        const auto equals = std::min(argument.find('='), argument.size());
        found.emplace_back(argument.substr(0, equals), argument.substr(std::min(equals + 1, argument.size())));
    }
    return found;
}

std::string_view driver_of_device(std::string_view device) { return driver_of(device.substr(0, device.find(','))); }

std::optional<Refusal> refuse_device(std::string_view device) {
    const auto name = device.substr(0, device.find(','));
    const auto driver = driver_of(name);
    if (driver.empty()) {
        return Refusal{
            fmt::format("{} is not a device with an allowed driver", shown(name)),
            fmt::format("Use a PCI address, or a name that begins with one of: {}.", fmt::join(drivers, ", "))};
    }
    const auto arguments = device_arguments(device);
    for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
        const auto& [name_of_key, value] = *argument;
        const auto key =
            std::ranges::find_if(keys, [&](const Key& k) { return k.driver == driver && k.name == argument->first; });
        if (key == keys.end()) {
            return Refusal{fmt::format("{} is not an allowed key of {}", shown(name_of_key), driver),
                           "See docs/reference/testbed-file.md for the allowed keys."};
        }
        const bool is_repeatable = key->form == Form::source || key->form == Form::target;  // a file for each queue
        const auto same = [&](const auto& other) { return other.first == argument->first; };
        if (!is_repeatable && std::any_of(arguments.begin(), argument, same)) {
            return Refusal{fmt::format("{} is given twice in {}", name_of_key, shown(device)),
                           "Name it once; drivers take the first, the last or both."};
        }
        if (!fits(value, key->form)) {
            return Refusal{fmt::format("{}={}: {} of {} is {}", name_of_key, shown(value), name_of_key, driver,
                                       describe(key->form)),
                           "Correct it there."};
        }
    }
    for (const auto& [owner, key] : required) {
        if (owner == driver &&
            std::ranges::none_of(arguments, [&](const auto& argument) { return argument.first == key; })) {
            return Refusal{fmt::format("{} lacks {}", name, key), fmt::format("Write {},{}=...", name, key)};
        }
    }
    return std::nullopt;
}

std::optional<Refusal> refuse_eal_arguments(std::span<const std::string> arguments) {
    std::vector<std::string_view> seen;
    for (const std::string_view argument : arguments) {
        const auto equals = std::min(argument.find('='), argument.size());
        const auto name = argument.substr(0, equals);
        const auto option = std::ranges::find_if(eal_options, [&](const auto& known) { return known.first == name; });
        if (option == eal_options.end()) {
            return Refusal{
                fmt::format("{} is refused: it is not among the options of DPDK that are known to be harmless",
                            shown(argument)),
                "Ports are named under ports, CPUs under workers, memory as memory_mb; see "
                "docs/reference/testbed-file.md for what is left."};
        }
        const bool has_value = equals != argument.size();
        if (has_value == (option->second == EalForm::nothing) ||
            !fits(argument.substr(std::min(equals + 1, argument.size())), option->second)) {
            return Refusal{fmt::format("{}: this value does not go with {}", shown(argument), name),
                           "See docs/reference/testbed-file.md for its values."};
        }
        if (std::ranges::find(seen, name) != seen.end())
            return Refusal{fmt::format("{} is given twice", name), "Name it once."};
        seen.push_back(name);
    }
    return std::nullopt;
}

}  // namespace evenhand::port
