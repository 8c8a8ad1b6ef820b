# SPDX-License-Identifier: Apache-2.0
"""Two real engines; the clock of the host of one or both jumps. A trial is INVALID then, and the reason names
the engine; before a trial it is an error. Nobody waits until the clocks agree again."""

from __future__ import annotations

import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.trial import (
    EngineGroup,
    EngineMeasurer,
    EngineMember,
    EngineSession,
    Limits,
    TrialResult,
    Verdict,
    Waits,
    engine_group,
    find_engine,
)
from tests.errors import raises
from tests.wire.several_engines import open_group, silent_ports
from tests.wire.wire_session import FAST_WAITS, PATIENT, versions

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]
WAITS = Waits(**{**FAST_WAITS, "after_routing_s": 0.6})
LIMITS = replace(Limits(), **PATIENT, overdue_after_us=1e7)
BEFORE_SENDING_S, WHILE_SENDING_S = 0.4, 2.0
"""From the request of a trial: within its first wait, and among its frames."""
JUMPING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static volatile long long *ahead_ns;
static clockid_t jumping;
__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("AHEAD_NS"), O_RDONLY);
  ahead_ns = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
  jumping = atoi(getenv("JUMPING_CLOCK"));
}
int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int error = next(clock, time);
  if (error == 0 && clock == jumping) {
    long long ns = time->tv_sec * 1000000000LL + time->tv_nsec + *ahead_ns;
    time->tv_sec = ns / 1000000000LL;
    time->tv_nsec = ns % 1000000000LL;
  }
  return error;
}
"""


@dataclass
class Clock:
    """The time of day of an engine's host."""

    file: Path
    timers: list[threading.Timer] = field(default_factory=list)

    def jump(self, ahead_s: float) -> None:
        """From now on it is so far ahead of the true one."""
        with self.file.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", round(ahead_s * 1e9)))

    def jump_in(self, wait_s: float, ahead_s: float) -> None:
        timer = threading.Timer(wait_s, self.jump, [ahead_s])
        self.timers.append(timer)
        timer.start()


@pytest.fixture(scope="module")
def jumping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that lets the time of day of one process jump."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("jumping")
    (folder / "jumping.c").write_text(JUMPING)
    library = folder / "jumping.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "jumping.c"], check=True)
    return library


@contextmanager
def two_engines(
    library: Path, folder: Path, clock_id: int = time.CLOCK_REALTIME
) -> Iterator[tuple[EngineGroup, list[Clock]]]:
    """As if each were on a host of its own."""
    clocks, members = [], []
    with ExitStack() as stack:
        for name in "ab":
            clock = Clock(folder / f"{name}.ahead")
            clock.file.write_bytes(bytes(4096))
            command: list[str | Path] = [
                "env",
                f"LD_PRELOAD={library}",
                f"AHEAD_NS={clock.file}",
                f"JUMPING_CLOCK={clock_id}",
                find_engine(),
            ]
            session = stack.enter_context(EngineSession(command))
            members.append(EngineMember(name=name, session=session, streams=1, is_here=False))
            clocks.append(clock)
        yield EngineGroup(members, start_difference_us=100_000), clocks
        for clock in clocks:
            for timer in clock.timers:
                timer.join()


def measure(group: EngineGroup, *, duration_s: float = 2.0) -> TrialResult:
    return EngineMeasurer(session=group, waits=WAITS, limits=LIMITS).measure(duration_s, 1000)


def reasons_of(result: TrialResult, code: str) -> list[str]:
    return [reason.text for reason in result.reasons if reason.code == code]


