// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_port.hpp"

#include <fmt/format.h>
#include <rte_alarm.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "frame/vlan.hpp"
#include "port/device_argument.hpp"
#include "port/device_reason.hpp"
#include "port/dpdk_host.hpp"
#include "port/extended_counters.hpp"

namespace evenhand::port {
namespace {

using namespace std::chrono_literals;

constexpr unsigned pool_cache = 256;
constexpr unsigned least_receive_buffers = 16383;  // net_af_xdp wants some 8k for its rings alone
constexpr unsigned least_transmit_buffers = 8191;
constexpr unsigned answer_ring_frames =
    4096;  // a receiver takes 64 questions a turn, and answers leave every few turns

/// What a driver that neither follows the number of descriptors nor tells its own has at the least: QEMU's virtio has
/// 256 entries.
constexpr unsigned least_plausible_ring_frames = 256;

/// Of a buffer for sending, with its headroom: no larger than its frame needs. Without hugepages DPDK lets no buffer
/// cross a page, so one of 2 KB has a page to itself, and the 32 frames of a burst begin 4096 octets apart: all in the
/// same 8 or 12 lines of the first cache. Small buffers lie side by side in other lines: a core drew, wrote and sent a
/// frame of 64 octets in 15.3 ns, and then in 11.5 (Xeon, net_null).
std::uint16_t transmit_buffer_octets(unsigned largest_frame_octets) {
    if (largest_frame_octets == 0) return RTE_MBUF_DEFAULT_BUF_SIZE;
    return static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM +
                                      RTE_ALIGN_CEIL(largest_frame_octets, unsigned{RTE_CACHE_LINE_SIZE}));
}

/// The same for receiving; none smaller than usual, since a DUT may send anything. `room` is that behind the headroom.
std::uint16_t receive_buffer_octets(std::size_t room) {
    constexpr std::size_t most_room =
        65'000;  // a buffer's length has 16 bits; what wants more is refused by its driver
    return static_cast<std::uint16_t>(std::max<std::size_t>(
        RTE_MBUF_DEFAULT_BUF_SIZE,
        RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(std::min(room, most_room), std::size_t{RTE_CACHE_LINE_SIZE})));
}

[[noreturn]] void refuse(const PortOptions& options, int error, const std::string& what, const std::string& next) {
    // Drivers return -1 for want of a better number, which reads as EPERM: believe it only where it can be true.
    const int code = (error < 0 ? -error : error) == EPERM && geteuid() == 0 ? 0 : std::abs(error);
    const bool denied = code == EPERM || code == EACCES;
    throw Fault{denied ? FaultCode::no_permission : FaultCode::no_device,
                fmt::format("{}: {} ({})", options.device, what, code == 0 ? "no reason given" : rte_strerror(code)),
                options.where, denied ? "Run as root, or give the program the rights that the device needs." : next};
}

[[noreturn]] void refuse_frames(const PortOptions& options, std::size_t octets, std::size_t largest_mtu,
                                const std::string& next) {
    constexpr std::size_t around = frame::ethernet_octets + frame::fcs_octets;
    throw Fault{FaultCode::bad_frame_size,
                fmt::format("{}: a frame of {} octets; this port takes {} at the most", options.device,
                            octets + frame::fcs_octets, largest_mtu + around),
                options.where, next};
}

class Deadline {
   public:
    explicit Deadline(double seconds)
        : at_{std::chrono::steady_clock::now() +
              std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>{seconds})} {
    }
    [[nodiscard]] bool has_passed() const { return std::chrono::steady_clock::now() > at_; }

   private:
    std::chrono::steady_clock::time_point at_;
};

