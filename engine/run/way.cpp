// SPDX-License-Identifier: Apache-2.0
#include "run/way.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frame/vlan.hpp"
#include "plan/host_set.hpp"

namespace evenhand::run {
namespace {

using plan::IpAddress;
using plan::Side;

using plan::both_sides;

std::uint32_t vlan_of(std::uint32_t tag) { return tag & 0xFFFU; }

std::string describe(const neighbor::Tags& tags) {
    if (tags.empty()) return "no VLAN tag";
    std::vector<std::string> each;
    for (const auto tag : tags) each.push_back(fmt::format("{} (0x{:04x})", vlan_of(tag), tag >> 16U));
    return fmt::format("VLAN {}", fmt::join(each, " outside VLAN "));
}

class Reader {
   public:
    explicit Reader(const WayFacts& facts) : facts_{facts} {}

    std::vector<Hint> hints() const {
        std::vector<Hint> found;
        for (const auto side : both_sides) {
            if (is_silent(side)) add_vlan(side, found);
        }
        if (found.empty()) add_sides(found);
        if (found.empty() && facts_.is_resolved[Side::left] && facts_.is_resolved[Side::right])
            add_not_forwarded(found);
        return found;
    }

   private:
    [[nodiscard]] const neighbor::Seen& seen(Side side) const { return facts_.seen[side]; }

    [[nodiscard]] static bool fails(const std::optional<Tried>& direction) { return direction && direction->came == 0; }
    [[nodiscard]] const std::optional<Tried>& sent_by(Side side) const {
        return facts_.directions[plan::direction_sent_by(side)];
    }

    /// Whether the DUT has not answered on this side, or nothing that was sent on the other side has come out here.
    [[nodiscard]] bool is_silent(Side side) const {
        return !facts_.is_resolved[side] || fails(sent_by(plan::other_side(side)));
    }

    [[nodiscard]] bool is_testers(Side side, const IpAddress& address) const {
        return std::ranges::any_of(facts_.plans, [&](const auto* plan) {
            const auto& s = plan->side(side);
            return s.gateway ? *s.gateway == address : plan::HostSet{s.hosts}.find(address).has_value();
        });
    }
    [[nodiscard]] bool is_duts(Side side, const IpAddress& address) const {
        return std::ranges::any_of(facts_.plans,
                                   [&](const auto* plan) { return plan->side(side).dut_address == address; });
    }

    void add_vlan(Side side, std::vector<Hint>& found) const {
        const auto& came = seen(side).other_tags;
        if (!came) return;
        const auto& own = facts_.tags[side];
        const auto same_vlan = [](auto a, auto b) { return vlan_of(a) == vlan_of(b); };
        if (came->size() == own.size() && std::ranges::equal(*came, own, same_vlan)) {
            found.push_back(
                {"other_vlan",
                 fmt::format("frames come in on the {} side with {}, and should have {}: something in front of the "
                             "tester's port changes the outer tag",
                             name_of(side), describe(*came), describe(own)),
                 "Interfaces of Linux keep an outer 802.1ad tag beside the frame: use net_af_xdp, and ethtool -K "
                 "INTERFACE tx-vlan-stag-hw-insert off at both ends of the link."});
            return;
        }
        found.push_back(
            {"other_vlan",
             fmt::format("frames come in on the {} side with {}, and the testbed has {} there", name_of(side),
                         describe(*came), describe(own)),
             fmt::format("Write the DUT's VLAN as vlan of {} in the testbed file, or change it at the DUT or at the "
                         "switch between them.",
                         name_of(side))});
    }

    /// Something seen on this side that belongs to the other side; empty if nothing was.
    [[nodiscard]] std::string sign_of_other(Side side) const {
        const auto other = plan::other_side(side);
        for (const auto& address : seen(side).asked) {
            if (is_testers(other, address) && !is_testers(side, address))
                return fmt::format("the DUT asks on the {} side for {}, which is the tester's address on the {} side",
                                   name_of(side), plan::to_string(address), name_of(other));
        }
        const auto& told = seen(side).told;
        const bool tells_own = std::ranges::any_of(told, [&](const auto& address) { return is_duts(side, address); });
        for (const auto& address : told) {
            if (is_duts(other, address) && !tells_own)
                return fmt::format("{}, the DUT's address on the {} side, answers on the {} side",
                                   plan::to_string(address), name_of(other), name_of(side));
        }
        if (seen(side).test_frames[plan::direction_sent_by(side)] != 0)
            return fmt::format("frames that were sent on the {} side come back there", name_of(side));
        return "";
    }

    void add_sides(std::vector<Hint>& found) const {
        const auto left = is_silent(Side::left) || is_silent(Side::right) ? sign_of_other(Side::left) : "";
        const auto right = is_silent(Side::left) || is_silent(Side::right) ? sign_of_other(Side::right) : "";
        if (!left.empty() && !right.empty()) {
            found.push_back({"sides_swapped", fmt::format("left and right are swapped: {}, and {}", left, right),
                             "Exchange the two cables, or left and right in the testbed file; or exchange the "
                             "addresses of the DUT's interfaces."});
        } else if (!left.empty() || !right.empty()) {
            found.push_back(
                {"other_side", left.empty() ? right : left,
                 fmt::format(
                     "Check on which interface the DUT has its addresses and its routes (evenhand plan show {}), "
                     "and where the cables are.",
                     facts_.plans.front()->name)});
        }
    }

    [[nodiscard]] std::string not_forwarded(Side from) const {
        const auto to = plan::other_side(from);
        std::string what = fmt::format("of {} frames sent to the DUT on the {} side, none came out on the {} side",
                                       sent_by(from)->sent, name_of(from), name_of(to));
        const auto& asked = seen(to).asked;
        const auto stranger =
            std::ranges::find_if(asked, [&](const auto& a) { return !is_testers(to, a) && !is_duts(to, a); });
        if (stranger != asked.end() && stranger->version == facts_.plans.front()->side(to).version()) {
            what += fmt::format("; it asks there for {}, which is not an address of the tester",
                                plan::to_string(*stranger));
        }
        if (const auto& icmp = seen(from).icmp)
            what += fmt::format("; ICMP{} type {}, code {}, came back",
                                icmp->version == plan::IpVersion::v6 ? "v6" : "", icmp->type, icmp->code);
        return what;
    }

    void add_not_forwarded(std::vector<Hint>& found) const {
        std::vector<std::string> each;
        for (const auto side : both_sides) {
            if (fails(sent_by(side))) each.push_back(not_forwarded(side));
        }
        if (each.empty()) return;
        found.push_back(
            {"not_forwarded", fmt::format("{}", fmt::join(each, "; ")),
             fmt::format(
                 "Check that the DUT forwards (Linux: sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding), "
                 "that no filter drops UDP, and that it has the routes of: evenhand plan show {}",
                 facts_.plans.front()->name)});
    }

    const WayFacts& facts_;
};

}  // namespace

std::vector<Hint> hints_of(const WayFacts& facts) { return Reader{facts}.hints(); }

}  // namespace evenhand::run
