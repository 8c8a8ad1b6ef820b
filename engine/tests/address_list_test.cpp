// SPDX-License-Identifier: Apache-2.0
// Station 1: lists of address ranges: what is read, what is refused, and which address has which number.
#include "plan/address_list.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fault.hpp"
#include "lists.hpp"
#include "plan/host_set.hpp"

namespace address_list_test {

using namespace evenhand;
using plan::AddressList;
using plan::Choice;
using plan::IpVersion;
using tests::ip;
using tests::list_of;
using tests::many_prefixes;
using tests::records_of;

namespace {

/// A file with this content while it exists.
class WrittenFile {
   public:
    explicit WrittenFile(const std::vector<std::byte>& content) {
        const int fd = ::mkstemp(path_.data());
        REQUIRE(fd >= 0);
        CHECK(::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
        ::close(fd);
    }
    ~WrittenFile() { (void)std::remove(path_.c_str()); }
    WrittenFile(const WrittenFile&) = delete;
    WrittenFile& operator=(const WrittenFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    std::string path_ = "/tmp/evenhand-list-XXXXXX";
};

template <class Make>
std::optional<Fault> fault_of(Make make) {
    try {
        (void)make();
    } catch (const Fault& fault) {
        return fault;
    }
    return std::nullopt;
}

bool says(const std::optional<Fault>& fault, const char* part) {
    if (!fault) return false;
    CAPTURE(fault->what_text);
    CHECK(fault->code == FaultCode::bad_plan);
    CHECK_FALSE(fault->next.empty());
    return fault->what_text.find(part) != std::string::npos;
}

const std::vector<tests::Ends> some_v4{{"10.0.0.0", "10.0.0.9"}, {"10.0.0.20", "10.0.0.20"}, {"10.1.0.0", "10.1.0.4"}};
const std::vector<tests::Ends> some_v6{
    {"2001:db8::", "2001:db8::9"}, {"2001:db8::20", "2001:db8::20"}, {"2600::ffff:ffff:ffff:fffe", "2600::1:0:0:0:2"}};

}  // namespace

TEST_CASE("a list is read from its file") {
    for (const auto& entries : {some_v4, some_v6}) {
        const auto version = ip(entries[0].first.c_str()).version;
        const WrittenFile file{records_of(entries)};
        const auto list = AddressList::read(file.path(), version, 3, Choice::host, "list");
        REQUIRE(list->size() == 3);
        CHECK(list->version() == version);
        CHECK(list->choice() == Choice::host);
        CHECK(list->last_number() == 15);
        for (std::size_t i = 0; i < entries.size(); ++i) {
            CHECK(plan::to_string(plan::address_of(version, list->first(i))) == entries[i].first);
            CHECK(list->last(i) == plan::number_of(ip(entries[i].second.c_str())));
        }
    }
}

TEST_CASE("files that are no lists are refused") {
    const auto v4 = records_of(some_v4);
    const WrittenFile file{v4};
    const auto read = [](const std::string& path, std::uint64_t entries, IpVersion version = IpVersion::v4) {
        return fault_of(
            [&] { return AddressList::read(path, version, entries, Choice::entry, "plan.left.hosts.list"); });
    };
    CHECK_FALSE(read(file.path(), 3));
    CHECK(says(read(file.path(), 2), "24 octets; 2 entries of IPv4 addresses are 16"));
    CHECK(says(read(file.path(), 4), "24 octets; 4 entries"));
    CHECK(says(read(file.path(), 1, IpVersion::v6), "24 octets; 1 entries of IPv6 addresses are 32"));
    CHECK(says(read("relative", 3), "\"relative\" is no absolute path"));
    CHECK(says(read("/no/such/file", 3), "cannot read /no/such/file: No such file"));
    CHECK(says(read("/tmp", 3), "/tmp is no regular file"));
    CHECK(says(read("/dev/zero", 3), "/dev/zero is no regular file"));
    CHECK(says(read(file.path(), 2'000'001), "2000001 entries"));
    CHECK(says(read(file.path(), 1'000'001, IpVersion::v6), "1000001 entries"));
    CHECK(read("/no/such/file", 3)->where == "plan.left.hosts.list.path");
    CHECK(read(file.path(), 2'000'001)->where == "plan.left.hosts.list.entries");
}

TEST_CASE("records that are out of order are refused, with their number") {
    const auto refused = [](const std::vector<tests::Ends>& entries) {
        return fault_of([&] { return list_of(entries); });
    };
    CHECK(says(refused({{"10.0.0.0", "10.0.0.9"}, {"10.0.0.9", "10.0.0.10"}}),
               "record 1 begins with 10.0.0.9, and the one before it ends with 10.0.0.9"));
    CHECK(says(refused({{"10.0.0.5", "10.0.0.5"}, {"10.0.0.6", "10.0.0.7"}, {"10.0.0.1", "10.0.0.2"}}),
               "record 2 begins"));
    CHECK(says(refused({{"10.0.0.5", "10.0.0.4"}}), "record 0 is 10.0.0.5 to 10.0.0.4"));
    CHECK(says(refused({{"2001:db8::1", "2001:db8::5"}, {"2001:db8::", "2001:db8::"}}),
               "record 1 begins with 2001:db8::,"));
    CHECK_FALSE(refused({{"0.0.0.0", "0.0.0.0"}, {"0.0.0.1", "255.255.255.255"}}));
    CHECK(says(fault_of([] { return AddressList::of_records({}, IpVersion::v4, Choice::entry, "list"); }), "0 octets"));
    // 2^63 addresses, and one more.
    CHECK_FALSE(fault_of([] { return list_of({{"2001:db8::", "2001:db8::7fff:ffff:ffff:ffff"}}, Choice::host); }));
    CHECK(says(fault_of([] { return list_of({{"2001:db8::", "2001:db8:0:0:8000::"}}, Choice::host); }), "2^63"));
    CHECK_FALSE(refused({{"2001:db8::", "2001:db8:0:0:8000::"}}));
}

TEST_CASE("addresses are numbered as they ascend, and found by their numbers and without them") {
    for (const auto version : {IpVersion::v4, IpVersion::v6}) {
        for (const auto choice : {Choice::entry, Choice::host}) {
            const auto list = many_prefixes(version, 777, choice);
            Wide before = 0;
            for (std::size_t i = 0; i < list->size(); ++i) {
                const Wide size = list->last(i) - list->first(i) + 1;
                for (const Wide offset : {Wide{0}, size / 3, size - 1}) {
                    const auto address = plan::address_of(version, list->first(i) + offset);
                    CHECK(list->address(before + offset) == address);
                    const auto* const octets = reinterpret_cast<const std::byte*>(address.octets.data());
                    CHECK(list->number(octets) == before + offset);
                    CHECK(list->place(octets)->entry == i);
                    CHECK(list->contains(address));
                }
                for (const Wide outside : {list->first(i) - 1, list->last(i) + 1}) {
                    bool is_in_neighbor = false;
                    for (const std::size_t other : {i - 1, i + 1}) {
                        if (other < list->size())
                            is_in_neighbor |= list->first(other) <= outside && outside <= list->last(other);
                    }
                    CHECK(list->contains(plan::address_of(version, outside)) == is_in_neighbor);
                }
                before += size;
            }
            CHECK(list->last_number() == before - 1);
        }
    }
    CHECK_FALSE(list_of(some_v4)->contains(ip("2001:db8::")));
    CHECK_FALSE(list_of(some_v4)->contains(ip("0.0.0.0")));
    CHECK_FALSE(list_of(some_v4)->contains(ip("255.255.255.255")));
}

TEST_CASE("all addresses that there are can be a list") {
    const auto all_v4 = list_of({{"0.0.0.0", "255.255.255.255"}}, Choice::host);
    CHECK(all_v4->last_number() == 0xFFFFFFFF);
    CHECK(all_v4->address(0xFFFFFFFF) == ip("255.255.255.255"));
    const auto all_v6 = list_of({{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}});
    CHECK(all_v6->last_number() == ~Wide{0});
    CHECK(all_v6->address(~Wide{0}) == ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
}

TEST_CASE("lists and ranges that share an address are found to") {
    const auto list = list_of({{"10.0.0.10", "10.0.0.20"}, {"10.0.3.0", "10.0.3.0"}});
    CHECK(list->meets(*list_of({{"9.0.0.0", "10.0.0.10"}})));
    CHECK(list->meets(*list_of({{"1.0.0.0", "1.0.0.0"}, {"10.0.2.255", "11.0.0.0"}})));
    CHECK_FALSE(
        list->meets(*list_of({{"10.0.0.0", "10.0.0.9"}, {"10.0.0.21", "10.0.2.255"}, {"10.0.3.1", "10.0.3.1"}})));
    const auto range = [](std::uint32_t first, std::uint32_t count) {
        return plan::HostRange{.base = ip("10.0.0.0"), .offset = 2, .host = {.first = first, .count = count}};
    };
    CHECK(list->meets(range(0, 11)));
    CHECK_FALSE(list->meets(range(0, 10)));
    CHECK_FALSE(list->meets(range(21, 0x300 - 21)));
    CHECK(list->meets(range(21, 0x300 - 20)));
    auto networks = range(30, 10);
    networks.network = plan::NetworkRange{.offset = 2, .count = 4};
    CHECK_FALSE(list->meets(networks));
    networks.host = {.first = 20, .count = 1};
    CHECK(list->meets(networks));
    // Hosts 2001:2:0:N:0:0:H:2, between which there is room for others.
    plan::HostRange apart{.base = ip("2001:2::2"),
                          .offset = 12,
                          .host = {.first = 5, .count = 10},
                          .network = plan::NetworkRange{.offset = 6, .count = 3}};
    CHECK_FALSE(list_of({{"2001:2::6:3", "2001:2::7:1"}})->meets(apart));
    CHECK(list_of({{"2001:2::6:3", "2001:2::7:2"}})->meets(apart));
    CHECK(list_of({{"2001:2:0:2::e:0", "2001:2:0:2::f:1"}})->meets(apart));
    CHECK_FALSE(
        list_of({{"2001:2:0:2::e:3", "2001:2:0:2::f:1"}, {"2001:2:0:3::", "2001:2:0:3::ffff:ffff"}})->meets(apart));
}

TEST_CASE("hosts of a list on the link are numbered one by one, and behind a gateway one of each entry is reached") {
    for (const auto& entries : {some_v4, some_v6}) {
        const auto range = plan::HostRange::of(list_of(entries));
        const plan::HostSet hosts{range};
        REQUIRE(hosts.size() == 16);
        std::set<std::string> found;
        for (std::uint32_t i = 0; i < hosts.size(); ++i) {
            CHECK(hosts.find(hosts.address(i)) == i);
            CHECK(range.contains(hosts.address(i)));
            found.insert(plan::to_string(hosts.address(i)));
        }
        CHECK(found.size() == 16);
        CHECK_FALSE(hosts.find(ip("10.0.0.10")));
        CHECK_FALSE(hosts.find(ip("2001:db8::a")));
        const plan::HostSet reached{range, plan::Numbered::one_of_each_entry};
        REQUIRE(reached.size() == 3);
        for (std::uint32_t i = 0; i < 3; ++i) CHECK(plan::to_string(reached.address(i)) == entries[i].first);
    }
    const auto many = many_prefixes(IpVersion::v4, 100'000);
    const plan::HostSet reached{plan::HostRange::of(many), plan::Numbered::one_of_each_entry};
    REQUIRE(reached.size() == 65536);
    std::size_t last = 0;
    for (std::uint32_t i = 1; i < reached.size(); ++i) {
        const auto address = reached.address(i);
        const auto entry = many->place(reinterpret_cast<const std::byte*>(address.octets.data()))->entry;
        CHECK((entry == last + 1 || entry == last + 2));
        last = entry;
    }
    CHECK(last >= 99'998);
}

TEST_CASE("a plan with lists is checked") {
    using tests::listed;
    const auto refused = [](const plan::AddressPlan& p) {
        return fault_of([&] {
            check_plan(p);
            return 0;
        });
    };
    const auto v4 = listed(IpVersion::v4, 50);
    const auto v6 = listed(IpVersion::v6, 50);
    for (const auto& p : {v4, v6, tests::both_listed_v4(), tests::both_listed_v6()}) CHECK_FALSE(refused(p));
    auto p = v4;
    p.has_state = true;
    p.right.peers = p.left.hosts;
    CHECK(says(refused(p), "a DUT that translates them"));
    p = v4;
    p.common_network = true;
    CHECK(says(refused(p), "no networks"));
    p = v6;
    p.fixed_source_network = true;
    CHECK(says(refused(p), "no networks"));
    p = v6;
    p.left.hosts.offset = 11;
    CHECK_FALSE(refused(p));
    p.left.hosts.gap = 1;
    CHECK(says(refused(p), "gap"));
    CHECK(refused(p)->where == "plan.left.hosts.host.gap");
    // The other side may have networks, and the sender may be fixed.
    p = v4;
    p.left.hosts.host.count = 100;
    p.left.hosts.network = plan::NetworkRange{.offset = 2, .count = 256};
    p.fixed_source = true;
    CHECK_FALSE(refused(p));
    p = v4;
    p.right.dut_address = ip("20.0.0.0");
    p.right.hosts = plan::HostRange::of(list_of({{"20.0.0.0", "20.0.0.255"}}));
    CHECK(says(refused(p), "20.0.0.0 is both right.dut_address and a host"));
    p = v4;
    p.right.hosts = plan::HostRange::of(list_of({{"198.0.0.0", "198.18.0.1"}}));
    CHECK(says(refused(p), "overlap"));
    p = tests::both_listed_v6();
    p.left.hosts = p.right.hosts;
    CHECK(says(refused(p), "overlap"));
    p = v4;
    p.right.hosts = plan::HostRange::of(list_of({{"2001:db8::", "2001:db8::1"}}));
    CHECK(says(refused(p), "is not an IPv"));
    p = v4;
    p.right = {.dut_address = ip("20.255.255.255"),
               .hosts = plan::HostRange::of(list_of({{"20.0.0.0", "20.255.255.254"}}))};
    CHECK_FALSE(refused(p));
    p.right.dut_address = ip("19.0.0.0");
    p.right.hosts = plan::HostRange::of(list_of({{"20.0.0.0", "21.0.0.0"}}));
    CHECK(says(refused(p), "more than 16777216 hosts on the link"));
}

}  // namespace address_list_test