/// Returns when DPDK's interrupt thread has done what it had to do. No call tells that, but the thread also runs
/// alarms, and what was ready before an alarm was set is done in the same round as the alarm or before, thus before the
/// next alarm. Several rounds, since one socket that is closed makes the other end's ready.
void wait_for_interrupt_thread() {
    constexpr int rounds = 5;
    constexpr std::uint64_t round_us = 2000;
    constexpr auto patience = 2s;  // of a machine that lets the thread wait; longer than any stall that was seen
    for (int round = 0; round < rounds; ++round) {
        std::atomic<bool> has_run{false};
        const auto run = [](void* flag) {
            static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_release);
        };
        if (rte_eal_alarm_set(round_us, run, &has_run) != 0) {
            std::this_thread::sleep_for(20ms);
            continue;
        }
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (!has_run.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < give_up)
            std::this_thread::sleep_for(200us);
        (void)rte_eal_alarm_cancel(run, &has_run);  // also waits for one that is running: it must not see the flag go
    }
}

/// Where DPDK loads its drivers from.
constexpr std::string_view plugins = RTE_EAL_PMD_PATH;

/// DPDK loads the driver of its pools as a plug-in, from a package of its own; without it every pool is "out of
/// memory".
void require_pool_driver() {
    constexpr std::string_view usual = RTE_MBUF_DEFAULT_MEMPOOL_OPS;
    for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; ++i) {
        if (rte_mempool_ops_table.ops[i].name == usual) return;
    }
    throw Fault{
        FaultCode::no_device, fmt::format("DPDK's driver of buffer pools, {}, is not installed", usual), "host",
        fmt::format("Install its package: sudo apt-get install {}", package_of("librte_mempool_ring", plugins))};
}

/// A memif without another end. `when` ends the sentence.
[[noreturn]] void refuse_memif(const PortOptions& options, const std::string& when = "") {
    const auto reason = explain_memif(options.device);
    throw Fault{FaultCode::no_device, fmt::format("{}: {}{}", options.device, reason.what, when), options.where,
                reason.next};
}

/// A device that DPDK did not open: why, as far as the host tells.
[[noreturn]] void refuse_unopened(const PortOptions& options, int result) {
    const auto reason = is_pci_device(options.device) ? std::optional{explain_pci(options.device)}
                                                      : explain_software_port(options.device, plugins);
    if (!reason && result == -EINVAL && options.device.starts_with("net_memif")) refuse_memif(options);
    if (!reason) refuse(options, result, "the device does not open", "Check the device string.");
    throw Fault{FaultCode::no_device, fmt::format("{}: {}", options.device, reason->what), options.where, reason->next};
}

void require(const PortOptions& options, int result, const std::string& what) {
    if (result < 0) refuse(options, result, what, "Try another kind of port; the engine's stderr may say more.");
}

/// 0 or an error number below. A software port is made by its bus, which takes arguments of any length: rte_dev_probe
/// of DPDK 24.11 refuses more than 127 octets, and two paths are longer.
int attach(const std::string& device) {
    if (!device.starts_with("net_")) return rte_dev_probe(device.c_str());
    const auto comma = std::min(device.find(','), device.size());
    const std::string name = device.substr(0, comma);
    const std::string arguments = comma == device.size() ? "" : device.substr(comma + 1);
    return std::min(
        0, rte_vdev_init(name.c_str(),
                         arguments.c_str()));  // above 0: no driver has this name; the caller finds no port then
}

}  // namespace

DpdkPort::DpdkPort(PortOptions options, const std::function<void(std::span<std::byte>)>& fill_buffer)
    : options_{std::move(options)} {
    try {
        probe();
        configure();
        let_large_frames_in();
        make_pools(fill_buffer);
        start();
    } catch (...) {
        close();
        throw;
    }
}

DpdkPort::~DpdkPort() { close(); }

