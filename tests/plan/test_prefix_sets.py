# SPDX-License-Identifier: Apache-2.0
"""Sets of prefixes: read from lists and from what routers print, generated, and what is refused."""

from __future__ import annotations

import ipaddress
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.plan import MOST_PREFIXES, IpVersion, PrefixSet, make_prefixes, read_prefixes
from evenhand.plan.generated_prefixes import INTERNET_LENGTHS, Lengths
from evenhand.plan.prefixes import WIDTH, last_addresses, pack_prefixes, unpacked
from tests.errors import raises

address, network = ipaddress.ip_address, ipaddress.ip_network

IP_ROUTE = """\
default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100
10.0.0.0/24 dev left proto kernel scope link src 10.0.0.1
unreachable 10.9.0.0/16 metric 4278198272
blackhole 10.8.0.0/16
198.18.0.0/24 via 10.0.0.2 dev left proto static
198.18.1.0/24 proto static
\tnexthop via 10.0.0.2 dev left weight 1
\tnexthop via 10.0.0.3 dev left weight 1
198.18.2.9 via 10.0.0.2 dev left
unicast 198.18.4.0/22 via 10.0.0.2 dev left
"""
IP_ROUTE_V6 = """\
2001:2::/64 via 2001:2:0:1000::2 dev left metric 1024 pref medium
2001:2:0:1::/64 via 2001:2:0:1000::2 dev left metric 1024 pref medium
2001:2:0:1000::/64 dev left proto kernel metric 256 pref medium
fe80::/64 dev left proto kernel metric 256 pref medium
default via fe80::1 dev eth0 proto ra metric 1024 pref medium
"""
SHOW_BGP = """\
BGP table version is 7, local router ID is 192.0.2.1, vrf id 0
Default local pref 100, local AS 64500
Status codes:  s suppressed, d damped, h history, * valid, > best, = multipath,
               i internal, r RIB-failure, S Stale, R Removed
Origin codes:  i - IGP, e - EGP, ? - incomplete
RPKI validation codes: V valid, I invalid, N Not found

    Network          Next Hop            Metric LocPrf Weight Path
 *> 1.0.0.0/24       192.0.2.2                              0 64501 13335 i
 *                   192.0.2.3                              0 64502 13335 i
 *>i1.0.4.0/22       192.0.2.2                              0 64501 38803 i
V*> 1.0.16.0/24      192.0.2.2                              0 64501 2519 ?

Displayed  3 routes and 4 total paths
"""
SHOW_BGP_V6 = """\
    Network          Next Hop            Metric LocPrf Weight Path
*>  dd00::/16        2001:db8::2                            0 64501 i
*>i 2001:db8:1::/48  2001:db8::2                            0 64501 i
"""
SHOW_IP_ROUTE = """\
Codes: K - kernel route, C - connected, L - local, S - static,
       R - RIP, O - OSPF, I - IS-IS, B - BGP, E - EIGRP, N - NHRP,
       > - selected route, * - FIB route, q - queued, r - rejected, b - backup

K>* 0.0.0.0/0 [0/100] via 192.0.2.1, eth0, src 192.0.2.7, 00:10:11
C>* 10.0.0.0/24 is directly connected, left, 00:10:11
L>* 10.0.0.1/32 is directly connected, left, 00:10:11
S>* 198.18.0.0/24 [1/0] via 10.0.0.2, left, weight 1, 00:00:12
  *                      via 10.0.0.3, left, weight 1, 00:00:12
O   198.18.0.0/24 [110/20] via 10.0.0.2, left, weight 1, 00:00:02
B>  198.18.2.0/23 [20/0] via 10.0.0.2 (recursive), weight 1, 00:00:02
"""
BIRD = """\
BIRD 2.0.12 ready.
Table master4:
1.0.0.0/24           unicast [edge1 2026-11-01] * (100) [AS13335i]
\tvia 192.0.2.2 on eth0
                     unicast [edge2 2026-11-01] (100) [AS13335i]
\tvia 192.0.2.3 on eth0
1.0.4.0/22           unicast [edge1 2026-11-01] * (100) [AS38803i]
\tvia 192.0.2.2 on eth0
"""
LIST = """\
# networks behind the gateway
198.18.2.0/24
198.18.0.0/24,backbone

  198.18.1.128/25   some words
! end
198.18.255.7
"""


