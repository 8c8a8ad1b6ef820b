// SPDX-License-Identifier: Apache-2.0
// Session: lines through real pipes and files; what waits, what is skipped, and that the end is noticed whatever else
// happens.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "session/line_channel.hpp"

namespace line_channel_test {

using evenhand::contract::longest_line;
using evenhand::session::LineChannel;
using evenhand::session::LineKind;

namespace {

LineKind kind_of(const std::string& line) {
    if (line == "stop") return LineKind::stop;
    if (line.starts_with("beside")) return LineKind::beside;
    return line.starts_with("notice") ? LineKind::notice : LineKind::other;
}

void write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = write(to, text.data(), text.size());
        REQUIRE(n > 0);
        text.remove_prefix(static_cast<std::size_t>(n));
    }
}

struct Pipe {
    Pipe() { REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0); }
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    void close_end(std::size_t i) {
        if (ends[i] >= 0) close(ends[i]);
        ends[i] = -1;
    }
    [[nodiscard]] int release_end(std::size_t i) {
        const int end = ends[i];
        ends[i] = -1;
        return end;
    }
    std::array<int, 2> ends{-1, -1};
};

/// A channel and its client.
struct Bench {
    void say(std::string_view text) const { write_all(in.ends[1], text); }
    void leave() { in.close_end(1); }
    std::string next() { return channel.read_line(-1).value_or("(nothing)"); }

    Pipe in;
    Pipe out;
    LineChannel channel{in.ends[0], out.release_end(1), kind_of};
};

}  // namespace

TEST_CASE("lines come in order, and the last one needs no end") {
    Bench bench;
    bench.say("one\n\ntw");
    CHECK(bench.next() == "one");
    CHECK_FALSE(bench.channel.read_line(0));  // an empty line is a sign of life and no line
    bench.say("o\nthree");
    bench.leave();
    CHECK(bench.next() == "two");
    CHECK_FALSE(bench.channel.is_ended());
    CHECK(bench.next() == "three");
    CHECK_FALSE(bench.channel.read_line(-1));
    CHECK(bench.channel.is_ended());
}

TEST_CASE("of a line that is too long only so much is kept that it can be refused, and the next one is served") {
    Bench bench;
    std::thread client{[&] {
        const std::string megabyte(1U << 20U, 'x');
        for (int i = 0; i < 70; ++i) bench.say(megabyte);
        bench.say("\n" + std::string(longest_line, 'y') + "\nabout\n");
    }};
    CHECK(bench.next() == std::string(longest_line + 1, 'x'));
    CHECK(bench.next() == std::string(longest_line, 'y'));
    CHECK(bench.next() == "about");
    client.join();
}