void DpdkPort::probe() {
    const std::string name = options_.device.substr(0, options_.device.find(','));
    if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
        rte_errno = 0;
        files_ = DeviceFiles{options_.device, options_.where};
        const int result = attach(files_.device());
        if (result != 0 || rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
            id_ = RTE_MAX_ETHPORTS;
            files_.remove();
            refuse_unopened(options_, result);
        }
    }
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not tell what it is");
    driver_ = info.driver_name;
    if (options_.receive_queues > info.max_rx_queues || options_.transmit_queues > info.max_tx_queues) {
        throw Fault{
            FaultCode::bad_request,
            fmt::format("{}: {} receive and {} transmit queues; the device has {} and {}", options_.device,
                        options_.receive_queues, options_.transmit_queues, info.max_rx_queues, info.max_tx_queues),
            "workers", "Use fewer streams or receivers on this side."};
    }
}

void DpdkPort::configure() {
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not tell what it is");
    // Not asked of the device: a stamp in units of its own clock is none until that clock is held against ours, which
    // no port here has.
    hardware_stamps_ = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0 ? "unused" : "none";
    rte_eth_conf conf{};
    if (options_.receive_queues > 1) {
        conf.rx_adv_conf.rss_conf.rss_hf = (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
        // A device without such a hash refuses the mode (virtio of QEMU); it has a rule of its own that spreads over
        // its queues.
        if (conf.rx_adv_conf.rss_conf.rss_hf != 0) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    }
    const auto receive_queues = static_cast<std::uint16_t>(options_.receive_queues);
    const auto transmit_queues = static_cast<std::uint16_t>(options_.transmit_queues);
    require(options_, rte_eth_dev_configure(id_, receive_queues, transmit_queues, &conf),
            "the device cannot be configured");
}

/// A port that has an MTU of its own is given one; an interface of the kernel keeps what its host gave it, and so must
/// others be asked for.
void DpdkPort::let_large_frames_in() const {
    const std::size_t octets = std::max(options_.largest_receive_octets, options_.largest_transmit_octets);
    if (const auto largest = largest_octets(driver_, options_.device); largest && octets > *largest) {
        const char* const next = driver_ == "net_af_packet" ? "Raise framesz and blocksz of the device."
                                 : driver_ == "net_memif"
                                     ? "Raise bsize of the device, at both ends: a frame must fit into one buffer."
                                     : "Use smaller frames, or another kind of port.";
        refuse_frames(options_, octets, *largest - frame::ethernet_octets, next);
    }
    const std::string interface = interface_of(options_.device);
    const bool is_of_kernel = !interface.empty() && driver_ != "net_tap";  // that makes its interface itself
    // The kernel lets a frame be longer by one tag of 802.1Q, and no other.
    const std::size_t tags = is_of_kernel && options_.tag_octets != frame::vlan_tag_octets ? 0 : options_.tag_octets;
    if (octets <= frame::largest_usual_frame_size - frame::fcs_octets + tags) return;
    const auto mtu = static_cast<std::uint16_t>(octets - frame::ethernet_octets - tags);
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not tell what it is");
    const auto take_at_most = [&](std::size_t largest_mtu, const std::string& next) {
        if (mtu > largest_mtu) refuse_frames(options_, octets, largest_mtu + tags, next);
    };
    if (is_of_kernel) {
        take_at_most(info.max_mtu, "Use smaller frames, or another kind of port.");
        std::size_t kernel_mtu = mtu;
        std::ifstream{"/sys/class/net/" + interface + "/mtu"} >> kernel_mtu;
        take_at_most(
            kernel_mtu,
            fmt::format("Give the interface room for them, and its neighbours as well: ip link set dev {} mtu {}",
                        interface, mtu));
        return;
    }
    const int result = rte_eth_dev_set_mtu(id_, mtu);
    if (result == 0 || (result == -ENOTSUP && !is_pci_device(options_.device))) return;
    take_at_most(info.max_mtu, "Use smaller frames, or another port.");
    refuse(options_, result, fmt::format("the device does not take an MTU of {}", mtu),
           "Use smaller frames, or another port.");
}

void DpdkPort::make_pools(const std::function<void(std::span<std::byte>)>& fill_buffer) {
    // Near the device, which reads and writes them; wherever there is room if it does not say where it is
    // (SOCKET_ID_ANY).
    const int socket = rte_eth_dev_socket_id(id_);
    const auto make = [this, socket](const std::string& name, unsigned buffers,
                                     std::uint16_t buffer_octets = RTE_MBUF_DEFAULT_BUF_SIZE) {
        rte_mempool* pool = rte_pktmbuf_pool_create(name.c_str(), buffers, pool_cache, 0, buffer_octets, socket);
        // Memory may have been reserved on another node only: slower, but it works.
        if (pool == nullptr && socket != SOCKET_ID_ANY)
            pool = rte_pktmbuf_pool_create(name.c_str(), buffers, pool_cache, 0, buffer_octets, SOCKET_ID_ANY);
        if (pool == nullptr) {
            require_pool_driver();
            throw Fault{FaultCode::no_memory,
                        fmt::format("no memory for {} frame buffers of {} ({})", buffers, options_.device,
                                    rte_strerror(rte_errno)),
                        "host.memory_mb", "Raise memory_mb, or lower the ring sizes."};
        }
        return pool;
    };
    receive_pool_ =
        make(fmt::format("receive-{}", id_),
             std::max(least_receive_buffers, 4 * options_.receive_queues * options_.receive_ring_frames - 1) +
                 options_.extra_receive_buffers,
             receive_buffer_octets(receive_room(driver_, options_.device, options_.largest_receive_octets)));
    answer_pool_ = make(fmt::format("answer-{}", id_), 2 * answer_ring_frames - 1);
    for (unsigned queue = 0; queue < options_.transmit_queues; ++queue) {
        transmit_pools_.push_back(make(fmt::format("transmit-{}-{}", id_, queue),
                                       std::max(least_transmit_buffers, 2 * options_.transmit_ring_frames - 1),
                                       transmit_buffer_octets(options_.largest_transmit_octets)));
        // The constant octets are written once; what a buffer lacks then is written by the frame source
        // (frame/source.hpp).
        rte_mempool_obj_iter(
            transmit_pools_.back(),
            [](rte_mempool*, void* fill, void* object, unsigned) {
                auto* const buffer = static_cast<rte_mbuf*>(object);
                rte_pktmbuf_reset(buffer);
                (*static_cast<const std::function<void(std::span<std::byte>)>*>(fill))({octets(buffer), room(buffer)});
            },
            const_cast<std::function<void(std::span<std::byte>)>*>(&fill_buffer));
    }
    answers_ =
        rte_ring_create(fmt::format("answers-{}", id_).c_str(), answer_ring_frames, SOCKET_ID_ANY, RING_F_SC_DEQ);
    if (answers_ == nullptr)
        throw Fault{FaultCode::no_memory, "no memory for the ring of answers", "host.memory_mb", "Raise memory_mb."};
}

void DpdkPort::start() {
    const auto receive_queues = static_cast<std::uint16_t>(options_.receive_queues);
    const auto transmit_queues = static_cast<std::uint16_t>(options_.transmit_queues);
    auto receive_descriptors = static_cast<std::uint16_t>(options_.receive_ring_frames);
    auto transmit_descriptors = static_cast<std::uint16_t>(options_.transmit_ring_frames);
    require(options_, rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive_descriptors, &transmit_descriptors),
            "the ring sizes do not suit the device");
    const auto socket = static_cast<unsigned>(std::max(0, rte_eth_dev_socket_id(id_)));
    for (std::uint16_t queue = 0; queue < receive_queues; ++queue) {
        require(options_, rte_eth_rx_queue_setup(id_, queue, receive_descriptors, socket, nullptr, receive_pool_),
                fmt::format("receive queue {} cannot be set up", queue));
    }
    for (std::uint16_t queue = 0; queue < transmit_queues; ++queue) {
        require(options_, rte_eth_tx_queue_setup(id_, queue, transmit_descriptors, socket, nullptr),
                fmt::format("transmit queue {} cannot be set up", queue));
    }
    start_device();
    started_ = true;
    hear_everything();
    kernel_interface_ = interface_of(options_.device);
    switch_flow_control_off();
    find_extended_counters();
    const auto of_software = software_ring_frames(driver_, options_.device);
    transmit_ring_frames_ = of_software.value_or(transmit_descriptors);
    rte_eth_rxq_info queue_info{};
    if (of_software) {
        receive_ring_frames_ = *of_software;
        receive_ring_source_ = "device";
    } else if (rte_eth_rx_queue_info_get(id_, 0, &queue_info) == 0 && queue_info.nb_desc != 0) {
        receive_ring_frames_ = queue_info.nb_desc;
        // It would spread such a frame over several buffers, which no receiver here puts together again.
        if (queue_info.scattered_rx != 0 && queue_info.rx_buf_size != 0 &&
            queue_info.rx_buf_size < options_.largest_receive_octets) {
            refuse_frames(options_, options_.largest_receive_octets, queue_info.rx_buf_size - frame::ethernet_octets,
                          "Use smaller frames, or another port.");
        }
    } else if (driver_ == "net_af_xdp") {
        receive_ring_frames_ = receive_descriptors;  // it makes the ring as it is told
    } else {
        receive_ring_frames_ = std::min<unsigned>(receive_descriptors, least_plausible_ring_frames);
        receive_ring_source_ = "assumed";
    }
}

