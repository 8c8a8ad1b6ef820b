// SPDX-License-Identifier: Apache-2.0
// Session: lines in, lines out. The only reader of stdin and the only writer of stdout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace evenhand::session {

class LineChannel {
   public:
    /// Takes stdout for the documents alone; whatever else is printed there (DPDK does) goes to stderr from now on.
    LineChannel();
    ~LineChannel();
    LineChannel(const LineChannel&) = delete;
    LineChannel& operator=(const LineChannel&) = delete;

    /// The next line without its end, waiting at most `timeout_ms` (-1: for ever). Nothing if none came; see is_ended().
    std::optional<std::string> read_line(int timeout_ms);

    /// Looks at the next line that has come, if any, and leaves it there.
    const std::string* peek_line();

    /// stdin has ended (the client is gone) or a signal asked us to end.
    [[nodiscard]] bool is_ended() const;

    /// Throws nothing: a client that does not read any more ends stdin soon.
    void write_line(std::string_view line);

   private:
    bool fill(int timeout_ms);

    int out_ = -1;
    std::string pending_;
    std::optional<std::string> peeked_;
    bool end_of_input_ = false;
};

}  // namespace evenhand::session
