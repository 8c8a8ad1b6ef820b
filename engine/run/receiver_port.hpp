// SPDX-License-Identifier: Apache-2.0
// Station 5: what the receiver needs of a port and of the responder to neighbours.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

namespace evenhand::run {

/// A port that receives. A received frame belongs to the receiver until release(), or until post_answer() passes it on.
template <class P>
concept RxPort = requires(P port, unsigned queue, typename P::Frame** frames, typename P::Frame* frame, unsigned n) {
    { port.receive(queue, frames, n) } noexcept -> std::same_as<unsigned>;
    { P::octets(frame) } noexcept -> std::same_as<std::byte*>;
    { P::length(frame) } noexcept -> std::same_as<std::size_t>;
    { P::room(frame) } noexcept -> std::same_as<std::size_t>;  // octets that the buffer can hold
    { P::set_length(frame, std::size_t{}) } noexcept;
    { port.release(frames, n) } noexcept;
    { port.post_answer(frame) } noexcept;  // to be sent by the worker that owns the port's first transmit queue
};

/// Answers a neighbour's frame in its own buffer. Returns the octets of the answer, or 0 if there is none.
template <class R>
concept NeighborAnswerer = requires(R responder, std::span<std::byte> frame, std::size_t octets) {
    { responder.answer(frame, octets) } noexcept -> std::same_as<std::size_t>;
};

/// Shows frames that arrived between trials to a responder that wants to see them.
template <RxPort Port, NeighborAnswerer Responder>
[[gnu::noinline]] void show_all(Responder& responder, std::span<typename Port::Frame* const> frames) {
    if constexpr (requires { responder.look_on(std::span<const std::byte>{}); }) {
        for (auto* const frame : frames) responder.look_on({Port::octets(frame), Port::length(frame)});
    }
}

}  // namespace evenhand::run