TEST_CASE("a stop ends what runs and what waits before it, however many lines that is") {
    Bench bench;
    bench.say("first\nsecond\n");
    CHECK(bench.next() == "first");
    CHECK(bench.channel.goes_on());
    std::thread client{[&] {
        for (int i = 0; i < 20'000; ++i) bench.say("between\n");
        bench.say("stop\nlast\n");
    }};
    while (bench.channel.goes_on()) std::this_thread::yield();
    client.join();
    CHECK(bench.next() == "second");
    for (int i = 0; i < 20'000; ++i) {
        REQUIRE(bench.channel.is_stopped());
        REQUIRE(bench.next() == "between");
    }
    CHECK(bench.channel.is_stopped());
    CHECK(bench.next() == "stop");
    CHECK_FALSE(bench.channel.is_stopped());
    CHECK(bench.channel.goes_on());
    CHECK(bench.next() == "last");
}

TEST_CASE("a stop that was served before anything ran ends nothing") {
    Bench bench;
    bench.say("stop\nfirst\n");
    CHECK(bench.next() == "stop");
    CHECK(bench.next() == "first");
    CHECK(bench.channel.goes_on());
}

TEST_CASE("the end of a pipe ends what runs, also behind lines that wait, and these are still served") {
    Bench bench;
    bench.say("first\nsecond\nthird");
    bench.leave();
    CHECK(bench.next() == "first");
    CHECK_FALSE(bench.channel.is_stopped());  // as long as nothing runs, everything is served
    CHECK_FALSE(bench.channel.goes_on());
    CHECK(bench.channel.is_stopped());
    CHECK_FALSE(bench.channel.is_ended());
    CHECK(bench.next() == "second");
    CHECK(bench.next() == "third");
    CHECK(bench.channel.is_ended());
}

TEST_CASE("a file has no client that could go") {
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    write_all(fileno(file), "first\nsecond\n");
    REQUIRE(lseek(fileno(file), 0, SEEK_SET) == 0);
    Pipe out;
    LineChannel channel{fileno(file), out.release_end(1), kind_of};
    CHECK(channel.read_line(-1) == "first");
    CHECK(channel.goes_on());
    CHECK(channel.read_line(-1) == "second");
    CHECK(channel.goes_on());
    CHECK_FALSE(channel.read_line(-1));
    CHECK(channel.is_ended());
    std::fclose(file);
}

TEST_CASE("a notice is told to what runs once, and waits for its turn") {
    Bench bench;
    CHECK(bench.channel.goes_on());
    CHECK_FALSE(bench.channel.take_notice());
    bench.say("about\nnotice 1\nnotice 2\n");
    CHECK(bench.channel.goes_on());
    CHECK(bench.channel.take_notice() == "notice 2");
    CHECK(bench.channel.goes_on());
    CHECK_FALSE(bench.channel.take_notice());
    for (const char* line : {"about", "notice 1", "notice 2"}) CHECK(bench.next() == line);
}

TEST_CASE("what is answered beside a running request is taken out of the queue, and what runs later gets the rest") {
    Bench bench;
    bench.say("beside 0\nfirst\n");
    CHECK(bench.next() == "beside 0");  // nothing runs: in its order
    CHECK_FALSE(bench.channel.take_beside());
    bench.say("beside 1\nabout\nstop\nbeside 2\n");
    CHECK(bench.next() == "first");
    CHECK_FALSE(bench.channel.goes_on());
    CHECK(bench.channel.take_beside() == "beside 1");
    CHECK(bench.channel.take_beside() == "beside 2");
    CHECK_FALSE(bench.channel.take_beside());
    bench.say("beside 3\nlast\n");
    CHECK_FALSE(bench.channel.goes_on());
    for (const char* line : {"about", "stop", "beside 3", "last"}) CHECK(bench.next() == line);
    CHECK(bench.channel.goes_on());
    CHECK_FALSE(bench.channel.take_beside());
}

TEST_CASE("what waits is bounded, the end is seen behind what is not read, and nothing is lost") {
    Bench bench;
    const std::string line = std::string((1U << 16U) - 1, 'x') + "\n";
    constexpr std::size_t beyond = 4;  // that stay in the pipe
    const std::size_t lines = LineChannel::most_waiting_octets / (line.size() - 1) + 1;
    REQUIRE(fcntl(bench.in.ends[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
    for (std::size_t i = 0; i < lines; ++i) {
        bench.say(line);
        REQUIRE(bench.channel.goes_on());
    }
    for (std::size_t i = 0; i < beyond; ++i) bench.say(line);
    bench.say("stop\n");
    CHECK(bench.channel.goes_on());  // it was not looked at
    bench.leave();
    CHECK_FALSE(bench.channel.goes_on());
    for (std::size_t i = 0; i < lines + beyond; ++i) REQUIRE(bench.next().size() == line.size() - 1);
    CHECK(bench.next() == "stop");
    CHECK_FALSE(bench.channel.read_line(-1));
    CHECK(bench.channel.is_ended());
}

TEST_CASE("while nobody reads, lines are taken in; what was not read is written when somebody does") {
    Bench bench;
    const std::string reply(1U << 20U, 'r');
    std::thread client{[&] {
        bench.say("one\n");
        for (int i = 0; i < 50'000; ++i)
            bench.say("two, three\n");  // eight times what the pipe holds: somebody must be reading
        std::string got;
        std::array<char, 65536> chunk;
        while (got.size() < reply.size() + 1) {
            const ssize_t n = read(bench.out.ends[0], chunk.data(), chunk.size());
            REQUIRE(n > 0);
            got.append(chunk.data(), static_cast<std::size_t>(n));
        }
        CHECK(got == reply + "\n");
        bench.leave();
    }};
    bench.channel.write_line(reply);
    client.join();
    CHECK(bench.next() == "one");
}

TEST_CASE("a client that is gone and reads nothing does not hold the end up") {
    std::signal(SIGPIPE, SIG_IGN);
    Bench bench;
    bench.say("first\nsecond\n");
    CHECK(bench.next() == "first");
    bench.leave();
    bench.channel.write_line(std::string(1U << 20U, 'r'));
    CHECK(bench.channel.is_ended());
    CHECK_FALSE(bench.channel.goes_on());
    Bench closed;
    closed.out.close_end(0);
    closed.channel.write_line("nobody");
    closed.say("first\n");
    CHECK(closed.next() == "first");
}

}  // namespace line_channel_test
