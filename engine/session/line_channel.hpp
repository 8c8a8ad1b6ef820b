// SPDX-License-Identifier: Apache-2.0
// Session: lines in, lines out. The only reader of stdin and the only writer of stdout; whatever it waits for, the end
// is noticed.
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

/// Takes stdout for the documents alone: its descriptor; whatever else is printed there (DPDK does) goes to stderr from
/// now on.
[[nodiscard]] int take_stdout();

/// From now on SIGINT, SIGTERM and SIGHUP end every LineChannel of this process instead of the process, and SIGPIPE
/// does nothing.
void end_by_signals();

/// What a line is to the request that runs.
enum class LineKind : std::uint8_t {
    other,
    stop,    // asks to end it
    notice,  // tells it something
};

/// One thread's.
class LineChannel {
   public:
    using KindOf = LineKind (*)(const std::string& line);

    /// The channel owns `out`, not `in`. `kind_of` is asked by goes_on() only.
    LineChannel(int in, int out, KindOf kind_of) noexcept;
    ~LineChannel();
    LineChannel(const LineChannel&) = delete;
    LineChannel& operator=(const LineChannel&) = delete;

    /// The next line without its end, waiting at most `timeout_ms` (-1: for ever). Nothing if none came; see
    /// is_ended(). Of a line that is too long, contract::longest_line + 1 octets: enough to be refused.
    std::optional<std::string> read_line(int timeout_ms);

    /// Nothing more will come, nobody reads any more, or a signal asked us to end.
    [[nodiscard]] bool is_ended() const noexcept;

    /// For a request that runs, some times a second: takes in what has come and never waits. False if the request must
    /// end: a stop waits, be it behind other lines; the client is gone (the end of a pipe, a socket or a terminal; a
    /// file has no client that could go); a signal.
    [[nodiscard]] bool goes_on();

    /// What goes_on() has found still holds: the stop waits, or nobody is there any more. What takes time need not
    /// begin.
    [[nodiscard]] bool is_stopped() const noexcept;

    /// Whether nothing has come from the client for so long: not even an empty line, which is no request and is
    /// dropped. Asked right after goes_on().
    [[nodiscard]] bool is_silent_for(std::chrono::duration<double> time) const noexcept {
        return std::chrono::steady_clock::now() - heard_at_ > time;
    }

    /// The last notice that goes_on() has found, once; it waits for its turn all the same.
    [[nodiscard]] std::optional<std::string> take_notice() { return std::exchange(notice_, std::nullopt); }

    /// Waits until it is taken, and takes in lines meanwhile. If the client is gone and nothing is taken for half a
    /// second, or half a second after a signal, the rest is dropped, and this is the end. That it cannot be written is
    /// no error.
    void write_line(std::string_view line);

    /// At the most so much waits, in octets and lines; then nothing is read until some are served. The end is noticed
    /// all the same, a stop beyond this is not.
    static constexpr std::size_t most_waiting_octets = contract::longest_line;
    static constexpr std::size_t most_waiting_lines = 65536;

   private:
    struct Line {
        std::string text;
        bool is_stop = false;
    };

    bool take_in(int timeout_ms);
    void split(std::string_view octets);
    void end_line();
    bool wait_for_reader();
    [[nodiscard]] bool is_full() const noexcept {
        return waiting_.size() >= most_waiting_lines || waiting_octets_ >= most_waiting_octets;
    }
    /// What to ask poll() of stdin.
    [[nodiscard]] short wanted_of_input() const noexcept;
    [[nodiscard]] bool is_client_gone() const noexcept { return !is_file_ && (end_of_input_ || has_hung_up_); }

    int in_;
    int out_;
    KindOf kind_of_;
    bool is_file_;
    std::deque<Line> waiting_;
    std::size_t waiting_octets_ = 0;
    std::string partial_;        // a line whose end has not come
    std::size_t looked_at_ = 0;  // how many of those that wait goes_on() has looked at
    std::size_t stops_ = 0;      // how many of these are a stop
    std::optional<std::string> notice_;
    bool has_ended_one_ = false;  // goes_on() has found that the client is gone
    std::chrono::steady_clock::time_point heard_at_ = std::chrono::steady_clock::now();
    bool end_of_input_ = false;  // all of it has been read
    bool has_hung_up_ = false;   // nobody writes it any more
    bool is_given_up_ = false;   // nobody reads what we write
    std::optional<std::chrono::steady_clock::time_point> signal_seen_;
};

}  // namespace evenhand::session