/// Solicitations come to 256 multicast groups, and the tester's MAC may be another than the port's. Software ports have
/// no such mode, and hear everything anyway.
void DpdkPort::hear_everything() const {
    const int result = rte_eth_promiscuous_enable(id_);
    if (result == 0 || (result == -ENOTSUP && !is_pci_device(options_.device))) return;
    refuse(options_, result,
           "promiscuous mode cannot be switched on, so questions to hosts of the tester would not be heard",
           "Use another port, or allow it where a hypervisor forbids it (`trust on` for a virtual function).");
}

/// With it a full ring of ours would stop the DUT, which then drops; and a full DUT would stop us (R2544-39). Ports
/// without it answer ENOTSUP.
void DpdkPort::switch_flow_control_off() {
    rte_eth_fc_conf conf{};
    if (rte_eth_dev_flow_ctrl_get(id_, &conf) != 0) {
        // A NIC has flow control, whether its driver tells or not; so has one behind an interface of the kernel.
        const bool is_nic =
            is_pci_device(options_.device) ||
            (!kernel_interface_.empty() && std::filesystem::exists("/sys/class/net/" + kernel_interface_ + "/device"));
        if (is_nic) flow_control_ = "unknown";
        return;
    }
    if (conf.mode != RTE_ETH_FC_NONE) {
        conf.mode = RTE_ETH_FC_NONE;
        (void)rte_eth_dev_flow_ctrl_set(id_, &conf);
        if (rte_eth_dev_flow_ctrl_get(id_, &conf) != 0) conf.mode = RTE_ETH_FC_FULL;
    }
    flow_control_ = conf.mode == RTE_ETH_FC_NONE ? "off" : "on";
}

