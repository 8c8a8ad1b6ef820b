# SPDX-License-Identifier: Apache-2.0
"""The programs that `evenhand check` names as those that took the CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.host.clock import check_absences
from evenhand.host.programs import ProcessTimes, ProgramUse, busiest_programs, read_process_times
from evenhand.trial import CpuAbsences, Watch, WatchedClock

TICKS = os.sysconf("SC_CLK_TCK")


def look(root: Path, at_s: float, *processes: tuple[int, str, int, float, int]) -> ProcessTimes:
    """Processes as (pid, name, parent, CPU seconds, start)."""
    for folder in root.glob("proc/*"):
        (folder / "stat").unlink()
        folder.rmdir()
    for pid, name, parent, seconds, start in processes:
        user = round(seconds * TICKS)
        folder = root / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(
            f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {user} 0 7 9 20 0 1 0 {start} 0 0\n"
        )
    found = read_process_times(root)
    return ProcessTimes(at_s=at_s, processes=found.processes)


def test_the_busiest_come_first_and_idle_ones_are_not_named(tmp_path: Path) -> None:
    before = look(
        tmp_path, 10.0, (5, "cc1plus", 1, 3.0, 50), (6, "Web (X) 1", 1, 1.0, 60), (7, "sshd", 1, 0.0, 1)
    )
    after = look(
        tmp_path, 14.0, (5, "cc1plus", 1, 5.0, 50), (6, "Web (X) 1", 1, 4.0, 60), (7, "sshd", 1, 0.1, 1)
    )
    assert busiest_programs(before, after, own_pid=99) == (
        ProgramUse(name="Web (X) 1", busy_share=0.75, pids=(6,)),
        ProgramUse(name="cc1plus", busy_share=0.5, pids=(5,)),
    )


def test_processes_of_one_name_are_summed_and_a_reused_pid_counts_from_its_own_start(tmp_path: Path) -> None:
    before = look(tmp_path, 0.0, (5, "cc1plus", 1, 8.0, 50), (8, "cc1plus", 1, 1.0, 55))
    after = look(
        tmp_path, 4.0, (5, "cc1plus", 1, 1.0, 950), (8, "cc1plus", 1, 3.0, 55), (9, "cc1plus", 1, 1.0, 970)
    )
    (use,) = busiest_programs(before, after, own_pid=99)
    assert (use.busy_share, use.pids) == (1.0, (5, 8, 9))


def test_the_tester_itself_and_its_engine_are_left_out(tmp_path: Path) -> None:
    before = look(tmp_path, 0.0)
    after = look(
        tmp_path,
        1.0,
        (20, "python3", 1, 1.0, 5),
        (21, "evenhand-engine", 20, 1.0, 6),
        (22, "lcore", 21, 1.0, 6),
    )
    assert busiest_programs(before, after, own_pid=20) == ()
    assert len(busiest_programs(before, after, own_pid=21)) == 1


@pytest.mark.parametrize("text", ["", "12", "12 (x) S 1", "no brackets at all"])
def test_a_stat_that_is_gone_or_cut_off_is_passed_over(tmp_path: Path, text: str) -> None:
    look(tmp_path, 0.0, (5, "x", 1, 0.0, 0))
    (tmp_path / "proc/5/stat").write_text(text)
    (tmp_path / "proc/self").mkdir()
    assert not read_process_times(tmp_path).processes


def test_a_real_program_that_computes_is_found() -> None:
    """In /proc of this machine; the program reports that it has used a tenth of a second of CPU time."""
    before = read_process_times()
    text = "import sys, time\nwhile time.process_time() < 0.1: pass\nprint(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = read_process_times()
        child.communicate("")
    at_once = ProcessTimes(at_s=before.at_s + 1.0, processes=after.processes)
    assert child.pid not in [pid for use in busiest_programs(before, at_once) for pid in use.pids]
    seen = after.processes[child.pid]
    assert seen.ticks >= round(0.1 * TICKS) - 1


def test_the_advice_names_the_programs_and_their_processes() -> None:
    cpu = CpuAbsences(cpu=1, absences=40, longest_us=4000.0, away_us=900_000.0, stolen_us=0.0)
    clock = WatchedClock(source="tsc", ticks_per_second=2.6e9, error_ppm_raw=0.0, error_ppm_monotonic=0.0)
    watched = Watch(seconds=5.0, cpus=(cpu,), clock=clock)
    uses = (
        ProgramUse(name="cc1plus", busy_share=1.514, pids=(7, 8, 9, 10)),
        ProgramUse(name="find", busy_share=0.06, pids=(3,)),
    )
    found = check_absences(watched, uses)
    assert "cc1plus 151 % (processes 7, 8, 9, ...), find 6 % (process 3)" in found.advice
    assert found.facts["programs"][0] == {"name": "cc1plus", "busy_share": 1.514, "pids": (7, 8, 9, 10)}
    assert "Find out what else runs" in check_absences(watched).advice
    own = (
        ProgramUse(name="evenhand-engine", busy_share=0.87, pids=(5,)),
        ProgramUse(name="napi/ehdl-linux", busy_share=0.2, pids=(6,)),
    )
    alone, beside = check_absences(watched, own).advice, check_absences(watched, (*own, *uses)).advice
    assert "of Evenhand is at work itself: evenhand-engine 87 % (process 5)" in alone
    assert "Find out what else runs" in alone
    assert "one CPU): cc1plus 151 %" in beside
