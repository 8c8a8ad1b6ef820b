// SPDX-License-Identifier: Apache-2.0
// Neighbours: answers for the tester's own addresses of one side and learns the DUT's MAC there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "neighbor/messages.hpp"
#include "neighbor/sightings.hpp"
#include "plan/host_macs.hpp"
#include "plan/host_set.hpp"

namespace evenhand::neighbor {

/// In gateway forms a side owns its gateway address, never a host address (SEED-18). In direct forms it owns every host
/// address of every network, and no other (SEED-20). The link-local address is its own in both. The target of a
/// question decides, never the group or MAC that it came to (SEED-21), so unicast probes of a DUT that looks after its
/// entries are answered like the first question.
///
/// answer() is called by the workers that receive on this side, the rest by the session.
class Responder {
   public:
    /// Gateway form. `dut`: whom to learn from.
    Responder(const plan::MacAddress& own_mac, const plan::IpAddress& gateway, const plan::IpAddress& dut);
    /// Direct form. Hosts have the port's MAC, unless they have `host_macs`.
    Responder(const plan::MacAddress& own_mac, const plan::HostSet& hosts,
              const std::optional<plan::HostMacs>& host_macs, const plan::IpAddress& dut);

    /// The same side's responder of the other IP version, which answer() asks about what is of that version. Before the
    /// workers start.
    void set_other(Responder& other) noexcept { other_ = &other; }

    /// Notes what comes to this side while sightings.notes(). Before the workers start; it outlives this.
    void set_sightings(Sightings& sightings) noexcept { sightings_ = &sightings; }
    /// A frame outside trials, as it came.
    void look_on(std::span<const std::byte> frame) {
        if (sightings_ != nullptr && sightings_->notes()) sightings_->note(frame);
    }

    /// Answers a question about an own address in place, and takes note of the DUT's MAC wherever it is told. Allocates
    /// nothing. Returns the octets of the answer, 0 for none. `frame` is the whole buffer, `octets` the length of what
    /// came.
    [[nodiscard]] std::size_t answer(std::span<std::byte> frame, std::size_t octets) noexcept;

    /// The question for the DUT's MAC, which is the learning frame of gateway forms as well; in direct forms the first
    /// host asks. Needs solicitation_octets of room.
    [[nodiscard]] std::size_t write_question(std::span<std::byte> frame) const;

    /// Hosts are on the link, and this side answers for them.
    [[nodiscard]] bool has_hosts() const noexcept { return hosts_.has_value(); }
    /// Tells the DUT the MAC of a host on the link, of which it may know another one from an earlier session. Only if
    /// has_hosts(). Needs solicitation_octets of room.
    [[nodiscard]] std::size_t write_announcement(std::span<std::byte> frame, std::uint32_t host) const;

    [[nodiscard]] std::optional<plan::MacAddress> dut_mac() const noexcept;
    void set_dut_mac(const plan::MacAddress& mac) noexcept;
    /// What the DUT tells of itself later does not change it: the user said so.
    void fix_dut_mac(const plan::MacAddress& mac) noexcept;
    void forget_dut_mac() noexcept { dut_mac_.store(0, std::memory_order_relaxed); }
    [[nodiscard]] const plan::MacAddress& own_mac() const noexcept { return own_mac_; }

    [[nodiscard]] std::uint64_t questions() const noexcept { return questions_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

   private:
    static constexpr std::uint64_t known_bit = std::uint64_t{1} << 48U;  // the MAC stands in the 48 bits below

    /// Somebody says what MAC he has.
    void hear(const Party& party) noexcept;
    /// The MAC of an own address; nothing for any other.
    [[nodiscard]] std::optional<plan::MacAddress> find_owner(const plan::IpAddress& address) const noexcept;
    [[nodiscard]] plan::MacAddress mac_of_host(std::uint32_t host) const noexcept {
        return host_macs_ ? host_macs_->mac(host) : own_mac_;
    }

    plan::MacAddress own_mac_;
    plan::IpAddress dut_;
    std::optional<plan::IpAddress> link_local_;  // IPv6
    std::optional<plan::IpAddress> gateway_;     // in gateway forms
    std::optional<plan::HostSet> hosts_;         // in direct forms
    std::optional<plan::HostMacs> host_macs_;
    Sightings* sightings_ = nullptr;
    Responder* other_ = nullptr;             // of the other plan of a mix
    bool has_fixed_dut_mac_ = false;         // written before the workers start
    std::atomic<std::uint64_t> dut_mac_{0};  // written by the receiving worker, read by the session
    std::atomic<std::uint64_t> questions_{0};
    std::atomic<std::uint64_t> answers_{0};
};

}  // namespace evenhand::neighbor
