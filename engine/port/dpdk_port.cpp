// SPDX-License-Identifier: Apache-2.0
#include "port/dpdk_port.hpp"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "fault.hpp"
#include "frame/layout.hpp"
#include "port/device_argument.hpp"
#include "port/device_reason.hpp"
#include "port/dpdk_counters.hpp"
#include "port/dpdk_flow_control.hpp"
#include "port/dpdk_frame_size.hpp"
#include "port/dpdk_host.hpp"
#include "port/dpdk_pool.hpp"
#include "port/dpdk_port_inline.hpp"
#include "port/dpdk_refusal.hpp"
#include "port/extended_counters.hpp"
#include "port/interrupt_thread.hpp"
#include "port/own_link.hpp"
#include "port/packet_sockets.hpp"
#include "port/waiting_connection.hpp"

namespace evenhand::port {
namespace {

using namespace std::chrono_literals;

constexpr unsigned least_receive_buffers_of_af_xdp = 16383;  // its rings alone need some 8k

/// How many buffers a pool has. DPDK touches all of them when it makes the pool, so that a buffer which is never used
/// takes memory all the same. A device may keep its rings full, and each worker keeps some hundred buffers for itself.
/// A NIC may make its rings larger than it was asked to, and what is sent on as it was received waits in two rings.
struct PoolSizes {
    unsigned receive_half_rings;  // as many frames as that many halves of a ring
    unsigned least_received;
    unsigned least_sent;
};
constexpr PoolSizes pools_of_software{.receive_half_rings = 3, .least_received = 3071, .least_sent = 4095};
constexpr PoolSizes pools_of_others{.receive_half_rings = 8, .least_received = 8191, .least_sent = 8191};

/// The smallest ring of a driver that neither follows the requested number of descriptors nor reports its own: QEMU's
/// virtio has 256 entries.
constexpr unsigned least_plausible_ring_frames = 256;

/// The size of a buffer for sending, with its headroom: no larger than its frame needs. Without hugepages DPDK lets no
/// buffer cross a page, so that a buffer of 2 KB has a page to itself, and the 32 frames of a burst begin 4096 octets
/// apart: all in the same 8 or 12 lines of the first-level cache. Small buffers are side by side, in different lines.
/// So a core that drew, wrote and sent a frame of 64 octets in 15.3 ns needed 11.5 ns (Xeon, net_null).
std::uint16_t transmit_buffer_octets(unsigned largest_frame_octets) {
    if (largest_frame_octets == 0) return RTE_MBUF_DEFAULT_BUF_SIZE;
    return static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM +
                                      RTE_ALIGN_CEIL(largest_frame_octets, unsigned{RTE_CACHE_LINE_SIZE}));
}

/// The same for receiving; never smaller than usual, since a DUT may send anything. `room`: the size behind the
/// headroom.
std::uint16_t receive_buffer_octets(std::size_t room) {
    constexpr std::size_t most_room = 65'000;  // a buffer's length has 16 bits; a driver that needs more refuses
    return static_cast<std::uint16_t>(std::max<std::size_t>(
        RTE_MBUF_DEFAULT_BUF_SIZE,
        RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(std::min(room, most_room), std::size_t{RTE_CACHE_LINE_SIZE})));
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

/// Calls `set_up` for the NUMA node of the device; if that has no memory, for any node, which is slower but works.
template <class SetUp>
int on_any_node(int node, SetUp set_up) {
    int result = set_up(static_cast<unsigned>(std::max(0, node)));
    for (unsigned i = 0; result < 0 && i < rte_socket_count() && rte_socket_count() > 1; ++i)
        result = set_up(static_cast<unsigned>(rte_socket_id_by_idx(i)));
    return result;
}

/// Returns 0 or a negative error number. A software port is created through its bus, which accepts arguments of any
/// length: rte_dev_probe() of DPDK 24.11 refuses more than 127 octets, and two paths are longer.
int attach(const std::string& device) {
    if (!device.starts_with("net_")) return rte_dev_probe(device.c_str());
    const auto comma = std::min(device.find(','), device.size());
    const std::string name = device.substr(0, comma);
    const std::string arguments = comma == device.size() ? "" : device.substr(comma + 1);
    return std::min(
        0, rte_vdev_init(name.c_str(),
                         arguments.c_str()));  // positive: no driver has this name; the caller then finds no port
}

}  // namespace

DpdkPort::DpdkPort(PortOptions options, const FillBuffer& fill_buffer) : options_{std::move(options)} {
    try {
        const auto of_other_ports = frame_sockets();
        probe();
        configure();
        let_large_frames_in(id_, driver_, options_);
        make_pools(fill_buffer);
        start();
        // A frame for a veth is in the ring of its other end at once, or dropped there. On other interfaces a narrow
        // room keeps a queue of this host from dropping what the DUT would be charged with.
        const auto is_veth = [](const std::string& interface) { return read_kernel_link(interface).is_veth; };
        if (std::ranges::any_of(interfaces_of(options_.device), is_veth)) make_room_to_send(of_other_ports);
    } catch (...) {
        close_device();
        throw;
    }
}

DpdkPort::~DpdkPort() { close_device(); }

void DpdkPort::probe() {
    const std::string name = options_.device.substr(0, options_.device.find(','));
    if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
        rte_errno = 0;
        files_ = DeviceFiles{options_.device, options_.where};
        const int result = attach(files_.device());
        if (result != 0 || rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
            id_ = no_id;
            files_.remove();
            refuse_unopened(options_, result);
        }
    }
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not report what it is");
    driver_ = info.driver_name;
    if (options_.receive_queues > info.max_rx_queues || options_.transmit_queues > info.max_tx_queues) {
        throw Fault{
            FaultCode::bad_request,
            fmt::format("{}: {} receive and {} transmit queues; the device has {} and {}", options_.device,
                        options_.receive_queues, options_.transmit_queues, info.max_rx_queues, info.max_tx_queues),
            "workers", "Use fewer streams or receivers on this side."};
    }
    if (receives_on_pairs(driver_, options_.device) && options_.transmit_queues > options_.receive_queues) {
        throw Fault{
            FaultCode::bad_request,
            fmt::format(
                "{}: {} transmit queues and {} receive queue{}; the host of a virtio port spreads what comes in "
                "over as many queues as are sent on, and the others would not be read",
                options_.device, options_.transmit_queues, options_.receive_queues,
                options_.receive_queues == 1 ? "" : "s"),
            "workers",
            "Use as many receive queues as streams on this side: receive_queues of the testbed file, or one CPU."};
    }
}