FRR_WRAPPED = """\
    Network          Next Hop            Metric LocPrf Weight Path
 *> 198.18.0.0/24    0.0.0.0                  0         32768 i
 * i                 10.0.0.4      0    100      0 i
 *> 198.118.100.128/25
                    10.0.0.2                 0         32768 i
"""
FRR_WRAPPED_V6 = """\
    Network          Next Hop            Metric LocPrf Weight Path
 *> 2001:db8:100::/48
                    ::                       0         32768 i
 *>i2001:db8:200::/48
                    2001:db8:ffff:ffff:ffff:ffff:ffff:fff1
                                             0    100      0 i
 * i                 2001:db8::9      0    100      0 i
"""
NOWHERE = """\
S>* 198.18.9.0/24 [1/0] unreachable (blackhole), weight 1, 00:00:12
S>* 198.18.8.0/24 [1/0] unreachable (ICMP unreachable), weight 1, 00:00:12
B>r 198.18.7.0/24 [20/0] via 10.0.0.2, eth0, weight 1, 00:00:02
f   198.18.1.0/24 [115/20] via 10.0.0.2, left, weight 1, 00:00:02
B>q 198.18.2.0/24 [20/0] via 10.0.0.2, eth0, weight 1, 00:00:02
B>t 198.18.3.0/24 [20/0] via 10.0.0.2, eth0, weight 1, 00:00:02
169.254.0.0/16 dev eth0 scope link metric 1000
192.168.1.1 dev eth0 proto dhcp scope link src 192.168.1.7 metric 100
198.18.4.0/24 nhid 12 via 10.0.0.2 dev eth0 proto static
unicast default via 10.0.0.1 dev eth0
198.18.10.0/24       blackhole [s4 12:00:00] * (200)
198.18.11.0/24       unreachable [s4 12:00:00] * (200)
198.18.12.0/24       prohibited [s4 12:00:00] * (200)
198.18.13.0/24       unicast [direct1 12:00:00] * (240)
\tdev eth0
198.18.14.0/24       unicast [s4 12:00:00] * (200)
\tvia 10.0.0.2 on eth0
                     unicast [direct1 12:00:00] (240)
\tdev eth1
"""
NOWHERE_V6 = """\
2001:db8:5::/64 dev eth0 proto ra metric 100 expires 2591999sec pref medium
ff00::/8 dev eth1 metric 256 pref medium
2001:db8:6::/64 nhid 7 dev eth0 proto static
2001:db8:7::/64 via fe80::1 dev eth0 proto static
2001:db8:8::/48      unreachable [s6 12:00:00] * (200)
"""


def texts_of(folder: Path, content: str, **how: str) -> list[str]:
    path = folder / "prefixes.txt"
    path.write_bytes(content.encode())
    return list(read_prefixes(path, **how).texts())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (LIST, "198.18.0.0/24 198.18.1.128/25 198.18.2.0/24 198.18.255.7/32"),
        (LIST.replace("\n", "\r\n"), "198.18.0.0/24 198.18.1.128/25 198.18.2.0/24 198.18.255.7/32"),
        (IP_ROUTE, "198.18.0.0/24 198.18.1.0/24 198.18.2.9/32 198.18.4.0/22"),
        (IP_ROUTE_V6, "2001:2::/64 2001:2:0:1::/64"),
        (SHOW_BGP, "1.0.0.0/24 1.0.4.0/22 1.0.16.0/24"),
        (SHOW_BGP_V6, "2001:db8:1::/48 dd00::/16"),
        (SHOW_IP_ROUTE, "198.18.0.0/24 198.18.2.0/23"),
        (BIRD, "1.0.0.0/24 1.0.4.0/22"),
        (FRR_WRAPPED, "198.18.0.0/24 198.118.100.128/25"),
        (FRR_WRAPPED_V6, "2001:db8:100::/48 2001:db8:200::/48"),
        (NOWHERE, "198.18.2.0/24 198.18.3.0/24 198.18.4.0/24 198.18.14.0/24"),
        (NOWHERE_V6, "2001:db8:7::/64"),
        ("\ufeff198.18.0.0/24\r198.18.1.0/24\r", "198.18.0.0/24 198.18.1.0/24"),
        ("198.19.0.0/16", "198.19.0.0/16"),
        ("2001:2:0:8000::/64\n2001:2::1\n", "2001:2::1/128 2001:2:0:8000::/64"),
    ],
)
def test_lists_and_what_routers_print_are_read_as_they_are(
    tmp_path: Path, content: str, expected: str
) -> None:
    assert texts_of(tmp_path, content) == expected.split()


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ("198.18.0.0/24\nhello world\n", "plan.not-a-prefix", ("line 2", "'hello'")),
        ("# all\n198.18.0.7/24\n", "plan.not-a-prefix", ("line 2", "198.18.0.7/24", "198.18.0.0/24")),
        ("198.18.0.0/33\n", "plan.not-a-prefix", ("line 1", "198.18.0.0/33")),
        ("198.018.0.0/24\n", "plan.not-a-prefix", ("line 1", "198.018.0.0/24")),
        ("198.18.0.0/255.255.0.0\n", "plan.not-a-prefix", ("line 1", "255.255.0.0")),
        ("2001:2:::/64\n", "plan.not-a-prefix", ("line 1", "2001:2:::/64")),
        ("2001:2::/129\n", "plan.not-a-prefix", ("line 1", "2001:2::/129")),
        ("*> 10.0.0.0   192.0.2.1\n", "plan.not-a-prefix", ("line 1", "10.0.0.0", "no prefix length")),
        ("\0\1\2\n", "plan.not-a-prefix", ("line 1",)),
        ("198.18.0.0/24, 198.18.1.0/24\n", "plan.not-a-prefix", ("line 1", "198.18.1.0/24 is a second")),
        ("198.18.0.0/24\n\n2001:2::/64\n", "plan.mixed-versions", ("line 3", "2001:2::/64", "line 1")),
        (
            "198.18.8.0/24\n198.18.0.0/16\n198.17.0.0/16\n",
            "plan.prefixes-overlap",
            ("198.18.0.0/16 of line 2", "198.18.8.0/24 of line 1"),
        ),
        ("2001:2::/64\n2001:2::/64\n", "plan.prefixes-overlap", ("line 1", "line 2")),
        ("# nothing\n", "plan.no-prefix", ("prefixes.txt",)),
        ("default via 10.0.0.1\n", "plan.no-prefix", ("prefixes.txt",)),
        ("1" * 1_200_000, "plan.not-a-prefix", ("line 1", "65,536 characters")),
    ],
)
def test_what_is_no_list_of_prefixes_is_named_with_line_and_word(
    tmp_path: Path, content: str, code: str, words: tuple[str, ...]
) -> None:
    with raises(code) as caught:
        texts_of(tmp_path, content)
    told = f"{caught.value} {caught.value.next_step}"
    assert [word for word in words if word not in told] == []


