# SPDX-License-Identifier: Apache-2.0
"""Campaign files and numbers that ask for more than anything can be: each is refused before anything is made
of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.base.units import parse_count, parse_duration, parse_line_rate, parse_rate, parse_ratio
from evenhand.base.validation.checked_file import MOST_OCTETS, parse_limited
from evenhand.plan import UdpRange
from evenhand.plan.ranges import parse_ports
from evenhand.spec.file import read_campaign
from evenhand.spec.plan import parse_counts
from evenhand.spec.points import expand
from tests.errors import raises

SUITE = 'name = "a"\n[[suite]]\nname = "a"\nmaximum-rate = "1Mfps"\n'
HOSTS = ",".join(map(str, range(1, 1001)))
SIZES = ",".join(map(str, range(64, 1518)))
MANY = ",".join(map(str, range(1, 60_001)))
ALL = 'procedure = ["throughput", "latency", "loss", "back-to-back"]'
BIG = "9" * 5000
LARGE, MUCH = "base.file-too-large", "spec.too-many"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name = " + "[" * 100_000, LARGE),
        (SUITE + "hosts = " + "[" * 60 + "]" * 60, LARGE),
        (f"seed = {BIG}\n{SUITE}", LARGE),
        (f"{SUITE}repetitions = 0x{'f' * 5000}", LARGE),
        ("#" * MOST_OCTETS + SUITE, LARGE),
        ("a." * 50_000 + "b = 1\n", LARGE),
        ('"a".' * 50_000 + "b = 1\n", LARGE),
        ("[" + "a." * 50_000 + "b]\n", LARGE),
        ('name = "a"\nsuite = [' + "{}," * 50_000 + "]", LARGE),
        (f"{SUITE}hosts = [{MANY}]", MUCH),
        (f"{SUITE}hosts = [{HOSTS}]\nframe-sizes = [{SIZES}]\n{ALL}", MUCH),
        ('name = "a"\n' + "".join(f'[[suite]]\nname = "{n}"\n' for n in range(600)), MUCH),
    ],
    ids=[
        "open",
        "nested",
        "digits",
        "hexadecimal",
        "long",
        "dots",
        "quoted",
        "heading",
        "tables",
        "hosts",
        "product",
        "suites",
    ],
)
def test_a_campaign_that_asks_for_too_much_is_refused_before_it_is_expanded(
    tmp_path: Path, text: str, code: str
) -> None:
    """They took minutes, or all memory, or were called a bug."""
    path = tmp_path / "a.toml"
    path.write_text(text)
    with raises(code):
        expand(read_campaign(path))


def test_what_never_ends_is_no_campaign_file(tmp_path: Path) -> None:
    with raises(LARGE):
        read_campaign(Path("/dev/zero"))
    with raises("base.file-not-readable"):
        read_campaign(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'a = "[[[{{{ # no comment"  # [[[ "',
        "a = '''\n[b]\n'c' {}\n'''",
        'a = """x\\"""\n[b]\n"""',
        f'a = "{BIG} a.{"a." * 30}"',
    ],
)
def test_texts_and_comments_do_not_count(text: str) -> None:
    assert set(parse_limited(text)) == {"a"}
    assert set(parse_limited("# don't " + "[" * 100 + "\n" + text)) == {"a"}


@pytest.mark.parametrize("text", [BIG, "1e9999999", "1e400", "1e-400", f"1.{BIG}"], ids=lambda text: text[:9])
def test_magnitude_is_looked_at_before_anything_is_computed(text: str) -> None:
    """1e400 was taken as infinity, 1e-400 as 0, and more was called a bug."""
    for parse, unit in (
        (parse_rate, "fps"),
        (parse_rate, "Gfps"),
        (parse_line_rate, "Gbps"),
        (parse_duration, "s"),
        (parse_count, ""),
        (parse_ratio, "%"),
    ):
        with raises("base.out-of-range") as refused:
            parse(text + unit, where="--x")
        assert len(str(refused.value)) < 300
    with raises("spec.not-a-count"):
        parse_counts(BIG, where="--hosts")
    ports = UdpRange(first=1, last=2, mode="pseudorandom")
    with raises("plan.not-a-port-range"):
        parse_ports(BIG, ports, ports, where="--x")
