// SPDX-License-Identifier: Apache-2.0
// Station 4, port: what a device string tells of its port.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace evenhand::port {

/// Frames that the ring of a software port holds: these do not follow the number of descriptors that is asked for. 2^30
/// for those that wait for their reader; nothing for other drivers.
[[nodiscard]] std::optional<unsigned> software_ring_frames(const std::string& driver, const std::string& device);

/// The largest frame, without FCS, that the driver or its arguments leave room for; nothing where they have no say.
[[nodiscard]] std::optional<std::size_t> largest_octets(const std::string& driver, const std::string& device);

/// Room that this driver wants behind the headroom of a buffer that receives frames of `octets` whole.
[[nodiscard]] std::size_t receive_room(const std::string& driver, const std::string& device, std::size_t octets);

/// Whether the port may be given one transmit queue more, for control frames. Of most software ports each transmit
/// queue leads to a receive queue of its own at the other end, which nobody reads there; some want as many queues one
/// way as the other; and virtio has its host spread what is received over as many queues as are sent on.
[[nodiscard]] bool takes_control_queue(const std::string& driver, const std::string& device);

/// Whether what comes in is spread over as many queues as are sent on, or over more: virtio asks its host for pairs of
/// queues, and the host uses all of them.
[[nodiscard]] bool receives_on_pairs(const std::string& driver, const std::string& device);

/// The kernel's interface behind the device (`iface=`); empty if there is none.
[[nodiscard]] std::string interface_of(const std::string& device);
/// All of them, each once: a port of net_pcap may receive on one and send on another.
[[nodiscard]] std::vector<std::string> interfaces_of(const std::string& device);

}  // namespace evenhand::port