def test_what_covers_others_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text("1.0.0.0/8\n1.0.0.0/16\n1.0.0.0/24\n1.0.0.0/24\n1.9.0.0/16\n2.0.0.0/8\n")
    found = read_prefixes(path, covering="leave-out")
    assert list(found.texts()) == ["1.0.0.0/24", "1.9.0.0/16", "2.0.0.0/8"]
    assert found.left_out == found.to_document()["left_out"] == 3


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with raises("plan.unreadable-prefixes", match=str(tmp_path)):
        read_prefixes(tmp_path / name)


def prefixes_of(version: IpVersion) -> st.SearchStrategy[list[ipaddress.IPv4Network | ipaddress.IPv6Network]]:
    width = WIDTH[version]
    kind = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    # Few values of the upper bits, so that some are near each other.
    one = st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(1, width)).map(
        lambda of: kind((((of[0] << width - 6) + of[1]) >> width - of[2] << width - of[2], of[2]))
    )
    return st.lists(one.filter(lambda each: int(each.network_address) > 0), min_size=1, max_size=30)


@pytest.mark.parametrize("version", [4, 6])
def test_a_set_is_what_a_plain_reader_finds(
    version: IpVersion, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Against `ipaddress`: order, overlaps, lengths, where an address lies, first and last addresses."""
    path = tmp_path_factory.mktemp("sets") / "list"

    @given(prefixes_of(version))
    def check(given_prefixes: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> None:
        path.write_text("".join(f"{each}\n" for each in given_prefixes))
        distinct = set(given_prefixes)
        kept = sorted(
            (each for each in distinct if not any(o != each and o.subnet_of(each) for o in distinct)),  # type: ignore[arg-type]
            key=lambda each: int(each.network_address),
        )
        if len(kept) < len(given_prefixes):
            with raises("plan.prefixes-overlap"):
                read_prefixes(path)
        found = read_prefixes(path, covering="leave-out")
        assert list(found.texts()) == [str(each) for each in kept]
        assert list(found.as_networks()) == kept
        assert list(found) == [(int(each.network_address), each.prefixlen) for each in kept]
        assert found.address_count == sum(each.num_addresses for each in kept)
        last = last_addresses(found.first_addresses(), found.lengths(), version)
        for number, each in enumerate(kept):
            assert last.number(number) == int(each.broadcast_address)
            for inside in (each.network_address, each.broadcast_address):
                assert found.find(inside) == number
        for outside in (int(kept[-1].broadcast_address) + 1, int(kept[0].network_address) - 1):
            if 0 < outside < 1 << WIDTH[version]:
                assert found.find(type(kept[0].network_address)(outside)) is None

    check()


@pytest.mark.parametrize(
    ("count", "lengths", "first", "spacing", "expected"),
    [
        (3, 24, "198.18.0.0", 1, "198.18.0.0/24 198.18.1.0/24 198.18.2.0/24"),
        (3, 26, "198.18.0.1", 2, "198.18.0.64/26 198.18.0.192/26 198.18.1.64/26"),
        (2, 8, "126.0.0.0", 1, "126.0.0.0/8 128.0.0.0/8"),
        (3, 64, "2001:2:0:fffe::", 1, "2001:2:0:fffe::/64 2001:2:0:ffff::/64 2001:2:1::/64"),
        (2, 128, "2001:2::ffff:ffff:ffff:ffff", 1, "2001:2::ffff:ffff:ffff:ffff/128 2001:2:0:1::/128"),
        (4, "internet", "16.0.0.0", 1, "16.0.0.0/22 16.0.4.0/24 16.0.5.0/24 16.0.6.0/24"),
    ],
)
def test_generated_prefixes(count: int, lengths: Lengths, first: str, spacing: int, expected: str) -> None:
    found = make_prefixes(count, lengths, first=address(first), spacing=spacing)
    assert list(found.texts()) == expected.split()
    assert found.count == count
    assert first in found.name


def test_generated_prefixes_go_around_what_they_must_avoid() -> None:
    found = make_prefixes(
        3, 24, first=address("10.0.0.0"), avoiding=[network("10.0.1.0/24"), network("10.0.2.128/25")]
    )
    assert list(found.texts()) == ["10.0.0.0/24", "10.0.3.0/24", "10.0.4.0/24"]


@pytest.mark.parametrize(("version", "first"), [(4, "16.0.0.0"), (6, "2400::")])
def test_a_full_table_has_the_lengths_of_the_internet(version: IpVersion, first: str) -> None:
    """10^6 prefixes of each version, made without 10^6 objects."""
    tracemalloc.start()
    found = make_prefixes(1_000_000, "internet", first=address(first))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.length_counts() == {
        length: part * 1000 for length, part in sorted(INTERNET_LENGTHS[version].items())
    }
    assert sum(INTERNET_LENGTHS[version].values()) == 1000
    assert peak < 300e6


@pytest.mark.thorough
def test_a_fifth_of_a_full_table_from_a_file(tmp_path: Path) -> None:
    """The memory that it takes rises with the lines, and to watch it takes most of the time."""
    made = make_prefixes(200_000, 48, first=address("2400::"))
    path = tmp_path / "table.txt"
    path.write_text("".join(f"{text} via 2001:db8::1\n" for text in made.texts()))
    tracemalloc.start()
    found = read_prefixes(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.records == made.records
    assert found.digest == made.digest
    assert peak < 60e6


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ((257, 24, "198.18.0.0", "198.18.0.0/16", 1), "plan.no-room-for-prefixes", ("257", "256 do")),
        ((2, 24, "223.255.255.0", None, 1), "plan.no-room-for-prefixes", ("1 do",)),
        ((2_000_001, 24, "1.0.0.0", None, 1), "plan.too-many-prefixes", ("2,000,000",)),
        ((1_000_001, 64, "2400::", None, 1), "plan.too-many-prefixes", ("1,000,000",)),
        ((0, 24, "1.0.0.0", None, 1), "plan.count-out-of-range", ("0 routes",)),
        ((1, 33, "1.0.0.0", None, 1), "plan.count-out-of-range", ("33",)),
        ((1, 0, "1.0.0.0", None, 1), "plan.count-out-of-range", ("length of 0",)),
        ((9, "internet", "1.0.0.0", None, 2), "plan.count-out-of-range", ("spacing",)),
        ((9, 24, "1.0.0.0", None, 0), "plan.count-out-of-range", ("spacing of 0",)),
    ],
)
def test_what_cannot_be_generated_is_refused(
    call: tuple[int, Lengths, str, str | None, int], code: str, words: tuple[str, ...]
) -> None:
    count, lengths, first, within, spacing = call
    with raises(code) as caught:
        make_prefixes(
            count,
            lengths,
            first=address(first),
            within=None if within is None else network(within),
            spacing=spacing,
        )
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_set_that_does_not_ascend_is_none() -> None:
    twice = unpacked(address("198.18.0.0").packed * 2, 4)
    with raises("plan.prefixes-overlap"):
        pack_prefixes("twice", 4, twice, np.array([24, 24], dtype=np.uint8))
    with raises("plan.no-prefix"):
        PrefixSet(version=4, name="none", records=b"")


def test_the_document_has_counts_and_a_digest_instead_of_a_million_lines() -> None:
    document = make_prefixes(100_000, 24, first=address("16.0.0.0")).to_document()
    assert document["count"] == 100_000
    assert document["lengths"] == {"24": 100_000}
    assert (document["first"], document["last"]) == ("16.0.0.0/24", "17.134.159.0/24")
    assert len(document["digest"]) == 64
    assert len(str(document)) < 400


def test_the_most_are_said() -> None:
    assert MOST_PREFIXES == {4: 2_000_000, 6: 1_000_000}
