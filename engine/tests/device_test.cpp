// SPDX-License-Identifier: Apache-2.0
// Station 4: which device strings and options of DPDK are allowed, and files that are never overwritten. SEED-80,
// R6815-01.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "fault.hpp"
#include "port/device_argument.hpp"
#include "port/device_files.hpp"
#include "port/device_reason.hpp"
#include "port/device_string.hpp"
#include "port/numa.hpp"

namespace device_test {

using namespace evenhand;
namespace fs = std::filesystem;

namespace {

class Folder {
   public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "evenhand-device-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

   private:
    fs::path path_;
};

void write(const std::string& path, const std::string& text) { std::ofstream{path} << text; }

std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

FaultCode code_of(const std::string& device) {
    try {
        const port::DeviceFiles files{device, "ports.left.device"};
    } catch (const Fault& fault) {
        CHECK(fault.where == "ports.left.device");
        CHECK_FALSE(fault.next.empty());
        return fault.code;
    }
    FAIL("no fault for ", device);
    return FaultCode::internal;
}

}  // namespace

TEST_CASE("devices and options are allowed and refused as the golden lines say (SEED-80, R6815-01)") {
    std::ifstream file{std::string{CONTRACT_FOLDER} + "/golden/devices.jsonl"};
    REQUIRE(file.good());
    int lines = 0;
    for (std::string text; std::getline(file, text); ++lines) {
        CAPTURE(text);
        const auto line = nlohmann::json::parse(text);
        const auto refusal = line.contains("device")
                                 ? port::refuse_device(line["device"].get<std::string>())
                                 : port::refuse_eal_arguments(line["eal"].get<std::vector<std::string>>());
        CHECK(refusal.has_value() != line["is_allowed"].get<bool>());
        if (refusal) {
            CHECK_FALSE(refusal->what.empty());
            CHECK_FALSE(refusal->next.empty());
        }
    }
    CHECK(lines >= 100);
}

TEST_CASE("a refusal names the key and what it may be") {
    CHECK(port::refuse_device("net_null0,size=big")->what ==
          "size=\"big\": size of net_null is a whole number of at most 9 digits");
    CHECK(port::refuse_device("net_af_packet_left")->what == "net_af_packet_left lacks iface");
    CHECK(port::refuse_device("net_tap0,remote=eth0")->what == "\"remote\" is not an allowed key of net_tap");
    CHECK(port::refuse_eal_arguments(std::vector<std::string>{"--vdev=net_null9"})->what.find("--vdev=net_null9") !=
          std::string::npos);
}

TEST_CASE("a capture is a new file, never one that is there, and never what a link leads to") {
    const Folder folder;
    const std::string there = folder / "there.pcap";
    const std::string link = folder / "link.pcap";
    const std::string target = folder / "target";
    write(there, "kept");
    write(target, "kept");
    fs::create_symlink(target, link);
    fs::create_symlink(folder / "nothing", folder / "dangling.pcap");
    for (const auto& path : {there, link, folder / "dangling.pcap"}) {
        CHECK(code_of("net_pcap0,tx_pcap=" + path) == FaultCode::bad_request);
    }
    CHECK(code_of("net_pcap0,tx_pcap=" + (folder / "no/such.pcap")) == FaultCode::no_device);
    CHECK(content(there) == "kept");
    CHECK(content(target) == "kept");
    CHECK_FALSE(fs::exists(folder / "nothing"));

    const std::string made = folder / "made.pcap";
    CHECK(code_of("net_pcap0,tx_pcap=" + made + ",tx_pcap=" + there) == FaultCode::bad_request);
    CHECK_FALSE(fs::exists(made));
}

TEST_CASE("DPDK gets the open file of a capture instead of its name, as long as the port lives") {
    const Folder folder;
    const std::string path = folder / "a.pcap";
    port::DeviceFiles files{"net_pcap_left,rx_pcap=in.pcap,tx_pcap=" + path + ",infinite_rx=1", ""};
    const std::string device = files.device();
    const std::string name =
        device.substr(device.find("/proc/self/fd/"), device.find(",infinite_rx") - device.find("/proc/self/fd/"));
    CHECK(device == "net_pcap_left,rx_pcap=in.pcap,tx_pcap=" + name + ",infinite_rx=1");
    fs::rename(path, folder / "b.pcap");
    write(path, "another's");
    write(name, "ours");
    CHECK(content(folder / "b.pcap") == "ours");
    CHECK(content(path) == "another's");
    files = port::DeviceFiles{"net_pcap0,tx_pcap=/dev/null", ""};
    CHECK(files.device() == "net_pcap0,tx_pcap=/dev/null");
    CHECK_FALSE(fs::exists(name));
}

TEST_CASE("what a port takes for a socket is one, or is not there yet") {
    const Folder folder;
    const std::string file = folder / "file";
    const std::string socket_path = folder / "socket";
    write(file, "kept");
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    close(fd);
    CHECK(code_of("net_memif0,role=server,socket=" + file + ",socket-abstract=no") == FaultCode::bad_request);
    CHECK(code_of("net_vhost0,iface=" + file) == FaultCode::bad_request);
    CHECK(code_of("net_virtio_user0,path=/dev/null") == FaultCode::bad_request);
    for (const auto& device :
         {"net_memif0,socket=" + file, "net_memif0,socket-abstract=no,socket=" + socket_path,
          "net_vhost0,iface=" + (folder / "new"), "net_virtio_user0,path=" + socket_path, std::string{"net_ring0"}}) {
        CHECK(port::DeviceFiles{device, ""}.device() == device);
    }
}

TEST_CASE("a port says how many frames its ring holds, and how large a frame may be (R8219-01)") {
    CHECK(port::software_ring_frames("net_memif", "net_memif0,rsize=11") == 2048U);
    CHECK(port::software_ring_frames("net_memif", "net_memif0") == 1024U);
    CHECK(port::largest_octets("net_memif", "net_memif0") == 2048U);
    CHECK(port::largest_octets("net_memif", "net_memif0,rsize=11,bsize=9216") == 9216U);
    CHECK(port::largest_octets("net_ring", "net_ring0") == std::nullopt);
    CHECK(port::largest_octets("net_af_packet", "net_af_packet0,iface=eth0") == 1968U);
    CHECK(port::largest_octets("net_af_packet", "net_af_packet0,iface=eth0,blocksz=12288,framesz=12288") == 12208U);
    CHECK(port::largest_octets("net_af_xdp", "net_af_xdp0,iface=eth0") == 3456U);
    CHECK(port::receive_room("net_ring", "net_ring0", 9212) == 9212U);
    CHECK(port::receive_room("net_af_xdp", "net_af_xdp0,iface=eth0", 2044) == 2044U + 256);
    CHECK(port::receive_room("net_af_packet", "net_af_packet0,iface=eth0,framesz=12288", 9212) == 12288U);
}

TEST_CASE("a queue for control frames is taken only where it leads to the same wire") {
    CHECK(port::takes_control_queue("net_ice", "0000:01:00.0"));
    CHECK(port::takes_control_queue("net_e1000_igb", "0000:01:00.0"));
    CHECK(port::takes_control_queue("net_null", "net_null0,no-rx=1"));
    CHECK_FALSE(port::takes_control_queue("net_virtio", "0000:01:00.0"));
    for (const char* const driver : {"net_memif", "net_ring", "net_tap", "net_af_packet", "net_af_xdp", "net_pcap"})
        CHECK_FALSE(port::takes_control_queue(driver, std::string{driver} + "0"));
}

TEST_CASE("virtio is received from on as many queues as it is sent on, whatever was asked for") {
    CHECK(port::receives_on_pairs("net_virtio", "0000:01:00.0"));
    CHECK_FALSE(port::receives_on_pairs("net_virtio_user", "net_virtio_user0,path=/dev/vhost-net"));
    CHECK_FALSE(port::receives_on_pairs("net_vmxnet3", "0000:01:00.0"));
}

TEST_CASE("a CPU's NUMA node is the one that the kernel links it to, if there is one") {
    const Folder root;
    fs::create_directories(fs::path{root / ""} / "sys/devices/system/cpu/cpu3/node12");
    fs::create_directories(fs::path{root / ""} / "sys/devices/system/cpu/cpu4/node");
    CHECK(port::node_of_cpu(3, root / "") == 12U);
    CHECK(port::node_of_cpu(4, root / "") == std::nullopt);
    CHECK(port::node_of_cpu(5, root / "") == std::nullopt);
}

TEST_CASE("a NIC's buffers hold a whole frame in the units of its driver: it would be spread over several, and lost") {
    CHECK(port::receive_room("net_ixgbe", "0000:01:00.0", 9014) == 9216U);
    CHECK(port::receive_room("net_ixgbe", "0000:01:00.0", 1020) == 2048U);
    CHECK(port::receive_room("net_e1000_em", "0000:01:00.0", 9014) == 16384U);
    CHECK(port::receive_room("net_e1000_em", "0000:01:00.0", 4000) == 4096U);
}

namespace {

/// A PCI network device as /sys shows it.
void add_pci(const Folder& root, const std::string& address, const std::string& driver, const std::string& group) {
    const fs::path base = root / "";
    const fs::path device = base / "sys/bus/pci/devices" / address;
    fs::create_directories(device);
    write((device / "vendor").string(), "0x8086\n");
    write((device / "device").string(), "0x10d3\n");
    write((device / "class").string(), "0x020000\n");
    if (!driver.empty()) fs::create_symlink("../../../../bus/pci/drivers/" + driver, device / "driver");
    if (group.empty()) return;
    fs::create_directories(base / "sys/kernel/iommu_groups" / group / "devices" / address);
    fs::create_directory_symlink(base / "sys/kernel/iommu_groups" / group, device / "iommu_group");
}

bool says(const port::Refusal& refusal, const std::string& what, const std::string& next) {
    INFO(refusal.what, " / ", refusal.next);
    const bool is_so = refusal.what.find(what) != std::string::npos && refusal.next.find(next) != std::string::npos;
    CHECK(is_so);
    return is_so;
}

}  // namespace

TEST_CASE("a PCI device that does not open says why, with the command that helps") {
    const Folder root;
    const fs::path base = root / "";
    add_pci(root, "0000:01:00.0", "ixgbe", "5");
    add_pci(root, "0000:01:00.1", "", "6");
    add_pci(root, "0000:02:00.0", "ixgbe", "");
    add_pci(root, "0000:03:00.0", "vfio-pci", "7");
    add_pci(root, "0000:04:00.0", "vfio-pci", "8");
    add_pci(root, "0000:04:00.1", "ixgbe", "8");
    says(port::explain_pci("0000:09:00.0", base), "no such PCI device", "lspci");
    says(port::explain_pci("0000:01:00.0", base), "bound to ixgbe, a driver of the kernel",
         "dpdk-devbind.py --bind=vfio-pci 0000:01:00.0");
    says(port::explain_pci("01:00.1", base), "bound to no driver", "--bind=vfio-pci 0000:01:00.1");
    says(port::explain_pci("0000:02:00.0", base), "there is no IOMMU", "Switch on the IOMMU");
    says(port::explain_pci("0000:03:00.0,safe-mode-support=1", base),
         "no driver of DPDK that is installed takes it (PCI id 8086:10d3)", "evenhand check");
    says(port::explain_pci("0000:04:00.0", base),
         "IOMMU group 8 has devices that the kernel still drives: 0000:04:00.1", "--bind=vfio-pci 0000:04:00.1");
}

TEST_CASE("without an IOMMU the kernel's mode that does without is enough") {
    const Folder root;
    const fs::path base = root / "";
    add_pci(root, "0000:02:00.0", "ixgbe", "");
    fs::create_directories(base / "sys/module/vfio/parameters");
    write((base / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode").string(), "Y\n");
    says(port::explain_pci("0000:02:00.0", base), "bound to ixgbe", "--bind=vfio-pci 0000:02:00.0");
}

TEST_CASE("too few hugepages are told in megabytes, with the command that reserves enough") {
    const Folder root;
    const fs::path base = root / "";
    CHECK(port::explain_hugepages(512, base)->what == "this kernel has no hugepages");
    const fs::path pages = base / "sys/kernel/mm/hugepages/hugepages-2048kB";
    fs::create_directories(pages);
    fs::create_directories(base / "sys/kernel/mm/hugepages/hugepages-1048576kB");
    write((base / "sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages").string(), "0\n");
    write((pages / "free_hugepages").string(), "100\n");
    says(*port::explain_hugepages(512, base), "hold 200 MB, and memory_mb is 512", "echo 256 | sudo tee");
    write((pages / "free_hugepages").string(), "256\n");
    CHECK_FALSE(port::explain_hugepages(512, base));
}

TEST_CASE("a driver of DPDK that is missing is named with its Debian package") {
    const Folder root;
    const fs::path plugins = root / "pmds-23.0";
    CHECK(port::package_of("librte_net_e1000", plugins) == "librte-net-e1000-23");
    CHECK(port::package_of("librte_mempool_ring", "/usr/lib/dpdk/pmds-25.0") == "librte-mempool-ring25");
    CHECK(port::package_of("librte_net_memif", "/opt/dpdk/drivers") == "librte-net-memif");
    CHECK(port::has_library("librte_net_memif", plugins));  // no such folder: nothing is known
    fs::create_directories(plugins);
    write((plugins / "librte_net_null.so.23").string(), "");
    CHECK(port::has_library("librte_net_null", plugins));
    CHECK_FALSE(port::explain_software_port("net_null0", plugins));
    const auto reason = port::explain_software_port("net_af_packet0,iface=eth0", plugins);
    REQUIRE(reason);
    says(*reason, "DPDK's driver net_af_packet is not installed", "sudo apt-get install librte-net-af-packet23");
}

TEST_CASE("a memif without another end says who is missing, and what to do") {
    const Folder folder;
    const std::string path = folder / "dut.sock";
    const std::string next =
        "Start the other end first: `evenhand router`, or the DUT with role=server. If the DUT has role=client, this "
        "end needs role=server.";
    const std::string file = "net_memif0,socket-abstract=no,id=3,socket=";
    says(port::explain_memif(file + path), "no other end listens on " + path + " for id 3: there is no such socket",
         next);
    says(port::explain_memif(file + path + "/x,role=client"),
         "no other end listens on " + path + "/x for id 3: there is no folder " + path, next);
    write(path, "");
    says(port::explain_memif(file + path + ",role=client"), "no other end listens on " + path + " for id 3", next);
    says(port::explain_memif("net_memif0,socket=" + (folder / "none")),
         "no other end listens on " + (folder / "none") + " for id 0", next);
    says(port::explain_memif("net_memif0"), "no other end listens on /run/memif.sock for id 0", next);
    says(port::explain_memif(file + path + ",role=server"), "no other end has connected to " + path,
         "Start the DUT: its end needs role=client, id=3 and this socket. If the DUT has role=server, this end needs "
         "role=client.");
    says(port::explain_memif(file + path + "/x,role=server"),
         "no other end can connect to " + path + "/x: there is no folder " + path,
         "Make the folder, or name a socket in one that is there.");
}

}  // namespace device_test
