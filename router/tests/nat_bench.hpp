// SPDX-License-Identifier: Apache-2.0
// A router that translates connections, and UDP packets built by the book.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "forward/nat.hpp"
#include "octets.hpp"

namespace evenhand::tests::forwarding {

inline void append(Octets& octets, std::uint64_t number, std::size_t count) {
    while (count-- > 0) octets.push_back(static_cast<std::byte>(number >> 8 * count));
}

inline void put(Octets& octets, std::size_t at, std::uint16_t number) {
    octets[at] = static_cast<std::byte>(number >> 8U);
    octets[at + 1] = static_cast<std::byte>(number);
}

/// A UDP packet with all checksums as RFC 791, 768 and 8200 have them.
struct Udp {
    plan::IpAddress from;
    plan::IpAddress to;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    std::uint8_t hops = 64;
    std::uint16_t identification = 0x1234;
    std::uint16_t flags = 0x4000;
    std::size_t payload = 30;
    bool has_checksum = true;

    [[nodiscard]] Octets frame(const plan::MacAddress& source, const plan::MacAddress& destination) const {
        const bool is_v6 = from.version == plan::IpVersion::v6;
        Octets f;
        for (const auto octet : destination) f.push_back(static_cast<std::byte>(octet));
        for (const auto octet : source) f.push_back(static_cast<std::byte>(octet));
        append(f, is_v6 ? 0x86DD : 0x0800, 2);
        const std::size_t udp_octets = 8 + payload;
        Octets addresses;
        for (const auto* address : {&from, &to}) {
            for (const auto octet : address->bytes()) addresses.push_back(static_cast<std::byte>(octet));
        }
        if (is_v6) {
            append(f, 0x6B800000, 4);  // traffic class 0xB8
            append(f, udp_octets, 2);
            append(f, 17, 1);
            append(f, hops, 1);
        } else {
            append(f, 0x45B8, 2);
            append(f, 20 + udp_octets, 2);
            append(f, identification, 2);
            append(f, flags, 2);
            append(f, hops, 1);
            append(f, 17, 1);
            append(f, 0, 2);
        }
        f.insert(f.end(), addresses.begin(), addresses.end());
        if (!is_v6) put(f, 24, static_cast<std::uint16_t>(~tests::slow_sum(std::span{f}.subspan(14))));
        const std::size_t udp = f.size();
        append(f, source_port, 2);
        append(f, destination_port, 2);
        append(f, udp_octets, 2);
        append(f, 0, 2);
        for (std::size_t i = 0; i < payload; ++i) append(f, 7 * i + 3, 1);
        if (has_checksum) {
            std::uint32_t sum = tests::slow_sum(addresses) + 17U + static_cast<std::uint32_t>(udp_octets);
            sum = tests::slow_sum(std::span{f}.subspan(udp), sum);
            const auto checksum = static_cast<std::uint16_t>(~sum);
            put(f, udp + 6, checksum == 0 ? 0xFFFF : checksum);
        }
        return f;
    }
    [[nodiscard]] Octets from_left() const { return frame(left_tester, left_dut); }
    [[nodiscard]] Octets to_right() const { return frame(right_dut, right_tester); }
    [[nodiscard]] Octets from_right() const { return frame(right_tester, right_dut); }
    [[nodiscard]] Octets to_left() const { return frame(left_dut, left_tester); }
};

/// NAT44, NAT66 or NAT64 with its inside on the left.
struct Kind {
    const char* name;
    const char* host;    // inside, host number 0
    const char* peer;    // outside, as it is there
    const char* pool;    // its first address
    const char* prefix;  // of NAT64
    unsigned prefix_length;