void DpdkPort::configure() {
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not report what it is");
    // Not requested from the device: a stamp in units of the device's clock is useless until that clock is compared
    // with ours, which no port here does.
    hardware_stamps_ = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0 ? "unused" : "none";
    rte_eth_conf conf{};
    // Not intr_conf.lsc: DPDK would then no longer ask the device, and rely on interrupts that do not arrive with every
    // driver (net_e1000_em, net_vmxnet3), so that a link that is down would not be noticed at all.
    if (options_.receive_queues > 1) {
        conf.rx_adv_conf.rss_conf.rss_hf = (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
        // A device without such a hash refuses the mode (QEMU's virtio); it spreads frames over its queues by a rule of
        // its own.
        if (conf.rx_adv_conf.rss_conf.rss_hf != 0) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    }
    const auto receive_queues = static_cast<std::uint16_t>(options_.receive_queues);
    if (!options_.sends_received_buffers && takes_control_queue(driver_, options_.device) &&
        info.max_tx_queues > options_.transmit_queues) {
        // Allowed only if all buffers of a queue are of one pool. Answers have a pool of their own: sent on a sender's
        // queue, they would be freed into the wrong pool.
        rte_eth_conf with_control = conf;
        with_control.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
        has_control_queue_ = true;
        if (rte_eth_dev_configure(id_, receive_queues, all_transmit_queues(), &with_control) == 0) {
            frees_fast_ = with_control.txmode.offloads != conf.txmode.offloads;
            return;
        }
        has_control_queue_ = false;
    }
    require(options_, rte_eth_dev_configure(id_, receive_queues, all_transmit_queues(), &conf),
            "the device cannot be configured");
}

std::uint16_t DpdkPort::all_transmit_queues() const noexcept {
    return static_cast<std::uint16_t>(options_.transmit_queues + (has_control_queue_ ? 1U : 0U));
}

std::uint16_t DpdkPort::control_queue() const noexcept {
    return has_control_queue_ ? static_cast<std::uint16_t>(options_.transmit_queues) : std::uint16_t{0};
}

void DpdkPort::make_pools(const FillBuffer& fill_buffer) {
    // On the NUMA node of the device, which reads and writes them; on any node if the device does not report one
    // (SOCKET_ID_ANY).
    const int node = rte_eth_dev_socket_id(id_);
    const bool is_af_xdp = driver_ == "net_af_xdp";
    const BufferLayout layout = is_af_xdp                        ? BufferLayout::side_by_side
                                : is_pci_device(options_.device) ? BufferLayout::within_pages
                                                                 : BufferLayout::best_side_by_side;
    const bool is_of_software = layout == BufferLayout::best_side_by_side && !options_.sends_received_buffers;
    const PoolSizes& sizes = is_of_software ? pools_of_software : pools_of_others;
    receive_pool_ =
        make_pool(fmt::format("receive-{}", id_),
                  std::max(is_af_xdp ? least_receive_buffers_of_af_xdp : sizes.least_received,
                           sizes.receive_half_rings * options_.receive_queues * options_.receive_ring_frames / 2 - 1) +
                      options_.extra_receive_buffers,
                  receive_buffer_octets(receive_room(driver_, options_.device, options_.largest_receive_octets)), node,
                  options_.device, layout);
    answers_ = std::make_unique<DpdkAnswers>(id_, control_queue(), options_.device, node);
    for (unsigned queue = 0; queue < options_.transmit_queues; ++queue) {
        transmit_pools_.push_back(make_pool(fmt::format("transmit-{}-{}", id_, queue),
                                            std::max(sizes.least_sent, 2 * options_.transmit_ring_frames - 1),
                                            transmit_buffer_octets(options_.largest_transmit_octets), node,
                                            options_.device));
        // The constant octets are written here, once; the frame source writes all other octets (frame/source.hpp).
        const std::function<void(std::span<std::byte>)> fill = [&](auto buffer) { fill_buffer(buffer, queue); };
        rte_mempool_obj_iter(
            transmit_pools_.back().get(),
            [](rte_mempool*, void* fill_one, void* object, unsigned) {
                auto* const buffer = static_cast<rte_mbuf*>(object);
                rte_pktmbuf_reset(buffer);
                (*static_cast<const std::function<void(std::span<std::byte>)>*>(fill_one))(
                    {octets(buffer), room(buffer)});
            },
            const_cast<std::function<void(std::span<std::byte>)>*>(&fill));
    }
}

void DpdkPort::start() {
    const auto receive_queues = static_cast<std::uint16_t>(options_.receive_queues);
    auto receive_descriptors = static_cast<std::uint16_t>(options_.receive_ring_frames);
    auto transmit_descriptors = static_cast<std::uint16_t>(options_.transmit_ring_frames);
    require(options_, rte_eth_dev_adjust_nb_rx_tx_desc(id_, &receive_descriptors, &transmit_descriptors),
            "the ring sizes do not suit the device");
    const int node = rte_eth_dev_socket_id(id_);
    for (std::uint16_t queue = 0; queue < receive_queues; ++queue) {
        const auto set_up = [&](unsigned on) {
            return rte_eth_rx_queue_setup(id_, queue, receive_descriptors, on, nullptr, receive_pool_.get());
        };
        require_receive_queue(options_, driver_, on_any_node(node, set_up), queue);
    }
    for (std::uint16_t queue = 0; queue < all_transmit_queues(); ++queue) {
        const auto set_up = [&](unsigned on) {
            return rte_eth_tx_queue_setup(id_, queue, transmit_descriptors, on, nullptr);
        };
        require(options_, on_any_node(node, set_up), fmt::format("transmit queue {} cannot be set up", queue));
    }
    start_device();
    started_ = true;
    hear_everything();
    require_frames_as_they_came(options_, driver_);
    flow_control_ = switch_flow_control_off(id_, options_.device, interface_of(options_.device));
    rte_eth_dev_info info{};
    require(options_, rte_eth_dev_info_get(id_, &info), "the device does not report what it is");
    counters_ = std::make_unique<DpdkCounters>(id_, interfaces_of(options_.device), rte_dev_name(info.device));
    own_link_ = std::make_unique<OwnLink>(id_, options_, driver_);
    const auto of_software = software_ring_frames(driver_, options_.device);
    transmit_ring_frames_ = of_software.value_or(transmit_descriptors);
    rte_eth_rxq_info queue_info{};
    if (of_software) {
        receive_ring_frames_ = *of_software;
        receive_ring_source_ = "device";
    } else if (rte_eth_rx_queue_info_get(id_, 0, &queue_info) == 0 && queue_info.nb_desc != 0) {
        receive_ring_frames_ = queue_info.nb_desc;
        // The device would spread such a frame over several buffers, which no receiver here joins again.
        if (queue_info.scattered_rx != 0 && queue_info.rx_buf_size != 0 &&
            queue_info.rx_buf_size < options_.largest_receive_octets) {
            refuse_frames(options_, options_.largest_receive_octets, queue_info.rx_buf_size - frame::ethernet_octets,
                          "Use smaller frames, or another port.");
        }
    } else if (driver_ == "net_af_xdp") {
        receive_ring_frames_ = receive_descriptors;  // the driver makes the ring as large as requested
    } else {
        receive_ring_frames_ = std::min<unsigned>(receive_descriptors, least_plausible_ring_frames);
        receive_ring_source_ = "assumed";
    }
}

/// Solicitations are sent to 256 multicast groups, and the tester's MAC may differ from the port's. Software ports have
/// no such mode, and receive everything anyway.
void DpdkPort::hear_everything() const {
    const int result = rte_eth_promiscuous_enable(id_);
    if (result == 0 || (result == -ENOTSUP && !is_pci_device(options_.device))) return;
    refuse(options_, result,
           "promiscuous mode cannot be switched on, so questions to hosts of the tester would not be heard",
           "Use another port, or allow it where a hypervisor forbids it (`trust on` for a virtual function).");
}

bool DpdkPort::counts_exactly() const noexcept { return tells_each_frame(driver_); }

double DpdkPort::link_timeout_s() const {
    constexpr double of_nics_s = 30;
    constexpr double of_others_s = 10;
    return options_.link_timeout_s.value_or(is_pci_device(options_.device) ? of_nics_s : of_others_s);
}

void DpdkPort::keep_watch() noexcept { counters_->keep_watch(); }

bool DpdkPort::needs_link_looks() const {
    // The kernel counts for its own interfaces, and mlx5 must ask the kernel, which is slow.
    return is_pci_device(options_.device) && !driver_.starts_with("mlx");
}

void DpdkPort::note_link() noexcept { counters_->note_link(); }

std::string DpdkPort::waits_for() const {
    return other_end_of_new(connections_to(memif_socket(options_.device)), connections_before_);
}

void DpdkPort::start_device() {
    const Deadline deadline{link_timeout_s()};
    if (driver_ == "net_memif") connections_before_ = connections_to(memif_socket(options_.device));
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
            const std::string when = fmt::format(" within {} s", link_timeout_s());
            if (driver_ == "net_memif") refuse_memif(options_, "," + when, waits_for());
            refuse_link(options_, counters_->kernel_link_fault(), when);
        }
        std::this_thread::sleep_for(10ms);
        // A memif client connects only when it is started; a server that was not ready then has rejected it. A server
        // that hangs has not, and would block a client that connects to it again and again.
        constexpr int tries_a_second = 100;
        if (tries % tries_a_second == 0 && driver_ == "net_memif" &&
            options_.device.find("role=client") != std::string::npos && waits_for().empty()) {
            (void)rte_eth_dev_stop(id_);
            start_device();
        }
    }
    counters_->begin_with_link_up();
    if (std::string_view{flow_control_} ==
        "on")  // some drivers negotiate it with the other end only when the link comes up
        flow_control_ = switch_flow_control_off(id_, options_.device, interface_of(options_.device));
}

