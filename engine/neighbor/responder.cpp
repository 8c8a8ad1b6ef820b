// SPDX-License-Identifier: Apache-2.0
#include "neighbor/responder.hpp"

namespace evenhand::neighbor {
namespace {

std::optional<plan::IpAddress> link_local_of(const plan::MacAddress& mac, plan::IpVersion version) {
    return version == plan::IpVersion::v6 ? std::optional{plan::link_local_address(mac)} : std::nullopt;
}

}  // namespace

Responder::Responder(const plan::MacAddress& own_mac, const plan::IpAddress& gateway, const plan::IpAddress& dut)
    : own_mac_{own_mac}, dut_{dut}, link_local_{link_local_of(own_mac, dut.version)}, gateway_{gateway} {}

Responder::Responder(const plan::MacAddress& own_mac, const plan::HostSet& hosts,
                     const std::optional<plan::HostMacs>& host_macs, const plan::IpAddress& dut)
    : own_mac_{own_mac},
      dut_{dut},
      link_local_{link_local_of(own_mac, dut.version)},
      hosts_{hosts},
      host_macs_{host_macs} {}

std::size_t Responder::answer(std::span<std::byte> frame, std::size_t octets) noexcept {
    const std::span<const std::byte> came = frame.first(octets);
    const auto party = read_announcement(came);
    const auto question = read_question(came);
    const auto version = question ? question->target.version : party ? party->ip.version : dut_.version;
    if (other_ != nullptr && version != dut_.version) return other_->answer(frame, octets);
    if (party) hear(*party);
    // If one plan of a mix is translated, the other one may have the same IP version on this side.
    if (party && other_ != nullptr) other_->hear(*party);
    if (!question) return 0;
    questions_.fetch_add(1, std::memory_order_relaxed);
    const auto owner = find_owner(question->target);
    if (!owner) return 0;
    answers_.fetch_add(1, std::memory_order_relaxed);
    // A gateway is a router and says so; a host on the link is not a router.
    return write_answer(frame, octets, *question, *owner, gateway_.has_value());
}

bool Responder::is_concerned(std::span<const std::byte> frame) const noexcept {
    const auto question = read_question(frame);
    const auto party = read_announcement(frame);
    const bool is_own = question ? find_owner(question->target).has_value() : party.has_value() && party->ip == dut_;
    return is_own || (other_ != nullptr && other_->is_concerned(frame));
}

void Responder::hear(const Party& party) noexcept {
    if (party.ip == dut_ && !has_fixed_dut_mac_) set_dut_mac(party.mac);
}

std::optional<plan::MacAddress> Responder::find_owner(const plan::IpAddress& address) const noexcept {
    if (address == gateway_ || address == link_local_) return own_mac_;
    const auto host = hosts_ ? hosts_->find(address) : std::nullopt;
    return host ? std::optional{mac_of_host(*host)} : std::nullopt;
}

std::size_t Responder::write_question(std::span<std::byte> frame) const {
    const Party self =
        gateway_ ? Party{.mac = own_mac_, .ip = *gateway_} : Party{.mac = mac_of_host(0), .ip = hosts_->address(0)};
    return dut_.version == plan::IpVersion::v4 ? write_arp_request(frame, self, dut_)
                                               : write_neighbor_solicitation(frame, self, dut_);
}

std::size_t Responder::write_announcement(std::span<std::byte> frame, std::uint32_t host) const {
    return neighbor::write_announcement(frame, {.mac = mac_of_host(host), .ip = hosts_->address(host)});
}

std::optional<plan::MacAddress> Responder::dut_mac() const noexcept {
    const std::uint64_t value = dut_mac_.load(std::memory_order_relaxed);
    if ((value & known_bit) == 0) return std::nullopt;
    plan::MacAddress mac;
    for (std::size_t i = 0; i < mac.size(); ++i)
        mac[i] = static_cast<std::uint8_t>(value >> (8 * (mac.size() - 1 - i)));
    return mac;
}

void Responder::fix_dut_mac(const plan::MacAddress& mac) noexcept {
    has_fixed_dut_mac_ = true;
    set_dut_mac(mac);
}

void Responder::set_dut_mac(const plan::MacAddress& mac) noexcept {
    std::uint64_t value = 0;
    for (const auto octet : mac) value = value << 8U | octet;
    dut_mac_.store(value | known_bit, std::memory_order_relaxed);
}

}  // namespace evenhand::neighbor
