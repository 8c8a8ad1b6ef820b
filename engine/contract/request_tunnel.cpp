// SPDX-License-Identifier: Apache-2.0
// Contract: the tunnel of a side, in the request that opens a tester and in that of a preview.
#include "contract/request_parts.hpp"
#include "frame/tunnel.hpp"

namespace evenhand::contract {
namespace {

constexpr std::array<std::pair<const char*, frame::TunnelKind>, 4> tunnel_kinds{{{"vxlan", frame::TunnelKind::vxlan},
                                                                                 {"mpls", frame::TunnelKind::mpls},
                                                                                 {"gre", frame::TunnelKind::gre},
                                                                                 {"ip", frame::TunnelKind::ip}}};

std::vector<std::uint32_t> read_labels(ObjectReader& r, const char* key) {
    std::vector<std::uint32_t> labels;
    for (const auto label : read_wholes(r, key, frame::first_label, frame::largest_label))
        labels.push_back(static_cast<std::uint32_t>(label));
    if (labels.empty() || labels.size() > frame::most_labels) {
        r.refuse(key, fmt::format("{} labels", labels.size()),
                 fmt::format("Give 1 to {}, the outermost first.", frame::most_labels));
    }
    return labels;
}

}  // namespace

ReadTunnel read_tunnel(ObjectReader r) {
    using frame::TunnelKind;
    ReadTunnel read;
    auto& tunnel = read.ends;
    tunnel.kind = r.choice("kind", tunnel_kinds);
    if (tunnel.kind == TunnelKind::mpls) {
        tunnel.labels = read_labels(r, "labels");
        tunnel.arriving_labels = r.has("arriving_labels") ? read_labels(r, "arriving_labels") : tunnel.labels;
        if (tunnel.arriving_labels.size() != tunnel.labels.size()) {
            r.refuse(
                "arriving_labels",
                fmt::format("{} labels arrive, and {} are sent", tunnel.arriving_labels.size(), tunnel.labels.size()),
                "Give as many of both, so that frames have one size.");
        }
        r.finish();
        return read;
    }
    tunnel.local = r.address("local");
    tunnel.remote = r.address("remote");
    if (tunnel.local.version != tunnel.remote.version) {
        r.refuse("remote",
                 fmt::format("the ends {} and {} are of two IP versions", plan::to_string(tunnel.local),
                             plan::to_string(tunnel.remote)),
                 "Give both in one.");
    }
    if (tunnel.local == tunnel.remote)
        r.refuse("remote", fmt::format("both ends are {}", plan::to_string(tunnel.remote)),
                 "Give the DUT's end an address of its own.");
    if (tunnel.kind == TunnelKind::vxlan) {
        tunnel.vni = static_cast<std::uint32_t>(r.whole("vni", 0, frame::largest_vni));
        if (r.has("udp_port")) tunnel.udp_port = static_cast<std::uint16_t>(r.whole("udp_port", 1, 65535));
        if (r.has("mac")) read.mac = r.port_mac("mac");
        if (r.has("dut_mac")) read.dut_mac = r.port_mac("dut_mac");
    }
    r.finish();
    return read;
}

}  // namespace evenhand::contract
