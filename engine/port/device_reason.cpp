// SPDX-License-Identifier: Apache-2.0
#include "port/device_reason.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <system_error>
#include <vector>

namespace evenhand::port {
namespace {

namespace fs = std::filesystem;

constexpr std::array dpdk_drivers{std::string_view{"vfio-pci"}, std::string_view{"uio_pci_generic"},
                                  std::string_view{"igb_uio"}};
constexpr std::array sharing_drivers{std::string_view{"mlx4_core"},
                                     std::string_view{"mlx5_core"}};  // the kernel keeps the NIC as well

/// The last component of a link's target; empty if it is not a link.
std::string link_name(const fs::path& link) {
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    return error ? "" : target.filename().string();
}

std::string read_word(const fs::path& file) {
    std::string word;
    std::ifstream{file} >> word;
    return word.starts_with("0x") ? word.substr(2) : word;
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{};
         entry.increment(error))
        found.push_back(entry->path());
    std::ranges::sort(found);
    return found;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

std::string bind_command(std::string_view addresses) {
    return fmt::format("sudo modprobe vfio-pci && sudo dpdk-devbind.py --bind=vfio-pci {}", addresses);
}

}  // namespace

std::string package_of(std::string_view library, const fs::path& plugins) {
    std::string name{library};
    std::ranges::replace(name, '_', '-');
    const std::string folder = plugins.filename().string();  // pmds-23.0
    const auto dash = folder.rfind('-');
    const std::string number =
        dash == std::string::npos ? "" : folder.substr(dash + 1, folder.find('.', dash) - dash - 1);
    if (number.empty()) return name;
    return fmt::format("{}{}{}", name, std::isdigit(static_cast<unsigned char>(name.back())) != 0 ? "-" : "", number);
}

bool has_library(std::string_view library, const fs::path& plugins) {
    std::error_code error;
    if (!fs::is_directory(plugins, error)) return true;
    return std::ranges::any_of(entries(plugins), [&](const fs::path& file) {
        return file.filename().string().starts_with(fmt::format("{}.so", library));
    });
}

std::optional<Refusal> explain_software_port(std::string_view device, const fs::path& plugins) {
    const std::string_view driver = driver_of_device(device);
    const std::string library = fmt::format("librte_{}", driver);
    if (driver.empty() || has_library(library, plugins)) return std::nullopt;
    const std::string package = package_of(library, plugins);
    return Refusal{fmt::format("DPDK's driver {} is not installed", driver),
                   fmt::format("Install its package: sudo apt-get install {}", package)};
}

std::string memif_socket(std::string_view device) {
    std::string socket = "/run/memif.sock";
    for (const auto& [key, value] : device_arguments(device))
        if (key == "socket") socket = value;
    return socket;
}

Refusal explain_memif(std::string_view device) {
    const std::string socket = memif_socket(device);
    std::string_view id = "0";
    bool is_server = false;
    bool is_abstract = true;
    for (const auto& [key, value] : device_arguments(device)) {
        if (key == "id") id = value;
        if (key == "role") is_server = value == "server";
        if (key == "socket-abstract") is_abstract = value == "yes";
    }
    const fs::path folder = fs::path{socket}.parent_path();
    std::error_code error;
    const std::string absent = is_abstract || folder.empty() || fs::is_directory(folder, error)
                                   ? ""
                                   : fmt::format("there is no folder {}", folder.string());
    if (is_server) {
        if (!absent.empty())
            return {fmt::format("no other end can connect to {}: {}", socket, absent),
                    "Make the folder, or name a socket in one that is there."};
        return {fmt::format("no other end has connected to {}", socket),
                fmt::format("Start the DUT: its end needs role=client, id={} and this socket. If the DUT has "
                            "role=server, this end needs role=client.",
                            id)};
    }
    const std::string why = !absent.empty()                              ? fmt::format(": {}", absent)
                            : !is_abstract && !fs::exists(socket, error) ? ": there is no such socket"
                                                                         : "";
    return {fmt::format("no other end listens on {} for id {}{}", socket, id, why),
            "Start the other end first: `evenhand router`, or the DUT with role=server. If the DUT has role=client, "
            "this end needs role=server."};
}

Refusal explain_pci(std::string_view device, const fs::path& root) {
    std::string address{device.substr(0, device.find(','))};
    if (std::ranges::count(address, ':') == 1) address = fmt::format("0000:{}", address);
    std::ranges::transform(address, address.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const fs::path devices = root / "sys/bus/pci/devices";
    const fs::path folder = devices / address;
    std::error_code error;
    if (!fs::exists(folder, error)) return {"there is no such PCI device", "`lspci` lists those that there are."};
    const std::string driver = link_name(folder / "driver");
    const std::string group = link_name(folder / "iommu_group");
    const bool has_iommu =
        !group.empty() || read_word(root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode") == "Y";
    const bool is_shared = is_one_of(driver, sharing_drivers);
    if (!is_shared && !is_one_of(driver, dpdk_drivers)) {
        const std::string bound = driver.empty() ? "it is bound to no driver"
                                                 : fmt::format("it is bound to {}, a driver of the kernel", driver);
        if (!has_iommu) {
            return {fmt::format("{}, and there is no IOMMU, without which vfio-pci takes no device", bound),
                    "Switch on the IOMMU (VT-d, AMD-Vi) in the firmware's set-up and on the kernel's command line; "
                    "`evenhand check` has the words."};
        }
        return {bound, fmt::format("Give it to DPDK, if no cable of it leads to a network that people use: {}",
                                   bind_command(address))};
    }
    if (driver == "vfio-pci" && !group.empty()) {
        std::string others;
        for (const auto& other : entries(folder / "iommu_group/devices")) {
            const std::string other_driver = link_name(devices / other.filename() / "driver");
            constexpr std::string_view bridge = "0604";  // a bridge of the group stays with the kernel
            if (other_driver.empty() || other_driver == "vfio-pci" ||
                read_word(devices / other.filename() / "class").starts_with(bridge))
                continue;
            if (!others.empty()) others += ' ';
            others += other.filename().string();
        }
        if (!others.empty()) {
            return {fmt::format("its IOMMU group {} has devices that the kernel still drives: {}", group, others),
                    fmt::format("Give those to vfio-pci as well, if this machine can do without them: {}",
                                bind_command(others))};
        }
        const fs::path file = root / "dev/vfio" / group;
        if (fs::exists(file, error) && access(file.c_str(), R_OK | W_OK) != 0) {
            return {fmt::format("this user may not open /dev/vfio/{}", group),
                    fmt::format("Run as root, or: sudo chown $USER /dev/vfio/{}", group)};
        }
    }
    return {fmt::format("no driver of DPDK that is installed takes it (PCI id {}:{})", read_word(folder / "vendor"),
                        read_word(folder / "device")),
            "Install the package of its driver; `evenhand check` names it."};
}

std::optional<Refusal> explain_hugepages(unsigned memory_mb, const fs::path& root) {
    constexpr std::uint64_t kilobytes_per_megabyte = 1024;
    constexpr std::string_view folder_prefix = "hugepages-";  // hugepages-2048kB
    const fs::path folder = root / "sys/kernel/mm/hugepages";
    std::uint64_t free_kb = 0;
    std::uint64_t smallest_kb = 0;
    for (const auto& pages : entries(folder)) {
        const std::string name = pages.filename().string();
        if (!name.starts_with(folder_prefix)) continue;
        const std::uint64_t size_kb = std::strtoull(name.c_str() + folder_prefix.size(), nullptr, 10);
        free_kb += size_kb * std::strtoull(read_word(pages / "free_hugepages").c_str(), nullptr, 10);
        smallest_kb = smallest_kb == 0 ? size_kb : std::min(smallest_kb, size_kb);
    }
    const std::uint64_t free_mb = free_kb / kilobytes_per_megabyte;
    if (free_mb >= memory_mb) return std::nullopt;
    if (smallest_kb == 0)
        return Refusal{
            "this kernel has no hugepages",
            "Boot a kernel that has them (CONFIG_HUGETLBFS), or set hugepages to false; then start another engine."};
    const std::uint64_t total = (memory_mb * kilobytes_per_megabyte + smallest_kb - 1) / smallest_kb;
    return Refusal{
        fmt::format("free hugepages hold {} MB, and memory_mb is {}", free_mb, memory_mb),
        fmt::format("Reserve them, then start another engine: echo {} | sudo tee {}/hugepages-{}kB/nr_hugepages", total,
                    folder.string(), smallest_kb)};
}

}  // namespace evenhand::port
