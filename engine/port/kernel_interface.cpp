// SPDX-License-Identifier: Apache-2.0
#include "port/kernel_interface.hpp"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace evenhand::port {
namespace {

class Socket {
   public:
    Socket(int family, int type, int protocol) noexcept : file_{socket(family, type | SOCK_CLOEXEC, protocol)} {}
    ~Socket() {
        if (file_ >= 0) close(file_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] int file() const noexcept { return file_; }

   private:
    int file_;
};

struct Request {
    nlmsghdr head{};
    ifinfomsg info{};
    std::array<std::byte, 64> attributes{};

    void add(unsigned short type, const void* value, std::size_t octets) noexcept {
        const std::size_t at = NLMSG_ALIGN(head.nlmsg_len) - NLMSG_LENGTH(sizeof info);
        const rtattr attribute{.rta_len = static_cast<unsigned short>(RTA_LENGTH(octets)), .rta_type = type};
        std::memcpy(attributes.data() + at, &attribute, sizeof attribute);
        std::memcpy(attributes.data() + at + RTA_LENGTH(0), value, octets);
        head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_ALIGN(head.nlmsg_len) + RTA_ALIGN(attribute.rta_len));
    }
};

/// The parts of an answer that are used; `lower` and `namespace_id`: where the other end of a veth is.
struct Answer {
    KernelLink link;
    std::optional<unsigned> lower;
    std::optional<std::int32_t> namespace_id;
};

template <class Number>
std::optional<Number> number_of(const rtattr* attribute) noexcept {
    Number number{};
    if (RTA_PAYLOAD(attribute) < sizeof number) return std::nullopt;
    std::memcpy(&number, RTA_DATA(attribute), sizeof number);
    return number;
}

bool is_of_kind(const rtattr* info, std::string_view kind) noexcept {
    auto octets = static_cast<int>(RTA_PAYLOAD(info));
    for (const auto* a = static_cast<const rtattr*>(RTA_DATA(info)); RTA_OK(a, octets); a = RTA_NEXT(a, octets)) {
        if (a->rta_type == IFLA_INFO_KIND)
            return std::string_view{static_cast<const char*>(RTA_DATA(a)), RTA_PAYLOAD(a)}.starts_with(kind);
    }
    return false;
}

void take(Answer& answer, const rtattr* attribute) noexcept {
    switch (attribute->rta_type) {
        case IFLA_MTU: answer.link.mtu = number_of<std::uint32_t>(attribute).value_or(0); break;
        case IFLA_LINK: answer.lower = number_of<std::uint32_t>(attribute); break;
        case IFLA_LINK_NETNSID: answer.namespace_id = number_of<std::int32_t>(attribute); break;
        case IFLA_CARRIER_CHANGES: answer.link.carrier_changes = number_of<std::uint32_t>(attribute).value_or(0); break;
        case IFLA_LINKINFO: answer.link.is_veth = is_of_kind(attribute, "veth"); break;
        default: break;
    }
}

std::optional<Answer> ask(const Socket& socket, Request& request) noexcept {
    constexpr std::size_t room = 32768;  // of one answer: some hundred attributes, and VFs
    request.head.nlmsg_type = RTM_GETLINK;
    request.head.nlmsg_flags = NLM_F_REQUEST;
    if (send(socket.file(), &request, request.head.nlmsg_len, 0) < 0) return std::nullopt;
    alignas(nlmsghdr) static thread_local std::array<std::byte, room> reply;
    const auto octets =
        recv(socket.file(), reply.data(), reply.size(), MSG_DONTWAIT);  // send() has already produced the answer
    const auto* const head = reinterpret_cast<const nlmsghdr*>(reply.data());
    // NOLINTNEXTLINE(readability-simplify-boolean-expr): the kernel's macro
    if (octets < 0 || !NLMSG_OK(head, static_cast<std::size_t>(octets))) return std::nullopt;
    Answer answer;
    if (head->nlmsg_type == NLMSG_ERROR) {
        answer.link.is_known = static_cast<const nlmsgerr*>(NLMSG_DATA(head))->error == -ENODEV;
        return answer;
    }
    if (head->nlmsg_type != RTM_NEWLINK) return std::nullopt;
    const auto* const info = static_cast<const ifinfomsg*>(NLMSG_DATA(head));
    answer.link.is_known = answer.link.is_there = true;
    answer.link.index = static_cast<unsigned>(info->ifi_index);
    answer.link.is_enabled = (info->ifi_flags & IFF_UP) != 0;
    answer.link.is_operational = (info->ifi_flags & IFF_RUNNING) != 0;
    answer.link.has_carrier = (info->ifi_flags & 0x10000U) != 0;  // IFF_LOWER_UP, which <net/if.h> does not have
    auto left = static_cast<int>(IFLA_PAYLOAD(head));
    for (const auto* a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) take(answer, a);
    return answer;
}

Request new_request(int index) noexcept {
    Request request;
    request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.info);
    request.info.ifi_index = index;
    return request;
}

std::optional<Answer> ask_for(const Socket& socket, const std::string& interface) noexcept {
    if (interface.empty() || interface.size() >= IFNAMSIZ) return std::nullopt;
    auto request = new_request(0);
    request.add(IFLA_IFNAME, interface.c_str(), interface.size() + 1);
    return ask(socket, request);
}