    [[nodiscard]] bool is_nat64() const { return prefix_length != 0; }
    [[nodiscard]] static plan::IpAddress numbered(const char* base, unsigned number) {
        plan::IpAddress address = ip(base);
        const std::size_t at = address.version == plan::IpVersion::v4 ? 2 : 12;
        const unsigned from = address.octets[at] * 256U + address.octets[at + 1];
        address.octets[at] = static_cast<std::uint8_t>((from + number) >> 8U);
        address.octets[at + 1] = static_cast<std::uint8_t>(from + number);
        return address;
    }
    [[nodiscard]] plan::IpAddress host_address(unsigned number) const { return numbered(host, number); }
    [[nodiscard]] plan::IpAddress pool_address(unsigned number) const { return numbered(pool, number); }
    [[nodiscard]] plan::IpAddress peer_outside(unsigned number) const { return numbered(peer, number); }
    [[nodiscard]] plan::IpAddress peer_inside(unsigned number) const {
        return is_nat64() ? embed(ip(prefix), prefix_length, peer_outside(number)) : peer_outside(number);
    }
    [[nodiscard]] NatOptions options(std::uint32_t pool_count = 1) const {
        NatOptions options;
        options.inside = 0;
        options.pool.base = ip(pool);
        options.pool.offset = options.pool.base.version == plan::IpVersion::v4 ? 2 : 12;
        options.pool.first = options.pool.number_in(options.pool.base);
        options.pool.count = pool_count;
        if (is_nat64()) options.prefix = ip(prefix);
        options.prefix_length = prefix_length;
        options.capacity = 1000;
        return options;
    }
    [[nodiscard]] Udp out(unsigned number, std::uint16_t port, unsigned peer_number = 1,
                          std::uint16_t peer_port = 7) const {
        return {.from = host_address(number),
                .to = peer_inside(peer_number),
                .source_port = port,
                .destination_port = peer_port};
    }
    /// A packet to the first address of the pool.
    [[nodiscard]] Udp back(std::uint16_t port, unsigned peer_number = 1, std::uint16_t peer_port = 7) const {
        return {.from = peer_outside(peer_number),
                .to = pool_address(0),
                .source_port = peer_port,
                .destination_port = port};
    }
};

inline constexpr Kind nat44{.name = "NAT44",
                            .host = "198.18.0.1",
                            .peer = "198.19.0.1",
                            .pool = "198.51.100.1",
                            .prefix = "",
                            .prefix_length = 0};
inline constexpr Kind nat66{.name = "NAT66",
                            .host = "2001:2::1:5",
                            .peer = "2001:2:0:8000::1:9",
                            .pool = "2001:db8:1::5:7",
                            .prefix = "",
                            .prefix_length = 0};
inline constexpr Kind nat64{.name = "NAT64",
                            .host = "2001:2::1:5",
                            .peer = "198.19.0.1",
                            .pool = "198.51.100.1",
                            .prefix = "64:ff9b::",
                            .prefix_length = 96};
inline constexpr std::array kinds{nat44, nat66, nat64};

class NatBench : public Bench {
   public:
    explicit NatBench(const NatOptions& nat, std::optional<ElementModel> model = {}, std::size_t pairs = 1)
        : Bench{{}, std::move(model), {}, 100 * second, nat, pairs} {
        introduce();
    }
    /// The UDP frames that come out on the right, or on the left, for a frame from the other side.
    std::vector<Octets> outgoing(const Octets& f, unsigned pair = 0) { return through(2 * pair, f); }
    std::vector<Octets> incoming(const Octets& f, unsigned pair = 0) { return through(2 * pair + 1, f); }
    /// Source address and port of the one frame that comes out; port 0 if none does.
    std::pair<plan::IpAddress, std::uint16_t> outside_of(const Udp& udp, unsigned pair = 0) {
        const auto came = outgoing(udp.from_left(), pair);
        if (came.empty()) return {};
        REQUIRE(came.size() == 1);
        return endpoint(came[0], true);
    }
    std::uint16_t port_of(const Udp& udp, unsigned pair = 0) { return outside_of(udp, pair).second; }
    /// The inside host that gets the packet; port 0 if none does.
    std::pair<plan::IpAddress, std::uint16_t> receiver_of(const Udp& udp, unsigned pair = 0) {
        const auto came = incoming(udp.from_right(), pair);
        if (came.empty()) return {};
        REQUIRE(came.size() == 1);
        return endpoint(came[0], false);
    }
    static std::pair<plan::IpAddress, std::uint16_t> endpoint(Octets f, bool is_source) {
        const Packet packet = read_packet(f.data(), f.size());
        REQUIRE(packet.kind == PacketKind::unicast);
        const std::byte* const port = packet.ports + (is_source ? 0 : 2);
        return {read_address(is_source ? packet.source : packet.destination, packet.version),
                frame::big(frame::load<std::uint16_t>(port))};
    }

    static std::vector<Octets> udp_alone(std::vector<Octets> frames) {
        std::erase_if(frames, [](Octets& f) {
            const Packet packet = read_packet(f.data(), f.size());
            return packet.kind != PacketKind::unicast || udp_of(packet).at == nullptr;
        });
        return frames;
    }

   private:
    std::vector<Octets> through(unsigned in, const Octets& f) {
        send(in, f);
        run(2 * us);
        return udp_alone(take(in ^ 1U));
    }
};

}  // namespace evenhand::tests::forwarding
