// SPDX-License-Identifier: Apache-2.0
// Station 2, frame: the frames of one stream of a mix. A hot path, but slower than a source whose frames are all alike:
// it takes about the time of drawing from both plans.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "frame/mix.hpp"
#include "frame/source.hpp"
#include "frame/vlan.hpp"
#include "plan/flow_patterns.hpp"
#include "plan/host_macs.hpp"
#include "plan/host_set.hpp"

namespace evenhand::frame {

class MixExpectation;

/// What the frames of one stream of a mix are made from. Made before the start and only read from then on.
struct MixParts {
    /// For one of the plans.
    struct Stack {
        IpVersion version;
        plan::FlowDraw draw;
        std::optional<plan::HostSet> hosts;  // of the sending side, where each has its own MAC
    };

    std::vector<Stack> stacks;          // by the number of the plan
    std::vector<std::size_t> plan_of;   // by class
    std::vector<FrameShape> shapes;     // by class
    std::vector<FrameWriter> writers;   // by class
    std::size_t period = 0;             // in frames of this stream, after which the classes repeat
    std::vector<std::uint8_t> cycle;    // the class of this stream's frame i is that at i modulo `period`; the places
                                        // behind it are those of the beginning again
    std::vector<std::uint16_t> octets;  // of the frame at each place of the cycle, without FCS
    /// Writes frames of any of the classes side by side; null where they are not of one plan, or this CPU cannot.
    ClassWriter write_classes = nullptr;
    ClassShapes class_shapes;                   // for it
    std::vector<ClassPorts> ports;              // of each class, where one has ports of its own
    std::vector<Transport> transports;          // of each class, where one has more than UDP's header
    std::size_t taken_octets = 0;               // the most that any of these takes of the pattern
    std::vector<std::uint8_t> vlan_priorities;  // of each class
    bool has_vlan_priorities = false;
    std::shared_ptr<const plan::FlowPatterns> marks;  // null: traffic class and flow label are in the templates
    std::shared_ptr<const plan::FlowPatterns> vlans;  // null: all frames have the VLANs of their side
    std::optional<plan::HostMacs> macs;               // MACs of the hosts in `stacks`
    StreamShare share;
    bool restores_pattern =
        false;  // IPv6 frames use the same buffers: the octets where their headers end are written again for IPv4

    /// `templates`: by class, made with the pattern of pattern_of(). `macs`: of the sending side's hosts, if each has
    /// its own.
    MixParts(const FrameMix& mix, const std::vector<FrameTemplate>& templates, std::vector<Stack> of_plans,
             const std::optional<plan::HostMacs>& host_macs, StreamShare stream)
        : stacks{std::move(of_plans)}, macs{host_macs}, share{stream} {
        for (std::size_t c = 0; c < mix.classes().size(); ++c) {
            plan_of.push_back(mix.classes()[c].plan);
            shapes.emplace_back(templates[c]);
            writers.push_back(fastest_frame_writer(templates[c]));
        }
        restores_pattern = mix.has_two_plans();
        fill_fields(mix.classes());
        const std::size_t own_period = mix.period() / std::gcd(mix.period(), share.stride);
        period = (longest_look + own_period - 1) / own_period * own_period;
        for (std::size_t i = 0; i < period + longest_look; ++i) {
            cycle.push_back(static_cast<std::uint8_t>(mix.class_of(share.sequence(i))));
            octets.push_back(static_cast<std::uint16_t>(shapes[cycle.back()].frame_template.octets));
        }
        if (stacks.size() != 1) return;
        class_shapes = ClassShapes{templates, ports, cycle};
        write_classes = class_writer(templates.front());
    }

    /// At least the frames of a burst: a burst looks so far ahead, and a block is no longer.
    static constexpr std::size_t longest_look = 64;
    static_assert(longest_look >= plan::FlowBlock::size);

