# SPDX-License-Identifier: Apache-2.0
"""`evenhand bisect`: which of many builds of a DUT was the first that is slower, or faster."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.analysis.first_change import ChangeGoal, FirstChange, Measured, believe, next_build
from evenhand.base.errors import HostError, RequestError
from evenhand.base.folders import read_state, replace_state
from evenhand.base.programs import run_shell_command
from evenhand.base.units import format_ratio, parse_duration, parse_ratio
from evenhand.base.visible import visible
from evenhand.cli.common import JsonOption, err, out, write_json
from evenhand.report.campaign_status import format_figure
from evenhand.run import SUFFIX, CampaignRecord, PointRecord, read_record
from evenhand.spec.file import read_campaign
from evenhand.spec.points import expand

EXAMPLE = (
    "Example: git rev-list --reverse v1.0^..main | evenhand bisect - --install 'ssh dut ./install"
    " $EVENHAND_BUILD' --campaign gate.toml --folder hunt"
)
VERSION = 1
NOT_BEGUN = "run.interrupted-before-it-began"
NAME = re.compile(rf"\d{{4,}}-build(\d+)(?:{re.escape(SUFFIX)}|\.skipped)")
MOST_MISSES = 3
"""Measurements of a build in a row without a number after which it is left out. One may be the fault of the
tester's machine, also where the build was measured before and could not be installed this time."""
WITHOUT_NUMBER = 1
"""Exit code: there is no answer."""


def bisect(
    builds: Annotated[
        Path,
        typer.Argument(
            metavar="BUILDS",
            help="A file with a build in each line, such as a commit: a good one first, a bad one last. - for"
            " stdin.",
        ),
    ],
    *,
    install: Annotated[
        str,
        typer.Option(
            "--install",
            metavar="COMMAND",
            help="A command for sh that installs the build $EVENHAND_BUILD on the DUT.",
        ),
    ],
    campaign: Annotated[
        str,
        typer.Option(
            "--campaign", metavar="CAMPAIGN", help="What is measured of each build: a campaign file."
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where the run of each measurement is kept. The same command goes on with what is there.",
        ),
    ],
    testbed: Annotated[
        str | None, typer.Option("--testbed", metavar="TESTBED", help="As for evenhand run.")
    ] = None,
    point: Annotated[
        str | None,
        typer.Option("--point", metavar="KEY", help="The point that counts. Default: the only one."),
    ] = None,
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="RATIO", help="Probability that the answer must have.")
    ] = "99%",
    smallest: Annotated[
        str, typer.Option("--smallest", metavar="RATIO", help="Smallest change that counts.")
    ] = "2%",
    most: Annotated[
        int, typer.Option("--most", metavar="N", min=6, help="Stop without an answer after N measurements.")
    ] = 200,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Time that the command may take.")
    ] = "10min",
    json_output: JsonOption = False,
) -> int:
    """Find the first build of a DUT that is slower or faster, with as few measurements as the noise
    allows.

    It measures both ends until their scatter is known, then the build that tells most, several times where
    one is not enough. A build that cannot be installed, or has no number, is left out. The exit code is 1
    without an answer.
    """
    goal = ChangeGoal(
        confidence=parse_ratio(confidence, where="--confidence"),
        smallest=parse_ratio(smallest, where="--smallest"),
        most=most,
    )
    _one_of(
        [each.key for each in expand(read_campaign(Path(campaign))).points], point
    )  # before it takes time
    hunt = _Hunt(
        builds=_read_builds(builds),
        install=install,
        timeout_s=parse_duration(timeout, where="--timeout"),
        command=["run", campaign, *([] if testbed is None else ["--testbed", testbed])],
        point=point,
        folder=folder,
    )
    hunt.open()
    measured, skipped = hunt.measured()
    while not isinstance(wanted := next_build(measured, len(hunt.builds), goal, skipped), FirstChange):
        hunt.measure(wanted)
        measured, skipped = hunt.measured()
        if measured:
            err().print(hunt.so_far(measured, goal), markup=False)
    if json_output:
        named = {"first": hunt.builds[wanted.low], "last": hunt.builds[wanted.high]}
        write_json(
            {"command": "bisect", **asdict(wanted), **named, "skipped": [hunt.builds[s] for s in skipped]}
        )
    else:
        out().print(hunt.sentence(wanted, goal), markup=False)
    return WITHOUT_NUMBER if wanted.kind == "undecided" else 0


