# SPDX-License-Identifier: Apache-2.0
"""Output of ethtool in the forms in which it reaches a prediction (RSS-03, RSS-04)."""

from __future__ import annotations

import re

import pytest

from evenhand.predict.ethtool import is_ethtool, read_ethtool, read_table
from tests.errors import raises
from tests.predict.ethtool_texts import (
    CUT,
    ENTRIES,
    FORMS,
    FUNCTION,
    KEY,
    UDP4_TYPE2,
    UDP6_TYPE1,
    document,
    heading,
    key_part,
    rows,
    whole,
)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_and_key_are_read_in_every_form(form: str) -> None:
    assert is_ethtool(FORMS[form])
    found = read_ethtool(FORMS[form], where="--table")
    assert [int(word) for word in found.words] == ENTRIES
    assert found.key == KEY
    assert found.why_no_function == ""
    assert not found.is_symmetric
    assert read_table(FORMS[form]).words == found.words


@pytest.mark.parametrize("form", CUT)
def test_a_table_that_is_not_whole_is_refused_with_what_is_missing(form: str) -> None:
    """RSS-04: a part of a table is the table of another NIC."""
    text, said = CUT[form]
    with raises("predict.table-cut", match=re.escape(said)):
        read_ethtool(text, where="--table")


@pytest.mark.parametrize("form", [form for form in CUT if form not in ("first rows only", "JSON cut")])
def test_a_set_up_never_restores_a_part_of_a_table(form: str) -> None:
    assert read_table(CUT[form][0]).words == []


@pytest.mark.parametrize(
    "text",
    [
        whole("eth1") + whole("eth2", ENTRIES[:64]),
        whole("eth1") + heading("eth1", context=", context 1") + "".join(rows(ENTRIES[::-1])) + key_part(),
        document("eth1") + document("eth2"),
        whole("eth1") + "".join(rows([0, 1] * 64)),
    ],
)
def test_two_tables_are_not_one(text: str) -> None:
    with raises("predict.several-tables", match="eth1"):
        read_ethtool(text, where="--table")
    assert read_table(text).words == []


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("RSS hash function: toeplitz: off xor : on\n", "xor"),
        ("RSS hash function:\n    toeplitz: off\n    xor: on\n    crc32: off\n", "xor"),
        ("RSS hash function:\n    toeplitz: off crc32: on\n", "crc32"),
        ("RSS hash function:\n    toeplitz: off\n    xor: off\n", "a function of its own"),
    ],
)
def test_another_function_than_toeplitz_is_named(written: str, named: str) -> None:
    """RSS-03."""
    with raises("predict.hash-not-toeplitz", match=named):
        read_ethtool(whole(function=written), where="--table")


def test_another_function_is_named_from_json() -> None:
    with raises("predict.hash-not-toeplitz", match="xor"):
        read_ethtool(document(more={"rss-hash-function": "xor"}), where="--table")
    with raises("predict.hash-input-transformed", match="symmetric-or-xor"):
        read_ethtool(document(more={"rss-input-transformation": {"symmetric-or-xor": True}}), where="--table")
    symmetric = document(more={"rss-input-transformation": {"symmetric-xor": True}})
    assert read_ethtool(symmetric, where="--table").is_symmetric


@pytest.mark.parametrize("json", [False, True])
def test_the_hashed_fields_of_the_same_file_are_read(json: bool) -> None:
    """RSS-01: `ethtool -n` says them for each IP version; what it says of TCP is not about test frames."""
    table = document() if json else whole()
    tcp = "TCP over IPV6 flows use these fields for computing Hash flow key:\nIP SA\n\n"
    for text in (UDP4_TYPE2 + tcp + UDP6_TYPE1 + table, table + UDP6_TYPE1 + UDP4_TYPE2 + tcp):
        assert read_ethtool(text, where="--table").fields == {4: "sdfn", 6: "sd"}
    vlan = "UDP over IPV4 flows use these fields for computing Hash flow key:\nVLAN tag\nIP SA\nIP DA\n"
    found = read_ethtool(table + vlan, where="--table")
    assert (found.fields, found.fields_words) == ({4: ""}, {4: "VLAN tag, IP SA, IP DA"})
    label = UDP6_TYPE1.replace("IP DA\n", "IP DA\nIPv6 Flow Label\n")
    assert read_ethtool(table + label, where="--table").fields == {6: ""}


def test_fields_that_the_file_states_twice_must_be_the_same() -> None:
    """RSS-01: two NICs, or before and after a change; neither is the one that is meant."""
    other = UDP6_TYPE1.replace("IPV6", "IPV4")
    with raises("predict.fields-twice", match="IPv4: IP SA, IP DA, L4 .*; and IP SA, IP DA$"):
        read_ethtool(UDP4_TYPE2 + other + whole(), where="--table")
    assert read_ethtool(UDP4_TYPE2 + whole() + UDP4_TYPE2, where="--table").fields == {4: "sdfn"}


@pytest.mark.parametrize(
    ("text", "what", "next_step"),
    [
        (
            "Cannot get RX flow hash indir size and/or key size: Operation not permitted\n",
            "not permitted",
            "sudo ethtool -x",
        ),
        ("netlink error: Operation not supported\n", "Operation not supported", "--elements"),
        ("netlink error: No such device\n", "No such device", "ip link"),
        ("bash: ethtool: command not found\n", "command not found", "ethtool -x"),
        (heading() + "Operation not supported\n", "Operation not supported", "--elements"),
        (
            heading() + "Operation not supported\n" + key_part() + FUNCTION,
            "Operation not supported",
            "--elements",
        ),
        (UDP4_TYPE2, "IP SA, IP DA, L4 bytes 0", ">> FILE"),
        (heading(), "no entries", "ethtool -x"),
    ],
)
def test_an_answer_without_a_table_is_said_with_what_to_do(text: str, what: str, next_step: str) -> None:
    assert is_ethtool(text)
    with raises("predict.no-table", match=re.escape(what)) as caught:
        read_ethtool(text, where="--table")
    assert next_step in caught.value.next_step


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (KEY.hex(":")[:35] + "\n...\n", "only a part of it"),
        (KEY.hex(":")[:36] + "\n", "only a part of it"),
        (KEY.hex(":")[:34] + "\n", "only a part of it"),
        ("Operation not supported\n", "Operation not supported"),
        ("", "the text ends where it should be"),
    ],
)
def test_a_key_that_is_not_whole_is_no_key(key: str, said: str) -> None:
    """RSS-03."""
    found = read_ethtool(heading() + "".join(rows()) + "RSS hash key:\n" + key, where="--table")
    assert found.key is None
    assert said in found.why_no_key


def test_a_function_that_was_cut_off_is_not_taken_for_toeplitz() -> None:
    found = read_ethtool(heading() + "".join(rows()) + key_part() + "RSS hash function:\n", where="--table")
    assert found.why_no_function == "the text ends where it should be"
    assert read_ethtool(whole(function=FUNCTION), where="--table").why_no_function == ""


def test_an_output_that_ends_after_the_table_is_marked() -> None:
    assert read_ethtool(heading() + "".join(rows()), where="--table").ends_after_table
    assert not read_ethtool(whole(), where="--table").ends_after_table


def test_a_plain_list_is_none_of_ethtools() -> None:
    for text in ("0 1 2 3\n", "0,1\n2,3\n", "", "no numbers\n"):
        assert not is_ethtool(text)
