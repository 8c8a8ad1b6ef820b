// SPDX-License-Identifier: Apache-2.0
#include "frame/mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "fault.hpp"
#include "frame/mix_expectation.hpp"
#include "frame/mix_source.hpp"
#include "frame/template.hpp"

namespace evenhand::frame {
namespace {

[[noreturn]] void refuse(std::string what, std::string where, std::string next) {
    throw Fault{FaultCode::bad_request, std::move(what), std::move(where), std::move(next)};
}

}  // namespace

FrameMix::FrameMix(std::vector<FrameClass> classes, std::vector<std::uint8_t> cycle)
    : classes_{std::move(classes)}, cycle_{std::move(cycle)} {
    if (classes_.empty() || classes_.size() > most_classes)
        refuse(fmt::format("a mix of {} classes", classes_.size()), "mix.classes",
               fmt::format("Give 1 to {}.", most_classes));
    if (cycle_.empty() || cycle_.size() > longest_cycle) {
        refuse(fmt::format("a cycle of {} frames", cycle_.size()), "mix.cycle",
               fmt::format("Give 1 to {}.", longest_cycle));
    }
    for (std::size_t i = 0; i < cycle_.size(); ++i) {
        if (cycle_[i] >= classes_.size())
            refuse(fmt::format("there is no class {}", cycle_[i]), fmt::format("mix.cycle[{}]", i),
                   fmt::format("Use numbers below {}.", classes_.size()));
    }
    for (std::size_t c = 0; c < classes_.size(); ++c) {
        if (std::ranges::find(cycle_, c) == cycle_.end())
            refuse("no frame is of this class", fmt::format("mix.classes[{}]", c),
                   "Leave it out, or name it in the cycle.");
        payload_sizes_.push_back(classes_[c].fields.transport.payload_octets);
    }
    std::ranges::sort(payload_sizes_, std::greater{});
    const auto same = std::ranges::unique(payload_sizes_);
    payload_sizes_.erase(same.begin(), same.end());
}

std::vector<std::uint64_t> FrameMix::count(const StreamShare& share, std::uint64_t frames) const {
    // The classes of a stream's frames repeat as well, with a period that divides that of the direction.
    const std::uint64_t period = cycle_.size();
    const std::uint64_t whole = frames / period;
    std::vector<std::uint64_t> found(classes_.size());
    for (std::uint64_t i = 0; i < std::min(frames, period); ++i)
        found[class_of(share.sequence(i))] += whole + static_cast<std::uint64_t>(i < frames % period);
    return found;
}

std::size_t FrameMix::period_octets() const noexcept {
    return std::accumulate(cycle_.begin(), cycle_.end(), std::size_t{0},
                           [this](std::size_t sum, std::uint8_t c) { return sum + classes_[c].frame_size; });
}

std::size_t FrameMix::largest_frame_size() const noexcept {
    return std::ranges::max_element(classes_, {}, &FrameClass::frame_size)->frame_size;
}

bool FrameMix::has_two_plans() const noexcept {
    return std::ranges::any_of(classes_, [this](const FrameClass& c) { return c.plan != classes_.front().plan; });
}

bool FrameMix::has_mark_patterns() const noexcept {
    return std::ranges::any_of(classes_, [](const FrameClass& c) { return c.fields.patterns.has_marks(); });
}

bool FrameMix::has_vlans() const noexcept {
    return std::ranges::any_of(
        classes_, [](const FrameClass& c) { return c.fields.patterns[plan::FlowField::vlan].has_value(); });
}

bool FrameMix::has_transports() const noexcept {
    return std::ranges::any_of(classes_, [](const FrameClass& c) { return !c.fields.transport.is_plain(); });
}

std::shared_ptr<const plan::FlowPatterns> patterns_of(const FrameMix& mix, const plan::AddressPlan& plan,
                                                      plan::Direction direction, std::uint64_t seed) {
    if (std::ranges::all_of(mix.classes(), [](const FrameClass& c) { return c.fields.patterns.is_empty(); })) return {};
    std::vector<plan::FieldPatterns> flows;
    for (const auto& c : mix.classes()) {
        auto patterns = c.fields.patterns;
        // Where marks vary, they are all put there.
        const auto fix = [&](plan::FlowField field, std::uint32_t value) {
            if (!patterns[field] && value != 0)
                patterns[field] = plan::FieldPattern{.addresses = {}, .list = {}, .first = value};
        };
        if (mix.has_mark_patterns()) {
            fix(plan::FlowField::traffic_class, c.fields.traffic_class);
            fix(plan::FlowField::flow_label, c.fields.flow_label);
            fix(plan::FlowField::vlan_priority, c.fields.vlan_priority);
        }
        flows.push_back(std::move(patterns));
    }
    std::vector<std::uint8_t> cycle;
    cycle.reserve(mix.period());
    for (std::size_t k = 0; k < mix.period(); ++k) cycle.push_back(static_cast<std::uint8_t>(mix.class_of(k)));
    return std::make_shared<const plan::FlowPatterns>(flows, std::move(cycle), plan, direction, seed);
}

plan::FlowDraw draw_of(const plan::AddressPlan& plan, const FrameMix& mix, plan::Direction direction,
                       std::uint64_t seed) {
    return {plan, direction, seed, patterns_of(mix, plan, direction, seed)};
}

FrameMix FrameMix::without_tags(std::size_t octets) const {
    FrameMix found = *this;
    for (auto& c : found.classes_) c.frame_size -= std::min(c.frame_size, octets);
    return found;
}

namespace {

/// Hosts of patterns are hosts of their side, and fields in lock-step have as many values.
void check_patterns(const plan::AddressPlan& plan, const plan::FieldPatterns& patterns, const std::string& where) {
    for (const auto side : plan::both_sides) {
        const bool is_left = side == plan::Side::left;
        const auto& pattern = patterns[is_left ? plan::FlowField::left_host : plan::FlowField::right_host];
        if (!pattern) continue;
        const auto key = where + (is_left ? ".left_host" : ".right_host");
        const auto& hosts = plan.side(side).hosts;
        if (hosts.network)
            refuse("a flow with hosts of its own, in a plan with networks", key,
                   "Leave it out, or use a plan whose hosts are one range or a list.");
        if (pattern->prefixes && hosts.gap != 0)
            refuse("prefixes, in a plan whose host numbers have a gap", key, "Name addresses instead.");
        const auto first = pattern->prefixes
                               ? plan::address_of(pattern->prefixes->version(), pattern->prefixes->first(0))
                               : pattern->addresses.front();
        if (first.version != hosts.base.version || !plan::are_hosts(*pattern, hosts))
            refuse(fmt::format("{} and the addresses that follow are not all hosts of the {} side",
                               plan::to_string(first), name_of(side)),
                   key, "Use hosts of that side.");
    }
    const plan::FieldPattern* first = nullptr;
    for (const auto& pattern : patterns.of) {
        if (!pattern || !pattern->is_in_lock_step) continue;
        if (first != nullptr && (pattern->values() != first->values() || pattern->mode != first->mode))
            refuse(fmt::format("fields in lock-step with {} and {} values, or in two modes", first->values(),
                               pattern->values()),
                   where, "Give them as many values and one mode, or no lock_step.");
        first = &*pattern;
    }
}

/// Flows: all classes have a name, each another one, and fields that their frames can have.
void check_flows(const plan::AddressPlan& first, const MixedPlans& mixed) {
    const auto& classes = mixed.mix.classes();
    const auto has_own = [](const FrameClass& c) { return c.fields != ClassFields{} || c.loss_at_most; };
    for (std::size_t c = 0; c < classes.size(); ++c) {
        const auto where = fmt::format("mix.classes[{}]", c);
        const auto& of = classes[c];
        if (of.name.empty() == mixed.mix.has_flows() || (of.name.empty() && has_own(of)))
            refuse("a class without a name among flows", where + ".name", "Name each class, or none.");
        if (of.name.empty()) continue;
        const auto same = std::ranges::find(classes, of.name, &FrameClass::name);
        if (same != classes.begin() + static_cast<std::ptrdiff_t>(c))
            refuse(fmt::format("two flows are called \"{}\"", of.name), where + ".name",
                   "Give each a name of its own.");
        const bool has_label = of.fields.flow_label != 0 || of.fields.patterns[plan::FlowField::flow_label];
        if (has_label && mixed.plan(first, of.plan).version() == IpVersion::v4)
            refuse("an IPv4 header has no flow label", where + ".flow_label", "Leave it out.");
    }
    if (!mixed.mix.has_flows()) return;
    if (mixed.other_plan || first.is_translated() || first.has_state)
        refuse(mixed.other_plan ? "flows in two plans" : "flows through a DUT that translates", "mix.classes",
               "Use a plan of one IP version whose addresses the DUT does not change, or leave the names out.");
    for (std::size_t c = 0; c < classes.size(); ++c)
        check_patterns(first, classes[c].fields.patterns, fmt::format("mix.classes[{}]", c));
}

}  // namespace

void check_mix(const plan::AddressPlan& first, const MixedPlans& mixed) {
    const auto& classes = mixed.mix.classes();
    for (std::size_t c = 0; c < classes.size(); ++c) {
        const auto where = fmt::format("mix.classes[{}]", c);
        if (classes[c].plan > (mixed.other_plan ? 1U : 0U))
            refuse(fmt::format("there is no plan {}", classes[c].plan), where + ".plan", "Give other_plan, or use 0.");
        const auto& plan = mixed.plan(first, classes[c].plan);
        for (const auto& side : {plan.left, plan.right}) {
            check_frame_size(side.version(), classes[c].frame_size + side.added_octets, where + ".frame_size");
            const std::size_t more = classes[c].fields.transport.more_octets();
            const std::size_t least = smallest_frame_size(side.version()) + more - side.added_octets;
            if (more != 0 && classes[c].frame_size < least)
                throw Fault{FaultCode::bad_frame_size,
                            fmt::format("{} octets have no room for the headers, a payload of {} and the tag",
                                        classes[c].frame_size, classes[c].fields.transport.payload_octets),
                            where + ".frame_size", fmt::format("Use at least {}.", least)};
        }
    }
    check_flows(first, mixed);
    if (!mixed.other_plan) return;
    const auto is_used = [&](std::size_t plan) {
        return std::ranges::any_of(classes, [&](const FrameClass& c) { return c.plan == plan; });
    };
    if (!is_used(0) || !is_used(1))
        refuse("all frames are of one plan", "mix.other_plan",
               "Leave it out and give that plan alone, or name classes of both.");
    if (mixed.other_plan->left.version() == first.left.version() &&
        mixed.other_plan->right.version() == first.right.version()) {
        throw Fault{FaultCode::bad_plan, fmt::format("both plans are of IPv{}", static_cast<int>(first.version())),
                    "mix.other_plan", "Give one of each IP version."};
    }
    if (mixed.other_plan->left.gateway.has_value() != first.left.gateway.has_value()) {
        throw Fault{FaultCode::bad_plan, "one plan has gateways and the other has not", "mix.other_plan",
                    "Give plans of one form."};
    }
}

BurstChecks MixExpectation::burst_checks(StreamIdentity of) const {
    const std::size_t first = mix_->classes().front().plan;
    auto checks = burst_checks_of(first, of);
    if (!mix_->has_two_plans() || !checks) return checks;
    auto other = burst_checks_of(1 - first, of);
    if (!other || other.version() == checks.version()) return {};
    checks.add(std::move(other));
    return checks;
}

BurstChecks MixExpectation::burst_checks_of(std::size_t plan, StreamIdentity of) const {
    const Class* first = nullptr;
    auto table = std::make_shared<BurstClasses>();
    table->has_mark_patterns = has_mark_patterns_;
    for (std::size_t c = 0; c < classes_->size(); ++c) {
        const auto& sent = mix_->classes()[c];
        if (sent.plan != plan) {
            table->classes.emplace_back();
            continue;
        }
        const auto& its = (*classes_)[c];
        if (first == nullptr) first = &its;
        if (!its.translated && !its.frames.is_known()) return {};
        const auto& arrives = its.frames.arrives();
        table->classes.push_back({.octets = its.frames.frame_octets(0),
                                  .mark = has_mark_patterns_ ? 0 : sent.fields.mark(arrives.version),
                                  .source_port = PortChoice::of(arrives.source_ports),
                                  .destination_port = PortChoice::of(arrives.destination_ports)});
    }
    for (std::size_t k = 0; k < mix_->period(); ++k)
        table->cycle.push_back(static_cast<std::uint8_t>(mix_->class_of(k)));
    return first->translated ? first->translated->burst_checks(of, std::move(table))
                             : first->frames.burst_checks(of, std::move(table));
}

bool MixExpectation::is_remarked(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
    const std::uint32_t found = mark_of(frame, version);
    if (!has_mark_patterns_) return found != mix_->classes()[frame_class].fields.mark(version);
    return found != (*classes_)[frame_class].frames.drawn_marks(frame, version).value_or(found);
}

bool MixExpectation::is_in_vlan(std::uint64_t sequence, std::uint16_t vlan) const noexcept {
    if (!has_vlans_ || vlan == 0) return false;
    const auto* const patterns = classes_->front().frames.patterns();
    return patterns != nullptr && patterns->vlan(sequence) == vlan;
}

bool MixExpectation::holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
    const Class& expected = (*classes_)[frame_class];
    return expected.translated ? expected.translated->holds(0, frame, version)
                               : expected.frames.holds(0, frame, version);
}

