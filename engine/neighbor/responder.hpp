// SPDX-License-Identifier: Apache-2.0
// Neighbours: answers for the tester's own addresses of one side and learns the DUT's MAC there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "neighbor/messages.hpp"

namespace evenhand::neighbor {

/// In gateway forms a side owns its gateway address and the link-local address, never a host address (SEED-18).
/// answer() is called by the worker that receives on this side; the rest by the session.
class Responder {
   public:
    /// The tester's own addresses of this side besides the link-local one, and whom to learn from.
    Responder(const plan::MacAddress& own_mac, const plan::IpAddress& gateway, const plan::IpAddress& dut);

    /// Answers a question about an own address in place, and takes note of the DUT's MAC wherever it is told.
    /// Returns the octets of the answer, 0 for none. `frame` is the whole buffer, `octets` the length of what came.
    [[nodiscard]] std::size_t answer(std::span<std::byte> frame, std::size_t octets) noexcept;

    /// The question for the DUT's MAC, which is the learning frame as well. Needs solicitation_octets of room.
    [[nodiscard]] std::size_t write_question(std::span<std::byte> frame) const;

    [[nodiscard]] std::optional<plan::MacAddress> dut_mac() const noexcept;
    void set_dut_mac(const plan::MacAddress& mac) noexcept;
    void forget_dut_mac() noexcept { dut_mac_.store(0, std::memory_order_relaxed); }
    [[nodiscard]] const plan::MacAddress& own_mac() const noexcept { return own_mac_; }

    [[nodiscard]] std::uint64_t questions() const noexcept { return questions_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

   private:
    static constexpr std::uint64_t known_bit = std::uint64_t{1} << 48U;  // the MAC stands in the 48 bits below

    [[nodiscard]] bool owns(const plan::IpAddress& address) const noexcept { return address == gateway_ || address == link_local_; }

    plan::MacAddress own_mac_;
    plan::IpAddress gateway_;
    plan::IpAddress dut_;
    plan::IpAddress link_local_;
    std::atomic<std::uint64_t> dut_mac_{0};  // written by the receiving worker, read by the session
    std::atomic<std::uint64_t> questions_{0};
    std::atomic<std::uint64_t> answers_{0};
};

}  // namespace evenhand::neighbor
