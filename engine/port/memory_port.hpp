// SPDX-License-Identifier: Apache-2.0
// Station 4, port: a port inside the process, for tests of the loops. Frames that are sent at one end are received at
// the other, unless a test removes, doubles, reorders or changes them in between.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace evenhand::port {

class MemoryPort {
   public:
    struct Frame {
        std::array<std::byte, 2048> octets{};
        std::size_t length = 0;
    };

    /// At most `buffers` frames are on their way or held.
    explicit MemoryPort(std::size_t buffers = 4096) : storage_(buffers) {
        for (auto& frame : storage_) free_.push_back(&frame);
    }

    /// Frames sent here are received at `other`.
    void connect(MemoryPort& other) { peer_ = &other; }

    /// How many frames send() accepts before it refuses; default: all.
    std::size_t accept_at_most = static_cast<std::size_t>(-1);
    /// How many frames receive() hands over at once, however many wait; default: as many as requested.
    unsigned hand_over_at_most = static_cast<unsigned>(-1);
    /// Called for each sent frame; returns how many copies arrive. Default: one.
    std::function<unsigned(Frame&)> on_the_wire;

    unsigned reserve(unsigned /*queue*/, Frame** frames, unsigned n) noexcept {
        unsigned got = 0;
        for (; got < n && !free_.empty(); ++got) {
            frames[got] = free_.back();
            free_.pop_back();
        }
        return got;
    }
    static std::byte* octets(Frame* frame) noexcept { return frame->octets.data(); }
    static std::size_t length(Frame* frame) noexcept { return frame->length; }
    static std::size_t room(Frame* frame) noexcept { return frame->octets.size(); }
    static void set_length(Frame* frame, std::size_t octets) noexcept { frame->length = octets; }

    unsigned send(unsigned /*queue*/, Frame** frames, unsigned n) noexcept {
        unsigned accepted = 0;
        for (; accepted < n && accept_at_most > 0; ++accepted, --accept_at_most) {
            const unsigned copies = on_the_wire ? on_the_wire(*frames[accepted]) : 1;
            for (unsigned i = 0; i < copies && peer_ != nullptr; ++i) peer_->arrived_.push_back(*frames[accepted]);
            free_.push_back(frames[accepted]);
        }
        return accepted;
    }
    void give_back(Frame** frames, unsigned n) noexcept { free_.insert(free_.end(), frames, frames + n); }

    unsigned receive(unsigned /*queue*/, Frame** frames, unsigned n) noexcept {
        unsigned got = 0;
        for (; got < n && got < hand_over_at_most && !arrived_.empty() && !free_.empty(); ++got) {
            frames[got] = free_.back();
            free_.pop_back();
            *frames[got] = arrived_.front();
            arrived_.pop_front();
        }
        return got;
    }
    void release(Frame** frames, unsigned n) noexcept { give_back(frames, n); }
    void post_answer(Frame* frame) noexcept { (void)send(0, &frame, 1); }
    unsigned flush_answers() noexcept { return 0; }  // no answer waits
    void send_control(const std::function<std::size_t(std::span<std::byte>)>& write) {
        Frame* frame = nullptr;
        if (reserve(0, &frame, 1) == 0) return;
        set_length(frame, write(frame->octets));
        (void)send(0, &frame, 1);
    }

    /// Delivers a frame from outside, for tests.
    void inject(const Frame& frame) { arrived_.push_back(frame); }
    [[nodiscard]] std::deque<Frame>& arrived() { return arrived_; }

   private:
    std::vector<Frame> storage_;
    std::vector<Frame*> free_;
    std::deque<Frame> arrived_;
    MemoryPort* peer_ = nullptr;
};

}  // namespace evenhand::port