/// Nothing is known if the other end is in a namespace that has no id here, or that this process may not query.
std::optional<std::size_t> mtu_of_peer(const Socket& socket, const Answer& answer) noexcept {
    if (!answer.link.is_veth || !answer.lower) return std::nullopt;
    auto request = new_request(static_cast<int>(*answer.lower));
    if (answer.namespace_id) {
        if (*answer.namespace_id < 0) return std::nullopt;
        request.add(IFLA_TARGET_NETNSID, &*answer.namespace_id, sizeof *answer.namespace_id);
    }
    const auto peer = ask(socket, request);
    return peer && peer->link.is_there ? std::optional{peer->link.mtu} : std::nullopt;
}

/// The size of a struct followed by an array of variable length, as the ethtool ioctls use them.
template <class Head, class Element>
class WithArray {
   public:
    explicit WithArray(std::size_t elements) : octets_(sizeof(Head) + elements * sizeof(Element)) {}
    [[nodiscard]] Head& head() noexcept { return *reinterpret_cast<Head*>(octets_.data()); }
    [[nodiscard]] const Element* elements() const noexcept {
        return reinterpret_cast<const Element*>(octets_.data() + sizeof(Head));
    }

   private:
    std::vector<std::byte> octets_;
};

bool ask_ethtool(const Socket& socket, const std::string& interface, void* data) noexcept {
    ifreq request{};
    interface.copy(std::begin(request.ifr_name), IFNAMSIZ - 1);
    request.ifr_data = static_cast<char*>(data);
    return ioctl(socket.file(), SIOCETHTOOL, &request) == 0;
}

std::vector<std::string> features_on(const std::string& interface) {
    const Socket socket{AF_INET, SOCK_DGRAM, 0};
    WithArray<ethtool_sset_info, std::uint32_t> sets{1};
    sets.head() = {.cmd = ETHTOOL_GSSET_INFO, .reserved = 0, .sset_mask = std::uint64_t{1} << ETH_SS_FEATURES};
    if (socket.file() < 0 || !ask_ethtool(socket, interface, &sets.head())) return {};
    const std::size_t count = sets.head().sset_mask != 0 ? sets.elements()[0] : 0;
    WithArray<ethtool_gstrings, std::array<char, ETH_GSTRING_LEN>> names{count};
    names.head() = {.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = static_cast<std::uint32_t>(count)};
    constexpr std::size_t bits = 32;
    const std::size_t blocks = (count + bits - 1) / bits;
    WithArray<ethtool_gfeatures, ethtool_get_features_block> features{blocks};
    features.head().cmd = ETHTOOL_GFEATURES;
    features.head().size = static_cast<std::uint32_t>(blocks);
    if (count == 0 || !ask_ethtool(socket, interface, &names.head()) ||
        !ask_ethtool(socket, interface, &features.head()))
        return {};
    std::vector<std::string> on;
    for (std::size_t i = 0; i < count; ++i) {
        if ((features.elements()[i / bits].active >> i % bits & 1U) != 0) {
            const auto& name = names.elements()[i];
            on.emplace_back(name.data(), strnlen(name.data(), name.size()));
        }
    }
    return on;
}

}  // namespace

KernelLink read_kernel_link(const std::string& interface) noexcept {
    const Socket socket{AF_NETLINK, SOCK_RAW, NETLINK_ROUTE};
    const auto answer = ask_for(socket, interface);
    return answer ? answer->link : KernelLink{};
}

int switch_kernel_link(const std::string& interface, bool on) noexcept {
    const Socket socket{AF_INET, SOCK_DGRAM, 0};
    ifreq request{};
    interface.copy(std::begin(request.ifr_name), IFNAMSIZ - 1);
    if (socket.file() < 0 || ioctl(socket.file(), SIOCGIFFLAGS, &request) != 0) return -errno;
    const auto up = static_cast<short>(IFF_UP);
    request.ifr_flags = static_cast<short>(on ? request.ifr_flags | up : request.ifr_flags & ~up);
    return ioctl(socket.file(), SIOCSIFFLAGS, &request) == 0 ? 0 : -errno;
}

std::optional<std::size_t> read_peer_mtu(const std::string& interface) noexcept {
    const Socket socket{AF_NETLINK, SOCK_RAW, NETLINK_ROUTE};
    const auto answer = ask_for(socket, interface);
    return answer && answer->link.is_there ? mtu_of_peer(socket, *answer) : std::nullopt;
}

LinkFault explain_link(const std::string& interface, const KernelLink& link) {
    if (!link.is_there)
        return {fmt::format("there is no interface {} any more", interface), "Put it back, then start again."};
    if (!link.is_enabled)
        return {fmt::format("interface {} is switched off", interface),
                fmt::format("Switch it on: ip link set dev {} up", interface)};
    if (!link.has_carrier)
        return {fmt::format("interface {} has no carrier: its other end is switched off, or its cable is unplugged",
                            interface),
                "Check the cable, and switch the other end on."};
    return {fmt::format("interface {} has a carrier, but is not in operation", interface),
            fmt::format("Look at its state: ip link show dev {}", interface)};
}

std::vector<std::string> joining_among(const std::vector<std::string>& on) {
    const auto is_on = [&](std::string_view name) { return std::ranges::find(on, name) != on.end(); };
    std::vector<std::string> found;
    // GRO alone joins only TCP segments, and a tester sends none.
    for (const char* const name : {"rx-gro-list", "rx-udp-gro-forwarding"}) {
        if (is_on("rx-gro") && is_on(name)) found.emplace_back(name);
    }
    for (const char* const name : {"rx-lro", "rx-gro-hw"}) {
        if (is_on(name)) found.emplace_back(name);
    }
    return found;
}

std::vector<std::string> joining_features(const std::string& interface) {
    return joining_among(features_on(interface));
}

}  // namespace evenhand::port
