// SPDX-License-Identifier: Apache-2.0
// Station 1, plan: which addresses and UDP ports the frames of a test may have.
#pragma once

#include <cstdint>
#include <string>

#include "plan/address.hpp"

namespace evenhand::plan {

enum class Side : std::uint8_t { left = 0, right = 1 };
enum class Direction : std::uint8_t { forward = 0, reverse = 1 };  // left to right; right to left

[[nodiscard]] constexpr Side sending_side(Direction d) { return d == Direction::forward ? Side::left : Side::right; }
[[nodiscard]] constexpr Side receiving_side(Direction d) { return d == Direction::forward ? Side::right : Side::left; }
[[nodiscard]] constexpr Direction direction_sent_by(Side s) { return s == Side::left ? Direction::forward : Direction::reverse; }
[[nodiscard]] constexpr Side other_side(Side s) { return s == Side::left ? Side::right : Side::left; }

/// How a field takes its values. All but pseudorandom are for comparison runs (SEED-40).
enum class Mode : std::uint8_t { pseudorandom, fixed, increment, decrement };

/// The values first .. first + count - 1 of a 16-bit field; `fixed` is always first.
struct FieldRange {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    Mode mode = Mode::pseudorandom;

    friend bool operator==(const FieldRange&, const FieldRange&) = default;
};

/// Addresses of one side: `base` with the 16-bit big-endian number at octet `offset` taken from `host`.
struct HostRange {
    IpAddress base;
    std::uint32_t offset = 0;  // even
    FieldRange host;

    /// Address whose number is `value`, from host.first on.
    [[nodiscard]] IpAddress address(std::uint32_t value) const {
        IpAddress result = base;
        result.octets[offset] = static_cast<std::uint8_t>(value >> 8U);
        result.octets[offset + 1] = static_cast<std::uint8_t>(value);
        return result;
    }
};

struct PlanSide {
    IpAddress gateway;      // the tester's own address on this side
    IpAddress dut_address;  // of the DUT's interface on this side
    HostRange hosts;
};

struct AddressPlan {
    std::string name;
    IpVersion version = IpVersion::v4;
    PlanSide left;
    PlanSide right;
    FieldRange source_ports;       // of both directions (R4814-04)
    FieldRange destination_ports;  // of both directions

    [[nodiscard]] const PlanSide& side(Side s) const { return s == Side::left ? left : right; }
};

/// Throws Fault{bad_plan} that names the clash: address families, ranges that leave 16 bits, UDP port 0, overlapping hosts.
void check_plan(const AddressPlan& plan);

}  // namespace evenhand::plan
