// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what follows for a port from its device string.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace evenhand::port {

/// How many frames the ring of a software port holds, where this does not depend on the requested number of
/// descriptors. 2^30 for ports that wait for their reader; nothing for other drivers.
[[nodiscard]] std::optional<unsigned> software_ring_frames(const std::string& driver, const std::string& device);

/// The largest frame, without FCS, that the driver or its arguments allow; nothing where they set no limit.
[[nodiscard]] std::optional<std::size_t> largest_octets(const std::string& driver, const std::string& device);

/// How much room this driver needs behind a buffer's headroom to receive a frame of `octets` in one buffer.
[[nodiscard]] std::size_t receive_room(const std::string& driver, const std::string& device, std::size_t octets);

/// Whether the port may have one more transmit queue, for control frames. With most software ports, each transmit queue
/// is connected to a receive queue of its own at the other end, which nobody reads there; some require the same number
/// of queues in both directions; and virtio's host spreads received frames over as many queues as are sent on.
[[nodiscard]] bool takes_control_queue(const std::string& driver, const std::string& device);

/// Whether received frames are spread over at least as many queues as are sent on: virtio asks its host for pairs of
/// queues, and the host uses all of them.
[[nodiscard]] bool receives_on_pairs(const std::string& driver, const std::string& device);

/// The kernel's interface behind the device (`iface=`); empty if there is none.
[[nodiscard]] std::string interface_of(const std::string& device);
/// All of the kernel's interfaces, each once: a port of net_pcap may receive on one and send on another.
[[nodiscard]] std::vector<std::string> interfaces_of(const std::string& device);

}  // namespace evenhand::port
