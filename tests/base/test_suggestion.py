# SPDX-License-Identifier: Apache-2.0
"""The word that somebody most likely meant."""

from __future__ import annotations

import pytest

from evenhand.base.errors import suggestion


@pytest.mark.parametrize(
    ("word", "meant"),
    [("ios", "cisco-ios"), ("Cisco", "cisco-ios"), ("linus", "linux"), ("bsd", "freebsd"), ("v", None)],
)
def test_a_part_of_one_name_is_a_word_for_it(word: str, meant: str | None) -> None:
    assert suggestion(word, ["linux", "freebsd", "cisco-ios", "junos"]) == meant


def test_of_names_equally_alike_the_one_that_begins_alike_is_meant() -> None:
    assert suggestion("nat45", ["nat64", "nat66", "nat44"]) == "nat44"


def test_a_part_of_several_names_says_nothing() -> None:
    assert suggestion("xyz", ["xyz-one-long-name", "xyz-another-long-name"]) is None
