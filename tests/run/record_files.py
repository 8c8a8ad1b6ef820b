# SPDX-License-Identifier: Apache-2.0
"""Measures the recorded run files of `tests/run/files/` anew: on the simulated device of tests/matrix, and
two of them with the built engine on the reference router.

`python -m tests.run.record_files [NAME ...]` writes all of them, or those with these names. It is needed when
the format of run files changes, or when there is a new procedure: times and host facts of a new recording
differ, and so do the digests of `tests.run.goldens`. Otherwise the files stay as they are.
"""

from __future__ import annotations

import io
import lzma
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from evenhand.cli.main import main as run_command
from evenhand.procedure.registry import PROCEDURES
from evenhand.run.run_file import SUFFIX
from tests.cli.running import TESTBED, Ended
from tests.matrix.cells import DEVICES, Cell, Family, Outcome, Ports, Way
from tests.matrix.measuring import Bench, SimulatedSession
from tests.run.goldens import FILES as FOLDER
from tests.run.goldens import PACKED

VERSIONS = {"v4": Family.IPV4, "v6": Family.IPV6}
TESTER_CEILING = "640000-200000"
"""A device that forwards more than the tester offers."""
AWAY = "640000------0.02"
"""A tester that is away for two hundredths of the time, where that is left out."""
QUICK = ("--duration", "1s", "--final-duration", "2s", "--precision", "5%", "--maximum-rate", "1Mfps")
COMMON = ("--hosts", "20", "--seed", "7", "--waits", "short")
CAMPAIGN = """
name = "two-suites"
testbed = "testbed.toml"
seed = 7
[hooks]
before-point = 'test "$EVENHAND_POINT" != "network/throughput/64/n=4"'

[[suite]]
name = "network"
plan = "PLAN"
hosts = [1, 4, 16]
frame-sizes = [SIZE]
repetitions = 2
maximum-rate = "1Mfps"
duration = "1s"
final-duration = "2s"
precision = "5%"
waits = "short"

[[suite]]
name = "delays"
procedure = ["throughput", "latency", "ipdv"]
plan = "PLAN"
hosts = [4]
repetitions = 1
inner-repetitions = 2
from = "0s"
tagged = 5
one-pair-first = false
maximum-rate = "1Mfps"
duration = "1s"
final-duration = "2s"
precision = "5%"
waits = "short"
"""
"""Two suites: points with several repetitions, one without a number since its hook fails, and delays at a
throughput that is found first."""


REFERENCE = """
name = "reference"
testbed = "reference"
seed = 7

[reference]
elements = 4
rate = "3kfps"
queue-frames = 64

[[suite]]
name = "addresses"
plan = "PLAN"
procedure = ["throughput", "latency"]
hosts = [1, 16]
repetitions = 2
maximum-rate = "10kfps"
duration = "500ms"
final-duration = "500ms"
precision = "20%"
inner-repetitions = 1
from = "0s"
tagged = 20
waits = "short"
"""