void DpdkPort::find_extended_counters() {
    const int count = rte_eth_xstats_get_names(id_, nullptr, 0);
    if (count <= 0) return;
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    if (rte_eth_xstats_get_names(id_, names.data(), static_cast<unsigned>(count)) != count) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name{static_cast<const char*>(names[i].name)};
        if (is_pause_counter(name)) {
            pause_counters_.push_back(i);
        } else if (is_hidden_drop_counter(name)) {
            drop_counters_.push_back(i);
            drop_names_.push_back(name);
        }
    }
}

/// Nothing if there are none, or the driver does not tell.
std::vector<std::uint64_t> DpdkPort::extended(const std::vector<std::uint64_t>& ids) const {
    std::vector<std::uint64_t> values(ids.size());
    const auto count = static_cast<int>(values.size());
    if (count == 0 || rte_eth_xstats_get_by_id(id_, ids.data(), values.data(), static_cast<unsigned>(count)) != count)
        return {};
    return values;
}

bool DpdkPort::counts_exactly() const noexcept { return tells_each_frame(driver_); }

double DpdkPort::link_timeout_s() const {
    constexpr double of_nics_s = 30;
    constexpr double of_others_s = 10;
    return options_.link_timeout_s.value_or(is_pci_device(options_.device) ? of_nics_s : of_others_s);
}

