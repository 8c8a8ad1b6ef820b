// SPDX-License-Identifier: Apache-2.0
// Station 4, port: takes the link of a port down and up, where its driver can. Without DPDK's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/dpdk_counters.hpp"
#include "port/dpdk_port.hpp"
#include "port/link_keeper.hpp"

namespace evenhand::port {

/// The link of a started port. It is up at first, and again after the destructor.
///
/// A NIC's driver switches its transmitter off. A port that is an interface of the kernel switches that interface off,
/// so that the other end of a veth or a cable loses its carrier. Other software ports have no link that their other end
/// could lose.
class OwnLink {
   public:
    /// `options` outlive this.
    OwnLink(std::uint16_t id, const PortOptions& options, std::string driver);
    ~OwnLink();
    OwnLink(const OwnLink&) = delete;
    OwnLink& operator=(const OwnLink&) = delete;

    /// See DpdkPort::set_link(). `counters` of the port: this is not a change of the link.
    void set(bool is_up, DpdkCounters& counters);
    [[nodiscard]] bool is_taken_down() const noexcept { return is_taken_down_; }

   private:
    void set_driver_link(bool is_up);
    void switch_interfaces(bool on);
    [[noreturn]] void refuse_change(const char* why) const;

    std::uint16_t id_;
    const PortOptions& options_;
    std::string driver_;
    std::vector<std::string> interfaces_;               // to be switched; none of a NIC
    std::vector<std::unique_ptr<LinkKeeper>> keepers_;  // of those that are off
    bool is_taken_down_ = false;
};

}  // namespace evenhand::port