std::optional<TranslationFault> MixExpectation::fault_of(std::size_t frame_class, const std::byte* frame,
                                                         IpVersion version) const noexcept {
    const auto& translated = (*classes_)[frame_class].translated;
    return translated ? translated->fault_of(0, frame, version) : std::nullopt;
}

std::shared_ptr<const MixParts> make_mix_parts(const plan::AddressPlan& first, const MixedPlans& mixed,
                                               std::uint64_t seed, const StreamIdentity& identity,
                                               const StreamShare& share, const MixMacs& macs) {
    const auto side = plan::sending_side(identity.direction);
    const auto pattern = pattern_of(first.side(side).version(), mixed.mix.has_two_plans());
    std::vector<MixParts::Stack> stacks;
    for (std::size_t p = 0; p < (mixed.other_plan ? 2U : 1U); ++p) {
        const auto& plan = mixed.plan(first, p);
        stacks.push_back({.version = plan.side(side).version(),
                          .draw = draw_of(plan, mixed.mix, identity.direction, seed),
                          .hosts = macs.hosts ? std::optional{plan::HostSet{plan.side(side).hosts}} : std::nullopt});
    }
    std::vector<FrameTemplate> templates;
    for (const auto& c : mixed.mix.classes()) {
        const auto& plan = mixed.plan(first, c.plan);
        templates.push_back(make_template(plan, c.frame_size + plan.side(side).added_octets, identity, macs.source_mac,
                                          macs.dut_macs.at(c.plan), pattern));
        if (!mixed.mix.has_mark_patterns() && c.fields.mark(templates.back().version) != 0)
            mark(templates.back(), c.fields);
    }
    auto parts = std::make_shared<MixParts>(mixed.mix, templates, std::move(stacks), macs.hosts, share);
    if (!mixed.mix.has_mark_patterns() && !mixed.mix.has_vlans()) return parts;
    const auto patterns = patterns_of(mixed.mix, first, identity.direction, seed);
    if (mixed.mix.has_mark_patterns()) parts->marks = patterns;
    if (mixed.mix.has_vlans()) parts->vlans = patterns;
    return parts;
}

}  // namespace evenhand::frame
