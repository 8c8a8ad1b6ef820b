// SPDX-License-Identifier: Apache-2.0
// Stations 2 and 5: frames of connections through a DUT that keeps state (RFC 9693): what the initiator and the
// responder send, and what arrives of it.
//
// The forward direction is the initiator's: its frames open connections, or belong to open ones. The reverse direction
// is the responder's: it answers to the addresses that it has learnt, and never opens a connection (R9693-01).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "frame/connection_flows.hpp"
#include "frame/source.hpp"
#include "frame/state_table.hpp"
#include "frame/translation.hpp"
#include "plan/four_tuples.hpp"

namespace evenhand::frame {

/// What arrives of connections: the twin of ConnectionSource. Copies share what they have drawn: not for several
/// receivers at once.
class ConnectionExpectation : public TranslatedFrames {
   public:
    static constexpr bool has_classes = false;

    /// `learns`: the frames open connections, and the table is filled with what they were translated to. Otherwise each
    /// must arrive with the translation that was recorded. `streams`: how many the direction has.
    ConnectionExpectation(const TestFrameExpectation& frames, const LinkFrames& arrives, StateTable& table,
                          const plan::ConnectionDraw& draw, plan::Direction direction, bool learns,
                          std::uint64_t streams)
        : TranslatedFrames{frames, arrives},
          table_{&table},
          learns_{learns},
          flows_{std::make_shared<KeptFlows<ConnectionFlows>>(
              ConnectionFlows{table, draw, direction, LinkEnd::arriving}, streams)} {}

    /// As TestFrameExpectation::holds(), and each address and port must be that of the frame's connection.
    [[nodiscard]] bool holds(std::size_t frame_class, const std::byte* frame, IpVersion version) const noexcept {
        return is_sound(frame_class, frame, version) && has_its_flow(frame);
    }

    /// The same checks for whole bursts of a trial; nothing if this CPU cannot do them.
    [[nodiscard]] BurstChecks burst_checks(StreamIdentity of) const {
        return frames().burst_checks(
            of,
            {.draw = flows_->draw(), .streams = flows_->streams(), .is_translated = true, .chooses_source = learns_});
    }

    [[nodiscard]] bool learns() const noexcept { return learns_; }
    /// Called for the first frame that arrives with its number.
    void learn(const std::byte* frame, std::uint64_t sequence) const noexcept {
        if (!learns_) return;
        table_->record(table_->own().place(sequence),
                       {.host = number(frame, at().source), .port = number(frame, at().ports)});
    }

   private:
    [[nodiscard]] bool has_its_flow(const std::byte* frame) const noexcept;

    StateTable* table_;
    bool learns_;
    std::shared_ptr<KeptFlows<ConnectionFlows>> flows_;
};

using ConnectionSource = DrawnFrameSource<ConnectionFlows, ConnectionExpectation>;

}  // namespace evenhand::frame