   private:
    void fill_fields(const std::vector<FrameClass>& classes) {
        const auto choice = [](const std::optional<std::uint16_t>& port) {
            return port ? PortChoice{.drawn = 0, .fixed = *port} : PortChoice{};
        };
        const bool has_transports =
            std::ranges::any_of(classes, [](const FrameClass& c) { return !c.fields.transport.is_plain(); });
        for (const auto& c : classes) {
            if (has_transports) transports.push_back(c.fields.transport);
            taken_octets = std::max(taken_octets, c.fields.transport.more_octets());
            vlan_priorities.push_back(c.fields.vlan_priority);
            has_vlan_priorities =
                has_vlan_priorities || c.fields.vlan_priority != 0 || c.fields.patterns[plan::FlowField::vlan_priority];
        }
        if (!std::ranges::any_of(classes,
                                 [](const FrameClass& c) { return c.fields.source_port || c.fields.destination_port; }))
            return;
        for (const auto& c : classes)
            ports.push_back({.source = choice(c.fields.source_port), .destination = choice(c.fields.destination_port)});
    }
};

/// The IP version whose pattern the transmit buffers of a mix hold. IPv6 headers overwrite the first octets of IPv4's
/// pattern, but not the other way round.
[[nodiscard]] constexpr IpVersion pattern_of(IpVersion first, bool has_two_plans) noexcept {
    return has_two_plans ? IpVersion::v4 : first;
}

/// Who sends, and to whom.
struct MixMacs {
    plan::MacAddress source_mac{};
    std::vector<plan::MacAddress> dut_macs;  // by plan
    std::optional<plan::HostMacs> hosts;     // of the sending side, if each has its own: instead of source_mac
};

/// The parts of one stream. Faults as make_template().
[[nodiscard]] std::shared_ptr<const MixParts> make_mix_parts(const plan::AddressPlan& first, const MixedPlans& mixed,
                                                             std::uint64_t seed, const StreamIdentity& identity,
                                                             const StreamShare& share, const MixMacs& macs);

/// Frame k of a mix is frame k of its class's plan, as TestFrameSource would write it with that class's size. In a mix
/// of both IP versions the octets behind the tag are those of pattern_of().
class MixSource {
   public:
    using Expectation = MixExpectation;

    explicit MixSource(std::shared_ptr<const MixParts> parts) noexcept : parts_{std::move(parts)} {}

    /// The length of the `ahead`th of the next frames, for `ahead` below MixParts::longest_look.
    [[nodiscard]] std::size_t frame_octets(std::size_t ahead) const noexcept {
        return parts_->octets[position_ + ahead];
    }
    [[nodiscard]] bool has_flow_tags() const noexcept { return parts_->has_vlan_priorities || parts_->vlans; }
    /// That of the `ahead`th of the next frames.
    [[nodiscard]] FlowTag flow_tag(std::size_t ahead) const noexcept {
        const auto& vlans = parts_->vlans;
        return {.priority = parts_->has_vlan_priorities ? vlan_priority(ahead) : std::uint8_t{0},
                .vlan = vlans ? vlans->vlan(parts_->share.sequence(next_ + ahead)) : std::uint16_t{0}};
    }

    void write_next(std::span<std::byte* const> frames, std::uint64_t now_ticks) noexcept {
        const MixParts& parts = *parts_;
        while (!frames.empty()) {
            const std::size_t at = next_ % plan::FlowBlock::size;
            if (at == 0) {
                for (std::size_t p = 0; p < parts.stacks.size(); ++p)
                    parts.stacks[p].draw.draw_block(parts.share.sequence(next_), parts.share.stride, blocks_[p]);
                block_position_ = position_;
                if (!parts.ports.empty() && parts.write_classes == nullptr) choose_ports(parts);
            }
            const std::size_t most = std::min(frames.size(), plan::FlowBlock::size - at);
            if (parts.write_classes != nullptr) {
                write_classes(parts, at, frames.first(most), now_ticks);
                frames = frames.subspan(most);
                continue;
            }
            const std::size_t c = parts.cycle[position_];
            std::size_t n = 0;  // frames of one class in a row
            do {
                ++n;
                if (++position_ == parts.period) position_ = 0;
            } while (n < most && parts.cycle[position_] == c);
            const std::size_t p = parts.plan_of[c];
            const Stamp stamp{
                .sequence = parts.share.sequence(next_), .stride = parts.share.stride, .time = now_ticks & time_mask};
            parts.writers[c](parts.shapes[c], blocks_[p], at, frames.first(n), stamp);
            if (parts.marks) write_marks(parts.stacks[p].version, at, frames.first(n));
            if (parts.restores_pattern && parts.stacks[p].version == IpVersion::v4) restore_pattern(frames.first(n));
            if (parts.macs) write_macs(parts.stacks[p], frames.first(n));
            if (!parts.transports.empty()) [[unlikely]] {
                for (std::byte* const frame : frames.first(n)) wrap_class(parts, c, frame);
            }
            next_ += n;
            frames = frames.subspan(n);
        }
    }

