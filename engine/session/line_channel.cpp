// SPDX-License-Identifier: Apache-2.0
#include "session/line_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace evenhand::session {
namespace {

constexpr std::size_t longest_line = 64U << 20U;
volatile std::sig_atomic_t end_wanted = 0;

void on_signal(int /*number*/) { end_wanted = 1; }

}  // namespace

LineChannel::LineChannel() {
    out_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    struct sigaction action = {};
    action.sa_handler = on_signal;  // without SA_RESTART: poll() returns
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

LineChannel::~LineChannel() { close(out_); }

bool LineChannel::is_ended() const { return end_wanted != 0 || (end_of_input_ && !peeked_ && pending_.find('\n') == std::string::npos); }

bool LineChannel::fill(int timeout_ms) {
    if (end_of_input_) return false;
    pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&in, 1, timeout_ms) <= 0) return false;
    std::array<char, 65536> chunk;
    const ssize_t n = read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) return false;
    if (n <= 0 || pending_.size() > longest_line) {
        end_of_input_ = true;
        if (!pending_.empty() && pending_.back() != '\n') pending_ += '\n';  // a last line without its end
        return !pending_.empty();
    }
    pending_.append(chunk.data(), static_cast<std::size_t>(n));
    return true;
}

std::optional<std::string> LineChannel::read_line(int timeout_ms) {
    if (peeked_) {
        auto line = std::move(peeked_);
        peeked_.reset();
        return line;
    }
    for (;;) {
        if (const auto end = pending_.find('\n'); end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        if (end_wanted != 0 || !fill(timeout_ms)) return std::nullopt;
    }
}

const std::string* LineChannel::peek_line() {
    if (!peeked_) peeked_ = read_line(0);
    return peeked_ ? &*peeked_ : nullptr;
}

void LineChannel::write_line(std::string_view line) {
    std::string text{line};
    text += '\n';
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = write(out_, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return;
        done += static_cast<std::size_t>(n);
    }
}

}  // namespace evenhand::session
