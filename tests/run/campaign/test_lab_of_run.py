# SPDX-License-Identifier: Apache-2.0
"""A campaign on a lab: set up for each suite, one testbed all the way, and given back as it was found,
whatever ends the campaign."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.base.locks import holder_of
from evenhand.lab import LinuxLab, lab_down, lab_status, lab_up
from evenhand.lab.borrow import BORROWED_DIRECTORY, borrowing, kind_of
from evenhand.plan import make_plan
from evenhand.run import read_record
from evenhand.run.campaign_record import CampaignRecord
from tests.wire.wire_session import proved

pytestmark = [pytest.mark.wire, pytest.mark.root]
GUARD_S = 300
CAMPAIGN = """
name = "labs"
testbed = "lab:{lab}"
[every-suite]
procedure = "loss"
hosts = 1
repetitions = 1
maximum-rate = "1kfps"
step = "10%"
duration = "{duration}"
waits = "short"
patience = 30
invalid-retries = 30
offered-tolerance = "9%"
overdue-tolerance = "99%"
longest-overdue = "10s"
[[suite]]
name = "gateway-v4"
plan = "gateway-v4"
hosts = [1, 8]
[[suite]]
name = "gateway-v6"
plan = "gateway-v6"
frame-sizes = [84, 4000]
[[suite]]
name = "direct-v6"
plan = "direct-v6"
"""


@pytest.fixture
def lab() -> Iterator[str]:
    """The name of a lab that is down, and that no other test has."""
    name = f"linux-{os.getpid() % 1000:03}"
    assert kind_of(name) == "linux"
    yield name
    wait_until(lambda: holder_of(borrowing(name)) is None, "somebody still has the lab")
    lab_down(name)


def start(folder: Path, lab: str, *arguments: str, duration: str = "200ms") -> subprocess.Popen[str]:
    (folder / "labs.toml").write_text(CAMPAIGN.format(lab=lab, duration=duration))
    command = [
        sys.executable,
        "-m",
        "evenhand",
        *(arguments or ("run", "labs.toml", "--run", "labs.evenhand", "--no-html")),
    ]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    give_up = time.monotonic() + GUARD_S
    while not holds():
        assert time.monotonic() < give_up, otherwise
        time.sleep(0.05)


def rules_of(record: CampaignRecord) -> set[int]:
    """Rules of the firewall in front of each search."""
    return {
        search.setup["dut"].get("firewall_rules", 0)
        for point in record.points
        for repetition in point.repetitions
        for search in repetition.searches
        if search.setup.get("dut")
    }


def has_trial(record: CampaignRecord) -> bool:
    """A campaign without one keeps no file."""
    return any(
        search.trials
        for point in record.points
        for repetition in point.repetitions
        for search in repetition.searches
    )


def is_given_back(lab: str) -> bool:
    return not (BORROWED_DIRECTORY / f"{lab}.json").exists() and holder_of(borrowing(lab)) is None


@pytest.mark.thorough
def test_a_lab_follows_the_campaign_from_suite_to_suite_and_stays_one_testbed(
    lab: str, tmp_path: Path
) -> None:
    """SEED-05, R8219-20: IPv4 and IPv6, behind gateways and on the link, frames of 4000 octets; the lab was
    down, and is down again."""
    process = start(tmp_path, lab)
    _, errors = process.communicate(timeout=GUARD_S)
    record = read_record(tmp_path / "labs.evenhand")
    assert [str(point.state) for point in record.points] == ["measured"] * 5, errors
    assert list(record.testbeds) == [f"lab:{lab}"]
    assert record.notes == ()
    set_up_for = {
        s.setup["dut"]["plan"] for point in record.points for r in point.repetitions for s in r.searches
    }
    assert set_up_for == {"gateway_v4", "gateway_v6", "direct_v6"}
    assert lab_status(lab) is None
    assert is_given_back(lab)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "was_up"),
    [
        (signal.SIGINT, True),
        (signal.SIGTERM, False),
        (signal.SIGKILL, True),
        *proved((signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGKILL, False)),
    ],
)
def test_a_campaign_that_is_ended_leaves_the_lab_as_it_found_it(
    lab: str, tmp_path: Path, number: signal.Signals, was_up: bool
) -> None:
    """Down, or up for another plan; after kill -9 too, and whoever goes on with the campaign at once waits
    for that."""
    before = lab_up(make_plan("gateway-v6", (5, 7)), name=lab) if was_up else None
    process = start(tmp_path, lab, duration="20s")

    def is_measuring() -> bool:
        now = lab_status(lab)
        return isinstance(now, LinuxLab) and now.plan == "gateway_v4" and now != before

    wait_until(is_measuring, "the lab was not set up")
    time.sleep(1)
    os.kill(process.pid, number)
    process.communicate(timeout=GUARD_S)
    if number == signal.SIGKILL:
        # Whoever is there at once is not refused.
        again = start(
            tmp_path,
            lab,
            "run",
            "labs.toml",
            "--run",
            "labs.evenhand",
            "--no-html",
            "--resume",
            duration="20s",
        )
        wait_until(is_measuring, "the campaign did not go on")
        again.terminate()
        again.communicate(timeout=GUARD_S)
    wait_until(lambda: is_given_back(lab), "the lab was not given back")
    assert lab_status(lab) == before


@pytest.mark.thorough
def test_a_second_campaign_on_a_lab_is_refused_with_who_has_it(lab: str, tmp_path: Path) -> None:
    """It would set it up for plans of its own."""
    process = start(tmp_path, lab, duration="20s")
    wait_until(lambda: lab_status(lab) is not None, "the lab was not set up")
    other = start(tmp_path, lab, "run", "labs.toml", "--run", "other.evenhand", "--no-html", duration="20s")
    _, errors = other.communicate(timeout=GUARD_S)
    assert other.returncode == 3
    assert f"the lab '{lab}' is in use by process {process.pid}" in errors
    process.terminate()
    process.communicate(timeout=GUARD_S)
    assert is_given_back(lab)


@pytest.mark.thorough
def test_a_campaign_finds_out_how_many_rules_its_lab_takes_and_goes_on_with_as_many(
    lab: str, tmp_path: Path
) -> None:
    """The same for both IP versions, and after it was stopped; the option goes before the file."""
    toml = CAMPAIGN.format(lab=lab, duration="200ms").replace('name = "labs"', 'name = "labs"\nrules = 7', 1)
    (tmp_path / "rules.toml").write_text(toml.partition('[[suite]]\nname = "direct-v6"')[0])
    run = ("run", "rules.toml", "--run", "rules.evenhand", "--no-html")
    process = start(tmp_path, lab, *run, "--rules", "auto")
    path = tmp_path / "rules.evenhand"

    def has_results() -> bool:
        with suppress(EvenhandError):  # the file has just been made
            return path.exists() and bool(rules_of(record := read_record(path))) and has_trial(record)
        return False

    wait_until(lambda: has_results() or process.poll() is not None, "nothing was measured")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=GUARD_S)
    assert path.exists(), errors
    record = read_record(path)
    (note,) = [note for note in record.notes if "rules" in note or "firewall" in note]
    (chosen,) = rules_of(record)
    assert f"can be seen: {chosen:,} rules." in note or (chosen == 0 and "has no firewall" in note), errors
    again = start(tmp_path, lab, "run", "--resume", "rules.evenhand", "--no-html")
    _, errors = again.communicate(timeout=GUARD_S)
    record = read_record(path)
    assert [str(point.state) for point in record.points] == ["measured"] * 4, errors
    assert rules_of(record) == {chosen}
    assert list(record.testbeds) == [f"lab:{lab}"]
    assert [each for each in record.notes if "firewall" in each or "rules" in each] == [note]
    assert lab_status(lab) is None