/// As the kernel counts them, so that nothing between two looks is missed; 0 where there is no such interface.
std::uint64_t DpdkPort::kernel_carrier_changes() const {
    std::uint64_t changes = 0;
    if (!kernel_interface_.empty())
        std::ifstream{"/sys/class/net/" + kernel_interface_ + "/carrier_changes"} >> changes;
    return changes;
}

void DpdkPort::keep_watch() noexcept {
    constexpr unsigned watches_between_counters = 50;
    const bool is_up = is_link_up();
    link_changes_ += static_cast<std::uint64_t>(is_up != link_was_up_);
    link_was_up_ = is_up;
    rte_eth_stats stats{};
    if (++watches_ % watches_between_counters == 0) (void)rte_eth_stats_get(id_, &stats);
}

void DpdkPort::start_device() const {
    const Deadline deadline{link_timeout_s()};
    int result = rte_eth_dev_start(id_);
    while (result != 0 && driver_ == "net_memif" && !deadline.has_passed()) {
        std::this_thread::sleep_for(100ms);
        result = rte_eth_dev_start(id_);
    }
    if (result != 0 && driver_ == "net_memif") refuse_memif(options_);
    if (result != 0)
        refuse(options_, result, "the device cannot be started",
               "Try another kind of port; the engine's stderr may say more.");
}

void DpdkPort::wait_for_link() {
    const Deadline deadline{link_timeout_s()};
    for (int tries = 1; !is_link_up(); ++tries) {
        if (deadline.has_passed()) {
            if (driver_ == "net_memif") refuse_memif(options_, fmt::format(", within {} s", link_timeout_s()));
            refuse(options_, ENOLINK, fmt::format("no link within {} s", link_timeout_s()),
                   "Check the cable, and that the other end is up; if its link takes longer, raise link_timeout.");
        }
        std::this_thread::sleep_for(10ms);
        // A memif client connects when it is started and only then: a server that was not ready yet has sent it away.
        constexpr int tries_a_second = 100;
        if (tries % tries_a_second == 0 && driver_ == "net_memif" &&
            options_.device.find("role=client") != std::string::npos) {
            (void)rte_eth_dev_stop(id_);
            start_device();
        }
    }
    link_was_up_ = true;  // that it came up is no change in the first trial
    if (std::string_view{flow_control_} == "on")
        switch_flow_control_off();  // some drivers agree on it with the other end only when the link comes up
}

plan::MacAddress DpdkPort::mac() const {
    rte_ether_addr address{};
    rte_eth_macaddr_get(id_, &address);
    plan::MacAddress mac;
    std::copy_n(std::begin(address.addr_bytes), mac.size(), mac.begin());
    return mac;
}

