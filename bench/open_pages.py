# SPDX-License-Identifier: Apache-2.0
"""What twenty open pages of a running run cost the tester: the server's CPU time while a campaign measures
the reference router, without a page and with twenty, and how many trials are INVALID in both.

They take turns, some seconds each, so that what else the machine does meets both alike.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from pieces import at_length, record

from evenhand.run import read_record

PAGES = 20
MOST_OF_A_CPU = 0.01
TURN_S = at_length(20, 3)
TURNS = at_length(4, 1)
CAMPAIGN = """\
name = "Pages"
testbed = "reference"
[reference]
elements = 2
rate = "20kfps"
[every-suite]
hosts = 16
repetitions = 50
maximum-rate = "60kfps"
duration = "4s"
final-duration = "4s"
waits = "short"
[[suite]]
name = "IPv4"
plan = "gateway-v4"
[[suite]]
name = "IPv6"
plan = "gateway-v6"
"""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(process: int) -> float:
    """CPU time that it has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def pages(address: str, count: int) -> Iterator[Counter[str]]:
    """So many browsers that listen; what they have heard, by kind."""
    heard: Counter[str] = Counter()
    opened = [urlopen(address) for _ in range(count)]

    def listen(stream: object) -> None:
        with suppress(OSError, ValueError, AttributeError):
            for line in stream:  # type: ignore[attr-defined]
                if line.startswith(b"event: "):
                    heard[line.decode().split()[1]] += 1

    threads = [threading.Thread(target=listen, args=(stream,), daemon=True) for stream in opened]
    for thread in threads:
        thread.start()
    yield heard
    for stream in opened:
        with suppress(OSError):
            stream.fp.raw._sock.shutdown(2)
    for thread in threads:
        thread.join(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "a.evenhand"
        (Path(folder) / "pages.toml").write_text(CAMPAIGN)
        command = [sys.executable, "-m", "evenhand"]
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        server = subprocess.Popen(
            [*command, "serve", folder, "--listen", "0"],
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            text=True,
        )
        measuring = subprocess.Popen(
            [*command, "run", "pages.toml", "--run", str(run), "--no-html"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
        )
        try:
            assert server.stderr is not None
            address = next(word for word in server.stderr.readline().split() if word.startswith("http"))
            while not run.exists():
                if measuring.poll() is not None:
                    raise SystemExit(f"open_pages: evenhand run ended ({measuring.returncode}) without a run")
                time.sleep(0.1)
            time.sleep(TURN_S)
            spent = {0: 0.0, PAGES: 0.0}
            verdicts: dict[int, Counter[str]] = {0: Counter(), PAGES: Counter()}
            seen, heard = count_verdicts(run), Counter[str]()
            began_s = time.monotonic()
            for turn in range(2 * TURNS):
                count = PAGES if turn % 2 else 0
                before_s = cpu_s(server.pid)
                with pages(f"{address}run/a.evenhand/events", count) as said:
                    time.sleep(TURN_S)
                spent[count] += cpu_s(server.pid) - before_s
                heard += said
                now = count_verdicts(run)
                verdicts[count] += now - seen
                seen = now
            lasted_s = time.monotonic() - began_s
        finally:
            for process in (measuring, server):
                process.send_signal(signal.SIGINT)
            measuring.wait()
            server.wait()
    shares = {count: each / (TURNS * TURN_S) for count, each in spent.items()}
    is_met = shares[PAGES] < MOST_OF_A_CPU
    print(
        f"{PAGES} pages: {shares[PAGES]:.2%} of a CPU, of which {shares[0]:.2%} without any; goal below"
        f" {MOST_OF_A_CPU:.0%}: {'met' if is_met else 'NOT MET'}; heard: {dict(heard)};"
        f" trials with pages {dict(verdicts[PAGES])}, without {dict(verdicts[0])}; {lasted_s:.0f} s"
    )
    record(
        "open_pages",
        {"pages": PAGES, "turn_s": TURN_S, "turns": TURNS, "heard": dict(heard)}
        | {f"verdicts_{count}": dict(found) for count, found in verdicts.items()},
        {
            f"{PAGES} pages, share of a CPU": shares[PAGES],
            "no page, share of a CPU": shares[0],
            f"{PAGES} pages, INVALID trials": verdicts[PAGES]["INVALID"],
            "no page, INVALID trials": verdicts[0]["INVALID"],
        },
    )


def count_verdicts(run: Path) -> Counter[str]:
    """The verdicts of all trials so far."""
    found = read_record(run)
    return Counter(
        str(trial.result.verdict)
        for point in found.points
        for repetition in point.repetitions
        for search in repetition.searches
        for trial in search.trials
    )


if __name__ == "__main__":
    main()