void DpdkPort::set_link(bool is_up) { own_link_->set(is_up, *counters_); }

bool DpdkPort::is_taken_down() const noexcept { return own_link_->is_taken_down(); }

void DpdkPort::check_link() const {
    if (is_taken_down()) {
        throw Fault{FaultCode::bad_order, fmt::format("{}: its link was taken down", options_.device), options_.where,
                    "Take it up first."};
    }
    if (!is_link_up()) refuse_link(options_, counters_->kernel_link_fault(), "");
}

void DpdkPort::check_other_end(std::size_t octets) const { require_other_end_takes(options_, octets); }

plan::MacAddress DpdkPort::mac() const {
    rte_ether_addr address{};
    rte_eth_macaddr_get(id_, &address);
    plan::MacAddress mac;
    std::copy_n(std::begin(address.addr_bytes), mac.size(), mac.begin());
    return mac;
}

bool DpdkPort::is_link_up() const { return counters_->is_link_up(); }

std::optional<double> DpdkPort::line_rate_bps() const {
    return is_pci_device(options_.device) ? link_rate_bps(id_) : std::nullopt;
}

std::optional<unsigned> DpdkPort::numa_node() const {
    const int node = rte_eth_dev_socket_id(id_);
    return is_pci_device(options_.device) && node >= 0 ? std::optional{static_cast<unsigned>(node)} : std::nullopt;
}

tally::PortCounters DpdkPort::counters() const {
    auto counters = counters_->read();
    counters.dropped_answers = dropped_answers();
    return counters;
}

bool DpdkPort::is_removed() const { return counters_->is_removed(); }

std::uint64_t DpdkPort::dropped_answers() const noexcept { return answers_->dropped(); }

void DpdkPort::send_control(const std::function<std::size_t(std::span<std::byte>)>& write) {
    answers_->send_control(write);
}

void DpdkPort::close_device() noexcept {
    own_link_.reset();
    counters_.reset();  // it listens to the device's events
    if (id_ != no_id) {
        rte_eth_dev_info info{};
        rte_device* const device = rte_eth_dev_info_get(id_, &info) == 0 ? info.device : nullptr;
        // memif closes its sockets on DPDK's interrupt thread, a moment after the call, using memory that the next step
        // frees: on a busy machine this crashed.
        const auto settle = [this] {
            if (driver_ == "net_memif") wait_for_interrupt_thread();
        };
        if (started_) (void)rte_eth_dev_stop(id_);
        settle();
        (void)rte_eth_dev_close(id_);
        settle();
        if (device != nullptr) (void)rte_dev_remove(device);
        settle();
        id_ = no_id;
    }
}

}  // namespace evenhand::port
