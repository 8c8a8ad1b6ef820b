// SPDX-License-Identifier: Apache-2.0
// Neighbours: answers for the tester's own addresses on one side, and learns the DUT's MAC there.
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

/// In gateway plans a side owns its gateway address, but no host address (SEED-18). In direct plans it owns every host
/// address of every network, and no other address (SEED-20). In both it owns the link-local address. The target of a
/// question decides, not the group or MAC that it was sent to (SEED-21), so that unicast probes of a DUT that refreshes
/// its entries are answered like the first question.
///
/// answer() is called by the workers that receive on this side, all other functions by the session.
class Responder {
   public:
    /// Gateway plan. `dut`: the address whose MAC is learnt.
    Responder(const plan::MacAddress& own_mac, const plan::IpAddress& gateway, const plan::IpAddress& dut);
    /// Direct plan. Hosts have the port's MAC if there are no `host_macs`.
    Responder(const plan::MacAddress& own_mac, const plan::HostSet& hosts,
              const std::optional<plan::HostMacs>& host_macs, const plan::IpAddress& dut);

    /// `other`: the same side's responder of the other IP version, to which answer() passes frames of that version. To
    /// be called before the workers start.
    void set_other(Responder& other) noexcept { other_ = &other; }

    /// Notes what arrives on this side while sightings.notes(). To be called before the workers start; `sightings`
    /// outlives this.
    void set_sightings(Sightings& sightings) noexcept { sightings_ = &sightings; }
    /// Notes a frame that arrived outside trials, unchanged.
    void look_on(std::span<const std::byte> frame) {
        if (sightings_ != nullptr && sightings_->notes()) sightings_->note(frame);
    }

    /// Answers a question about an own address in place, and learns the DUT's MAC from every frame that announces it.
    /// Allocates nothing. Returns the octets of the answer; 0 if there is none. `frame`: the whole buffer; `octets`:
    /// the length of the received frame.
    [[nodiscard]] std::size_t answer(std::span<std::byte> frame, std::size_t octets) noexcept;

    /// Whether a frame asks for an own address, or announces the DUT's MAC here. Where both sides are on one link, this
    /// says to which of them a frame belongs.
    [[nodiscard]] bool is_concerned(std::span<const std::byte> frame) const noexcept;

    /// Writes the question for the DUT's MAC, which is also the learning frame of gateway plans; in direct plans the
    /// first host asks. Needs solicitation_octets of room.
    [[nodiscard]] std::size_t write_question(std::span<std::byte> frame) const;

    /// Whether hosts are on the link, for which this side answers.
    [[nodiscard]] bool has_hosts() const noexcept { return hosts_.has_value(); }
    /// Announces the MAC of a host on the link to the DUT, which may know another one from an earlier session. Only if
    /// has_hosts(). Needs solicitation_octets of room.
    [[nodiscard]] std::size_t write_announcement(std::span<std::byte> frame, std::uint32_t host) const;

    [[nodiscard]] std::optional<plan::MacAddress> dut_mac() const noexcept;
    void set_dut_mac(const plan::MacAddress& mac) noexcept;
    /// Sets the DUT's MAC as the user gave it; what the DUT announces later does not change it.
    void fix_dut_mac(const plan::MacAddress& mac) noexcept;
    /// Has no effect on a MAC that the user gave.
    void forget_dut_mac() noexcept {
        if (!has_fixed_dut_mac_) dut_mac_.store(0, std::memory_order_relaxed);
    }
    [[nodiscard]] const plan::MacAddress& own_mac() const noexcept { return own_mac_; }

    [[nodiscard]] std::uint64_t questions() const noexcept { return questions_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

   private:
    static constexpr std::uint64_t known_bit = std::uint64_t{1} << 48U;  // set if the MAC in the 48 bits below is known

    /// Notes that somebody announced his MAC.
    void hear(const Party& party) noexcept;
    /// The MAC of an own address; nothing for any other address.
    [[nodiscard]] std::optional<plan::MacAddress> find_owner(const plan::IpAddress& address) const noexcept;
    [[nodiscard]] plan::MacAddress mac_of_host(std::uint32_t host) const noexcept {
        return host_macs_ ? host_macs_->mac(host) : own_mac_;
    }

    plan::MacAddress own_mac_;
    plan::IpAddress dut_;
    std::optional<plan::IpAddress> link_local_;  // IPv6
    std::optional<plan::IpAddress> gateway_;     // in gateway plans
    std::optional<plan::HostSet> hosts_;         // in direct plans
    std::optional<plan::HostMacs> host_macs_;
    Sightings* sightings_ = nullptr;
    Responder* other_ = nullptr;             // the responder of a mix's other plan
    bool has_fixed_dut_mac_ = false;         // written before the workers start
    std::atomic<std::uint64_t> dut_mac_{0};  // written by the receiving worker, read by the session
    std::atomic<std::uint64_t> questions_{0};
    std::atomic<std::uint64_t> answers_{0};
};

}  // namespace evenhand::neighbor
