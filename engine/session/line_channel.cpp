// SPDX-License-Identifier: Apache-2.0
#include "session/line_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <utility>

namespace evenhand::session {
namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 500ms;  // with a client that is gone, or that does not read after a signal

volatile std::sig_atomic_t end_wanted = 0;
/// Becomes readable with the first signal. A flag alone would not suffice: the signal may come just before poll(), or
/// to another thread.
int wake = -1;

void on_signal(int /*number*/) {
    const int error = errno;
    end_wanted = 1;
    const std::uint64_t one = 1;
    (void)!write(wake, &one, sizeof one);
    errno = error;
}

bool is_regular_file(int descriptor) noexcept {
    struct stat facts = {};
    return fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace

int take_stdout() {
    const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return out;
}

void end_by_signals() {
    if (wake < 0) {
        // Duplicated to a number above stderr: if stdin is closed, this descriptor must not become stdin.
        const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        wake = fcntl(event, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(event);
    }
    struct sigaction action = {};
    action.sa_handler = on_signal;  // without SA_RESTART: write() returns
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

LineChannel::LineChannel(int in, int out, KindOf kind_of) noexcept
    : in_{in}, out_{out}, kind_of_{kind_of}, is_file_{is_regular_file(in)} {}

LineChannel::~LineChannel() { close(out_); }

bool LineChannel::is_ended() const noexcept {
    return end_wanted != 0 || is_given_up_ || (end_of_input_ && waiting_.empty());
}

bool LineChannel::is_stopped() const noexcept {
    return end_wanted != 0 || is_given_up_ || stops_ != 0 || has_ended_one_;
}

short LineChannel::wanted_of_input() const noexcept {
    return static_cast<short>(is_full() ? POLLRDHUP : POLLIN | POLLRDHUP);
}

/// False if nothing arrived, or nothing can be read.
bool LineChannel::take_in(int timeout_ms) {
    if (end_of_input_) return false;
    std::array<pollfd, 2> wanted{
        {{.fd = in_, .events = wanted_of_input(), .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}}};
    if (poll(wanted.data(), wanted.size(), timeout_ms) <= 0 || wanted[0].revents == 0) return false;
    if ((wanted[0].revents & (POLLHUP | POLLRDHUP)) != 0) has_hung_up_ = true;
    if (is_full()) return false;
    std::array<char, 65536> chunk;
    const ssize_t n = read(in_, chunk.data(), chunk.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (n <= 0) {
        end_of_input_ = true;
        if (partial_.empty()) return false;
        end_line();  // a last line that has no end
        return true;
    }
    heard_at_ = Steady::now();
    split({chunk.data(), static_cast<std::size_t>(n)});
    return true;
}

void LineChannel::split(std::string_view octets) {
    while (!octets.empty()) {
        const std::size_t end = octets.find('\n');
        const auto piece = octets.substr(0, end);
        partial_.append(piece.substr(0, contract::longest_line + 1 - partial_.size()));
        if (end == std::string_view::npos) return;
        end_line();
        octets.remove_prefix(end + 1);
    }
}

void LineChannel::end_line() {
    if (partial_.empty()) return;  // a sign of life; thousands of them may arrive while a request runs
    waiting_octets_ += partial_.size();
    waiting_.push_back({.text = std::move(partial_)});
    partial_ = {};
}

std::optional<std::string> LineChannel::read_line(int timeout_ms) {
    for (;;) {
        if (end_wanted != 0) return std::nullopt;
        if (!waiting_.empty()) break;
        if (!take_in(timeout_ms)) return std::nullopt;
    }
    return take_out(waiting_.begin());
}

std::optional<std::string> LineChannel::take_beside() {
    if (besides_ == 0) return std::nullopt;
    return take_out(std::ranges::find(waiting_, LineKind::beside, &Line::kind));
}

std::string LineChannel::take_out(const std::deque<Line>::iterator& line) {
    std::string text = std::move(line->text);
    stops_ -= static_cast<std::size_t>(line->kind == LineKind::stop);
    besides_ -= static_cast<std::size_t>(line->kind == LineKind::beside);
    waiting_octets_ -= text.size();
    if (looked_at_ != 0) --looked_at_;  // lines are taken from the front, or have been examined
    waiting_.erase(line);
    return text;
}

bool LineChannel::goes_on() {
    while (take_in(0)) {}
    for (; looked_at_ < waiting_.size(); ++looked_at_) {
        Line& line = waiting_[looked_at_];
        line.kind = kind_of_(line.text);
        stops_ += static_cast<std::size_t>(line.kind == LineKind::stop);
        besides_ += static_cast<std::size_t>(line.kind == LineKind::beside);
        if (line.kind == LineKind::notice) notice_ = line.text;
    }
    if (is_client_gone()) has_ended_one_ = true;
    return !is_stopped();
}

/// False if nobody will read.
bool LineChannel::wait_for_reader() {
    std::optional<Steady::time_point> gone_seen;
    for (;;) {
        const auto now = Steady::now();
        if (end_wanted != 0 && !signal_seen_) signal_seen_ = now;
        if (is_client_gone() && !gone_seen) gone_seen = now;
        auto left = Steady::duration::max();
        for (const auto& seen : {signal_seen_, gone_seen}) {
            if (seen) left = std::min(left, *seen + patience - now);
        }
        if (left <= 0ms) return false;
        const bool is_input_over = end_of_input_ || (has_hung_up_ && is_full());
        std::array<pollfd, 3> wanted{{{.fd = out_, .events = POLLOUT, .revents = 0},
                                      {.fd = is_input_over ? -1 : in_, .events = wanted_of_input(), .revents = 0},
                                      {.fd = end_wanted != 0 ? -1 : wake, .events = POLLIN, .revents = 0}}};
        constexpr int for_ever = -1;
        const int timeout_ms = left == Steady::duration::max()
                                   ? for_ever
                                   : static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
        if (poll(wanted.data(), wanted.size(), timeout_ms) <= 0) continue;
        if (wanted[0].revents != 0) return true;
        if (wanted[1].revents != 0) (void)take_in(0);
    }
}

void LineChannel::write_line(std::string_view line) {
    if (out_ < 0) return;
    const std::string text = std::string{line} + '\n';
    for (std::size_t done = 0; done < text.size() && !is_given_up_;) {
        if (!wait_for_reader()) {
            is_given_up_ = true;
            return;
        }
        // As much as a pipe accepts at once if it accepts anything: the descriptor may be shared with others, so it
        // cannot be made non-blocking for us alone.
        const ssize_t n = write(out_, text.data() + done, std::min<std::size_t>(text.size() - done, PIPE_BUF));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return;
        done += static_cast<std::size_t>(n);
    }
}

}  // namespace evenhand::session