bool DpdkPort::is_link_up() const {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::optional<double> DpdkPort::line_rate_bps() const {
    rte_eth_link link{};
    constexpr double bits_per_megabit = 1e6;
    if (!is_pci_device(options_.device) || rte_eth_link_get_nowait(id_, &link) != 0 ||
        link.link_speed == RTE_ETH_SPEED_NUM_NONE || link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN) {
        return std::nullopt;
    }
    return bits_per_megabit * link.link_speed;
}

tally::PortCounters DpdkPort::counters() const {
    rte_eth_stats stats{};
    const bool is_read = rte_eth_stats_get(id_, &stats) == 0;
    const auto pauses = extended(pause_counters_);
    const auto drops = extended(drop_counters_);
    std::vector<tally::NamedCount> hidden_drops;
    hidden_drops.reserve(drops.size());
    for (std::size_t i = 0; i < drops.size(); ++i) hidden_drops.push_back({.name = drop_names_[i], .frames = drops[i]});
    return {.received_frames = stats.ipackets,
            .transmitted_frames = stats.opackets,
            .missed_frames = stats.imissed,
            .receive_errors = stats.ierrors,
            .transmit_errors = stats.oerrors,
            .no_buffer_frames = stats.rx_nombuf,
            .link_changes = link_changes_ + kernel_carrier_changes(),
            .pause_frames = std::accumulate(pauses.begin(), pauses.end(), std::uint64_t{0}),
            .counts_pause = !pauses.empty(),
            .hidden_drops = std::move(hidden_drops),
            .dropped_answers = dropped_answers(),
            .link_up = is_link_up(),
            .is_read = is_read};
}

unsigned DpdkPort::send_answers() noexcept {
    unsigned total = 0;
    // Bounded, so that test frames are not kept waiting: a burst of answers takes about as long as a burst of them.
    constexpr int most_bursts = 4;
    for (int burst = 0; burst < most_bursts; ++burst) {
        if (held_answers_ == 0)
            held_answers_ =
                rte_ring_dequeue_burst(answers_, reinterpret_cast<void**>(answer_burst_.data()), answer_burst, nullptr);
        const unsigned sent = send(0, answer_burst_.data(), held_answers_);
        total += sent;
        held_answers_ -= sent;
        // What the device does not take now stays here, and in the ring behind it, until the next flush.
        std::copy_n(answer_burst_.begin() + sent, held_answers_, answer_burst_.begin());
        if (held_answers_ != 0 || rte_ring_empty(answers_) != 0) break;
    }
    return total;
}

void DpdkPort::send_control(const std::function<std::size_t(std::span<std::byte>)>& write) {
    rte_mbuf* frame = rte_pktmbuf_alloc(answer_pool_);
    if (frame == nullptr) return;
    set_length(frame, write({octets(frame), room(frame)}));
    if (send(0, &frame, 1) == 0) rte_pktmbuf_free(frame);
}

void DpdkPort::close() noexcept {
    if (id_ != RTE_MAX_ETHPORTS) {
        rte_eth_dev_info info{};
        rte_device* const device = rte_eth_dev_info_get(id_, &info) == 0 ? info.device : nullptr;
        // memif takes its sockets down in DPDK's interrupt thread, a moment after the call, from memory that the next
        // step frees: a busy machine was seen to crash there.
        const auto settle = [this] {
            if (driver_ == "net_memif") wait_for_interrupt_thread();
        };
        if (started_) (void)rte_eth_dev_stop(id_);
        settle();
        (void)rte_eth_dev_close(id_);
        settle();
        if (device != nullptr) (void)rte_dev_remove(device);
        settle();
        id_ = RTE_MAX_ETHPORTS;
    }
    rte_pktmbuf_free_bulk(answer_burst_.data(), held_answers_);
    held_answers_ = 0;
    while (answers_ != nullptr && rte_ring_empty(answers_) == 0) {
        void* frame = nullptr;
        if (rte_ring_dequeue(answers_, &frame) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
    rte_ring_free(answers_);
    answers_ = nullptr;
    rte_mempool_free(receive_pool_);
    receive_pool_ = nullptr;
    rte_mempool_free(answer_pool_);
    answer_pool_ = nullptr;
    for (rte_mempool* const pool : transmit_pools_) rte_mempool_free(pool);
    transmit_pools_.clear();
}

}  // namespace evenhand::port