@dataclass(slots=True)
class _Hunt:
    """The builds, and what was measured of them: a run file for each measurement."""

    builds: Sequence[str]
    install: str
    timeout_s: float
    command: Sequence[str]
    point: str | None
    folder: Path
    unit_of: str = ""
    began_with: int = 0
    """Files that were there when this command began."""

    def open(self) -> None:
        """RequestError if the folder is of another hunt."""
        self.folder.mkdir(parents=True, exist_ok=True)
        state = self.folder / "bisect.json"
        asked = {
            "builds": list(self.builds),
            "command": list(self.command),
            "point": self.point,
            "campaign": _digest(self.command[1]),
        }
        known, self.began_with = read_state(state, version=VERSION, key="asked"), len(self._files())
        if known is None and not self.began_with:
            replace_state(state, {"version": VERSION, "asked": asked})
        elif known != asked:
            raise RequestError(
                "this folder has measurements of other builds, or of another campaign",
                code="cli.other-bisection",
                where=f"--folder {self.folder}",
                next_step="Name another folder, or repeat the command as it was.",
            )

    def measured(self) -> tuple[list[tuple[int, float]], set[int]]:
        """Place and value of each measurement in their order, and the places of builds that have none."""
        values: list[tuple[int, float]] = []
        skipped: set[int] = set()
        misses: Counter[int] = Counter()  # since the last number of a build
        for number, (path, place) in enumerate(self._files()):
            record = _record(path) if path.suffix == SUFFIX else None
            if path.suffix == SUFFIX and _is_cut_short(record):
                continue  # it is gone on with
            is_end = place in (0, len(self.builds) - 1)
            if is_end and path.suffix != SUFFIX and number < self.began_with:
                continue  # without it there is no answer: who repeats the command wants another try
            found = None if record is None else self._point(record.points)
            if found is not None and found.statistics is not None and not found.is_at_least:
                values.append((place, found.statistics.median))
                del misses[place]
                continue
            misses[place] += 1
            # What was measured before can be installed: a command that fails then had a bad moment.
            is_impossible = found is None and not is_end and place not in {other for other, _ in values}
            if is_impossible or misses[place] == MOST_MISSES:
                skipped.add(place)
        return [(place, value) for place, value in values if place not in skipped], skipped

    def measure(self, place: int) -> None:
        """Install a build and measure it. HostError if the measurement itself is not possible."""
        build, files = self.builds[place], self._files()
        runs = {path: _record(path) for path, at in files if at == place and path.suffix == SUFFIX}
        cut_short = [path for path, record in runs.items() if _is_cut_short(record)]
        another = self.folder / f"{len(files) + 1:04d}-build{place}{SUFFIX}"
        path = next(iter(cut_short), another)
        err().print(f"Build {build} ({place + 1} of {len(self.builds)}):", markup=False, style="bold")
        environment = {"EVENHAND_BUILD": build}
        done = run_shell_command(self.install, timeout_s=self.timeout_s, environment=environment)
        if done.exit_code != 0:
            why = "did not end in time" if done.exit_code is None else f"ended with {done.exit_code}"
            another.with_suffix(".skipped").write_text(f"--install {why}\n{done.output}", encoding="utf-8")
            said = done.output.strip().rpartition("\n")[2]
            err().print(
                f"It was not installed: the command of --install {why}{': ' if said else '.'}{visible(said)}",
                markup=False,
                style="yellow",
            )
            return
        is_begun = runs.get(path) is not None
        if cut_short and not is_begun:
            path.unlink()
        verb = [*self.command, *(["--resume"] if is_begun else []), "--run", str(path), "--no-html"]
        ended = subprocess.run(
            [sys.executable, "-m", "evenhand", *verb], stdout=subprocess.DEVNULL, check=False
        )
        if ended.returncode not in (0, WITHOUT_NUMBER):
            raise HostError(
                f"the measurement of build {build} ended with exit code {ended.returncode}",
                code="cli.bisection-stopped",
                where=str(path),
                next_step="Remove the cause that is said above, then repeat the command: it goes on.",
            )

    def so_far(self, measured: Sequence[Measured], goal: ChangeGoal) -> str:
        """What is known by now."""
        belief = believe(measured, len(self.builds), goal)
        found = belief.set_of(goal.confidence)
        where = "" if found is None else f"; the first changed one is {self._between(*found)}"
        count, none = len(measured), format_ratio(round(belief.none, 3))
        return f"After {count} measurement{'s' * (count > 1)}: no change, with {none}{where}."

    def sentence(self, found: FirstChange, goal: ChangeGoal) -> str:
        """The answer for people."""
        sure, where = format_ratio(min(found.probability, 0.9999)), self._between(found.low, found.high)
        after = f"after {found.measurements} measurements"
        if found.kind == "none":
            smallest, least = format_ratio(goal.smallest), format_ratio(goal.confidence)
            return f"No change of {smallest} or more is there, with {least}, {after}."
        if found.kind == "undecided":
            return f"No answer {after}: the first changed build is {where}, with {sure}."
        before, since = (
            "?" if value is None else format_figure(self.unit_of, value)
            for value in (found.before, found.after)
        )
        return f"First changed: {where}, with {sure}, {after}. Before it {before}, from it on {since}."

    def _between(self, low: int, high: int) -> str:
        return self.builds[low] if low == high else f"one of {self.builds[low]} to {self.builds[high]}"

    def _files(self) -> list[tuple[Path, int]]:
        """Runs, and what says why there is none, with the places of their builds, in order."""
        found = ((path, NAME.fullmatch(path.name)) for path in sorted(self.folder.iterdir()))
        return [(path, int(name[1])) for path, name in found if name and int(name[1]) < len(self.builds)]

    def _point(self, points: Sequence[PointRecord]) -> PointRecord:
        key = _one_of([each.point.key for each in points], self.point)
        found = next(each for each in points if each.point.key == key)
        self.unit_of = found.point.procedure
        return found


