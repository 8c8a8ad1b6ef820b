# SPDX-License-Identifier: Apache-2.0
"""`evenhand import` of command lines of siitperf as people type them: no command that cannot run here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main
from tests.cli.running import Ended
from tests.exchange.confs import PORTS, ROUTER_KEYS, write_conf

Run = Callable[..., Ended]
Play = Callable[[str], Path]
WHOLE = ("--left", "net_ring0", "--right", "net_ring1", "--cpus", "0", "--isolated-test-environment")


def outcomes(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["key"]: (row["became"], row["text"]) for row in document["keys"]}


@pytest.mark.parametrize(
    "typed",
    [
        "sudo ./build/siitperf-tp 84 100000 60 2000 2 2",
        "sudo -E taskset -c 2,4 /root/siitperf/build/siitperf-tp 84 100000 60 2000 2 2",
        "$ ./siitperf-tp 84 100000 60 2000 2 2",
        "root@tester:~/siitperf# ./siitperf-tp 84 100000 60 2000 2 2",
        "cd build && ./siitperf-tp 84 100000 60 2000 2 2",
        "time ./siitperf-tp 84 100000 60 2000 2 2 > out.txt 2>&1",
        "nice -n -20 siitperf-tp 84 100000 60 2000 2 2 | tee out.txt",
        "for i in 1 2 3; do ./siitperf-tp 84 100000 60 2000 2 2; done",
        "(date; sudo ./siitperf-tp 84 100000 60 2000 2 2)|tail -1",
        "+ ./siitperf-tp 84 100000 60 2000 2 2 # the first",
        "ssh tester 'sudo ./siitperf-tp 84 100000 60 2000 2 2; date'",
        "LD_LIBRARY_PATH=/opt/lib siitperf-tp \\\n 84 100000 60 2000 2 2 &",
    ],
)
def test_a_command_line_is_read_as_it_was_typed(evenhand: Run, tmp_path: Path, typed: str) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS)
    plain = evenhand(
        "import", conf, "--command", "siitperf-tp 84 100000 60 2000 2 2", "-o", "a.toml", "--json"
    )
    assert plain.code == 0
    ended = evenhand("import", conf, "--command", typed, "-o", "b.toml", "--json")
    assert ended.json["keys"] == plain.json["keys"]


@pytest.mark.parametrize(
    ("n", "m", "mix"),
    [(1000, 501, "1/1"), (1000, 999, "99/1"), (1000, 1, "1/99"), (7, 3, "3/4"), (100, 37, "37/63")],
)
def test_a_share_is_one_that_the_command_takes(
    evenhand: Run, engine_playing: Play, tmp_path: Path, n: int, m: int, mix: str
) -> None:
    """R5180-14: shares are exact among 100 frames; the nearest of these is named as such."""
    conf = write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS)
    line = f"siitperf-tp 84 1000 1 2000 {n} {m}"
    ended = evenhand("import", conf, "--command", line, *WHOLE, "--json")
    words = ended.json["commands"][0]["words"]
    assert words[words.index("--mix") + 1] == mix
    is_exact = n <= 100
    assert outcomes(ended.json)["<m>"][0] == ("mapped" if is_exact and mix == f"{m}/{n - m}" else "differs")
    engine_playing("simulated-640000")
    assert main([*words[1:], "--no-run"]) == 0


def test_more_connections_than_four_tuples_are_refused(evenhand: Run, tmp_path: Path) -> None:
    """R9693-04: the command could not run."""
    keys = {
        **ROUTER_KEYS,
        **PORTS,
        "Stateful": "1",
        "Enumerate-ports": "3",
        "Fwd-sport-min": "10000",
        "Fwd-sport-max": "10099",
        "Fwd-dport-min": "80",
        "Fwd-dport-max": "179",
    }
    conf = write_conf(tmp_path / "siitperf.conf", keys)
    for number, is_taken in ((4_000_000, False), (10_001, False), (10_000, True)):
        line = f"siitperf-tp 84 1000 1 2000 2 2 {number} {number} 1000 2000 1000"
        ended = evenhand("import", conf, "--command", line, "-o", f"{number}.toml", "--json")
        became, text = outcomes(ended.json)["<N>"]
        verbs = [command["words"][1] for command in ended.json["commands"]]
        if is_taken:
            assert (became, verbs) == ("mapped", ["connections", "capacity", "trial", "throughput"])
        else:
            assert (ended.code, became, verbs) == (1, "refused", ["capacity"])
            assert "10,000 four tuples" in text