@pytest.mark.thorough
@versions(proved="v6")
def test_a_clock_that_jumps_in_mid_trial_makes_it_invalid_and_the_next_is_refused(
    plan: AddressPlan, jumping: Path, tmp_path: Path
) -> None:
    with two_engines(jumping, tmp_path) as (group, (_, b)):
        open_group(group, plan, silent_ports(2))
        b.jump_in(WHILE_SENDING_S, 2.0)
        result = measure(group)
        assert result.verdict is Verdict.INVALID
        (reason,) = reasons_of(result, "clock_difference")
        moved_us = int(reason.removeprefix("b: its clock moved by ").split()[0])
        assert moved_us == pytest.approx(2e6, abs=1e5)
        with raises(
            "trial.engine-clock-off", match=r"engine b is [12]\.\d+ s ahead of this machine's \(limit 0.1 s\)"
        ):
            measure(group)
        b.jump(0.0)  # as NTP does, before long
        assert reasons_of(measure(group), "clock_difference") == []


@pytest.mark.thorough
def test_two_clocks_that_jump_are_both_named(jumping: Path, tmp_path: Path) -> None:
    with two_engines(jumping, tmp_path) as (group, (a, b)):
        open_group(group, gateway_v4(), silent_ports(2))
        a.jump_in(WHILE_SENDING_S, 3600.0)
        b.jump_in(WHILE_SENDING_S, -3600.0)
        result = measure(group)
    assert result.verdict is Verdict.INVALID
    assert [reason.split(":")[0] for reason in reasons_of(result, "clock_difference")] == ["a", "b"]


@pytest.mark.thorough
@pytest.mark.parametrize("ahead_s", [-900.0, 900.0])
@pytest.mark.parametrize("jumps", [("b",), ("a", "b")])
def test_a_time_of_day_that_jumps_before_they_send_moves_no_start(
    jumping: Path, tmp_path: Path, jumps: tuple[str, ...], ahead_s: float
) -> None:
    """The start is read from it once: they begin together and in time, the trial is INVALID, and the reason
    names the engines whose clock moved. Where both went back, the trial took a minute, and the engines were
    lost."""
    with two_engines(jumping, tmp_path) as (group, clocks):
        open_group(group, gateway_v6(), silent_ports(2))
        for name, clock in zip("ab", clocks, strict=True):
            if name in jumps:
                clock.jump_in(BEFORE_SENDING_S, ahead_s)
        began_s = time.monotonic()
        result = measure(group, duration_s=0.5)
        assert time.monotonic() - began_s < 15
    assert result.verdict is Verdict.INVALID
    assert [reason.split(":")[0] for reason in reasons_of(result, "clock_difference")] == list(jumps)
    assert reasons_of(result, "engine_lost") == []


@pytest.mark.thorough
def test_an_engine_whose_machine_goes_back_before_it_sends_is_not_waited_for(
    jumping: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its CLOCK_MONOTONIC, as in a virtual machine that is set back: it would begin a quarter of an hour
    after the other one."""
    monkeypatch.setattr(engine_group, "LAST_AFTER_FIRST_S", 1.0)
    with two_engines(jumping, tmp_path, time.CLOCK_MONOTONIC) as (group, (_, b)):
        open_group(group, gateway_v6(), silent_ports(2))
        b.jump_in(BEFORE_SENDING_S, -900.0)
        began_s = time.monotonic()
        result = measure(group)
        assert time.monotonic() - began_s < 30
        assert result.verdict is Verdict.INVALID
        assert [reason.split(":")[0] for reason in reasons_of(result, "engine_lost")] == ["b"]
        assert "the clock of its host may have jumped" in " ".join(reason.text for reason in result.reasons)


def test_an_engine_whose_clock_goes_on_before_it_sends_says_so(jumping: Path, tmp_path: Path) -> None:
    with two_engines(jumping, tmp_path) as (group, (_, b)):
        open_group(group, gateway_v4(), silent_ports(2))
        b.jump_in(BEFORE_SENDING_S, 900.0)
        result = measure(group, duration_s=0.5)
        assert result.verdict is Verdict.INVALID
        assert any(reason.text.startswith("b: ") for reason in result.reasons)