   private:
    [[nodiscard]] std::uint8_t vlan_priority(std::size_t ahead) const noexcept {
        if (parts_->marks) [[unlikely]]
            return static_cast<std::uint8_t>(parts_->marks->mark(parts_->share.sequence(next_ + ahead)) >>
                                             plan::FlowPatterns::priority_shift);
        return parts_->vlan_priorities[class_ahead(ahead)];
    }
    [[nodiscard]] std::size_t class_ahead(std::size_t ahead) const noexcept { return parts_->cycle[position_ + ahead]; }

    /// For a block that was just drawn, whose first frame is the next one.
    void choose_ports(const MixParts& parts) noexcept {
        auto& source = blocks_[0].lanes.field[2];
        auto& destination = blocks_[0].lanes.field[3];
        for (std::size_t j = 0; j < plan::FlowBlock::size; ++j) {
            const auto& ports = parts.ports[class_ahead(j)];
            source[j] = ports.source(source[j]);
            destination[j] = ports.destination(destination[j]);
        }
    }

    /// Writes the next frames, which are in one block.
    void write_classes(const MixParts& parts, std::size_t at, std::span<std::byte* const> frames,
                       std::uint64_t now_ticks) noexcept {
        const Stamp stamp{
            .sequence = parts.share.sequence(next_), .stride = parts.share.stride, .time = now_ticks & time_mask};
        const auto classes = std::span{parts.cycle}.subspan(block_position_).first<plan::FlowBlock::size>();
        parts.write_classes(parts.class_shapes, block_position_, classes, blocks_[0], at, frames, stamp);
        if (parts.marks) write_marks(parts.stacks[0].version, at, frames);
        if (parts.macs) write_macs(parts.stacks[0], frames);
        if (!parts.transports.empty()) [[unlikely]] {
            for (std::size_t i = 0; i < frames.size(); ++i) wrap_class(parts, parts.cycle[position_ + i], frames[i]);
        }
        next_ += frames.size();
        position_ += frames.size();
        if (position_ >= parts.period) position_ -= parts.period;
    }

    /// A frame with a longer header has left its tag in the pattern of its buffer: all write that again. Each buffer
    /// has room for the largest class.
    static void wrap_class(const MixParts& parts, std::size_t c, std::byte* frame) noexcept {
        const std::size_t octets = parts.shapes[c].frame_template.octets;
        const Transport& transport = parts.transports[c];
        const auto wrap_as = [&]<IpVersion V>() {
            std::memcpy(frame + Layout<V>::tag_end, pattern_octets.data(),
                        std::min(octets - Layout<V>::tag_end, parts.taken_octets));
            if (!transport.is_plain()) wrap<V>(frame, octets, transport);
        };
        if (parts.shapes[c].frame_template.version == IpVersion::v4)
            wrap_as.template operator()<IpVersion::v4>();
        else
            wrap_as.template operator()<IpVersion::v6>();
    }

    static constexpr std::size_t covered_octets = Layout<IpVersion::v6>::tag_end - Layout<IpVersion::v4>::tag_end;

    /// Each buffer of a mix holds at least IPv6's smallest frame.
    static void restore_pattern(std::span<std::byte* const> frames) noexcept {
        constexpr auto pattern = [] {
            std::array<std::byte, covered_octets> octets{};
            for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::byte>(i);
            return octets;
        }();
        for (std::byte* const frame : frames)
            std::memcpy(frame + Layout<IpVersion::v4>::tag_end, pattern.data(), pattern.size());
    }

    /// Frames of the first plan: flows have no other.
    void write_marks(IpVersion version, std::size_t at, std::span<std::byte* const> frames) const noexcept {
        for (std::size_t i = 0; i < frames.size(); ++i)
            put_mark(frames[i], version, blocks_[0].marks[at + i] & plan::FlowPatterns::mark_mask);
    }

    void write_macs(const MixParts::Stack& stack, std::span<std::byte* const> frames) const noexcept {
        constexpr std::size_t source_mac = 6;
        const std::size_t source =
            stack.version == IpVersion::v4 ? Layout<IpVersion::v4>::source : Layout<IpVersion::v6>::source;
        for (std::byte* const frame : frames) {
            const auto host = stack.hosts->find(frame + source);
            if (!host) continue;
            const auto mac = parts_->macs->mac(*host);
            std::memcpy(frame + source_mac, mac.data(), mac.size());
        }
    }

    std::shared_ptr<const MixParts> parts_;
    std::uint64_t next_ = 0;
    std::size_t position_ = 0;        // of the next frame in the cycle
    std::size_t block_position_ = 0;  // of the first frame of `blocks_`
    std::array<plan::FlowBlock, 2> blocks_{};
};

}  // namespace evenhand::frame