class Recording:
    """A folder in which commands run on a simulated engine; each command has an engine of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._bench = Bench(folder=folder, evenhand=self.run, patch=patch)
        self._patch = patch

    def run(self, *words: str | Path) -> Ended:
        """A command line in this process; AssertionError if it ends with anything but 0, 1 or 130."""
        out, err = io.StringIO(), io.StringIO()
        command = [str(word) for word in words]
        self._patch.setattr(sys, "argv", ["evenhand", *command])  # the run file has it
        with redirect_stdout(out), redirect_stderr(err):
            code = run_command(command)
        assert code in (0, 1, 130), f"{words}: {code}\n{err.getvalue()}"
        return Ended(code, out.getvalue(), err.getvalue())

    def measure(self, cell: Cell, target: Path) -> None:
        self._bench.prepare(cell)
        self._bench.measure(cell, target)

    def play(self, device: str, *, stops_at: int | None = None, dies_at: int | None = None) -> None:
        """Prepare the engine and the testbed for commands of their own.

        Args:
            stops_at: Ctrl-C comes instead of this trial.
            dies_at: The device is gone from this trial on.
        """
        self._bench.prepare(_cell("throughput", Family.IPV4))
        self._patch.setattr(SimulatedSession, "device", device)
        self._patch.setattr(SimulatedSession, "stops_at", stops_at)
        self._patch.setattr(SimulatedSession, "dies_at", dies_at)
        Path("testbed.toml").write_text(f'{TESTBED}[dut]\nempty_connections = "rm -f table"\n')


def _cell(procedure: str, family: Family, outcome: Outcome = Outcome.FOUND, *, way: Way = Way.VERB) -> Cell:
    if PROCEDURES[procedure].verb is None:
        way = Way.CAMPAIGN
    return Cell(procedure=procedure, way=way, family=family, ports=Ports.WITH_LINE_RATE, outcome=outcome)


def _verb(words: Sequence[str], device: str, at: Recording, target: Path) -> None:
    at.play(device)
    at.run(words[0], "testbed.toml", *words[1:], *COMMON, "--run", target)


def _dies(at: Recording, target: Path) -> None:
    """The device is gone from the third trial on."""
    at.play(DEVICES[Outcome.FOUND], dies_at=3)
    at.run("loss", "testbed.toml", *LOSS, *COMMON, "--run", target)


def _cell_file(cell: Cell, at: Recording, target: Path) -> None:
    at.measure(cell, target)


def _campaign(plan: str, size: str, stops_at: int | None, at: Recording, target: Path) -> None:
    at.play(DEVICES[Outcome.FOUND], stops_at=stops_at)
    text = CAMPAIGN.replace("PLAN", plan).replace("SIZE", size)
    Path("two-suites.toml").write_text(text.replace("network/throughput/64", f"network/throughput/{size}"))
    at.run("run", "two-suites.toml", "--run", target, "--no-html")


def _reference(plan: str, at: Recording, target: Path) -> None:
    """By the built engine, on the reference router: its configuration, what is inside of it, and trials with
    all verdicts."""
    Path("reference.toml").write_text(REFERENCE.replace("PLAN", plan))
    at.run("run", "reference.toml", "--run", target, "--no-html")


def _resumed(at: Recording, target: Path) -> None:
    """A campaign that was cut short and gone on with: two sessions, and a repetition in two attempts."""
    _campaign("gateway-v4", "64", 20, at, target)
    at.play(DEVICES[Outcome.FOUND])
    at.run("run", "--resume", target, "--no-html")


def _merged(at: Recording, target: Path) -> None:
    """The same verb twice, in one file."""
    for number in (1, 2):
        _verb(("loss", *LOSS), DEVICES[Outcome.FOUND], at, Path(f"merged-{number}.evenhand"))
    at.run("merge", "merged-1.evenhand", "merged-2.evenhand", "--run", target)


LOSS = ("--plan", "gateway-v6", "--duration", "1s", "--maximum-rate", "1Mfps")
TABLE = ("throughput", "--frame-size", "84,128,imix:bdf", "--repetitions", "2", *QUICK)
TRIAL = ("trial", "--rate", "400kfps", "--duration", "1s", "--direction", "both")
FILES: Mapping[str, Callable[[Recording, Path], None]] = {
    **{
        f"{procedure}-{version}": partial(_cell_file, _cell(procedure, family))
        for procedure in PROCEDURES
        for version, family in VERSIONS.items()
    },
    "throughput-translated": partial(_cell_file, _cell("throughput", Family.TRANSLATED)),
    "connections-translated": partial(_cell_file, _cell("connections", Family.TRANSLATED)),
    "throughput-below-minimum": partial(_cell_file, _cell("throughput", Family.IPV6, Outcome.BELOW_MINIMUM)),
    "throughput-lower-bound": partial(_cell_file, _cell("throughput", Family.IPV4, Outcome.LOWER_BOUND)),
    "throughput-python": partial(_cell_file, _cell("throughput", Family.IPV4, way=Way.PYTHON)),
    "loss-worker": partial(_cell_file, _cell("loss", Family.IPV6, way=Way.WORKER)),
    "throughput-nothing": partial(
        _cell_file, _cell("throughput", Family.IPV4, Outcome.NOTHING, way=Way.CAMPAIGN)
    ),
    "loss-device-gone": _dies,
    "throughput-table-v4": partial(_verb, (*TABLE, "--plan", "gateway-v4"), DEVICES[Outcome.FOUND]),
    "throughput-table-v6": partial(_verb, (*TABLE, "--plan", "gateway-v6"), DEVICES[Outcome.FOUND]),
    "throughput-one-pair": partial(
        _verb, ("throughput", "--one-pair-first", *QUICK, "--plan", "gateway-v4"), DEVICES[Outcome.FOUND]
    ),
    "throughput-mix": partial(
        _verb,
        ("throughput", *QUICK, "--plan", "gateway-v4+gateway-v6", "--mix", "9/1"),
        DEVICES[Outcome.FOUND],
    ),
    "throughput-mlr": partial(
        _verb, ("throughput", *QUICK, "--search", "mlr", "--plan", "gateway-v6"), DEVICES[Outcome.FOUND]
    ),
    "throughput-nat44": partial(
        _verb,
        ("throughput", *QUICK, "--plan", "nat44", "--established", "500", "--establish-rate", "1kfps"),
        "300000--64",
    ),
    "throughput-tester-ceiling": partial(
        _verb, ("throughput", *QUICK, "--plan", "gateway-v6"), TESTER_CEILING
    ),
    "throughput-clean-time": partial(
        _verb, ("throughput", *QUICK, "--clean-time", "--plan", "gateway-v4"), AWAY
    ),
    "trial-fail-v4": partial(_verb, (*TRIAL, "--plan", "gateway-v4"), DEVICES[Outcome.FOUND]),
    "trial-fail-v6": partial(_verb, (*TRIAL, "--plan", "gateway-v6"), DEVICES[Outcome.FOUND]),
    "campaign-v4": partial(_campaign, "gateway-v4", "64", None),
    "campaign-v6": partial(_campaign, "gateway-v6", "84", None),
    "campaign-cut-short": partial(_campaign, "gateway-v6", "84", 20),
    "campaign-resumed": _resumed,
    "merged": _merged,
    "reference-v4": partial(_reference, "gateway-v4"),
    "reference-v6": partial(_reference, "gateway-v6"),
}
"""What each file is of."""


def main() -> None:
    wanted = sys.argv[1:] or list(FILES)
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", f"{folder}/state")
            patch.setattr(sys, "argv", ["measure.py"])
            patch.chdir(folder)
            FILES[name](Recording(Path(folder), patch), Path(f"{name}{SUFFIX}"))
            packed = lzma.compress(Path(f"{name}{SUFFIX}").read_bytes(), preset=9)
        (FOLDER / f"{name}{PACKED}").write_bytes(packed)
        print(f"{len(packed):9,} {name}")


if __name__ == "__main__":
    main()
