// SPDX-License-Identifier: Apache-2.0
// Session: reads and writes lines. The only reader of stdin and the only writer of stdout; it notices the end whatever
// it waits for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "contract/limits.hpp"

namespace evenhand::session {

/// Reserves stdout for the documents and returns its descriptor. Whatever else is printed to stdout (DPDK does so) goes
/// to stderr from now on.
[[nodiscard]] int take_stdout();

/// From now on, SIGINT, SIGTERM and SIGHUP end every LineChannel of this process instead of the process, and SIGPIPE
/// has no effect.
void end_by_signals();

/// What a line means to the request that is running.
enum class LineKind : std::uint8_t {
    other,
    stop,    // asks to end it
    notice,  // tells it something
    beside,  // is answered while it runs
};

/// For one thread.
class LineChannel {
   public:
    using KindOf = LineKind (*)(const std::string& line);

    /// The channel owns `out`, but not `in`. Only goes_on() calls `kind_of`.
    LineChannel(int in, int out, KindOf kind_of) noexcept;
    ~LineChannel();
    LineChannel(const LineChannel&) = delete;
    LineChannel& operator=(const LineChannel&) = delete;

    /// The next line without its end, waiting at most `timeout_ms` (-1: for ever). Nothing if none arrived; see
    /// is_ended(). For a line that is too long, its first contract::longest_line + 1 octets, so that it will be
    /// refused.
    std::optional<std::string> read_line(int timeout_ms);

    /// Whether nothing more will arrive, nobody reads the output any more, or a signal asked to end.
    [[nodiscard]] bool is_ended() const noexcept;

    /// To be called by a running request some times a second: reads what has arrived and never waits. False if the
    /// request must end, because of a stop, even behind other lines; because the client is gone (the end of a pipe, a
    /// socket or a terminal; a file has no client that could go); or because of a signal.
    [[nodiscard]] bool goes_on();

    /// Whether goes_on() has found a reason to end that is still valid: then nothing that takes time need be started.
    [[nodiscard]] bool is_stopped() const noexcept;

    /// Whether nothing has arrived from the client for so long, not even an empty line, which is ignored otherwise. To
    /// be asked right after goes_on().
    [[nodiscard]] bool is_silent_for(std::chrono::duration<double> time) const noexcept {
        return std::chrono::steady_clock::now() - heard_at_ > time;
    }

    /// The last notice that goes_on() has found, returned once; its line keeps its place in the queue.
    [[nodiscard]] std::optional<std::string> take_notice() { return std::exchange(notice_, std::nullopt); }

    /// The first line of kind `beside` that goes_on() has found, taken out of the queue.
    [[nodiscard]] std::optional<std::string> take_beside();

    /// Waits until the line is written, and reads lines meanwhile. If the client is gone and nothing is accepted for
    /// half a second, or half a second after a signal, the rest is dropped, and the channel has ended. A failure to
    /// write is not an error.
    void write_line(std::string_view line);

    /// The most that may be waiting, in octets and lines; beyond that nothing is read until some lines are served. The
    /// end is noticed even then, but a stop beyond this is not.
    static constexpr std::size_t most_waiting_octets = contract::longest_line;
    static constexpr std::size_t most_waiting_lines = 65536;

   private:
    struct Line {
        std::string text;
        LineKind kind = LineKind::other;  // once it was examined
    };

    bool take_in(int timeout_ms);
    void split(std::string_view octets);
    void end_line();
    bool wait_for_reader();
    /// Takes an examined or an unexamined line out of the queue.
    std::string take_out(const std::deque<Line>::iterator& line);
    [[nodiscard]] bool is_full() const noexcept {
        return waiting_.size() >= most_waiting_lines || waiting_octets_ >= most_waiting_octets;
    }
    /// The events of stdin to ask poll() for.
    [[nodiscard]] short wanted_of_input() const noexcept;
    [[nodiscard]] bool is_client_gone() const noexcept { return !is_file_ && (end_of_input_ || has_hung_up_); }

    int in_;
    int out_;
    KindOf kind_of_;
    bool is_file_;
    std::deque<Line> waiting_;
    std::size_t waiting_octets_ = 0;
    std::string partial_;        // a line whose end has not arrived
    std::size_t looked_at_ = 0;  // how many of the waiting lines goes_on() has examined
    std::size_t stops_ = 0;      // how many of the examined lines are a stop
    std::size_t besides_ = 0;    // how many of them are answered while a request runs
    std::optional<std::string> notice_;
    bool has_ended_one_ = false;  // goes_on() has found that the client is gone
    std::chrono::steady_clock::time_point heard_at_ = std::chrono::steady_clock::now();
    bool end_of_input_ = false;  // all of it has been read
    bool has_hung_up_ = false;   // nobody writes to it any more
    bool is_given_up_ = false;   // nobody reads our output
    std::optional<std::chrono::steady_clock::time_point> signal_seen_;
};

}  // namespace evenhand::session
