// SPDX-License-Identifier: Apache-2.0
// evenhand-engine: one process is one tester. Requests on stdin, replies on stdout, words for people on stderr.
//
// The way of a frame: session/session.cpp -> run/trial.cpp -> run/sender.hpp -> port -> DUT -> port -> run/receiver.hpp
// -> tally.

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "build_facts.hpp"
#include "contract/reply.hpp"
#include "port/dpdk_host.hpp"
#include "port/link_keeper.hpp"
#include "session/line_channel.hpp"
#include "session/session.hpp"

namespace {

constexpr const char* usage =
    "evenhand-engine: the tester's data plane. It reads requests on stdin, one JSON object a line, and answers on "
    "stdout.\n"
    "People use `evenhand`, which starts it.\n"
    "\n"
    "  evenhand-engine           serve until stdin ends\n"
    "  evenhand-engine --about   print version, contract, DPDK and build type as JSON\n";

int print_about() {
    const auto about = evenhand::contract::write_about(0, {.version = evenhand::build_facts::version,
                                                           .dpdk = evenhand::port::dpdk_version(),
                                                           .compiler = evenhand::build_facts::compiler,
                                                           .build_type = evenhand::build_facts::build_type});
    std::puts(about.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view{argv[1]} == "--about") return print_about();
    if (argc == 3 && std::string_view{argv[1]} == evenhand::port::keep_link_option)
        return evenhand::port::keep_link(argv[2]);
    if (argc != 1) {
        std::fputs(usage, stderr);
        constexpr int bad_request = 2;
        return bad_request;
    }
    evenhand::port::lead_session();
    (void)evenhand::port::allowed_cpus();  // read before DPDK moves this thread
    try {
        evenhand::session::end_by_signals();
        evenhand::session::LineChannel channel{STDIN_FILENO, evenhand::session::take_stdout(),
                                               evenhand::session::kind_of};
        evenhand::session::Session{channel}.serve();
        evenhand::port::stop_dpdk();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "evenhand-engine: %s\n", error.what());
        constexpr int bug = 4;
        return bug;
    }
    return 0;
}