def _one_of(keys: Sequence[str], point: str | None) -> str:
    """The key of the point that counts. RequestError if it is not clear which."""
    found = [key for key in keys if point in (None, key)]
    if len(found) != 1:
        raise RequestError(
            f"the campaign has {len(keys)} points, of which one is needed",
            code="cli.no-such-point",
            where="--point",
            next_step=f"Name one of: {', '.join(keys[:20])}",
        )
    return found[0]


def _record(path: Path) -> CampaignRecord | None:
    """The run of a file; None if its measurement was stopped before the file had one."""
    try:
        return read_record(path, with_trials=False)
    except RequestError as error:
        if error.code != NOT_BEGUN:
            raise
        return None


def _is_cut_short(record: CampaignRecord | None) -> bool:
    return record is None or record.finished_at is None


def _digest(campaign: str) -> str:
    """A digest of the file; empty for a preset."""
    path = Path(campaign)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _read_builds(path: Path) -> list[str]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"the builds cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}",
            code="cli.builds-not-readable",
            where=str(path),
            next_step="Name a file with a build in each line.",
        ) from error
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) < 2 or len(set(found)) < len(found):
        raise RequestError(
            f"{len(found)} builds, of which {len(set(found))} are different",
            code="cli.too-few-builds",
            where=str(path),
            next_step="Name at least two, each once: a good one first, a bad one last.",
        )
    return found
